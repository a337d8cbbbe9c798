"""The registry of inputs: one file for each kind of sequence (text, ids, files, audio, generated signals).

An input turns an InputSpec into a Batch for a subject;
`engine/contracts.py` has the protocol. Begin reading with `ids.py`.
"""
