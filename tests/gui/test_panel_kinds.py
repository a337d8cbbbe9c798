"""Which channels each panel takes for its own, by kind and dims: one that takes more draws what it does not understand."""

from __future__ import annotations

from itertools import product

from inspector.gui.panel.registry import PANELS
from inspector.records import KINDS, Channel

DIMS = (
    ("step",), ("unit",), ("lag",), ("parameter",), ("bin",), ("step", "unit"), ("step", "component"), ("step", "rank"),
    ("step", "statistic"), ("step", "lag"), ("start", "lag"), ("layer", "step"), ("unit", "statistic"),
    ("statistic", "iteration"), ("head", "query"), ("head", "query", "key"),
)  # fmt: skip
ACCEPTED = {
    "attention": {
        ("attention", "head query key"),
        ("attention_map", "head query key"),
        ("attention_statistic", "head query"),
        ("attention_head", "head query"),
    },
    "clipping": {("clipping", "statistic iteration")},
    "decoding": {("decoding", "step")},
    "dynamics": {("trajectory", "step"), ("trajectory", "step component")},
    "ask": {("state", "step unit"), ("gate", "step unit"), ("attention", "head query key")},
    "gates": {("gate", "step unit")},
    "gradients": {("gradient", "step")},
    "heads": {("attention_statistic", "head query"), ("attention_head", "head query")},
    "inputs": {("input", "step"), ("input", "unit")},
    "jacobians": {("jacobian", "step")},
    "lags": {("lag", "lag"), *(("map", " ".join(dims)) for dims in DIMS if len(dims) == 2)},
    "latents": {
        ("occupancy", "step"),
        *(("latent_use", dims) for dims in ("step", "step statistic", "unit statistic")),
        *(("latent", dims) for dims in ("step", "unit", "step unit", "unit statistic")),
        *(("innovation", dims) for dims in ("step", "step unit", "step component")),
    },
    "lens": {("gradient", "step"), ("gate", "step unit"), ("attention", "head query key")},
    "openers": {("gate", "step unit"), ("memory", "step unit")},
    "outputs": {("output", "step"), ("output", "step rank")},
    "paths": {(kind, dims) for kind in ("path", "mask") for dims in ("step", "step unit", "lag")},
    "picture": {("attention", "head query key"), ("picture_words", "step")},
    "preflight": {("structure", "step")},
    "residual": {("residual", "layer step")},
    "spectra": {("spectrum", "step"), ("spectrum", "step rank")},
    "state_derivatives": {("state_derivative", "step")},
    "states": {("state", "step unit")},
    "training": {("training", "statistic iteration")},
    "units": {("state", "step unit"), ("gate", "step unit")},
}
"""Of the dims above; panels that are not here take other dims only."""


def test_panels_accept_the_kinds_and_dims_that_they_draw_and_no_others() -> None:
    accepted = {
        key: {
            (kind, " ".join(dims))
            for kind, dims in product(KINDS, DIMS)
            if panel.accepts(Channel(name="rnn:x", kind=kind, dims=dims, shape=(None,) * len(dims)))
        }
        for key, panel in PANELS.items()
        if key not in ("overview", "table")  # which show whatever there is, and whatever has steps (test_table_panel)
    }
    assert {key: found for key, found in accepted.items() if found} == ACCEPTED
