"""What the checks before a training mean, in words."""
