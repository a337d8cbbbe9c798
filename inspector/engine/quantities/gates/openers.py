"""Which inputs open a gate: its mean by token, or its correlation with each feature of a vector input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.analyses.aligned_inputs import aligned_inputs, vocabulary_at
from inspector.engine.analyses.idle_steps import computed
from inspector.engine.cells.gate_info import ACTIVATION
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, all_samples, dtype_name, per_run, refusal
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records.catalogue import RECURRENCE

MOST_TOKENS = 512
"""Tokens that are listed, the most frequent ones."""
LARGEST = 1 << 24
"""Entries (features × units) of a table of correlations."""


@QUANTITIES.register("openers")
@per_run(summary="which tokens, or which input features, open each gate", order=24, needs=(RECURRENCE,))
def openers(trace: Trace, emit: Emitter) -> None:
    """Write, over every real step of every sample, for every gate and candidate of every recurrence:

    tokens: `GATE/by_token` (token, unit), and once for each place `gate/tokens` (token,) how often each occurs;
    vectors: `GATE/by_feature` (feature, unit), Pearson's correlation. NaN where a gate or a feature is constant.
    """
    for recurrence in trace.recurrences:
        if all(signal.startswith(ACTIVATION) for signal in recurrence.cell.gate_names):
            continue
        name = f"{recurrence.place}:gate/openers"
        if recurrence.check is not None and not recurrence.check.passed:
            emit.refuse(name, refusal(recurrence))
            continue
        try:
            with torch.no_grad():
                _one(trace, recurrence, emit)
        except Unsupported as reason:
            emit.refuse(name, str(reason))


def _one(trace: Trace, recurrence: Recurrence, emit: Emitter) -> None:
    inputs = aligned_inputs(trace, recurrence, computed=True)
    if inputs.dim() == 2 and not inputs.is_floating_point():
        _by_token(trace, recurrence, inputs, emit)
    else:
        _by_feature(recurrence, inputs.flatten(2) if inputs.dim() > 2 else inputs[..., None], emit)


def _by_token(trace: Trace, recurrence: Recurrence, ids: Tensor, emit: Emitter) -> None:
    real = torch.arange(recurrence.steps)[:, None] < recurrence.lengths
    seen, counts = torch.unique(ids[real], return_counts=True)
    if len(seen) > MOST_TOKENS:
        most = torch.sort(counts, descending=True, stable=True).indices[:MOST_TOKENS].sort().values
        seen, counts = seen[most], counts[most]
    sums = _sums_by_token(recurrence, ids, seen, emit)
    vocabulary = vocabulary_at(trace, recurrence)
    known = vocabulary is not None and int(seen.max()) < len(vocabulary)
    names = tuple(str(vocabulary[int(i)]) if known and vocabulary is not None else str(int(i)) for i in seen)
    how = f"exact; the {len(seen)} most frequent tokens" if len(seen) == MOST_TOKENS else "exact"
    domain = {"token": f"{recurrence.place} token"}
    emit.labels(domain["token"], names)  # for this frame only: an edited sequence may have other tokens
    about = Describe(
        kind="opener",
        compare="separate",
        title="occurrences",
        formula="times a token occurs in the batch",
        method=how,
    )
    channel = about.channel(
        f"{recurrence.place}:gate/tokens", ("token",), (len(seen),), "int64", labels={"token": names},
        domains=domain, module=recurrence.module,
    )  # fmt: skip
    emit.array(channel, counts)
    for signal, (total, times) in sums.items():
        about = Describe(
            kind="opener", compare="separate", title=f"{_plain(signal)} by token", method=how, labels={"token": names},
            formula="mean of the gate over all steps, of every sample, that compute it and have the token as input",
            source="Karpathy, Johnson & Fei-Fei 2015, adapted",
        )  # fmt: skip
        values = (total / times[:, None]).to(recurrence.states.dtype)
        name = f"{recurrence.place}:{signal}/by_token"
        channel = about.channel(
            name, ("token", "unit"), tuple(values.shape), dtype_name(values), domains=domain, module=recurrence.module
        )
        emit.array(channel, values)


def _sums_by_token(
    recurrence: Recurrence, ids: Tensor, seen: Tensor, emit: Emitter
) -> dict[str, tuple[Tensor, Tensor]]:
    """{signal: (token, unit) sums of the gate, (token,) of how many steps}, float64."""
    sums: dict[str, tuple[Tensor, Tensor]] = {}
    start = 0
    for block, real in all_samples(recurrence):
        emit.check()
        here = ids[start : start + len(real)].contiguous()
        row = torch.searchsorted(seen, here).clamp(max=len(seen) - 1)
        listed = seen[row] == here
        for signal, values in opening(block.gates):
            wanted = computed(recurrence, signal, real, start) & listed
            found = values[wanted].double()
            zero = found.new_zeros(len(seen))
            total, times = sums.setdefault(signal, (found.new_zeros(len(seen), found.shape[1]), zero))
            total.index_add_(0, row[wanted], found)
            times += torch.bincount(row[wanted], minlength=len(seen))
        start += len(real)
    return sums


def opening(gates: Mapping[str, Tensor]) -> list[tuple[str, Tensor]]:
    """Gates and candidates with their values; what has no bounds is neither open nor closed."""
    return [(signal, values) for signal, values in gates.items() if not signal.startswith(ACTIVATION)]


@dataclass(slots=True)
class _Moments:
    """Sums over the steps that compute a gate g, measured from its first row so that near-constant gates lose no
    digits, and of the features at these steps."""

    first: Tensor
    total: Tensor
    square: Tensor
    product: Tensor
    features: Tensor
    spread: Tensor
    count: int = 0

    @classmethod
    def of(cls, first: Tensor, width: int) -> _Moments:
        """Nothing yet, of so many features."""
        zero, feature = first.new_zeros(len(first)), first.new_zeros(width)
        return cls(first, zero, zero.clone(), first.new_zeros(width, len(first)), feature, feature.clone())

    def add(self, features: Tensor, values: Tensor) -> None:
        """n more rows: features (n, i), less their mean over all steps, and gate values (n, h)."""
        moved = values - self.first
        self.count += len(values)
        self.features += features.sum(0)
        self.spread += features.square().sum(0)
        self.total += moved.sum(0)
        self.square += moved.square().sum(0)
        self.product += features.T @ moved

    def correlation(self) -> Tensor:
        """(i, h); NaN where either is constant."""
        variance = (self.square - self.total.square() / self.count).clamp(min=0)
        spread = (self.spread - self.features.square() / self.count).clamp(min=0)
        below = spread.sqrt()[:, None] * variance.sqrt()
        product = self.product - torch.outer(self.features, self.total) / self.count
        found = product / torch.where(below > 0, below, torch.full_like(below, torch.nan))
        return found.clamp(-1, 1)


def _by_feature(recurrence: Recurrence, inputs: Tensor, emit: Emitter) -> None:
    real = torch.arange(recurrence.steps)[:, None] < recurrence.lengths
    width = inputs.shape[2]
    if width * recurrence.cell.state_size > LARGEST:
        raise Unsupported(f"{width} input features are too many to correlate with {recurrence.cell.state_size} units.")
    mean = inputs[real].double().mean(0)
    start = 0
    moments: dict[str, _Moments] = {}
    for block, here in all_samples(recurrence):
        emit.check()
        features = inputs[start : start + len(here)].double() - mean
        for signal, values in opening(block.gates):
            steps = computed(recurrence, signal, here, start)
            rows = values[steps].double()
            if signal not in moments and len(rows):
                moments[signal] = _Moments.of(rows[0], width)
            if len(rows):
                moments[signal].add(features[steps], rows)
        start += len(here)
    for signal, found in moments.items():
        about = Describe(
            kind="opener", compare="separate",
            title=f"{_plain(signal)} by input feature", scale="diverging", limits=(-1, 1),
            formula="Pearson's correlation of the gate with the feature over all real steps and samples that "
            "compute it; NaN where one of them is constant",
        )  # fmt: skip
        values = found.correlation().to(recurrence.states.dtype)
        name = f"{recurrence.place}:{signal}/by_feature"
        emit.array(
            about.channel(name, ("feature", "unit"), tuple(values.shape), dtype_name(values), module=recurrence.module),
            values,
        )


def _plain(signal: str) -> str:
    name = signal.removeprefix("gate/")
    return f"{name} gate" if signal.startswith("gate/") else name
