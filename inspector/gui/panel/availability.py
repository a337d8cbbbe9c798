"""Whether what a panel offers to compute can apply to the model of a run: decided from the capture, never the model."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.capture import Capture
from inspector.records import CARRIED, NEEDS
from inspector.records.catalogue import ATTENTION, LOSS, PICTURE, RECURRENCE


def why_not(capture: Capture, needs: Sequence[Sequence[str]]) -> str:
    """The reason, as one line, why none of some quantities can be computed for this model; "" where one can be.

    `needs` are what each of them needs, as its entry declares.
    """
    if capture.stop is None:
        return ""  # data may still come
    there = {
        RECURRENCE: _has_recurrence, ATTENTION: _has_attention, LOSS: _has_loss, PICTURE: _has_picture,
    }  # fmt: skip
    missing = [next((need for need in own if need in there and not there[need](capture)), "") for own in needs]
    return NEEDS[missing[0]] if missing and all(missing) else ""


def _has_recurrence(capture: Capture) -> bool:
    """States over steps, or a loop whose variables were found, or a state that was found and then rejected."""
    states = any(c.kind in ("state", "gate") and c.dims == ("step", "unit") for c in capture.channels.values())
    refused = any(refusal.channel.rpartition(":")[2] in ("h", "c", "gate") for refusal in capture.refusals)
    return states or refused or any(domain.startswith(CARRIED) for domain in capture.label_domains)


def _has_attention(capture: Capture) -> bool:
    """Maps or statistics of attention, shown or rejected."""
    names = [*capture.channels, *(refusal.channel for refusal in capture.refusals)]
    return any(name.rpartition(":")[2].startswith("attention") for name in names)


def _has_loss(capture: Capture) -> bool:
    """A loss by step; True too for a run that stored no outputs at all, which decides nothing."""
    outputs = [c for c in capture.channels.values() if c.kind == "output"]
    return not outputs or any(c.signal == "loss" for c in outputs)


def _has_picture(capture: Capture) -> bool:
    """An input over rows and columns; True too for a run that stored no inputs at all, which decides nothing."""
    inputs = [c for c in capture.channels.values() if c.kind == "input"]
    refused = any(refusal.channel.rpartition(":")[2] == "image" for refusal in capture.refusals)
    return not inputs or refused or any({"row", "column"} <= set(c.dims) for c in inputs)
