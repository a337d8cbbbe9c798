"""The registry of loaders: one file a checkpoint format. Every loader refuses what it cannot read safely.

`engine/contracts.py` has the protocol. Begin reading with `safetensors.py`.
"""
