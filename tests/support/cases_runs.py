"""What panels of dynamics, spectra, training and health should say. Rows of tables are in odd orders."""

from __future__ import annotations

import numpy as np
from cases_units import STEP, STEPS, TOKENS
from panel_captures import channel
from reading import Case

from inspector.records import Labels, Scalar

random = np.random.default_rng(13)
LAYER, APART = "rnn.l0", {"compare": "separate"}
SINGULAR = np.sort(10.0 ** -random.uniform(0, 2, (STEPS, 3)).round(2), axis=1)[:, ::-1]
ISOMETRY = (SINGULAR**2).mean(1)
EIGEN = random.uniform(-1, 1, (STEPS, 2, 2)).round(2)
"""Parts: imaginary, real."""
WEIGHT, OWN = random.uniform(-1, 1, (3, 2)).round(2), np.array([2.0, 0.5, 0.1])
PARTS = {"part": ("im", "re")}
SPECTRA_PARTS = (
    TOKENS,
    channel(f"{LAYER}:jacobian/singular_values", "spectrum", ("step", "rank"), SINGULAR, title="singular values of Jₜ",
            scale="log", labels={"rank": ("1", "4", "9")}, **APART),
    channel(f"{LAYER}:jacobian/isometry", "spectrum", ("step",), ISOMETRY, title="mean square", scale="log", **APART),
    channel(f"{LAYER}:jacobian/eigenvalues", "spectrum", ("step", "eigenvalue", "part"), EIGEN, labels=PARTS,
            title="eigenvalues of Jₜ", **APART),
    channel(f"{LAYER}:weight/hidden/eigenvalues", "spectrum", ("eigenvalue", "part"), WEIGHT, labels=PARTS,
            title="Wₕₕ: eigenvalues", **APART),
    channel(f"{LAYER}:weight/hidden/singular_values", "spectrum", ("rank",), OWN, title="Wₕₕ: singular values",
            scale="log", **APART),
    Scalar(f"{LAYER}:weight/hidden/spectral_radius", 0, 0.9), Scalar(f"{LAYER}:weight/hidden/spectral_norm", 0, 2.0),
)  # fmt: skip
FAN = (
    ("fan.legend", "σ₁", STEP, SINGULAR[:, 0]), ("fan.legend", "σ₄", STEP, SINGULAR[:, 1]),
    ("fan.legend", "σ₉", STEP, SINGULAR[:, 2]), ("fan.legend", "mean square", STEP, ISOMETRY),
)  # fmt: skip
OF_STEPS = {f"{LAYER}:jacobian/singular_values": SINGULAR, f"{LAYER}:jacobian/isometry": ISOMETRY}
SPECTRA_AXES = {"fan.plot": ("singular value", "step"), "ranks": ("singular value", "rank"), "plane": ("Im λ", "Re λ")}
SPECTRA = Case(
    "spectra",
    SPECTRA_PARTS,
    at={"step": 5},
    choose={"which": "eigenvalues of Jₜ, cursor"},
    mark=(("ranks", 3.6, 0.0), ("plane", float(EIGEN[5, 1, 1]), float(EIGEN[5, 1, 0]))),
    axes=SPECTRA_AXES,
    titles={"plane": "eigenvalues of Jₜ at step 5", "ranks": "singular values of Jₜ at step 5"},
    curves=(
        *FAN, ("plane.dots", "", EIGEN[5, :, 1], EIGEN[5, :, 0]), ("plane.here", "", EIGEN[5, 1:, 1], EIGEN[5, 1:, 0]),
        ("ranks.line", "", (1, 4, 9), SINGULAR[5]),
    ),
    told=(
        ("σ₄ of Jₜ at step 5", f"{SINGULAR[5, 1]:.10g}"),
        ("eigenvalue, eigenvalues of Jₜ at step 5",
         f"{EIGEN[5, 1, 1]:g} {'−' if EIGEN[5, 1, 0] < 0 else '+'} {abs(EIGEN[5, 1, 0]):g} i"),
        ("its modulus |λ|", f"{np.hypot(*EIGEN[5, 1]):.10g}"),
        (f"σ₁ [5]  {LAYER}", f"{SINGULAR[5, 0]:.10g}"), (f"σ₉ [5]  {LAYER}", f"{SINGULAR[5, 2]:.10g}"),
        (f"mean square [5]  {LAYER}", f"{ISOMETRY[5]:.10g}"),
    ),
    saved={**OF_STEPS, f"{LAYER}:jacobian/eigenvalues[5]": EIGEN[5]},
)  # fmt: skip
WEIGHTS = Case(
    "spectra",
    SPECTRA_PARTS,
    named="spectra of weights",
    at={"step": 5},
    choose={"which": "Wₕₕ"},
    axes=SPECTRA_AXES,
    titles={"plane": "Wₕₕ: eigenvalues", "ranks": "singular values of Wₕₕ"},
    curves=(*FAN, ("plane.dots", "", WEIGHT[:, 1], WEIGHT[:, 0]), ("ranks.line", "", (1, 2, 3), OWN)),
    told=(
        (f"σ₁ [5]  {LAYER}", f"{SINGULAR[5, 0]:.10g}"), (f"σ₉ [5]  {LAYER}", f"{SINGULAR[5, 2]:.10g}"),
        (f"mean square [5]  {LAYER}", f"{ISOMETRY[5]:.10g}"), ("ρ of Wₕₕ", "0.9"), ("σ₁ of Wₕₕ", "2"),
    ),
    saved={
        **OF_STEPS, f"{LAYER}:weight/hidden/eigenvalues": WEIGHT, f"{LAYER}:weight/hidden/singular_values": OWN,
    },
)  # fmt: skip
RUNNING = np.cumsum(random.normal(size=(STEPS, 2)), 0) - [0, 5]
EXPONENTS, WAY = np.array([0.25, -1.5]), random.normal(size=(STEPS, 3)).round(3)
SPEED, POINTS = random.random(STEPS).round(3), random.normal(size=(2, 3)).round(2)
SLOW = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.1]])
"""Rows: stable, input, speed."""
DYNAMICS = Case(
    "dynamics",
    (
        TOKENS,
        channel(f"{LAYER}:lyapunov/running", "lyapunov", ("step", "exponent"), RUNNING, unit="nat/step", **APART),
        channel(f"{LAYER}:lyapunov/exponents", "lyapunov", ("exponent",), EXPONENTS, unit="nat/step", **APART),
        Scalar(f"{LAYER}:lyapunov/kaplan_yorke", 0, 1.1667),
        channel(f"{LAYER}:trajectory", "trajectory", ("step", "component"), WAY, title="state in components", **APART),
        channel(f"{LAYER}:trajectory/share", "trajectory", ("component",), np.array([0.6, 0.3, 0.1]), **APART),
        channel(f"{LAYER}:trajectory/speed", "trajectory", ("step",), SPEED, title="speed", unit="V", **APART),
        channel(f"{LAYER}:fixed_points", "fixed_point", ("point", "component"), POINTS, **APART),
        channel(f"{LAYER}:fixed_points/statistics", "fixed_point", ("statistic", "point"), SLOW,
                labels={"statistic": ("stable", "input", "speed")}, **APART),
    ),
    at={"step": 3},
    mark=(("ranks", 2.2, 0.0),),
    axes={
        "running.plot": ("nats a step", "step"), "ranks": ("nats a step", "exponent"),
        "plane": ("component 2 (30 %)", "component 1 (60 %)"),
    },
    titles={"plane": f"state in components, {LAYER}", "ranks": "2 exponents"},
    curves=(
        ("running.legend", "λ₁", STEP, RUNNING[:, 0]), ("running.legend", "λ₂", STEP, RUNNING[:, 1]),
        ("ranks.line", "", (1, 2), EXPONENTS), ("plane.dots", "", WAY[:, 0], WAY[:, 1]),
        ("plane.stable", "", POINTS[:1, 0], POINTS[:1, 1]), ("plane.unstable", "", POINTS[1:, 0], POINTS[1:, 1]),
        ("plane.here", "", WAY[3:4, 0], WAY[3:4, 1]),
    ),
    told=(
        (f"λ₂ in nats a step  {LAYER}", "-1.5"), (f"λ₁ in nats a step  {LAYER}", "0.25"),
        ("Kaplan–Yorke dimension", "1.1667"), (f"speed [3]  {LAYER}", f"{SPEED[3]:g} V"),
        ("components [3]", f"{WAY[3, 0]:g}, {WAY[3, 1]:g}"),
    ),
    saved={
        f"{LAYER}:lyapunov/running": RUNNING, f"{LAYER}:lyapunov/exponents": EXPONENTS, f"{LAYER}:trajectory": WAY,
        f"{LAYER}:trajectory/share": np.array([0.6, 0.3, 0.1]), f"{LAYER}:trajectory/speed": SPEED,
        f"{LAYER}:fixed_points": POINTS, f"{LAYER}:fixed_points/statistics": SLOW,
    },
)  # fmt: skip
PARAMETERS = ("rnn.weight", "rnn.bias", "head.weight")
NORMS = np.array([[0.5, 0.9, 0.1], [10.0, 20, 30], [2.0, 1.0, 4.0], [0.0, 0, 0], [0.3, 0.2, 0.1], [0.0, 0.0, 0.0]])
"""Rows: largest, entries, norm, zeros, root mean square, underflow."""
NORM_NAMES = ("largest", "entries", "norm", "zeros", "root mean square", "underflow")
CUT = np.array([[0.2, 0.6, 1.0], [0.1, 0.3, 1.0], [0.9, 0.4, 0.0], [1.0, 2.0, 3.0]])
"""Rows: cosine, threshold, share cut, norm after."""
PAST = np.array([[3.0, 0.25, 5.0, 0.125], [10.0, 20.0, 30.0, 40.0]])
"""Rows: gradient norm, step."""
CLIPPING = Case(
    "clipping",
    (
        Labels("trained parameter", PARAMETERS, -1),
        channel("parameters:clipping/norms", "clipping", ("statistic", "parameter"), NORMS, unit="bit", scale="log",
                domains={"parameter": "trained parameter"}, labels={"statistic": NORM_NAMES}, **APART),
        channel("parameters:clipping/by_value", "clipping", ("statistic", "bin"), CUT, scale="log",
                labels={"statistic": ("cosine", "threshold", "share cut", "norm after")}, **APART),
        channel("parameters:clipping/history", "clipping", ("statistic", "iteration"), PAST, scale="log",
                labels={"statistic": ("gradient norm", "step")}, **APART),
        *(Scalar(f"parameters:clipping/{name}", 0, value)
          for name, value in (("gradient_norm", 4.0), ("used", 0.3), ("loss_terms", 9.0))),
    ),
    place="",
    mark=(("parameters", 0.1, 2.2),),
    axes={
        "effect": ("after clipping", "threshold c (drag the line)"), "history": ("‖g‖", "iteration"),
        "parameters": ("", "gradient"),
    },
    ticks={"name_axis": PARAMETERS},
    titles={
        "effect": "threshold c = 0.3, ‖g‖ = 4\nby norm scaled by 0.075; by value 40 % cut, cosine 0.600",
        "history": "‖g‖ > 0.3 in 2 of 4 steps (50 %)", "parameters": "gradient by parameter\nmean over 9 losses",
    },
    curves=(
        ("noted", "", PAST[1], PAST[0]),
        ("legends.1", "norm", np.log10(NORMS[2]), range(3)), ("legends.1", "largest entry", np.log10(NORMS[0]), range(3)),
        ("legends.0", "share cut by value", [*np.log10(CUT[1]), np.log10(4.0) + 0.5], [0.9, 0.4, 0, 0]),
        ("legends.0", "cosine, cut by value", [*np.log10(CUT[1]), np.log10(4.0) + 0.5], [0.2, 0.6, 1, 1]),
    ),
    told=(
        ("norm, gradient of head.weight", "4 bit"), ("largest entry, gradient of head.weight", "0.1 bit"),
        ("clipping threshold", "0.3"), ("gradient norm", "4 bit"), ("training steps above the threshold", "2 of 4"),
    ),
    saved={
        "parameters:clipping/norms": NORMS, "parameters:clipping/by_value": CUT, "parameters:clipping/history": PAST,
    },
)  # fmt: skip
NOTED = np.array([[3.0, 2.0, 1.5], [0.0, 50.0, 100.0], [0.2, 30.0, 0.4], [0.6, 0.5, 0.7]])
"""Rows: loss, step, weights: largest, weights: smallest."""
TRAINING = Case(
    "training",
    (
        channel("parameters:training", "training", ("statistic", "iteration"), NOTED,
                labels={"statistic": ("loss", "step", "weights: largest", "weights: smallest")}, **APART),
    ),
    place="",
    mark=(("shown.0", 60.0, 0.0),),
    axes={"shown.0": ("", ""), "shown.1": ("", "iteration")},
    titles={"shown.0": "loss", "shown.1": "weights"},
    curves=(
        ("legends.1", "largest", NOTED[1], NOTED[2]), ("legends.1", "smallest", NOTED[1], NOTED[3]),
        ("shown.0.items.4", "", NOTED[1], NOTED[0]),
    ),
    told=(
        ("loss [iteration 50]", "2"), ("weights: largest [iteration 50]", "30"),
        ("weights: smallest [iteration 50]", "0.5"),
    ),
    saved={"parameters:training": NOTED},
)  # fmt: skip
NAMES = ("nan", "first_bad_step", "<0", ">0", "0", "+inf", "-inf")
COUNTS = {"h": np.array([0, -1, 5, 7, 1, 0, 0]), "c": np.array([2, 4, 1, 3, 0, 6, 0])}
HEALTH = Case(
    "health",
    tuple(channel(f"{LAYER}:health/{name}", "health", ("count",), values, labels={"count": NAMES}, **APART)
          for name, values in COUNTS.items()),
    saved={f"{LAYER}:health/{name}": values for name, values in COUNTS.items()},
)  # fmt: skip
MOVED = np.triu(10.0 ** -random.uniform(0, 4, (4, 4)).round(2))
MOVED[2, 0] = 1e-5
RATES = np.array([[1e-4, 1e-3, 1e-2], [2.0, 1.5, 3.0]])
STRUCTURE = Case(
    "preflight",
    (
        Labels("step", tuple("abcd"), -1), Labels("structure modules of causal", ("embed", "mix", "model"), -1),
        Labels("structure first module of causal", ("mix (Mixer)",), -1),
        channel("model:structure/causal", "structure", ("source", "step"), MOVED, title="change", scale="log", **APART),
        channel("model:structure/causal/modules", "structure", ("module",), np.array([0.0, 0.01, 0.001]),
                title="change, by module", scale="log", domains={"module": "structure modules of causal"}, **APART),
        Scalar("structure/causal/rounding", 0, 1e-6),
        channel("model:trial/learning_rate/adam", "trial", ("statistic", "point"), RATES, unit="nat",
                title="loss after one step of Adam", labels={"statistic": ("learning rate", "loss")}, **APART),
        channel("model:trial/one_batch", "trial", ("iteration",), np.array([2.0, 1.0, 0.5]), unit="nat",
                title="loss while one batch is learned by heart", **APART),
    ),
    place="model",
    at={"step": 0, "key": 2},
    mark=(("bars", 1.0, 0.0), ("batch", 2.0, 0.0)),
    axes={"rates": ("loss after one step", "learning rate"), "batch": ("loss (nat)", "step of training on this batch"),
          "row.plot": ("input that is replaced", "step of the output"),
          "bars": ("change", "module, in the order of their results")},
    titles={"row.plot": "change of each output when an input is replaced", "bars": "change, by module"},
    maps={"row": np.where(MOVED > 0, MOVED, MOVED[MOVED > 0].min())},
    ticks={"row.plot.axes.bottom.item": tuple("abcd")},
    units={"row": ""},
    told=(("output [0], input [2] replaced", "1e-05"), ("change in mix", "0.01"),
          ("loss at step 2 of one batch", "0.5 nat")),
    curves=(("legend", "Adam", np.log10(RATES[0]), RATES[1]), ("learned", "", (0, 1, 2), (2.0, 1.0, 0.5))),
    saved={"model:structure/causal": MOVED, "model:structure/causal/modules": np.array([0.0, 0.01, 0.001]),
           "model:trial/learning_rate/adam": RATES, "model:trial/one_batch": np.array([2.0, 1.0, 0.5])},
)  # fmt: skip
TRIED = {
    "token": np.array([3, 1, 0, 2], np.int32), "parent": np.array([-1, -1, 0, 0], np.int32),
    "log_probability": np.log([0.6, 0.4, 0.25, 0.75]), "total": np.log([0.6, 0.4, 0.15, 0.45]),
    "score": np.log([0.6, 0.4, 0.15, 0.45]) / 2, "fate": np.array([0, 1, 2, 2], np.uint8),
    "times": np.array([3, 1, 1, 2], np.int32),
}  # fmt: skip
PARTED = {"decoding:drift/output": np.array([0.0, 0.5, 0.25]), "rnn:drift/state": np.array([0.0, 2.0, 1.0])}
DRIFTS = tuple(
    channel(name, "decoding", ("step",), values, title=title, unit=unit, domains={"step": "answer step"}, **APART)
    for (name, values), title, unit in zip(
        PARTED.items(), ("drift of the output", "drift of the state"), ("nat", "1"), strict=True
    )
)
DECODING = Case(
    "decoding",
    (
        Labels("node", tuple("abcd"), 0),
        *(channel(f"decoding:{name}", "decoding", ("node",), values, **APART) for name, values in TRIED.items()),
        *DRIFTS,
        channel("decoding:drift/wrong", "decoding", ("step",), np.array([0, 1, 1]), title="wrong", **APART),
    ),
    place="decoding",
    choose={"which": "everything tried"},
    mark=(("branches", 2.0, 0.0), ("parting", 2.0, 0.0)),
    axes={"branches": ("", "token of the answer"), "parting": ("drift", "token of the answer")},
    titles={"branches": "4 of 4 tokens", "parting": "first wrong: token 2 of the best hypothesis"},
    curves=(
        ("drift_legend", "drift of the output [nat]", (1, 2, 3), PARTED["decoding:drift/output"]),
        ("drift_legend", "drift of the state  rnn", (1, 2, 3), PARTED["rnn:drift/state"]),
    ),
    told=(
        ("token 'd', finished", "p = 0.75"), ("ln p of 'ad'", f"{np.log(0.45):.10g} nat"),
        ("its score", f"{np.log(0.45) / 2:.10g} nat"), ("samples through it", "2"),
        ("drift of the output, token 2  decoding", "0.5 nat"), ("drift of the state, token 2  rnn", "2"),
        ("wrong, token 2  decoding", "1"),
    ),
    saved={**{f"decoding:{name}": values for name, values in TRIED.items()}, **PARTED,
           "decoding:drift/wrong": np.array([0, 1, 1])},
)  # fmt: skip
LOSSES = np.array([[[4.0, 3.5, 3.0], [2.0, 2.5, 2.0]], [[4.0, 1.5, 1.0], [2.0, 1.5, 0.0]]])
ENDED = np.array([[2.0, 2.25], [1.0, 0.75]])
CURES = Case(
    "cures",
    tuple(
        channel(name, "cure", dims, values, unit="nat", title="Clip the gradient: loss of training", method="clipped at 1",
                labels={"version": ("as it is", "cured")}, **APART)
        for name, dims, values in (
            ("model:trial/cure/clip_gradient", ("version", "seed", "iteration"), LOSSES),
            ("model:trial/cure/clip_gradient/after", ("version", "seed"), ENDED),
        )
    ),
    place="model",
    mark=(("plot", 1.0, 0.0),),
    axes={"plot": ("loss (nat)", "step of training"), "beside": ("difference (nat)", "step of training")},
    titles={"plot": "clipped at 1", "beside": "below 0 the cured copy is better"},
    curves=(
        ("legend", "as it is (mean and range of 2 seeds)", (0, 1, 2), (3.0, 3.0, 2.5)),
        ("legend", "cured (mean and range of 2 seeds)", (0, 1, 2), (3.0, 1.5, 0.5)),
        ("bands.0.edges.0", "", (0, 1, 2), (2.0, 2.5, 2.0)), ("bands.0.edges.1", "", (0, 1, 2), (4.0, 3.5, 3.0)),
        ("difference.line", "", (0, 1, 2), (0.0, -1.5, -2.0)),
        ("difference.edges.0", "", (0, 1, 2), (0.0, -2.0, -2.0)),
        ("difference.edges.1", "", (0, 1, 2), (0.0, -1.0, -2.0)),
    ),
    told=(("as it is, mean at step 1", "3 nat"), ("cured, mean at step 1", "1.5 nat")),
    saved={"model:trial/cure/clip_gradient": LOSSES, "model:trial/cure/clip_gradient/after": ENDED},
)  # fmt: skip
CASES = (SPECTRA, WEIGHTS, DYNAMICS, CLIPPING, TRAINING, HEALTH, STRUCTURE, DECODING, CURES)
