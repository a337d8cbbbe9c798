"""Subjects for models that other people trained: how to open them, in a few lines each."""
