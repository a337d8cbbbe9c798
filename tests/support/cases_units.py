"""What panels of units and steps should say: states, gates, units, gate openers, outputs, attention."""

from __future__ import annotations

import numpy as np
from panel_captures import channel
from reading import NOTHING, Case

from inspector.records import Labels, Scalar

random = np.random.default_rng(11)
STEPS, UNITS = 7, 3
TOKENS = Labels("step", tuple("abcdefg"), -1)
STEP = np.arange(STEPS)
LAYER, UNIT = "rnn.l0", ("step", "unit")
H, C = (random.uniform(-1, 1, (STEPS, UNITS)).round(3) for _ in range(2))
FORGET, INPUT = (random.uniform(0.05, 0.95, (STEPS, UNITS)).round(3) for _ in range(2))
SHARES = {"forget": np.array([[0.5, 0.25, 0.6], [0.1, 0.7, 0.15], [0.4, 0.05, 0.25]]),
          "input": np.array([[0.2, 0.3, 0.4], [0.55, 0.45, 0.35], [0.25, 0.25, 0.25]])}  # fmt: skip
"""Rows: graded, right, left."""


def gate(name: str, values: np.ndarray) -> tuple:
    return (
        channel(f"{LAYER}:gate/{name}", "gate", UNIT, values, title=f"{name} gate", limits=(0, 1)),
        channel(f"{LAYER}:gate/{name}/saturation", "unit", ("statistic", "unit"), SHARES[name],
                labels={"statistic": ("graded", "right", "left")}),
    )  # fmt: skip


