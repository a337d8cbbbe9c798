"""The registry of rules: one file a rule."""
