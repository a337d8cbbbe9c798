"""Whether what a panel offers to compute can apply to the model of a run: asked of the capture, never of the model."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.capture import Capture
from inspector.records import CARRIED

RECURRENCE, LOSS = "recurrence", "loss"
NEEDS = {
    "bptt": (RECURRENCE, LOSS),
    "truncation": (RECURRENCE, LOSS),
    "fixed_points": (RECURRENCE,),
    "influence": (),
    "depth/parameters": (LOSS,),
}
"""What a quantity that is computed on request needs of a model; what is not listed is offered everywhere."""
WITHOUT = {
    RECURRENCE: "No recurrence was found in this model, so there is nothing of this kind to compute.",
    LOSS: "This model came without a loss, so there are no gradients to compute.",
}


def why_not(capture: Capture, keys: Sequence[str]) -> str:
    """One sentence that says why none of some quantities can be computed for this model; "" where one can be."""
    if capture.stop is None:
        return ""  # what there is may still come
    missing = [_missing(capture, key) for key in keys]
    return WITHOUT[missing[0]] if missing and all(missing) else ""


def _missing(capture: Capture, key: str) -> str:
    there = {RECURRENCE: _has_recurrence(capture), LOSS: _has_loss(capture)}
    return next((need for need in NEEDS.get(key, ()) if not there[need]), "")


def _has_recurrence(capture: Capture) -> bool:
    """States over steps, or a loop whose variables were found, or a state that was found and then refused."""
    states = any(c.kind in ("state", "gate") and c.dims == ("step", "unit") for c in capture.channels.values())
    refused = any(refusal.channel.rpartition(":")[2] in ("h", "c", "gate") for refusal in capture.refusals)
    return states or refused or any(domain.startswith(CARRIED) for domain in capture.label_domains)


def _has_loss(capture: Capture) -> bool:
    """A loss by step; a run that kept no outputs at all does not tell."""
    outputs = [c for c in capture.channels.values() if c.kind == "output"]
    return not outputs or any(c.signal == "loss" for c in outputs)
