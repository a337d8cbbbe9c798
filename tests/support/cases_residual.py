"""What the panels of the residual stream and of heads should say. Rows of tables are in odd orders."""

from __future__ import annotations

import numpy as np
from cases_units import STEPS, TOKENS
from panel_captures import channel
from reading import Case

from inspector.records import Labels

random = np.random.default_rng(17)
APART = {"compare": "separate"}
LAYERS = ("into blocks.0", "blocks.0", "blocks.1")
BY_LAYER = {"layer": LAYERS}
NORM = 10.0 ** random.uniform(-1, 2, (3, STEPS)).round(2)
SLOPE = 10.0 ** random.uniform(-4, 0, (3, STEPS)).round(2)
CLASS = random.integers(0, 3, (3, STEPS)).astype(np.int32)
PROBABLE = random.random((3, STEPS)).round(3)
PROBABLE[0, 0], PROBABLE[2, -1] = 0.0, 1.0
COLLAPSE = np.array([[0.1, 0.4, 0.8], [0.9, 0.5, 0.2]])
"""Rows: mean cosine, distance from rank one."""
MASSIVE = np.array([[2.0, 0.0, 5.0], [30.0, 400.0, 8.0], [1.0, 0.0, 3.0]])
"""Rows: position, largest, channel."""
WORDS = ("zero", "<b>", "two")
PARTS = (
    TOKENS,
    Labels("class", WORDS, -1),
    channel("blocks:residual/rank", "residual", ("statistic", "layer"), COLLAPSE, title="rank collapse",
            labels={**BY_LAYER, "statistic": ("mean cosine", "distance from rank one")}),
    channel("blocks:residual/massive", "residual", ("statistic", "layer"), MASSIVE, title="massive activations",
            labels={**BY_LAYER, "statistic": ("position", "largest", "channel")}, **APART),
    channel("blocks:residual/lens_probability", "residual", ("layer", "step"), PROBABLE, title="p in the lens",
            labels=BY_LAYER, limits=(0.0, 1.0)),
    channel("blocks:residual/lens_token", "residual", ("layer", "step"), CLASS, title="class in the lens", labels=BY_LAYER,
            value_domain="class", **APART),
    channel("blocks:residual/gradient", "residual", ("layer", "step"), SLOPE, title="‖∂L/∂x‖", labels=BY_LAYER, unit="bit",
            scale="log", compare="ratio"),
    channel("blocks:residual/norm", "residual", ("layer", "step"), NORM, title="‖x‖", labels=BY_LAYER, scale="log",
            compare="ratio"),
)  # fmt: skip
SAVED = {
    "blocks:residual/rank": COLLAPSE, "blocks:residual/massive": MASSIVE, "blocks:residual/lens_probability": PROBABLE,
    "blocks:residual/lens_token": CLASS, "blocks:residual/gradient": SLOPE, "blocks:residual/norm": NORM,
}  # fmt: skip
TICKS = {"row.plot.axes.left.item": ("into 0", "0", "1"), "row.plot.axes.bottom.item": tuple("abcdefg")}
CELL = (
    ("p in the lens [3]  blocks.0", f"{PROBABLE[1, 3]:.10g}"), ("class in the lens [3]  blocks.0", WORDS[CLASS[1, 3]]),
    ("‖∂L/∂x‖ [3]  blocks.0", f"{SLOPE[1, 3]:.10g} bit"), ("‖x‖ [3]  blocks.0", f"{NORM[1, 3]:.10g}"),
)  # fmt: skip
NORMS = Case(
    "residual",
    PARTS,
    at={"step": 3},
    axes={"row.plot": ("layer", "step")},
    titles={"row.plot": "‖x‖"},
    maps={"row": NORM},
    units={"row": ""},
    ticks=TICKS,
    told=tuple((f"‖x‖ [3]  {name}", f"{NORM[n, 3]:.10g}") for n, name in enumerate(LAYERS)),
    saved=SAVED,
)
GRADIENTS = Case(
    "residual",
    PARTS,
    named="residual, gradients",
    choose={"which": "‖∂L/∂x‖"},
    mark=(("row.plot", 3.0, 1.0),),
    titles={"row.plot": "‖∂L/∂x‖"},
    maps={"row": SLOPE},
    units={"row": "bit"},
    told=CELL,
    saved=SAVED,
)
LENS = Case(
    "residual",
    PARTS,
    named="residual, lens",
    choose={"which": "class in the lens"},
    place="blocks.0",
    at={"step": 3},
    mark=(("row.plot", 3.0, 1.0),),
    titles={"row.plot": "class in the lens\ncolour: p in the lens"},
    maps={"row": PROBABLE},
    units={"row": ""},
    limits={"row": (0.0, 1.0)},
    ticks=TICKS,
    told=CELL,
    saved=SAVED,
)
RANK = Case(
    "residual",
    PARTS,
    named="residual, rank",
    choose={"which": "rank collapse"},
    mark=(("plot", 2.0, 0.0),),
    axes={"plot": ("rank collapse", "layer")},
    titles={"plot": "rank collapse"},
    ticks={"plot.axes.bottom.item": ("into 0", "0", "1")},
    curves=(
        ("legend", "distance from rank one", range(3), COLLAPSE[1]), ("legend", "mean cosine", range(3), COLLAPSE[0]),
    ),
    told=(
        ("rank collapse: mean cosine  blocks.1", "0.8"), ("rank collapse: distance from rank one  blocks.1", "0.2"),
    ),
    saved=SAVED,
)  # fmt: skip
ENTROPY = np.array([[0.5, 1.5], [2.0, 4.0]], np.float32)
TYPE, SCORE, APART_BY = np.array([1, 0], np.int32), np.array([0.75, 0.5]), np.array([[0.0, 0.25], [0.25, 0.0]])
FLOPS = np.array([[10.0, 20.0], [400.0, 5e9]])
HEAD_PARTS = (
    TOKENS,
    Labels("kind of head", ("induction", "local"), -1),
    channel("a:attention/flops", "attention_cost", ("part", "length"), FLOPS, title="multiplications", unit="flop",
            labels={"part": ("scores", "Q"), "length": ("this run", "256")}, **APART),
    channel("a:attention/entropy", "attention_statistic", ("head", "query"), ENTROPY, title="entropy", unit="nat"),
    channel("a:attention/redundancy", "attention_statistic", ("head", "other"), APART_BY, title="divergence"),
    channel("a:attention/head_type", "attention_statistic", ("head",), TYPE, title="type", value_domain="kind of head"),
    channel("a:attention/head_type_score", "attention_statistic", ("head",), SCORE, title="score"),
)  # fmt: skip
HEADS = Case(
    "heads",
    HEAD_PARTS,
    place="a",
    at={"head": 1},
    told=(
        ("type  a, head 1", "induction"), ("most alike  a, head 1", "head 0"), ("divergence from it  a, head 1", "0.25"),
        ("score  a, head 1", "0.5"), ("mean entropy  a, head 1", "3"),
    ),
    saved={
        "a:attention/entropy": ENTROPY, "a:attention/redundancy": APART_BY, "a:attention/head_type": TYPE,
        "a:attention/head_type_score": SCORE,
    },
)  # fmt: skip
COST = Case(
    "heads",
    HEAD_PARTS,
    named="heads, cost",
    choose={"which": "multiplications, flop"},
    place="a",
    told=(("this run  a, scores", "10 flop"), ("256  a, scores", "20 flop")),
    saved={"a:attention/flops": FLOPS},
)
CASES = (NORMS, GRADIENTS, LENS, RANK, HEADS, COST)
