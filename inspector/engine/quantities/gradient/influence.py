"""Natural or vanished? How far back the loss really depends on the input, beside how far its gradient reaches.

A small gradient at a long lag means one of two things: the loss does not depend on inputs so long ago, or it does and
the gradient has vanished in between. Replacing inputs tells the two apart: a forward pass cannot vanish.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.analyses.past_ablation import left_out, without_past
from inspector.engine.analyses.rerun import Entry, answer, chunk, copies, undisturbed
from inspector.engine.errors import Unsupported
from inspector.engine.model.subject import Batch
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.gradient_ends import why_no_gradient
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.time_major import along_the_batch
from inspector.engine.trace.trace import Trace
from inspector.records import LOSS_UNIT, Option

POSITIONS, DRAWS, LONGEST = 64, 4, 512
MOST_STEPS = 1 << 20
"""Steps for which the model is run in total; beyond that, fewer positions and draws. About 20 s of a small LSTM."""
FEWEST = 4
"""Copies, and positions with a lag, that are needed at least; where a lag never has so many (one loss), one is
enough."""
INFLUENTIAL, VANISHED = 0.05, 1e-3
"""Influence counts above 5 % of the reference lag's, less two standard errors; a gradient below 10⁻³ of its own
at that lag has vanished."""
NEAR = 0.1
"""Lag 0 is the reference where the influence there is at least this share of the largest."""
STATISTIC = ("mean", "error", "positions")
SOURCE = "occlusion: Li, Monroe & Jurafsky 2016; by lag: Khandelwal et al. 2018"


def refused(trace: Trace) -> str:
    """Why no influence can be measured, from the lengths of sequence and loss; "" where it may be."""
    if trace.loss is None and trace.logits is None:
        return ""
    try:
        InfluenceSamples(trace)
    except Unsupported as reason:
        return str(reason)
    return ""


@QUANTITIES.register("influence")
@per_run(
    summary="natural or vanished: how the loss depends on inputs by lag, beside its gradient", order=90, default=False,
    cost="the model runs again for every step that is replaced, some 20 s of a small LSTM",
    work=lambda run: run.call * 80,
    limit=refused,
    options=(
        Option(name="draws", type="int", default=DRAWS, low=1, high=64, help="Replacements drawn for each step."),
        Option(name="positions", type="int", default=POSITIONS, low=1, high=4096, help="Most steps that are replaced."),
    ),
)  # fmt: skip
def influence(trace: Trace, emit: Emitter, draws: int = DRAWS, positions: int = POSITIONS) -> None:
    """Write `input:influence/loss`, `input:influence/divergence`, `input:gradient/lag`, each (statistic, lag).

    Statistics are the mean over positions, its standard error and the number of positions; lag = t − k ≥ 0. Scalars:
    `input:influence/reference_lag`, `input:influence/reach`, `input:gradient/reach`, `input:influence/noise`, and
    `input:influence/loss_with_past`, `…/loss_without_past` and `…/past_p` of the test that the past is of no use;
    `…/past_left_out` is how many losses with a past it leaves out because they are not finite.
    The reaches are the longest lags with 5 % of the influence and 10⁻³ of the gradient at the reference lag, which is
    0 unless the influence there is small. Without a loss and without scores there is nothing to write.
    """
    if trace.loss is None and trace.logits is None:
        return
    name = "input:influence/loss" if trace.loss is not None else "input:influence/divergence"
    with undisturbed(trace.subject.model):
        try:
            plan = InfluenceSamples(trace, draws, positions)
            curves = occlusion(trace, plan, emit)
        except Unsupported as reason:
            emit.refuse(name, str(reason))
            return
        if trace.loss is not None:
            try:
                curves["gradient/lag"] = gradient(trace, plan, emit)
            except Unsupported as reason:
                emit.refuse("input:gradient/lag", str(reason))
            _compare_pasts(trace, emit)
    for signal, curve in curves.items():
        about = ABOUT[signal]
        channel = about.channel(
            f"input:{signal}", ("statistic", "lag"), tuple(curve.shape), "float64", labels={"statistic": STATISTIC},
            method=plan.gradient_method if signal == "gradient/lag" else plan.method,
        )  # fmt: skip
        emit.array(channel, curve)
    if "influence/loss" in curves:
        _judge(curves, emit)


ABOUT = {
    "influence/loss": Describe(
        kind="influence", compare="separate", unit=LOSS_UNIT, title="influence on the loss", source=SOURCE, scale="log",
        formula="mean over k of |ℓ_t(x with x_k replaced) − ℓ_t(x)| at lag t − k; what is to be predicted stays",
    ),
    "influence/divergence": Describe(
        kind="influence", compare="separate", unit="nat", title="influence on the outputs", source=SOURCE, scale="log",
        formula="mean over k of KL(p_t ‖ p_t with x_k replaced) at lag t − k, p_t = softmax of the scores",
    ),
    "gradient/lag": Describe(
        kind="influence", compare="separate", unit=LOSS_UNIT, title="gradient of the loss", scale="log",
        source="Pascanu, Mikolov & Bengio 2013; Madsen 2019",
        formula="G(ℓ) = mean over t of ‖∂ℓ_t/∂x_{t−ℓ}‖₂, one loss term at a time, x as embedded",
    ),
}  # fmt: skip


class InfluenceSamples:
    """Which steps are replaced, how often, and whose loss is differentiated. Raises Unsupported."""

    def __init__(self, trace: Trace, draws: int = DRAWS, positions: int = POSITIONS) -> None:
        if trace.answer is not None:
            raise Unsupported("The output has a step axis of its own, so no input lies a lag before a loss.")
        padded, length = trace.batch.steps, trace.batch.length
        losses = torch.arange(length)
        if trace.loss is not None:
            losses = torch.nonzero(torch.isfinite(trace.loss[trace.look_at, :length])).flatten().cpu()
        if length < 2 or not len(losses):
            raise Unsupported("Influence by lag needs at least two steps, and a loss at one of them.")
        affordable = MOST_STEPS // padded
        if affordable < FEWEST:
            raise Unsupported(
                f"Replacing inputs runs the model at least {FEWEST} times over {padded:,} steps; at most "
                f"{MOST_STEPS:,} steps are run in all, so use a shorter sequence."
            )
        self.last = last = int(losses[-1])
        self.draws = min(draws, max(1, affordable // 8))
        self.positions = _spread(torch.arange(last + 1), min(positions, affordable // self.draws))
        self.targets = _spread(losses, min(positions, affordable))
        self.lags = min(last, LONGEST)
        which = "every step" if len(self.positions) == last + 1 else f"{len(self.positions)} evenly spaced steps"
        self.method = (
            f"{which} of {last + 1} replaced, {self.draws} seeded draws each from the sequence's own steps; "
            f"standard error over steps; lags up to {self.lags}"
        )
        which = "every loss" if len(self.targets) == len(losses) else f"{len(self.targets)} evenly spaced losses"
        self.gradient_method = f"{which} of {len(losses)}, each by itself; standard error over them"


def _spread(values: Tensor, count: int) -> list[int]:
    """At most `count` of the values, evenly spaced, the first and the last among them."""
    picks = torch.linspace(0, len(values) - 1, min(count, len(values)), dtype=torch.float64).round().long()
    return [int(value) for value in values[picks]]


def replacements(batch: Batch, step: int, draws: int, seed: int) -> Tensor:
    """(draws, …) inputs for a step, drawn from other steps of the sequence whose input is another one.

    Where the sequence has one input only: zero for vectors; for tokens there is nothing to draw. Raises Unsupported.
    """
    row = batch.inputs[batch.look_at, : batch.length]
    differs = (row != row[step]).flatten(1).any(1) if row.dim() > 1 else row != row[step]
    others = torch.nonzero(differs).flatten()
    if len(others):
        picks = torch.randint(len(others), (draws,), generator=torch.Generator().manual_seed(seed + step))
        return row[others[picks.to(others.device)]]
    if row.is_floating_point() and bool((row[step] != 0).any()):
        return torch.zeros_like(row[step]).expand(draws, *row.shape[1:])
    raise Unsupported("All steps of the sequence hold the same input, so there is nothing to replace one by.")


@dataclass(slots=True)
class _Table:
    """Values (position, lag), 0 where there is none, and where there is one."""

    values: Tensor
    there: Tensor

    @classmethod
    def empty(cls, positions: int, lags: int) -> _Table:
        return cls(torch.zeros(positions, lags + 1, dtype=torch.float64), torch.zeros(positions, lags + 1).bool())

    def add(self, number: int, values: Tensor, there: Tensor | None = None) -> None:
        """Add values of lags 0, 1, … to a position's row, where there are any."""
        found = values.detach().double().cpu()
        known = torch.ones(len(found)).bool() if there is None else there.cpu()
        self.values[number, : len(found)] += torch.where(known, found, 0.0)
        self.there[number, : len(found)] = known


