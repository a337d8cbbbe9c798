"""The registry of probes: one file for each family of modules. A probe hooks into a model while it runs and fills a
Trace.

`engine/contracts.py` has the protocol. Begin reading with `fused_rnn.py`.
"""
