"""Hidden Markov models: posteriors of the states, the Viterbi path, transitions, occupancy, how long a state lasts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.latent import hidden_markov as markov
from inspector.analysis.latent.kalman import NotAModel
from inspector.engine.latent.declared import MARKOV, Declared, DeclaredModels, few_calls, write
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records import VOCABULARY_DOMAIN

SOURCE = "Rabiner 1989, section III"
MOST_STEPS, MOST_STATES, MOST_TOKENS = 100_000, 256, 12
TOO_LARGE = "Posteriors of {} states over {:,} steps are not computed; the limits are {} and {:,}."
STATISTICS = (
    "occupancy", "share of the Viterbi path", "stationary", "visits", "mean dwell", "longest dwell", "expected dwell",
)  # fmt: skip
Array = npt.NDArray[Any]


@QUANTITIES.register("latent/hidden_markov")
@per_run(
    summary="hidden Markov models: posterior of the states, Viterbi path, transitions, occupancy and dwell times",
    order=56, cost="about as long as a few runs of the model", work=few_calls(MARKOV),
)  # fmt: skip
def hidden_markov(trace: Trace, emit: Emitter) -> None:
    """Write, of every module with `hidden_markov`, `states/filtered` and `states/smoothed` (step, state),
    `states/viterbi` (step,), `states/transition` and `states/transition_counts` (state, next), `states/dwell` (state,
    statistic), `states/log_likelihood` (step,), and of tokens `states/tokens` and `states/token_shares` (state, rank).
    """
    found = trace.findings.get(DeclaredModels)
    for one in found.found if found is not None else ():
        if one.kind == MARKOV:
            try:
                _write(one, emit)
            except NotAModel as reason:
                emit.refuse(f"{one.place}:states", str(reason))


def _write(one: Declared, emit: Emitter) -> None:
    parts = markov.checked(*(one.parts[name].numpy() for name in ("initial", "transition", "emission")))
    steps, states = parts[2].shape
    if states > MOST_STATES or steps > MOST_STEPS:
        raise NotAModel(TOO_LARGE.format(states, steps, MOST_STATES, MOST_STEPS))
    found, path = markov.posteriors(*parts), markov.viterbi(*parts)
    for name, values, formula in (
        ("smoothed", found.smoothed, "p(z_t = k | all of x)"), ("filtered", found.filtered, "p(z_t = k | x_1 … x_t)"),
    ):  # fmt: skip
        about = Describe(kind="occupancy", title=f"{name} posterior", formula=formula, source=SOURCE, limits=(0.0, 1.0))
        write(one, f"states/{name}", about, ("step", "state"), values, emit)
    about = Describe(
        kind="occupancy", title="Viterbi path", formula="argmax over whole paths of p(z | x)", source=SOURCE,
        compare="separate",
    )  # fmt: skip
    write(one, "states/viterbi", about, ("step",), path, emit)
    about = Describe(
        kind="latent",
        unit="nat",
        title="ln p(xₜ | earlier x)",
        formula="ln Σ_k p(z_t = k | x_<t) p(x_t | k)",
        source=SOURCE,
    )
    write(one, "states/log_likelihood", about, ("step",), found.log_likelihood, emit)
    _transitions(one, parts[1], found.pairs, emit)
    _dwells(one, parts[1], found.smoothed, path, emit)
    if not one.sequence.is_floating_point() and one.sequence.dim() == 1:
        _tokens(one, found.smoothed, emit)


def _transitions(one: Declared, transition: Array, pairs: Array, emit: Emitter) -> None:
    about = Describe(
        kind="occupancy",
        title="transitions",
        formula="A: p(z_{t+1} = column | z_t = row)",
        source=SOURCE,
        limits=(0.0, 1.0),
    )
    write(one, "states/transition", about, ("state", "next"), np.exp(transition), emit)
    about = Describe(
        kind="occupancy", title="expected transitions in this sequence", source=SOURCE,
        formula="Σ_t p(z_t = row, z_{t+1} = column | all of x)",
    )  # fmt: skip
    write(one, "states/transition_counts", about, ("state", "next"), pairs, emit)


def _dwells(one: Declared, transition: Array, smoothed: Array, path: Array, emit: Emitter) -> None:
    k = len(transition)
    visits = markov.dwells(path, k)
    mean = [float(own.mean()) if len(own) else np.nan for own in visits]
    longest = [float(own.max(initial=0)) for own in visits]
    table = np.stack(
        (
            smoothed.mean(0), np.bincount(path, minlength=k) / len(path), markov.stationary(transition),
            np.array([float(len(own)) for own in visits]), np.array(mean), np.array(longest),
            markov.expected_dwell(transition),
        ), 1,
    )  # fmt: skip
    about = Describe(
        kind="occupancy", title="occupancy and dwell times", source=SOURCE, compare="separate",
        formula="mean posterior; share, visits and lengths of visits of the Viterbi path; πA = π; 1 / (1 − A_kk)",
        labels={"statistic": STATISTICS},
    )  # fmt: skip
    write(one, "states/dwell", about, ("state", "statistic"), table, emit)


def _tokens(one: Declared, smoothed: Array, emit: Emitter) -> None:
    """The tokens of this sequence that a state stands at most often, by their share of its posterior."""
    ids = one.sequence.numpy()
    known, places = np.unique(ids, return_inverse=True)
    counts = np.zeros((smoothed.shape[1], len(known)))
    np.add.at(counts.T, places, smoothed)
    ranks = min(MOST_TOKENS, len(known))
    order = np.argsort(-counts, axis=1, kind="stable")[:, :ranks]
    total = counts.sum(1, keepdims=True)
    shares = np.divide(np.take_along_axis(counts, order, 1), total, out=np.zeros((len(counts), ranks)), where=total > 0)
    about = Describe(
        kind="occupancy", title="tokens of each state", formula="by Σ_t p(z_t = k | all of x) [x_t = v]", source=SOURCE,
        compare="separate",
    )  # fmt: skip
    write(one, "states/tokens", about, ("state", "rank"), known[order].astype(np.int64), emit, VOCABULARY_DOMAIN)
    write(one, "states/token_shares", about, ("state", "rank"), shares, emit)
