"""Recurrent modules that a run noted as going along the sequences of its batch, as if they were steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from inspector.records import Refusal

ALONG = "Runs along the batch"
"""How the remark begins; it stands at the module's states."""


class Remarked(Protocol):
    """What a run noted beside its channels."""

    @property
    def refusals(self) -> Sequence[Refusal]:
        """What was not written, and why; remarks on what was."""


def along_batch(run: Remarked, frame: int) -> Iterator[Refusal]:
    """The remarks of a frame."""
    return (one for one in run.refusals if one.frame == frame and one.reason.startswith(f"{ALONG}:"))
