"""inspector: see, step by step, what happens inside a sequence model."""
