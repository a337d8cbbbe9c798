"""What becomes of states between steps, calls and batches of a watched training."""