def occlusion(trace: Trace, plan: InfluenceSamples, emit: Emitter) -> dict[str, Tensor]:
    """{signal: (statistic, lag)} of the influence on the loss and on the outputs. Raises Unsupported.

    Every call has the unchanged sequence as its first row: rounding is the same for all rows of a call, and a network
    that amplifies rounding would otherwise seem to change with later steps. The first call has it as its last row too.
    """
    tables = {signal: _Table.empty(len(plan.positions), plan.lags) for signal in ("loss", "divergence")}
    noise = math.nan
    with torch.no_grad():
        for pieces in _chunks(plan, trace):
            emit.check()
            again = math.isnan(noise)
            asked, given = (copies(trace.batch, len(pieces) + 1 + again) for _ in range(2))
            for row, (_, step, value) in enumerate(pieces, 1):
                given.inputs[row, step] = value
            loss, scores = answer(trace, given, asked)
            noise = _noise(loss, scores) if again else noise
            for row, (number, step, _) in enumerate(pieces, 1):
                cut = slice(step, min(step + plan.lags, plan.last) + 1)
                if loss is not None:
                    moved = (loss[row, cut] - loss[0, cut]).abs()
                    tables["loss"].add(number, moved, torch.isfinite(loss[0, cut]))
                if scores is not None:
                    tables["divergence"].add(number, divergence(scores[0, cut], scores[row, cut]))
    curves = {
        f"influence/{signal}": by_lag(table.values / plan.draws, table.there)
        for signal, table in tables.items() if bool(table.there.any())
    }  # fmt: skip
    if not curves:
        raise Unsupported("The model gives neither a loss nor scores at every step, so no influence can be measured.")
    emit.scalar("input:influence/noise", noise)
    largest = float(next(iter(curves.values()))[0].nan_to_num(0.0).max())
    if noise > NEAR * largest:
        raise Unsupported(_noisy(trace, noise, largest))
    return curves


