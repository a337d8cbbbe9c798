"""Opening a model."""
