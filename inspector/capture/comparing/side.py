"""One of two references that are shown beside each other: it reads like its capture, at its own frame."""

from __future__ import annotations

from typing import Any

from inspector.capture.comparable import Reference


class Side:
    """Attributes: reference, frame; beside: the other reference, whose numbers the range of colours covers too; first:
    whether it is what the other one is compared with."""

    def __init__(self, reference: Reference, beside: Reference, *, first: bool = False) -> None:
        self.reference, self.beside, self.frame, self.first = reference, beside, reference.frame, first

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reference.view, name)