def _noisy(trace: Trace, noise: float, largest: float) -> str:
    """Why no influence is shown, the cause first where it is known."""
    along = along_the_batch(trace)
    cause = f"{', '.join(along)} runs along the batch, so sequences of one batch change each other. " if along else ""
    return (
        f"{cause}Equal sequences give outputs that differ by {noise:.2g} nat, a replaced input changes them by at most "
        f"{largest:.2g}; no influence can be measured.{'' if along else ' Is dropout on?'}"
    )


def _noise(loss: Tensor | None, scores: Tensor | None) -> float:
    """Mean difference in nats between the outputs for two equal sequences, the first and the last row of a call."""
    if loss is not None:
        return float((loss[-1] - loss[0]).double().abs().nanmean())
    return float(divergence(scores[0], scores[-1]).mean()) if scores is not None else 0.0


def _chunks(plan: InfluenceSamples, trace: Trace) -> Iterator[list[tuple[int, int, Tensor]]]:
    """(number of the position, step, new input) of every copy, as many at once as memory allows."""
    size, pieces = max(1, chunk(trace) - 1), list[tuple[int, int, Tensor]]()
    for number, step in enumerate(plan.positions):
        for value in replacements(trace.batch, step, plan.draws, seed=11):
            pieces.append((number, step, value))
            if len(pieces) == size:
                yield pieces
                pieces = []
    if pieces:
        yield pieces


