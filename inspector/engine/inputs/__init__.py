"""The registry of inputs: one file a kind of sequence (text, ids, files, audio, made signals).

An input turns an InputSpec into a Batch for a subject;
`engine/contracts.py` has the protocol. Begin reading with `ids.py`.
"""
