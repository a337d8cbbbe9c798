"""The quantities that both panels of attention show: maps and numbers of heads are of the same captures."""

from __future__ import annotations

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


def of_attention(name: str) -> bool:
    """Whether a channel that could not be computed is one of attention."""
    return ":attention" in name
