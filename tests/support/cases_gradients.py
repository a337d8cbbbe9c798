"""What panels of Jacobians, gradients and training should say; and dynamics and health. Rows of tables are in odd orders."""

from __future__ import annotations

import numpy as np
from cases_units import STEP, STEPS, TOKENS
from panel_captures import channel
from reading import NOTHING, Case

from inspector.records import Labels, Scalar

random = np.random.default_rng(12)
LAYER = "rnn.l0"
APART, RATIO = {"compare": "separate"}, {"compare": "ratio", "scale": "log"}


def falling(rows: int, columns: int) -> np.ndarray:
    """Positive numbers over some decades, no two alike, no row or column like another."""
    return 10.0 ** -random.uniform(0, 3, (rows, columns)).round(2)


NORM, BOUND = falling(2, STEPS)
JACOBIANS = Case(
    "jacobians",
    (
        TOKENS,
        channel(f"{LAYER}:jacobian/spectral_norm", "jacobian", ("step",), NORM, title="spectral norm", **RATIO),
        channel(f"{LAYER}:jacobian/bound", "jacobian", ("step",), BOUND, title="bound γσ₁(W)", **RATIO),
        channel("rnn.l1:jacobian/bound", "jacobian", ("step",), BOUND * 2, title="bound γσ₁(W)", **RATIO),
    ),
    at={"step": 2},
    ticks={"curves.plot.step_axis": tuple("abcdefg")},
    axes={"curves.plot": ("norm of ∂sₜ/∂sₜ₋₁", "step")},
    curves=(("curves.legend", "spectral norm", STEP, NORM), ("curves.legend", "bound γσ₁(W)", STEP, BOUND)),
    told=((f"spectral norm [2]  {LAYER}", f"{NORM[2]:.10g}"), (f"bound γσ₁(W) [2]  {LAYER}", f"{BOUND[2]:.10g}")),
    saved={f"{LAYER}:jacobian/spectral_norm": NORM, f"{LAYER}:jacobian/bound": BOUND},
)
GRADIENTS = Case(
    "gradients",
    (
        TOKENS,
        channel(f"{LAYER}:gradient/h", "gradient", ("step",), NORM, title="‖∂L/∂hₜ‖", unit="bit", **RATIO),
        channel("rnn.l1:gradient/h", "gradient", ("step",), BOUND, title="‖∂L/∂hₜ‖", unit="bit", **RATIO),
    ),
    at={"step": 6},
    choose={"where": "all layers"},
    axes={"curves.plot": ("gradient norm", "step")},
    curves=(
        ("curves.legend", f"‖∂L/∂hₜ‖  {LAYER}", STEP, NORM), ("curves.legend", "‖∂L/∂hₜ‖  rnn.l1", STEP, BOUND),
    ),
    told=(
        (f"‖∂L/∂hₜ‖ [6]  {LAYER}", f"{NORM[6]:.10g} bit"), ("‖∂L/∂hₜ‖ [6]  rnn.l1", f"{BOUND[6]:.10g} bit"),
    ),
    saved={f"{LAYER}:gradient/h": NORM, "rnn.l1:gradient/h": BOUND},
)  # fmt: skip
LAGS = np.arange(5)
BY_LAG = np.stack([10.0 ** (-0.5 * LAGS + rest) for rest in (0.3, 0.0, -0.4, 0.1)])
"""Rows: p90, median, p10, mean."""
BANDS = {"labels": {"statistic": ("p90", "median", "p10", "mean")}}
DEAD = np.array([0.0, 0.1, 0.2, 0.25, 0.5])
STARTS = (0, 2, 5)
BY_START = falling(3, 5)
BY_START[2, 2:] = NOTHING  # from step 5 on there are two lags
LAGS_CASE = Case(
    "lags",
    (
        TOKENS,
        channel(f"{LAYER}:h", "state", ("step", "unit"), np.zeros((STEPS, 2))),
        channel(f"{LAYER}:jacobian/lag", "lag", ("statistic", "lag"), BY_LAG, title="norm by lag", **BANDS, **RATIO),
        channel(f"{LAYER}:jacobian/lag_map", "map", ("start", "lag"), np.where(np.isinf(BY_START), np.nan, BY_START),
                title="by start", labels={"start": tuple(map(str, STARTS))}, **RATIO),
        channel(f"{LAYER}:jacobian/lag_dead", "lag", ("lag",), DEAD, title="share of dead starts"),
        Scalar(f"{LAYER}:jacobian/lag_horizon", 0, 3.0),
    ),
    at={"step": 5, "key": 2},
    mark=(("plot", 3.2, 0.0),),
    axes={"plot": ("norm of the product", "lag in steps"), "row.plot": ("start", "lag in steps")},
    titles={"plot": f"{LAYER}: after 3 steps vanished: the median is below 10⁻³; 25 % of the starts dead (exactly "
            "0) by then\nexact", "row.plot": "by start"},
    maps={"row": BY_START},
    units={"row": ""},
    ticks={"row.plot.axes.left.item": tuple(map(str, STARTS))},
    curves=(
        ("legend", "median over starts", LAGS, BY_LAG[1]), ("legend", "arithmetic mean", LAGS, BY_LAG[3]),
        ("legend", "p10 to p90", LAGS, BY_LAG[2]), ("low", "", LAGS, BY_LAG[2]), ("high", "", LAGS, BY_LAG[0]),
    ),
    told=(
        (f"by start [5, from 2]  {LAYER}", f"{BY_START[1, 3]:.10g}"),
        ("norm by lag, p90 [lag 3]", f"{BY_LAG[0, 3]:.10g}"),
        ("norm by lag, median [lag 3]", f"{BY_LAG[1, 3]:.10g}"),
        ("norm by lag, p10 [lag 3]", f"{BY_LAG[2, 3]:.10g}"),
        ("norm by lag, arithmetic mean [lag 3]", f"{BY_LAG[3, 3]:.10g}"),
        ("share of dead starts [lag 3]", "0.25"),
        (f"lag horizon in steps, by the median  {LAYER}", "3"),
    ),
    saved={
        f"{LAYER}:jacobian/lag": BY_LAG, f"{LAYER}:jacobian/lag_dead": DEAD,
        f"{LAYER}:jacobian/lag_map": np.where(np.isinf(BY_START), np.nan, BY_START),
    },
)  # fmt: skip
PAST = np.where(np.tril(np.ones((4, 4), bool)), falling(4, 4), NOTHING)
GRADIENT_MAP = Case(
    "lags",
    (
        Labels("step", tuple("abcd"), -1),
        channel(f"{LAYER}:gradient/map", "map", ("step", "source"), np.where(np.isinf(PAST), 0.0, PAST), unit="bit",
                title="gradient map", **RATIO),
    ),
    named="lags, step and source",
    at={"step": 3, "key": 1},
    axes={"row.plot": ("step", "source step")},
    titles={"row.plot": "gradient map"},
    maps={"row": PAST},
    ticks={"row.plot.axes.left.item": tuple("0123"), "row.plot.axes.bottom.item": tuple("abcd")},
    units={"row": "bit"},
    told=((f"gradient map [3, from 1]  {LAYER}", f"{PAST[3, 1]:.10g} bit"),),
    saved={f"{LAYER}:gradient/map": np.where(np.isinf(PAST), 0.0, PAST)},
)  # fmt: skip
DIRECT, SHARE = falling(1, STEPS)[0], random.random(STEPS).round(3)
OPEN = (random.random((STEPS, 2)) < 0.5).astype(np.float32)
OPEN[0], OPEN[-1] = (1, 0), (0, 0)
RETENTION = random.random((5, 2)).round(3)
PATHS = Case(
    "paths",
    (
        TOKENS,
        channel(f"{LAYER}:path/direct_norm", "path", ("step",), DIRECT, title="direct path", **RATIO),
        channel(f"{LAYER}:path/share", "path", ("step",), SHARE, title="share of the direct path", limits=(0, 1)),
        channel(f"{LAYER}:mask", "mask", ("step", "unit"), OPEN, title="active units", limits=(0, 1)),
        channel(f"{LAYER}:path/lag_direct", "path", ("statistic", "lag"), BY_LAG, title="direct", **BANDS, **RATIO),
        channel(f"{LAYER}:path/lag_whole", "path", ("lag",), BY_LAG[0], title="whole", **RATIO),
        channel(f"{LAYER}:path/lag_difference", "path", ("lag",), BY_LAG[0] / 3, title="difference", **RATIO),
        channel(f"{LAYER}:path/retention_band", "path", ("lag",), BY_LAG[1] * 4, title="retention over units", **RATIO),
        channel(f"{LAYER}:path/retention", "path", ("lag", "unit"), RETENTION, title="retention of a unit"),
    ),
    at={"step": 1, "unit": 1},
    mark=(("lags.plot", 1.8, 0.0),),
    axes={
        "norms.plot": ("norm", "step"), "open_units.plot": ("unit", "step"), "shares.plot": ("share", "step"),
        "lags.plot": ("product", "lag in steps"),
    },
    titles={
        "lags.plot": f"{LAYER}: median over starts, 4 steps on, direct {BY_LAG[1, 4]:.2g}, whole {BY_LAG[0, 4]:.2g}, difference "
        f"{BY_LAG[0, 4] / 3:.2g}",
        "open_units.plot": f"active units (bright: open), {LAYER}",
    },
    curves=(
        ("norms.legend", "direct path", STEP, DIRECT), ("shares.legend", "share of the direct path", STEP, SHARE),
        ("lags.legend", "direct (median)", LAGS, BY_LAG[1]), ("lags.legend", "whole", LAGS, BY_LAG[0]),
        ("lags.legend", "difference", LAGS, BY_LAG[0] / 3), ("lags.legend", "retention over units", LAGS, BY_LAG[1] * 4),
        ("lags.legend", "unit 1", LAGS, RETENTION[:, 1]),
    ),
    told=(
        ("direct, median [lag 2]", f"{BY_LAG[1, 2]:.10g}"), ("whole [lag 2]", f"{BY_LAG[0, 2]:.10g}"),
        ("difference [lag 2]", f"{BY_LAG[0, 2] / 3:.10g}"),
        ("retention over units [lag 2]", f"{BY_LAG[1, 2] * 4:.10g}"),
        ("direct path [1]", f"{DIRECT[1]:.10g}"), ("share of the direct path [1]", f"{SHARE[1]:.10g}"),
        ("unit 1 [1]", "open" if OPEN[1, 1] else "closed"), ("unit 1 keeps over 1 step", f"{RETENTION[1, 1]:g}"),
        ("direct, how", "exact"), ("whole, how", "exact"),
    ),
    saved={
        f"{LAYER}:path/direct_norm": DIRECT, f"{LAYER}:path/share": SHARE, f"{LAYER}:mask": OPEN,
        f"{LAYER}:path/lag_direct": BY_LAG, f"{LAYER}:path/lag_whole": BY_LAG[0],
        f"{LAYER}:path/lag_difference": BY_LAG[0] / 3, f"{LAYER}:path/retention_band": BY_LAG[1] * 4, f"{LAYER}:path/retention": RETENTION,
    },
)  # fmt: skip
USES = np.where(np.tril(np.ones((4, 4), bool)), falling(4, 4), NOTHING)
SUMS = np.stack([np.array([0.1, 0.05, 0.02, 0.01]), np.array([2.0, 1.0, 0.5, 0.1]), np.array([4.0, 3.0, 0.9, 0.7])])
"""Rows: standard error, norm of the sum, sum of the norms."""
BPTT = Case(
    "bptt",
    (
        Labels("step", tuple("abcd"), -1),
        channel(f"{LAYER}:bptt/bias", "bptt", ("step", "source"), np.ones((4, 4)), scale="log", **APART),
        channel(f"{LAYER}:bptt/weight_hh", "bptt", ("step", "source"), np.where(np.isinf(USES), 0.0, USES), unit="bit",
                scale="log", **APART),
        channel(f"{LAYER}:bptt/weight_hh/lag", "bptt", ("statistic", "lag"), SUMS, unit="bit", scale="log",
                method="estimated", labels={"statistic": ("standard error", "norm of the sum", "sum of the norms")},
                **APART),
        *(Scalar(f"{LAYER}:bptt/weight_hh/{name}", 0, value)
          for name, value in (("check_error", 1e-6), ("total_norm", 3.0), ("immediate_norm", 2.0))),
    ),
    at={"step": 3, "key": 1},
    mark=(("plot", 2.3, 0.0),),
    axes={"row.plot": ("step of the loss", "step of the use (source)"), "plot": ("gradient norm", "lag in steps")},
    titles={
        "row.plot": f"{LAYER}, weight_hh\nall items add up to autograd's gradient (relative difference 1.0e-06)",
        "plot": "total gradient 3, immediate part alone",
    },
    maps={"row": USES},
    ticks={f"row.plot.axes.{side}.item": tuple("abcd") for side in ("left", "bottom")},
    units={"row": "bit"},
    curves=(
        ("legend", "norm of the sum", range(4), SUMS[1]), ("legend", "sum of the norms", range(4), SUMS[2]),
        ("edges.0", "", range(4), SUMS[1] - 2 * SUMS[0]), ("edges.1", "", range(4), SUMS[1] + 2 * SUMS[0]),
    ),
    told=(
        (f"gradient of loss 3 through the use at 1, weight_hh  {LAYER}", f"{USES[3, 1]:.10g} bit"),
        (f"norm of the sum [lag 2], weight_hh  {LAYER}", "0.5 bit"),
        (f"sum of the norms [lag 2], weight_hh  {LAYER}", "0.9 bit"),
        (f"sum of all items against autograd, weight_hh  {LAYER}", "1.0e-06"),
    ),
    saved={f"{LAYER}:bptt/weight_hh": np.where(np.isinf(USES), 0.0, USES), f"{LAYER}:bptt/weight_hh/lag": SUMS},
)  # fmt: skip
KS = np.array([1.0, 2, 4, 8])
ERROR, COSINE, COST = np.array([0.5, 0.2, 0.05, 0.002]), np.array([0.6, 0.8, 0.9, 1.0]), np.array([0.1, 0.3, 0.55, 1.0])
SMALLEST = np.stack((np.arange(STEPS) + 3.0, np.arange(STEPS) / 2 + 1))
"""Rows: 1 %, 10 %."""
TRUNCATION = Case(
    "truncation",
    (
        TOKENS,
        channel(f"{LAYER}:truncation/all", "truncation", ("statistic", "truncation"), np.stack((COST, KS, COSINE, ERROR)),
                title="all parameters", scale="log",
                labels={"statistic": ("share of the cost", "K", "cosine", "relative error")}, **APART),
        channel(f"{LAYER}:truncation/adaptive", "truncation", ("statistic", "step"), SMALLEST, title="smallest K by step",
                labels={"statistic": ("1%", "10%")}, **APART),
        Scalar(f"{LAYER}:truncation/all/smallest_k_10_percent", 0, 4.0),
        Scalar(f"{LAYER}:truncation/all/smallest_k_1_percent", 0, 8.0),
    ),
    at={"step": 4},
    mark=(("error", 0.58, 0.0),),
    axes={
        "error": ("relative error", ""), "rest": ("share", "K: steps that each loss goes back"),
        "by_step": ("smallest K", "step"),
    },
    titles={"error": "error within 10 %: K = 4, 55 % of the cost; within 1 %: K = 8, 100 % of the cost"},
    curves=(
        ("lines.0", "", np.log10(KS), ERROR), ("legends.1", "cosine to the exact gradient", np.log10(KS), COSINE),
        ("legends.1", "share of the cost", np.log10(KS), COST),
        ("legends.2", "within 10 %", STEP, SMALLEST[1]), ("legends.2", "within 1 %", STEP, SMALLEST[0]),
    ),
    told=(
        (f"relative error [K = 4]  {LAYER}", "0.05"), (f"cosine [K = 4]  {LAYER}", "0.9"),
        (f"share of the cost [K = 4]  {LAYER}", "0.55"), (f"smallest K within 10 %  {LAYER}", "4"),
        (f"smallest K within 1 %  {LAYER}", "8"), ("smallest K [4] 10 % / 1 %", "3 / 7"),
    ),
    saved={
        f"{LAYER}:truncation/all": np.stack((COST, KS, COSINE, ERROR)), f"{LAYER}:truncation/adaptive": SMALLEST,
    },
)  # fmt: skip
FELT, FLOWS = np.array([2.0, 4.0, 1.0, 0.25, 0.1]), np.array([0.5, 1.0, 0.1, 1e-3, 1e-4])
SPREAD = np.array([0.1, 0.4, 0.3, 0.05, 0.02])
OF_INFLUENCE = {"labels": {"statistic": ("positions", "error", "mean")}, "unit": "bit", "scale": "log", **APART}
INFLUENCES = {
    "input:influence/loss": np.stack([np.full(5, 9.0), SPREAD, FELT]),
    "input:gradient/lag": np.stack([np.full(5, 9.0), np.full(5, np.nan), FLOWS]),
}
INFLUENCE = Case(
    "influence",
    (
        channel("input:h", "state", ("step", "unit"), np.zeros((5, 2))),
        channel("input:influence/loss", "influence", ("statistic", "lag"), INFLUENCES["input:influence/loss"],
                title="influence on the loss", **OF_INFLUENCE),
        channel("input:gradient/lag", "influence", ("statistic", "lag"), INFLUENCES["input:gradient/lag"],
                title="gradient of the loss", **OF_INFLUENCE),
        *(Scalar(f"input:{name}", 0, value)
          for name, value in (("influence/reference_lag", 1.0), ("influence/reach", 3.0), ("gradient/reach", 2.0))),
    ),
    place="",
    at={"step": 1},
    mark=(("plot", 2.2, 0.0),),
    axes={"plot": ("share of the value at lag 1", "lag in steps")},
    curves=(
        ("legend", "influence on the loss", range(5), FELT / 4), ("legend", "gradient of the loss", range(5), FLOWS),
        ("low", "", range(5), (FELT - SPREAD) / 4), ("high", "", range(5), (FELT + SPREAD) / 4),
    ),
    told=(
        ("influence on the loss [lag 2]", "1 ± 0.3 bit"), ("gradient of the loss [lag 2]", "0.1 bit"),
        ("influence on the loss ≥ 5 % up to lag", "3"), ("gradient ≥ 10⁻³ up to lag", "2"),
    ),
    saved=INFLUENCES,
)  # fmt: skip
LAYERS = {"layer": ("rnn.l0", "rnn.l1", "rnn.l2")}
BY_LAYER = np.array([[4.0, 8.0, 2.0], [1.0, 2.0, 0.5], [0.2, 0.6, 0.1]])
RATIOS, SIZES, GRID = np.array([0.5, 4.0]), np.array([0.1, 0.4, 0.3]), falling(STEPS, 3)
MODULES = np.array([[9.0, 8.0, 7.0, 6.0], [0.1, 0.4, 0.02, 0.9]])
DEPTH = Case(
    "depth",
    (
        TOKENS,
        channel("layers:gradient/depth", "depth", ("statistic", "layer"), BY_LAYER, title="gradient by layer", unit="bit",
                labels={**LAYERS, "statistic": ("p90", "mean", "p10")}, **RATIO),
        channel("layers:gradient/depth_ratio", "depth", ("layer",), RATIOS, title="gradient ratio",
                labels={"layer": ("rnn.l0 / rnn.l1", "rnn.l1 / rnn.l2")}, **RATIO),
        channel("layers:h/depth_rms", "depth", ("layer",), SIZES, title="state size", labels=LAYERS),
        channel("layers:parameter/gradient", "depth", ("statistic", "module"), MODULES, title="by module", unit="bit",
                labels={"statistic": ("norm", "root mean square"), "module": ("rnn.l0", "rnn.l1", "rnn.l2", "head")},
                **RATIO),
        channel("layers:gradient/depth_map", "depth", ("step", "layer"), GRID, title="gradient map", labels=LAYERS,
                unit="bit", **RATIO),
    ),
    place="",
    at={"step": 4},
    axes={
        "gradient": ("", "layer"), "ratio": ("", "layer"), "rms": ("", "layer"), "parameters": ("", "module"),
        "row.plot": ("layer", "step"),
    },
    titles={
        "gradient": "gradient by layer, bit", "ratio": "gradient ratio", "rms": "state size",
        "parameters": "by module, bit", "row.plot": "gradient map",
    },
    ticks={
        "gradient.axes.bottom.item": ("l0", "l1", "l2"), "ratio.axes.bottom.item": ("l0/l1", "l1/l2"),
        "row.plot.axes.left.item": LAYERS["layer"], "parameters.axes.bottom.item": ("rnn.l0", "rnn.l1", "rnn.l2", "head"),
        "row.plot.axes.bottom.item": tuple("abcdefg"),
    },
    maps={"row": GRID.T},
    units={"row": "bit"},
    curves=(
        ("gradient.line", "", range(3), BY_LAYER[1]), ("low", "", range(3), BY_LAYER[2]),
        ("high", "", range(3), BY_LAYER[0]), ("rms.line", "", range(3), SIZES),
        ("parameters.line", "", range(4), MODULES[1]),
    ),
    told=(
        ("gradient ratio rnn.l0 / rnn.l1", "0.5"), ("gradient ratio rnn.l1 / rnn.l2", "4"),
        *((f"‖∂L/∂h‖ [4]  rnn.l{n}", f"{GRID[4, n]:.10g} bit") for n in range(3)),
        *((f"parameter gradient {n}  {name}", f"{MODULES[1, n]:g} bit")
          for n, name in enumerate(("rnn.l0", "rnn.l1", "rnn.l2", "head"))),
    ),
    saved={
        "layers:gradient/depth": BY_LAYER, "layers:gradient/depth_ratio": RATIOS, "layers:h/depth_rms": SIZES,
        "layers:parameter/gradient": MODULES, "layers:gradient/depth_map": GRID,
    },
)  # fmt: skip
CASES = (
    JACOBIANS, GRADIENTS, LAGS_CASE, GRADIENT_MAP, PATHS, BPTT, TRUNCATION, INFLUENCE, DEPTH,
)  # fmt: skip
