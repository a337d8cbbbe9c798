"""The registry of rules: one file a rule, registered with `RULES.register(key)`. Begin reading with `nonfinite.py`."""
