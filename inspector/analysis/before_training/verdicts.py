"""What was tested before a training, as sentences: their form, and reading the numbers that they are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from inspector.capture.view import View
from inspector.records import Refusal, Scalar

PLACE = "model"
Word = Literal["holds", "fault", "fact", "not tested"]
"""Nothing is wrong; something is; a fact that is a fault or not by what the model is for; no answer."""
MARKS: dict[Word, str] = {"holds": "ok", "fault": "FAULT", "fact": "note", "not tested": "not tested"}
Numbers = npt.NDArray[np.float64]
COARSE = 0.01
"""Rounding above this share of the largest output may hide what is looked for: in bfloat16 a quarter of it does (32
units), in float16 3 %, in float32 4e-6."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one test says.

    Attributes:
        test: "causal", "large", "batch", "padding", "left_padding", "order", "repeat", "random", "cache", "query",
            "tied", "labels", "accumulation", "loss_input", "scores"; or "initial loss",
            "first step", "learning rate", "own step", "one batch", "input", "reach".
        word: whether that is a fault.
        sentence: with its numbers.
        number: the largest change, relative to the largest output (query: the least distance); NaN where not tested.
        channel: the numbers behind it.
        place: where it came in, or the attention; "" where that is not known.
        steps: the output's step, and the input's that moved it.
        remedy: where it is another than that of the test's other faults; "" elsewhere.
    """

    test: str
    word: Word
    sentence: str
    number: float = math.nan
    channel: str = ""
    place: str = ""
    steps: tuple[int, ...] = ()
    remedy: str = ""


class Tested(View, Protocol):
    """A view with the scalars and refusals of its frames."""

    @property
    def scalars(self) -> Sequence[Scalar]:
        """Single numbers."""

    @property
    def refusals(self) -> Sequence[Refusal]:
        """What was not written, and why."""


def share(value: float) -> str:
    """A relative change: "0.26 %", "3.1e-06"; above 1, "140 %"; above 10, "12 times"."""
    if value >= 1:
        return f"{100 * value:.0f} %" if value < 10 else f"{value:.3g} times"
    return f"{100 * value:.2g} %" if value >= 1e-4 else f"{value:.1e}"


def failed(channel: str) -> str:
    """Under which name a run says that a quantity ended with an error of its own, before it had made this channel."""
    return f"run:{channel.partition(':')[2]}"


class Readings:
    """The channels, scalars and refusals of one group of tests in one frame: `model:GROUP/…`."""

    group: ClassVar[str]

    def __init__(self, run: Tested, frame: int, limits: Mapping[str, float] | None = None) -> None:
        self.run, self.frame = run, frame
        self.limits = limits or {}

    def limit(self, name: str, usual: float) -> float:
        """A limit as a project has it, else the usual one."""
        return self.limits.get(name, usual)

    def channel(self, test: str) -> str:
        """The name of the channel of a test."""
        return f"{PLACE}:{self.group}/{test}"

    def array(self, test: str) -> Numbers | None:
        """Its numbers, NaN where they are not known; None where nothing was written."""
        name = self.channel(test)
        if name not in self.run.channels or not self.run.revision(name, self.frame):
            return None
        found: Any = self.run.array(name, self.frame)
        return np.ma.filled(np.ma.asarray(found, dtype=np.float64), np.nan)

    def scalar(self, name: str, missing: float = math.nan) -> float:
        """A number of the frame."""
        scalars = [one for one in self.run.scalars if one.name == f"{self.group}/{name}"]
        found = [one.value for one in scalars if self.frame in (-1, one.frame)]
        return found[-1] if found else missing

    def unclear(self, test: str, number: float, limit: float) -> Iterator[Verdict]:
        """That a change may be rounding or a fault, where the model's numbers are so short that nobody can tell:
        nothing where it is exactly 0, above the limit, or the limit is small."""
        if limit > COARSE and 0 < number <= limit:
            said = (
                f"Outputs change by {share(number)} of the largest, and in half precision rounding may change them by "
                f"{share(limit)}: whether that is more than rounding shows in float32."
            )
            yield Verdict(test, "not tested", said, number, self.channel(test.replace(" ", "_")))

    def refused(self, test: str) -> Iterator[Verdict]:
        """Why a test was not made; nothing where it was not asked for."""
        name = self.channel(test.replace(" ", "_"))
        for refusal in self.run.refusals:
            if refusal.channel in (name, failed(name)) and self.frame in (-1, refusal.frame):
                yield Verdict(test, "not tested", refusal.reason)
                return

    def of(self, test: str, say: Callable[[Numbers], Iterator[Verdict]]) -> Iterator[Verdict]:
        """What the numbers of a test say, or why there are none."""
        values = self.array(test.replace(" ", "_"))
        return self.refused(test) if values is None else say(values)
