"""What the views of the panel of hidden variables should say."""

from __future__ import annotations

import numpy as np
from panel_captures import channel
from reading import Case

from inspector.records import Labels, Scalar

random = np.random.default_rng(12)
STEPS, UNITS, STATES = 7, 2, 3
TOKENS = Labels("step", tuple("abcdefg"), -1)
STEP, P = np.arange(STEPS), "net.core"
BOTH = {"statistic": ("mean", "deviation")}
Z, PRIOR = (random.uniform(0.1, 0.9, (STEPS, UNITS, 2)).round(3) for _ in range(2))
DRAWN, KL = random.normal(size=(STEPS, UNITS)).round(3), random.uniform(0.1, 2, STEPS).round(3)
VARIABLES = Case(
    "latents",
    (
        TOKENS,
        channel(f"{P}:latent/z/z", "latent", ("step", "unit", "statistic"), Z, title="z: Normal", labels=BOTH),
        channel(f"{P}:latent/z/prior", "latent", ("step", "unit", "statistic"), PRIOR, title="prior: Normal", labels=BOTH),
        channel(f"{P}:latent/z/sample", "latent", ("step", "unit"), DRAWN, title="z: sample"),
        channel(f"{P}:latent/z/kl_total", "latent", ("step",), KL, title="KL(z ‖ prior)", unit="nat"),
    ),
    place=P,
    at={"step": 4, "unit": 1},
    axes={"sheet.upper": ("value", "step"), "sheet.terms.plot": ("nat", "step")},
    ticks={"sheet.upper.step_axis": tuple("abcdefg")},
    titles={"sheet.upper": f"z, {P}: unit 1, means with 95 % bands (±1.96 σ)", "sheet.terms.plot": "terms by step"},
    curves=(
        ("sheet.lines.legend", "z: Normal", STEP, Z[:, 1, 0]), ("sheet.lines.legend", "prior: Normal", STEP, PRIOR[:, 1, 0]),
        ("sheet.terms.legend", "KL(z ‖ prior)", STEP, KL),
    ),
    told=(
        (f"z: Normal [4, 1]  {P}", f"{Z[4, 1, 0]:g} ± {Z[4, 1, 1]:g}"),
        (f"prior: Normal [4, 1]  {P}", f"{PRIOR[4, 1, 0]:g} ± {PRIOR[4, 1, 1]:g}"),
        (f"z: sample [4, 1]  {P}", f"{DRAWN[4, 1]:g}"),
        (f"KL(z ‖ prior) [4]  {P}", f"{KL[4]:g} nat"),
    ),
    saved={
        f"{P}:latent/z/z": Z, f"{P}:latent/z/prior": PRIOR, f"{P}:latent/z/sample": DRAWN, f"{P}:latent/z/kl_total": KL,
    },
)  # fmt: skip
NU, NIS = np.array([0.5, 1.0, -0.25, 0.125, 2.0, 0.75, -0.5]), np.array([0.25, 1.0, 0.0625, 0.0156, 4.0, 0.5625, 0.25])
GAIN, MEMORY = random.uniform(0.1, 0.9, (STEPS, 1)).round(3), np.array([[1.0], [0.25], [-0.5], [0.125]])
INNOVATIONS = Case(
    "latents",
    (
        TOKENS,
        channel(f"{P}:innovation/standardised", "innovation", ("step", "unit"), NU[:, None], title="standardised innovation"),
        channel(f"{P}:innovation/nis", "innovation", ("step",), NIS, title="NIS"),
        channel(f"{P}:innovation/gain", "innovation", ("step", "component"), GAIN, title="gain",
                labels={"component": ("z0 from x0",)}),
        channel(f"{P}:innovation/autocorrelation", "innovation", ("lag", "unit"), MEMORY, title="autocorrelation"),
        Scalar(f"{P}:innovation/nis/low", 0, 0.001), Scalar(f"{P}:innovation/nis/high", 0, 5.02),
    ),
    place=P,
    at={"step": 4},
    mark=(("sheet.memory", 2, 0.0),),
    axes={"sheet.innovation": ("σ", "step"), "sheet.nis": ("NIS", "step"), "sheet.memory": ("correlation", "lag in steps")},
    titles={"sheet.innovation": "±1.96", "sheet.nis": "χ² band", "sheet.gain": "gain", "sheet.memory": "autocorrelation"},
    curves=(
        ("sheet.lines_of_innovation.legend", "standardised innovation", STEP, NU), ("sheet.lines_of_nis.legend", "NIS", STEP, NIS),
        ("sheet.lines_of_gain.legend", "z0 from x0", STEP, GAIN[:, 0]),
        ("sheet.lines_of_memory.legend", "autocorrelation", np.arange(1, 4), MEMORY[1:, 0]),
    ),
    told=(
        (f"standardised innovation [4]  {P}", "2"), ("95 % band of standardised innovation", "-1.96 to 1.96"),
        (f"NIS [4]  {P}", "4"), ("95 % band of NIS", "0.001 to 5.02"), (f"gain [4]  {P}", f"{GAIN[4, 0]:g}"),
        (f"autocorrelation [2]  {P}", "-0.5"), ("95 % band of autocorrelation", "-0.7408103671 to 0.7408103671"),
    ),
    saved={
        f"{P}:innovation/standardised": NU[:, None], f"{P}:innovation/nis": NIS, f"{P}:innovation/gain": GAIN,
        f"{P}:innovation/autocorrelation": MEMORY,
    },
    named="latents, innovations",
)  # fmt: skip
SMOOTH, MOVES = random.dirichlet(np.ones(STATES), STEPS).round(3), random.dirichlet(np.ones(STATES), STATES).round(3)
PATH, DWELL = np.array([2, 2, 0, 0, 1, 1, 2]), np.array([[0.25, 2.0], [0.5, 1.5], [0.25, np.inf]])
HIDDEN = Case(
    "latents",
    (
        TOKENS,
        channel(f"{P}:states/smoothed", "occupancy", ("step", "state"), SMOOTH, title="smoothed posterior", limits=(0, 1)),
        channel(f"{P}:states/viterbi", "occupancy", ("step",), PATH, title="Viterbi path"),
        channel(f"{P}:states/transition", "occupancy", ("state", "next"), MOVES, title="transitions", limits=(0, 1)),
        channel(f"{P}:states/dwell", "occupancy", ("state", "statistic"), DWELL, title="occupancy and dwell times",
                labels={"statistic": ("occupancy", "mean dwell")}),
    ),
    place=P,
    at={"step": 4, "unit": 2},
    axes={"sheet.row.plot": ("state", "step"), "sheet.moves.plot": ("from state", "to state")},
    ticks={"sheet.row.plot.axes.left.item": tuple("012"), "sheet.row.plot.step_axis": tuple("abcdefg")},
    titles={"sheet.row.plot": f"smoothed posterior, {P}; dashes: Viterbi path", "sheet.moves.plot": "transitions"},
    maps={"sheet.row": SMOOTH.T, "sheet.moves": MOVES},
    units={"sheet.row": "", "sheet.moves": ""},
    limits={"sheet.row": (0, 1), "sheet.moves": (0, 1)},
    told=(
        (f"most likely state [4]  {P}", f"{SMOOTH[4].argmax()} ({SMOOTH[4].max():g})"),
        ("smoothed posterior [4, 2]", f"{SMOOTH[4, 2]:g}"), ("Viterbi path [4]", "1"),
    ),
    saved={
        f"{P}:states/smoothed": SMOOTH, f"{P}:states/viterbi": PATH, f"{P}:states/transition": MOVES,
        f"{P}:states/dwell": DWELL,
    },
    named="latents, hidden states",
)  # fmt: skip
USE, USED = f"{P}:latent/z/use", np.array([[0.5, 0.25], [0.125, 0.001]])
COSTS, SHARE = random.uniform(0.1, 3, (STEPS, 3)).round(3), random.uniform(0.1, 0.9, STEPS).round(3)
SOURCES = ("its own z", "z of other sequences", "z from the prior")
USE_OF_Z = Case(
    "latents",
    (
        TOKENS,
        channel(f"{USE}/units", "latent_use", ("unit", "statistic"), USED,
                labels={"statistic": ("KL", "variance of the mean")}),
        channel(f"{USE}/loss", "latent_use", ("step", "statistic"), COSTS, title="−ln p", unit="nat", labels={"statistic": SOURCES}),
        channel(f"{USE}/share", "latent_use", ("step",), SHARE, title="share through z"),
        *(Scalar(f"{USE}/{name}", 0, value) for name, value in
          {"sequences": 3.0, "kl": 0.625, "mutual_information": 0.5, "most_information": 1.0986, "active_units": 1.0}.items()),
    ),
    place=P,
    at={"step": 4},
    mark=(("sheet.units", 1, 0.1),),
    axes={"sheet.units": ("nat", "unit"), "sheet.loss": ("nat", "step"), "sheet.share": ("share", "step")},
    ticks={"sheet.loss.step_axis": tuple("abcdefg")},
    titles={"sheet.units": "KL by unit, mean over 3 sequences", "sheet.loss": "what a wrong z costs", "sheet.share": "through z"},
    curves=(
        ("sheet.loss_lines.legend", "its own z", STEP, COSTS[:, 0]), ("sheet.loss_lines.legend", "z from the prior", STEP, COSTS[:, 2]),
        ("sheet.share_lines.legend", "share through z", STEP, SHARE),
    ),
    told=(
        (f"KL [1]  {P}", "0.125"), (f"variance of the mean [1]  {P}", "0.001"),
        *((f"−ln p, {name} [4]  {P}", f"{COSTS[4, n]:g} nat") for n, name in enumerate(SOURCES)),
        (f"share through z [4]  {P}", f"{SHARE[4]:g}"),
    ),
    named="latents, use of z",
    saved={f"{USE}/units": USED, f"{USE}/loss": COSTS, f"{USE}/share": SHARE},
)  # fmt: skip
LOG_P, BLANKED = -random.uniform(0.1, 2, STEPS).round(3), random.normal(size=(STEPS, 2, 3)).round(3)
PICTURE = Case(
    "picture",
    (
        TOKENS,
        channel("input:words/log_p", "picture_words", ("step",), LOG_P, title="ln p of the word", unit="nat"),
        channel("input:words/blanked", "picture_words", ("step", "patch_row", "patch_column"), BLANKED, unit="nat",
                scale="diverging"),
    ),
    place="",
    at={"step": 4},
    titles={"large": "'e': blanked", "table": "blanked ±"},
    told=(("ln p of the word [4]  input", f"{LOG_P[4]:g} nat"),),
    saved={"input:words/log_p": LOG_P, "input:words/blanked": BLANKED},
)  # fmt: skip
CASES = (PICTURE, VARIABLES, INNOVATIONS, HIDDEN, USE_OF_Z)