def divergence(plain: Tensor, other: Tensor) -> Tensor:
    """KL(p ‖ q) in nats of softmax(plain) and softmax(other), (t, v) each: (t,)."""
    log_p, log_q = plain.double().log_softmax(-1), other.double().log_softmax(-1)
    p = log_p.exp()
    return torch.where(p > 0, p * (log_p - log_q), 0.0).sum(-1).clamp(min=0.0)


def by_lag(values: Tensor, there: Tensor) -> Tensor:
    """(mean, standard error of the mean, number) of each lag over the rows that have it, (3, lag)."""
    count = there.sum(0).double()
    mean = torch.where(there, values, 0.0).sum(0) / count
    spread = torch.where(there, (values - mean).square(), 0.0).sum(0)
    error = (spread / (count - 1) / count).sqrt()
    return torch.stack((mean, torch.where(count > 1, error, torch.nan), count))


def gradient(trace: Trace, plan: InfluenceSamples, emit: Emitter) -> Tensor:
    """(statistic, lag) of ‖∂ℓ_t/∂x_{t−ℓ}‖ over the losses of the plan: one copy and one loss term each."""
    table = _Table.empty(len(plan.targets), plan.lags)
    size = chunk(trace)
    for start in range(0, len(plan.targets), size):
        emit.check()
        steps = plan.targets[start : start + size]
        norms = _one_call(trace, steps)
        if start == 0 and (ended := why_no_gradient(trace.subject.model, norms)):
            raise Unsupported(f"How far the gradient reaches is not known: {ended}.")
        for row, step in enumerate(steps):
            found = norms[row, max(0, step - plan.lags) : step + 1].flip(0)
            table.add(start + row, found)
    return by_lag(table.values, table.there)


def _one_call(trace: Trace, steps: list[int]) -> Tensor:
    """(n, t) norms of ∂ℓ_t/∂x, row n for the loss at step `steps[n]`."""
    given = copies(trace.batch, len(steps))
    asked = copies(trace.batch, len(steps))
    entry = Entry(given)
    with torch.enable_grad(), entry.watching(trace.subject.model):
        loss, _ = answer(trace, given, asked)
        assert loss is not None
        total = loss[torch.arange(len(steps), device=loss.device), torch.tensor(steps, device=loss.device)].sum()
        return entry.gradient(total).detach()


def _judge(curves: dict[str, Tensor], emit: Emitter) -> None:
    """The numbers from which the verdict is derived: the reference lag and how far each curve reaches."""
    mean, error, count = curves["influence/loss"]
    zero = reference(mean)
    sure = torch.where(count >= min(FEWEST, float(count.max())), mean - 2 * error.nan_to_num(0.0), -torch.inf)
    emit.scalar("input:influence/reference_lag", float(zero))
    emit.scalar("input:influence/reach", reach(sure, mean[zero], INFLUENTIAL))
    if "gradient/lag" in curves:
        flowing = curves["gradient/lag"][0]
        emit.scalar("input:gradient/reach", reach(flowing, flowing[zero], VANISHED))


def _compare_pasts(trace: Trace, emit: Emitter) -> None:
    """Whether the loss is lower with the past than without it: else the model has not learned to use it."""
    emit.scalar("input:influence/past_left_out", left_out(trace))
    try:
        found = without_past(trace, MOST_STEPS, emit)
    except Unsupported as reason:
        emit.refuse("input:influence/past_p", str(reason))
        return
    for name, value in (("loss_with_past", found.with_past), ("loss_without_past", found.without), ("past_p", found.p)):
        emit.scalar(f"input:influence/{name}", value)


def reference(mean: Tensor) -> int:
    """Lag 0, or the lag of the largest influence where lag 0 has little of it (what is read is needed later)."""
    known = mean.nan_to_num(-1.0)
    return 0 if float(known[0]) >= NEAR * float(known.max()) else int(known.argmax())


def reach(values: Tensor, at_reference: Tensor, share: float) -> float:
    """The longest lag at which the values are at least this share of the reference; NaN where there is none."""
    if not float(at_reference) > 0:
        return math.nan
    passed = torch.nonzero(values >= share * at_reference).flatten()
    return float(passed[-1]) if len(passed) else math.nan
