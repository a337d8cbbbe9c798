"""The shelf of inputs: one file a kind of sequence. An input turns an InputSpec into a Batch for a subject."""

from __future__ import annotations

from typing import Protocol

from inspector.engine.model.subject import Batch, Subject
from inspector.records import InputSpec


class Input(Protocol):
    """Makes a batch of sequences from what the user gave."""

    summary: str

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """The batch, padded, with step labels. Raises InputError with one clear sentence."""
