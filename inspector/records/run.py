"""The life of a run as records: its beginning, its frames, its messages, its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from inspector.records.naming import channel_name, place_name

Status = Literal["done", "failed", "cancelled"]
Severity = Literal["info", "warning", "error"]
SHAPES = "shapes"
"""In the meta of a run's start: a mark of the names and shapes of the model's parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One node of the model tree: qualified name, class name, own parameter count (not the children's)."""

    name: str
    module: str
    parameters: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", place_name(self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """All that is known before a run begins. `places` is the model tree, parents first;
    `created` is wall time in seconds since 1970 (for show only). A tree that is too large for one record continues in
    further ones of the same `run`."""

    run: str
    title: str
    subject: str = ""
    checkpoint: str = ""
    created: float = 0.0
    seed: int | None = None
    places: tuple[Place, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)


EDITS = "edits"
"""The key in a frame's `meta` that has the changes with which it ran, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One moment of training at which the model was run. `step` is the training iteration, if known."""

    index: int
    label: str = ""
    step: int | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.index < 0:
            raise ValueError(f"A frame is numbered from 0 on, not {self.index}; -1 stands for every frame.")

    @property
    def edited(self) -> bool:
        """Whether it is the frame before it, with changes, and no other moment."""
        return EDITS in self.meta


@dataclass(frozen=True, slots=True)
class Page:
    """A block of a channel's array, placed at `offset` (one start index per dim).

    It is described by the Channel of its name that was written last before it.
    """

    channel: str
    frame: int
    offset: tuple[int, ...]
    array: npt.NDArray[Any] = field(compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "channel", channel_name(self.channel))
        array: np.ndarray[Any, Any] = self.array
        if len(self.offset) != array.ndim or (self.offset and min(self.offset) < 0):
            raise ValueError(
                f"Page of {self.channel}: offset {self.offset} does not fit an array of shape {array.shape}."
            )
        if self.frame < 0:
            raise ValueError(f"Page of {self.channel}: a page belongs to one frame, from 0 on, not to {self.frame}.")


@dataclass(frozen=True, slots=True)
class Labels:
    """Names of consecutive positions of a label domain ("step", "vocabulary", …), from `start` on.

    `frame` is -1 for names that apply to every frame.
    """

    domain: str
    names: tuple[str, ...]
    frame: int = -1
    start: int = 0


@dataclass(frozen=True, slots=True)
class Scalar:
    """One named number of a frame, for example the mean loss."""

    name: str
    frame: int
    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", channel_name(self.name))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A channel that was not written, and why, as one line: a number is right or refused."""

    channel: str
    reason: str
    frame: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "channel", channel_name(self.channel))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found.

    Attributes:
        rule, id: its key, and its number that never changes ("IN101"); `diagnose` fills both in.
        place: the module, parameter or input that it is about; "" for the model as a whole.
        places: all of them, where it is about several; then `place` is "".
        message: the verdict, with its numbers.
        evidence: channels; a reader opens the first at `frame` (-1 for a training as a whole), `steps` or `iterations`.
        sure: how sure it is, in words; an estimate has its spread. unless: what would make it wrong.
        remedy, code: what to change, in words and as a line of code. reference: where the claim comes from.
        steps, iterations: where it shows, the first one first.
    """

    rule: str
    severity: Severity
    place: str
    message: str
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    steps: tuple[int, ...] = ()
    frame: int = -1
    id: str = ""
    iterations: tuple[int, ...] = ()
    sure: str = ""
    unless: str = ""
    code: str = ""
    reference: str = ""
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Log:
    """One line for the log pane. `source` is "worker", "model" (stdout), "stderr" or a package's name."""

    text: str
    level: Severity = "info"
    source: str = "worker"


@dataclass(frozen=True, slots=True)
class RunStop:
    """How a run ended. Only a capture with this record counts as finished.

    `left`: requests for quantities that were chosen and are not computed (yet), small ones first. Later analysis of the
    run writes another record, with fewer of them; `seconds` are those of the run and of all analyses since.
    """

    status: Status
    message: str = ""
    seconds: float = 0.0
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Which rows a capture has: by table, the number of the first and of the last one. Rows are numbered without gaps.

    The capture's writer notes it by itself: where a run begins (then `last` is one less than `first`) and where it
    ends, so that a missing row is distinguished from one that was never written.
    """

    first: Mapping[str, int]
    last: Mapping[str, int]
