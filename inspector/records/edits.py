"""A change to a run: a token or number of the input; a unit, a state or a gate clamped to a value from a step on; a
head of attention that gives a value, or its mean, in place of what it computes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FORM = re.compile(
    r"(?P<what>[^\[\]=@]+)(\[(?P<unit>\d+)\])?=(?P<value>.+?)(@(?P<start>\d+)(?P<more>:(?P<stop>\d+)?)?)?", re.DOTALL
)
HEAD, MEAN = "head", "mean"
FORM = (
    "PLACE:SIGNAL=VALUE, PLACE:SIGNAL[UNIT]=VALUE@FROM:TO, PLACE:head[HEAD]=0 or =mean, or input=TOKEN@STEP "
    "(input.NAME of several)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What is changed, from step `start` to before `stop` (None: to the end).

    Attributes:
        place, signal: of the channel that is clamped ("rnn.l0", "gate/forget"); place "input": the sequence itself;
            "input.tgt": that of another input; signal "head": the output of heads of the attention at a place.
        unit: one unit or head, or None for all.
        value: the value to which it is clamped; text: the token that is put in, where the input is tokens; "mean" for
            a head: the mean of its output over the queries of the sequence.
    """

    place: str
    signal: str = ""
    unit: int | None = None
    value: float = 0.0
    text: str = ""
    start: int = 0
    stop: int | None = None

    @property
    def of_input(self) -> bool:
        """Whether a sequence that goes in is changed: "input", or "input.tgt" of the input tgt."""
        return _is_input(self.place, self.signal)

    @property
    def of_heads(self) -> bool:
        """Whether the output of heads of attention is changed: `layers.0.attn:head[3]=0`."""
        return self.signal == HEAD

    def __str__(self) -> str:
        """In the form that `parse_edit` reads."""
        what = self.place if not self.signal else f"{self.place}:{self.signal}"
        unit = "" if self.unit is None else f"[{self.unit}]"
        value = self.text if self.text else f"{self.value:g}"
        stop = "" if self.stop is None else str(self.stop)
        single = self.of_input and self.stop is None
        return f"{what}{unit}={value}@{self.start}" + ("" if single else f":{stop}")

    @property
    def words(self) -> str:
        """To be read: "rnn.l0:gate/forget[3] = 0 at steps 10 to 19"."""
        what = f"{self.place}:{self.signal}" if self.signal else self.place
        unit = "" if self.unit is None else f"[{self.unit}]"
        return f"{what}{unit} = {self.text or f'{self.value:g}'} {self._when}"

    @property
    def _when(self) -> str:
        last = self.start if self.of_input and self.stop is None else None if self.stop is None else self.stop - 1
        if last is None:
            return f"from step {self.start} on" if self.start else "at every step"
        return f"at step {last}" if last == self.start else f"at steps {self.start} to {last}"


def parse_edit(text: str) -> Edit:
    """An edit from `rnn.l0:gate/forget[3]=0@10:20` or `input=x@5`. Raises ValueError with a one-line message."""
    found = _FORM.fullmatch(text.strip("\n"))
    if found is None:
        raise ValueError(f"{text!r} is no edit; expected {FORM}.")
    place, _, signal = found["what"].rpartition(":") if ":" in found["what"] else (found["what"], "", "")
    unit = None if found["unit"] is None else int(found["unit"])
    start = int(found["start"] or 0)
    stop = int(found["stop"]) if found["stop"] else None
    if stop is not None and stop <= start:
        raise ValueError(f"{text!r} ends before it begins: steps {start} to {stop}.")
    if _is_input(place, signal) and found["start"] is None:
        raise ValueError(f"{text!r} does not say at which step the input is changed; expected {place}=TOKEN@STEP.")
    value = _number(found["value"])
    if _is_input(place, signal):
        return Edit(place=place, unit=unit, value=value or 0.0, text=found["value"], start=start, stop=stop)
    if signal == HEAD and found["value"] == MEAN:
        return Edit(place=place, signal=signal, unit=unit, text=MEAN, start=start, stop=stop)
    if not signal or value is None:
        raise ValueError(f"{text!r} is no edit; expected {FORM}.")
    return Edit(place=place, signal=signal, unit=unit, value=value, start=start, stop=stop)


def _is_input(place: str, signal: str) -> bool:
    """A module may be called "input" as well: what has a signal lies in that."""
    return place == "input" or (place.startswith("input.") and not signal)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
