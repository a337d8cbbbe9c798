"""The registry of loaders: one file for each checkpoint format. Every loader rejects what it cannot read safely.

`engine/contracts.py` has the protocol. Begin reading with `safetensors.py`.
"""
