"""What `inspector.run` takes beside a model and its sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from inspector.engine.errors import InputError
from inspector.engine.pipeline import RunOptions
from inspector.engine.registries import request_of
from inspector.records import Decode, Edit, Load, requests_in

Asked = str | Sequence[str] | Mapping[str, Mapping[str, Any]]
"""Quantities: keys, or {key: {option: value}}."""


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """The keyword arguments of `inspector.run`."""

    out: Path | str | None = None
    """The capture's folder; None for a temporary one, removed at exit."""
    overwrite: bool = False
    """Whether a capture at `out` is replaced, once the run has ended and something was captured."""
    checkpoint: str = ""
    arguments: Mapping[str, Any] | None = None
    """Of the callable that makes the model."""
    also: Asked = ()
    """Quantities beside the default ones: keys, with options after "@" or as a mapping.
    `["bptt", "gradient/vectors@0:5"]`, or `{"gradient/vectors": {"steps": (0, 5)}}`."""
    only: Asked = ()
    """Quantities instead of the default ones."""
    quantities: Asked = ()
    """The former name of `only`."""
    seed: int = 0
    partial: bool = False
    """Whether a checkpoint may fit in part."""
    look_at: int = 0
    """Which sequence of a batch is shown."""
    device: str = "cpu"
    """Of a model given by name; a model object stays on its device and in its mode."""
    edits: Sequence[Edit | str] = ()
    """"rnn.l0:gate/forget[3]=0@10:20": they make a second frame, the run with these changes."""
    data: Any = None
    """Many sequences instead of one: a path, "examples", "subject" (its own data), or the sequences themselves."""
    lines: bool = False
    """Whether every line of the file of `data` is a sequence."""
    most: int | None = None
    """How many of `data` are run."""
    spike: Path | str | None = None
    """A file that a watched training kept ("run.inspect/spikes/0001.safetensors"): its iteration is run again in a copy
    of the model, with the parameters, batch, random state and gradient at the output that it had."""
    decode: Decode | None = None
    """A search for an answer (see `inspector.decode`): a frame for the right one, where that is known, and for each
    hypothesis shown."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> RunArguments:
        """Raises TypeError for an argument that there is not, with those that there are."""
        known = [one.name for one in fields(cls)]
        unknown = ", ".join(repr(name) for name in given if name not in known)
        if unknown:
            raise TypeError(f"inspector.run has no argument {unknown}; beside the model and its sequence it has "
                            f"{', '.join(known)}.")  # fmt: skip
        return cls(**given)

    def check_together(self, sequence: Any) -> None:
        """Raises InputError for what one call cannot do at once."""
        if self.spike is not None and (sequence is not None or self.data is not None or self.edits):
            raise InputError("`spike` runs one iteration of a training; give no `sequence`, `data` or `edits` with it.")
        if self.data is not None and sequence is not None:
            raise InputError("Either `sequence` or `data` is run, not both.")
        if self.decode is not None and (self.data is not None or self.spike is not None or self.edits):
            raise InputError("An answer is searched for to one `sequence`; give no `data`, `spike` or `edits` with it.")

    def load(self, subject: str) -> Load:
        """The request for a model by its name."""
        return Load(
            subject=subject, checkpoint=self.checkpoint, arguments=self.arguments or {}, seed=self.seed,
            partial=self.partial, trusted=True, device=self.device,
        )  # fmt: skip

    def options(self) -> RunOptions:
        """What is computed. Raises InputError."""
        only = *requests(self.only), *requests(self.quantities)
        return RunOptions(also=requests(self.also), only=only, seed=self.seed)


def requests(asked: Asked) -> tuple[str, ...]:
    """Quantities as they are requested in Python, as records. Raises InputError."""
    if isinstance(asked, Mapping):
        return tuple(request_of(key, given) for key, given in asked.items())
    return requests_in([asked] if isinstance(asked, str) else asked)
