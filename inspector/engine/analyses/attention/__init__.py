"""What attention did: relevance, rollout, parts of the logits, cost."""
