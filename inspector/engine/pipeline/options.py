"""The options of a run, as one frozen record that is passed through the engine as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inspector.engine.pipeline.kept_trace import KeptTrace
from inspector.engine.trace.trace import Trace

Progress = Callable[[float, float, str], None]


def _nothing(_done: float, _total: float, _text: str) -> None:
    """Ignore progress."""


def _no_note(_text: str) -> None:
    """Nobody reads what is told."""


def _let_go(_kept: KeptTrace) -> None:
    """Do not store the trace for later analysis."""


def _not_said(_trace: Trace, _keys: Sequence[str]) -> Mapping[str, float]:
    """Nobody waits to be told, and nothing is known of what they take."""
    return {}


def _no_room(_trace: Trace) -> bool:
    """There is no room for the trace."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of one run.

    Attributes:
        also: quantities beyond the default ones, or beyond `only`: keys, with options after `@`.
        only: quantities instead of the default ones; empty for the default ones.
        now: of these quantities, those that are computed in the run, by key or request; None for all. The others are
            left to later analysis where there is `room` for the trace, else they are computed in the run too.
        seed: of everything random while the model runs.
        states: place of a hand-written recurrence → the variables that the user declares to be its state.
        only_selected: record inner values of the selected sample only; quantities that average then average over that
            one.
        probes: keys of the probes to attach; empty for all.
        places, editor: of edited runs (see Trace); `places` is None in a run without edits.
        cancelled: called between pages; progress: called with (done, total, text).
        announce: called with the trace of the first frame and the requests that will be computed in the run, once the
            model has run and before they are; returns about how many seconds each takes, by key, as far as it knows.
        note: called with a sentence about the run that stays: of many sequences, about how long they will take.
        room: whether the trace of a frame will be stored for later analysis; asked only where something is left.
        keep: called with the trace of every frame that was run to its end, for later analysis.
    """

    also: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    now: tuple[str, ...] | None = None
    seed: int = 0
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    only_selected: bool = False
    probes: tuple[str, ...] = ()
    places: Mapping[int, str] | None = None
    editor: Any = None
    cancelled: Callable[[], bool] = lambda: False
    progress: Progress = _nothing
    announce: Callable[[Trace, Sequence[str]], Mapping[str, float]] = _not_said
    note: Callable[[str], None] = _no_note
    room: Callable[[Trace], bool] = _no_room
    keep: Callable[[KeptTrace], None] = _let_go


DEFAULTS = RunOptions()
"""The default quantities, seed 0, every probe."""
