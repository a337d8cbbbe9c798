"""One file a target, named as the target is."""
