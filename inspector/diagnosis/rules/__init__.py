"""The shelf of rules: one file a rule."""
