"""A run of many sequences, from what was asked for: the window's request, the command line's, or a Python caller's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspector.engine.data_set import run_data_set
from inspector.engine.errors import InputError
from inspector.engine.model.subject import Subject
from inspector.engine.pipeline import RunOptions
from inspector.engine.registries import INPUTS, input_options
from inspector.engine.sources import EXAMPLES, OWN, items
from inspector.engine.trace.emitter import Sink
from inspector.records import SEQUENCES, Frame, InputSpec, RunStart, data_spec, is_data_set
from inspector.records.options import OptionError, values_of

__all__ = ["ManySequences", "is_data_set"]


@dataclass(frozen=True, slots=True)
class ManySequences:
    """The subject, the spec of its data set, and the device of the model."""

    subject: Subject
    spec: InputSpec
    device: str = "cpu"
    named: bool = True
    """Whether the source can be named again; False for sequences that a Python caller gave."""

    @classmethod
    def of(
        cls, subject: Subject, data: Any, device: str, *, lines: bool = False, most: int | None = None
    ) -> ManySequences:
        """Of what a Python caller gave: a path, "examples", "subject", or the sequences themselves."""
        if isinstance(data, (str, Path)):
            return cls(subject, data_spec(str(data), lines=lines, most=most), device)
        given: Sequence[Any] | Mapping[str, Any] = data if hasattr(data, "items") else list(data)
        return cls(replace(subject, data=given), data_spec(OWN, lines=lines, most=most), device, named=False)

    @property
    def title(self) -> str:
        """What is run, in a few words."""
        words = {EXAMPLES: "all examples", OWN: "its own data"}
        return words.get(self.spec.value, Path(self.spec.value).name)

    def check(self, edits: Sequence[Any] = ()) -> None:
        """Raises InputError where the request cannot be met."""
        if edits:
            raise InputError("Changes apply to the run of one sequence; open one of the data set first.")
        try:
            values_of(input_options(INPUTS[SEQUENCES]) or (), dict(self.spec.options))
        except OptionError as problem:
            raise InputError(f"Many sequences {problem}.") from None
        next(items(self.subject, self.spec, 0), None)  # a source that cannot be read at all is bad input

    def noted(self, start: RunStart) -> RunStart:
        """The record of the run's beginning with the source, so that one of its sequences can be run later."""
        if not self.named:
            return start
        source = {"value": self.spec.value, "options": dict(self.spec.options)}
        return replace(start, meta={**start.meta, "data": source})

    def run(self, sink: Sink, options: RunOptions, label: str) -> int:
        """Run every sequence into one frame; how many were run."""
        frame = Frame(index=0, label=label or self.title)
        return run_data_set(self.subject, self.spec, sink, options, frame, device=self.device)
