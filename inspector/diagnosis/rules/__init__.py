"""The registry of rules: one file for each rule, registered with `RULES.register(key)`. Begin reading with
`nonfinite.py`."""
