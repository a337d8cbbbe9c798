"""The quantities that both panels of attention show: maps and numbers of heads are of the same captures."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.records import Channel

OF_HEADS = (
    "attention/distance",
    "attention/entropy",
    "attention/entropy_normalised",
    "attention/largest_logit",
    "attention/largest_weight",
    "attention/mask_margin",
    "attention/sink_mass",
    "attention/sink_mass_4",
)
"""Numbers of heads that are computed by default."""
ON_REQUEST = (
    "attention/against_gradient",
    "attention/clipped",
    "attention/direct_logit",
    "attention/gradient",
    "attention/head_types",
    "attention/pair",
    "attention/weighted_norm",
)
"""Those that are computed on request."""


def can_ablate(channels: Iterable[Channel], place: str) -> bool:
    """Whether a place has heads of which one can be ablated; a scan, whose maps have signs, has none."""
    maps = (one for one in channels if one.kind == "attention" and one.dims == ("head", "query", "key"))
    return any(one.place == place and one.scale != "diverging" for one in maps)


def of_attention(name: str) -> bool:
    """Whether a channel that could not be computed is one of attention."""
    return ":attention" in name