STATES = Case(
    "states",
    (
        TOKENS,
        channel(f"{LAYER}:h", "state", UNIT, H, title="hidden state", scale="diverging"),
        channel(f"{LAYER}:c", "state", UNIT, C, title="cell state", scale="diverging", unit="mV"),
    ),
    at={"step": 4, "unit": 2},
    choose={"which": f"{LAYER}:c"},
    axes={"row.plot": ("unit", "step"), "trace": ("value", "step")},
    ticks={"row.plot.axes.left.item": tuple("012"), "row.plot.step_axis": tuple("abcdefg")},
    titles={"row.plot": f"cell state, {LAYER}", "trace": "unit 2"},
    maps={"row": C.T},
    units={"row": "mV"},
    curves=(("line", "", STEP, C[:, 2]),),
    told=((f"h[4, 2]  {LAYER}", f"{H[4, 2]:g}"), (f"c[4, 2]  {LAYER}", f"{C[4, 2]:g} mV")),
    saved={f"{LAYER}:c": C},
)
GATES = Case(
    "gates",
    (TOKENS, *gate("forget", FORGET), *gate("input", INPUT)),
    at={"step": 5, "unit": 1},
    axes={
        "rows.0.plot": ("unit", "step"), "rows.1.plot": ("unit", "step"),
        "scatter": ("share < 0.1 (left-saturated)", "share > 0.9 (right-saturated)"),
    },
    titles={"rows.0.plot": "forget gate", "rows.1.plot": "input gate"},
    maps={"rows.0": FORGET.T, "rows.1": INPUT.T},
    units={"rows.0": "", "rows.1": ""},
    limits={"rows.0": (0, 1), "rows.1": (0, 1)},
    curves=(
        ("key_lines", "forget gate", SHARES["forget"][1], SHARES["forget"][2]),
        ("key_lines", "input gate", SHARES["input"][1], SHARES["input"][2]),
    ),
    told=(
        ("forget gate [5, 1]", f"{FORGET[5, 1]:g}"),
        ("forget gate saturated [5]", f"{np.sum((FORGET[5] < 0.1) | (FORGET[5] > 0.9))} of 3 units"),
        ("forget gate: left / right / graded saturation", "0.05 / 0.7 / 0.25"),
        ("input gate [5, 1]", f"{INPUT[5, 1]:g}"),
        ("input gate saturated [5]", f"{np.sum((INPUT[5] < 0.1) | (INPUT[5] > 0.9))} of 3 units"),
        ("input gate: left / right / graded saturation", "0.25 / 0.45 / 0.3"),
    ),
    saved={
        f"{LAYER}:gate/{name}{what}": values
        for name, own in (("forget", FORGET), ("input", INPUT))
        for what, values in (("", own), ("/saturation", SHARES[name]))
    },
)  # fmt: skip
READ = random.uniform(-1, 1, (STEPS, 2)).round(3)
INPUTS = Case(
    "inputs",
    (TOKENS, channel("input:value", "input", ("step", "feature"), READ, title="input", scale="diverging")),
    place="input",
    at={"step": 3},
    axes={"series": ("value", "step")},
    titles={"series": "input"},
    ticks={"series.step_axis": tuple("abcdefg")},
    curves=(("banded.legend", "feature 0", STEP, READ[:, 0]), ("banded.legend", "feature 1", STEP, READ[:, 1])),
    told=(("value[3, 0]  input", f"{READ[3, 0]:g}"), ("value[3, 1]  input", f"{READ[3, 1]:g}")),
    saved={"input:value": READ},
)
ON = np.full((STEPS, UNITS), 0.1)
ON[2:4, 1] = ON[6, 1] = ON[2, 0] = 0.9
ON += np.arange(STEPS)[:, None] * 0.01
UNITS_CASE = Case(
    "units",
    (TOKENS, channel(f"{LAYER}:gate/forget", "gate", UNIT, ON, title="forget gate", limits=(0, 1))),
    at={"step": 3, "unit": 1},
    choose={"begin": 2, "end": 3},
    axes={"together": ("on together", "step"), "row.plot": ("", "step")},
    ticks={"row.plot.axes.left.item": ("• ✓  1  0.80", "•    0  0.67", "     2  0.00")},
    titles={"row.plot": "units on beyond 0.5 in steps 2 to 3, by F1"},
    maps={"row": ON[:, [1, 0, 2]].T},
    units={"row": ""},
    limits={"row": (0, 1)},
    curves=(("line", "", STEP, [0, 0, 1, 0.5, 0, 0, 0.5]),),
    told=(
        (f"gate/forget[3, 1]  {LAYER}", f"{ON[3, 1]:g}, on"),
        ("searched units that are on [3]", "1 of 2"),
        ("F1 of unit 1 in the range", "0.8"),
    ),
    saved={
        "units": np.array([[1, 1, 0.8, 1, 1], [0, 1, 2 / 3, 0, 1], [2, 1, 0, 0, 0]]),
        "spans": np.zeros((0, 4)),
        "on": np.array([0, 0, 1, 0.5, 0, 0, 0.5]),
    },
)
COUNTS = np.array([40, 20, 10, 5])
BY_TOKEN = np.array([[0.1, 0.2, 0.3], [0.5, 0.9, 0.7], [0.4, 0.3, 0.2], [0.9, 0.8, 0.6]])
MEANS, NAMES = BY_TOKEN.mean(1), ("the", "of", "<s>", "\n")
KEPT = np.full((STEPS, UNITS), NOTHING)
KEPT[1:] = FORGET[1:] * FORGET[:-1]
SCALES = np.array([2.5, 40.0, np.inf])
MEMORY = np.zeros((STEPS, UNITS), np.uint8)
MEMORY_RUNS = np.array([[1.0, 0, 0], [2.0, 5, 0], [0.4, 0.2, 0], [3.0, 2, 0]])
CONDITION = "f > 0.9 and i < 0.1"
OPENERS = Case(
    "openers",
    (
        TOKENS,
        *gate("forget", FORGET),
        Scalar(f"{LAYER}:gate/forget/keeps", 0, 1.0),
        channel(f"{LAYER}:gate/tokens", "opener", ("token",), COUNTS, compare="separate", labels={"token": NAMES}),
        channel(f"{LAYER}:gate/forget/by_token", "opener", ("token", "unit"), BY_TOKEN, title="forget gate by token",
                compare="separate", labels={"token": NAMES}),
        channel(f"{LAYER}:gate/memory/runs", "memory", ("statistic", "unit"), MEMORY_RUNS, compare="separate",
                title=f"runs of memory ({CONDITION})", labels={"statistic": ("runs", "longest_start", "share", "longest")}),
        channel(f"{LAYER}:gate/forget/timescale", "unit", ("unit",), SCALES, unit="step", scale="log", compare="ratio"),
    ),
    at={"step": 4, "unit": 1},
    choose={"span": 2},
    mark=(("bars.plot", 2.0, 0.1),),
    axes={
        "bars.plot": ("mean of the gate", ""), "kept.plot": ("unit", "step"),
        "scales.plot": ("units", "memory timescale τ in steps"),
    },
    ticks={"bars.plot.step_axis": ("↵", "of", "<s>", "the")},
    titles={
        "bars.plot": f"forget gate by token, {LAYER}: mean of the gate, mean of all units; over all steps "
        f"{(MEANS * COUNTS).sum() / COUNTS.sum():.3g} (dashed)",
        "kept.plot": "retention over 2 steps, ∏ forget gate", "scales.plot": "timescales of 3 units, 1 never forget",
    },
    maps={"kept": KEPT.T},
    units={"kept": ""},
    limits={"kept": (0, 1)},
    told=(
        ("forget gate by token, marked", f"'<s>': {MEANS[2]:.10g} (×10)"),
        ("forget gate by token, opens it most", f"'\\n': {MEANS[3]:.10g} (×5)"),
        ("forget gate by token, opens it least", f"'the': {MEANS[0]:.10g} (×40)"),
        ("retention over 2 steps [4, 1]", f"{FORGET[4, 1] * FORGET[3, 1]:.10g}"),
        ("timescale of unit 1 in steps", "40"),
    ),
    saved={
        f"{LAYER}:gate/tokens": COUNTS, f"{LAYER}:gate/forget/by_token": BY_TOKEN,
        f"{LAYER}:gate/memory/runs": MEMORY_RUNS, f"{LAYER}:gate/forget/timescale": SCALES,
    },
)  # fmt: skip
HEADS, QUERIES, KEYS = 2, 4, 6
WEIGHTS = random.dirichlet(np.ones(KEYS), (HEADS, QUERIES))
ENTROPY, DISTANCE = random.random((HEADS, QUERIES)).round(3), random.random((HEADS, QUERIES)).round(3) * 4
ATTENTION = Case(
    "attention",
    (
        channel("attn:attention", "attention", ("head", "query", "key"), WEIGHTS, title="attention", limits=(0, 1)),
        channel("attn:attention/entropy", "attention_statistic", ("head", "query"), ENTROPY, title="entropy", unit="bit"),
        channel("attn:attention/distance", "attention_statistic", ("head", "query"), DISTANCE, title="distance",
                unit="step"),
    ),
    place="attn",
    at={"step": 1, "key": 5, "head": 1},
    axes={"row.plot": ("query", "key"), "strip": ("bit", "query")},
    titles={"row": "attn, head 1"},
    maps={"row": WEIGHTS[1]},
    units={"row": ""},
    limits={"row": (0, float(f"{WEIGHTS[1].max():.3g}"))},
    curves=(("trace", "", np.arange(QUERIES), ENTROPY[1]),),
    told=(
        ("attention 1 → 5, head 1  attn", f"{WEIGHTS[1, 1, 5]:.10g}"),
        ("rank of that weight in its row", f"{1 + int((WEIGHTS[1, 1] > WEIGHTS[1, 1, 5]).sum())} of {KEYS}"),
        ("entropy [1], head 1", f"{ENTROPY[1, 1]:g} bit"),
        ("distance [1], head 1", f"{DISTANCE[1, 1]:g} steps"),
    ),
    saved={
        "attn:attention head 1": WEIGHTS[1], "attn:attention/entropy": ENTROPY, "attn:attention/distance": DISTANCE,
    },
)  # fmt: skip
SURPRISE, LOSS = random.random(STEPS).round(3) * 5, random.random(STEPS).round(3) * 3
TOP, IDS = random.random((STEPS, 3)).round(3), random.integers(0, 4, (STEPS, 3))
VOCABULARY = ("<s>", "the", " ", "cat")
SEEN = ("<s>", "the", "␣", "cat")
OUTPUTS = Case(
    "outputs",
    (
        TOKENS,
        Labels("vocabulary", VOCABULARY, -1),
        Scalar("output:loss/mean", 0, 1.5),
        Scalar("output:perplexity", 0, 2.83),
        channel("output:loss", "output", ("step",), LOSS, title="loss", unit="bit"),
        channel("output:surprise", "output", ("step",), SURPRISE, title="surprise", unit="bit"),
        channel("output:probability", "output", ("step", "rank"), TOP, title="top 3"),
        channel("output:token", "output", ("step", "rank"), IDS, title="tokens", value_domain="vocabulary"),
    ),
    at={"step": 3},
    axes={"curves.plot": ("bit", "step"), "row.plot": ("rank", "step")},
    ticks={"row.plot.step_axis": tuple("abcdefg")},
    titles={"curves.plot": "mean loss 1.5 bit, perplexity 2.83", "row.plot": "top 3: most probable at the top"},
    maps={"row": TOP.T},
    units={"row": ""},
    limits={"row": (0, 1)},
    curves=(("curves.legend", "loss", STEP, LOSS), ("curves.legend", "surprise", STEP, SURPRISE)),
    told=(
        ("loss [3]", f"{LOSS[3]:.10g} bit"),
        ("surprise [3]", f"{SURPRISE[3]:.10g} bit"),
        *((f"output {rank + 1} [3]: {SEEN[IDS[3, rank]]}", f"{TOP[3, rank]:g}") for rank in range(3)),
    ),
    saved={"output:loss": LOSS, "output:surprise": SURPRISE, "output:probability": TOP, "output:token": IDS},
)
CASES = (STATES, INPUTS, GATES, UNITS_CASE, OPENERS, ATTENTION, OUTPUTS)
