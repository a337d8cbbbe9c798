"""Where two runs begin to differ, found in a thread by what `inspector diverge` uses; without Qt."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.analysis.divergence import Divergence, first_divergence
from inspector.analysis.divergence.operations import Cause
from inspector.analysis.divergence.recorded import Made
from inspector.capture import CaptureError, open_any
from inspector.gui.state.switch_interval import giving_way

NO_TWO = (
    "Two runs are needed: compare what is shown with another capture (File ▸ Compare with…), or draw two runs together "
    "(File ▸ Add run…)."
)
MOST_ALONE = 200
"""Operations of one run alone that are listed."""
WORDS = {
    "given": "differs from the beginning", "operation": "gives another result", "arguments": "has other arguments",
    "random": "draws other random numbers", "shape": "has another shape", "reads": "reads something else",
    "replaced": "is another operation", "start": "first weights", "curve": "curve",
}  # fmt: skip
"""What a cause is called in the table, where its own word is not plain."""


@dataclass(frozen=True, slots=True)
class RunAt:
    """One of the two runs: a capture or log on the disk, which run of a log, which frame, and its name."""

    path: Path
    name: str
    run: str | None = None
    frame: int = -1


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A line of the table. `iteration` and `place` say where in the window it can be looked at, where that is known.

    `relative`: the difference by the norm of the first; `explained`: what rounding explains of that; NaN: not known.
    """

    what: str
    name: str
    a: str = ""
    b: str = ""
    relative: float = math.nan
    explained: float = math.nan
    iteration: float | None = None
    place: str = ""


class FindingDifference:
    """Compares two runs in a thread: `finished` becomes true, and then either `found` or `problem` is there."""

    def __init__(self, first: RunAt, second: RunAt) -> None:
        self.first, self.second = first, second
        self.found: Divergence | None = None
        self.problem = ""
        self._thread = threading.Thread(target=self._find, name="first-difference", daemon=True)
        self._thread.start()

    def _find(self) -> None:
        one, other = self.first, self.second
        try:
            with giving_way(), open_any(one.path, one.run) as a, open_any(other.path, other.run) as b:
                self.found = first_divergence(a, b, frame_a=one.frame, frame_b=other.frame)
        except (CaptureError, OSError, ValueError) as problem:
            self.problem = str(problem)
        except Exception as fault:  # noqa: BLE001 - a thread that ends without a word would leave the window waiting
            self.problem = f"The first difference could not be looked for: {type(fault).__name__}: {fault}"

    @property
    def finished(self) -> bool:
        """Whether the thread has ended."""
        return not self._thread.is_alive()

    def join(self, seconds: float) -> None:
        """Wait for the thread, for so long at most."""
        self._thread.join(seconds)


def runs_of_log(whole: Any) -> list[RunAt]:
    """The runs of a log, or of captures and logs that are drawn together."""
    if hasattr(whole, "every"):  # Together
        return [RunAt(Path(one.view.path), one.name, getattr(one.view, "run", None)) for one in whole.every]
    return [RunAt(Path(whole.path), name, name) for name in whole.runs]


def rows_of(found: Divergence) -> list[DifferenceRow]:
    """The causes first, then what else is known to differ."""
    return [*_of_training(found), *_of_operations(found)]


def _of_training(found: Divergence) -> Iterator[DifferenceRow]:
    trainings = found.trainings
    if trainings is None:
        return
    one = trainings.parting
    if one is not None:
        more = f" and {one.others} more" if one.others else ""
        yield DifferenceRow(
            WORDS.get(one.word, one.word), f"{one.name}{more}", _number(one.a), _number(one.b), one.relative,
            one.explained, one.iteration, _module(one.name),
        )  # fmt: skip
    for name, (a, b) in trainings.settings.items():
        if one is None or one.word != "settings" or name != one.name:
            yield DifferenceRow("setting", name, _number(a), _number(b))


def _of_operations(found: Divergence) -> Iterator[DifferenceRow]:
    compared = found.compared
    if compared is None:
        return
    cause = compared.cause
    if cause is not None:
        yield _cause(cause)
    for kind, shares in (("given", compared.given), ("result", compared.results)):
        for name, relative in sorted(shares.items(), key=lambda item: -item[1]):
            if cause is None or cause.word != "given" or kind != "given" or name != cause.name:
                yield DifferenceRow(kind, name, relative=relative, place=_module(name))
    for what, made in (("only in A", compared.only_a), ("only in B", compared.only_b)):
        named = (cause.a if what == "only in A" else cause.b) if cause is not None and cause.word == what else None
        yield from _alone(what, [one for one in made if one is not named])


def _cause(cause: Cause) -> DifferenceRow:
    a, b = cause.a, cause.b
    assert a is not None and b is not None
    share = cause.explained * cause.relative / cause.distance if 0 < cause.distance < math.inf else cause.explained
    what, numbers = WORDS.get(cause.word, cause.word), (cause.relative, share)
    if cause.word == "given":
        return DifferenceRow(what, cause.name, "", "", *numbers, None, _module(cause.name))
    if cause.word in ("only in A", "only in B"):
        its = a if cause.word == "only in A" else b
        return DifferenceRow(what, its.where, "", "", *numbers, None, _place(its))
    return DifferenceRow(what, b.where, a.line, b.line, *numbers, None, _place(b))


def _module(parameter: str) -> str:
    """The module of a parameter, or of its gradient."""
    return parameter.removeprefix("gradient of ").rpartition(".")[0]


def _place(made: Made) -> str:
    """The module of an operation; "" where it stands in the model's own forward pass."""
    return "" if made.module == "model" else made.module


def _alone(what: str, made: Sequence[Made]) -> Iterator[DifferenceRow]:
    for one in made[:MOST_ALONE]:
        yield DifferenceRow(what, one.where, place=_place(one))
    if len(made) > MOST_ALONE:
        yield DifferenceRow(what, f"and {len(made) - MOST_ALONE:,} more")


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.9g}"
