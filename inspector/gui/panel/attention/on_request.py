"""What can be drawn beside weights and is computed only on request: listed before it is there, computed when chosen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from inspector.capture import Capture
from inspector.records import ANSWER_DOMAIN, Refusal

QUERIES_AND_KEYS = "attention/queries_and_keys"
MAPS = {
    "attention/gradient": ("attention/gradient", "gradient at the attention"),
    "attention/times_gradient": ("attention/gradient", "attention × gradient"),
    "attention/weighted_norm": ("attention/weighted_norm", "norm of the weighted values"),
    "attention/rollout": ("attention/rollout", "rollout"),
    "attention/relevance": ("attention/relevance", "relevance"),
    "attention/value_zeroing": ("attention/value_zeroing", "value zeroing"),
    "sensitivity": ("attention/against_gradient", "sensitivity of the output"),
    "gradient/from_answer": ("gradient/from_answer", "gradient from the answer to the encoder"),
}
"""Signal of a map → (the quantity that computes it, its title)."""
OF_HEADS = {
    "attention/head_type": ("attention/head_types", "Types of heads"),
    "attention/importance": ("attention/gradient", "Importance by gradient"),
    "attention/redundancy": ("attention/redundancy", "Heads that attend alike"),
    "attention/against_gradient": ("attention/against_gradient", "Rank correlation with the gradient"),
    "attention/head_output": ("attention/weighted_norm", "What each head adds to the stream"),
    "attention/direct_logit": ("attention/direct_logit", "What each head adds to a score of the output"),
    "attention/clipped": ("attention/clipped", "What clipping scores changes"),
    "attention/flops": ("attention/cost", "What attention costs"),
}
"""The same of numbers of heads."""
NOT_YET = "{}: computed when chosen"
REFUSED = "{}: not of this run"


def signals_of(refusals: Iterable[Refusal]) -> set[str]:
    """The signals of channels that could not be computed."""
    return {one.channel.rpartition(":")[2] for one in refusals}


def has_source(capture: Capture) -> bool:
    """Whether a recurrent encoder reads another sequence than the one that is answered."""
    states = [one for one in capture.channels.values() if one.kind == "state" and one.dims[0] == "step"]
    domains = {one.domain("step") for one in states}
    return ANSWER_DOMAIN in capture.label_domains and bool(domains - {ANSWER_DOMAIN})


def listed(
    known: Mapping[str, str], *, offered: bool, refused: Collection[str] = (), without: Collection[str] = ()
) -> dict[str, str]:
    """Signal → title of what can be chosen: what there is, then what would be computed where that is `offered`, or was
    `refused`; but `without` what cannot be of this model."""
    others = {
        signal: (REFUSED if signal in refused else NOT_YET).format(title)
        for signal, (_, title) in MAPS.items()
        if signal not in known and signal not in without
    }
    return {"": "nothing", **known, **(others if offered else {})}


def quantity_of(signal: str, known: Collection[str]) -> str:
    """The quantity to ask for when a signal was chosen; "" where it is there, or none computes it."""
    return MAPS[signal][0] if signal in MAPS and signal not in known else ""
