"""Folders of Hugging Face's as subjects: `config.json`, weights, and a tokenizer or an image processor.

transformers builds the model and reads the tokenizer; the weights are read by this package's own loaders. Nothing is
fetched, and no code of the folder runs.
"""
