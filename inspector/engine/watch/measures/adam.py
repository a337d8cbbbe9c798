"""The second moment of Adam and its relatives: how large it is, and how far the gradient is from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from inspector.engine.watch.gradients import BY_PARAMETER
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.measures.in_cache import MOST, SPACED, fits, quotients
from inspector.engine.watch.pack import Values
from inspector.engine.watch.parameters import Parameters, local
from inspector.engine.watch.sums import norms, squares
from inspector.engine.watch.tables import About

ROOT_V = "parameters:adam/root_v"
RMS = "parameters:adam/rms"
_SOME = f"exact up to {MOST:,} entries, else (float32, CPU) of {MOST // SPACED} evenly spaced pieces of {SPACED:,}"


class AdamState(Measure):
    """Of every parameter whose state has `exp_avg_sq`."""

    summed = (ROOT_V, RMS)
    tables = (
        About(
            name=ROOT_V, title="Adam: RMS of √v", scale="log", column=BY_PARAMETER,
            formula="sqrt(mean of v / (1 − β₂ᵗ)), v the second moment after the step",
            source="Kingma & Ba 2015", method=_SOME,
        ),
        About(
            name=RMS, title="Adam: RMS of g / √v", scale="log", column=BY_PARAMETER,
            formula="sqrt(mean of g² / max(v̂, ε²)), v̂ = v / (1 − β₂ᵗ); above 2.3 v is out of date",
            source="Wortsman et al. 2023, arXiv 2304.13013 (StableAdamW)",
            method=f"{_SOME}; ε counts as ε / √(1 − β₂ᵗ); with the gradient after clipping",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        self._bias: dict[int, float] = {}
        self.finishing = {ROOT_V: self._corrected, RMS: self._relative}

    def step_ended(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """Sums over v, and over g² / v where there is a gradient."""
        groups = {id(tensor): group for group in optimizer.param_groups for tensor in group["params"]}
        known: list[tuple[int, Tensor, Tensor, float]] = []
        for column in columns:
            tensor = self.parameters.tensors[column]
            state = optimizer.state.get(tensor) or {}
            second = state.get("exp_avg_sq")
            group = groups.get(id(tensor), {})
            betas = group.get("betas")
            if not isinstance(second, Tensor) or not isinstance(betas, (tuple, list)):
                continue
            self._bias[column] = _bias(state.get("step"), float(betas[1]))
            if tensor.grad is None or tensor.grad.is_sparse or not local(second).numel():
                continue
            known.append((column, local(second), local(tensor.grad), float(group.get("eps", 0.0))))
        if known:
            self._measure(moment, known)

    def _measure(self, moment: Moment, known: Sequence[tuple[int, Tensor, Tensor, float]]) -> None:
        columns = [column for column, *_ in known]
        seconds, own = [second for _, second, _, _ in known], [gradient for _, _, gradient, _ in known]
        if fits(seconds, own):
            total, relative = quotients(seconds, own, [max(eps, 1e-30) for *_, eps in known])
            moment.pack.add(ROOT_V, columns, total, self._corrected)
            moment.pack.add(RMS, columns, relative, self._relative)
            return
        moment.pack.add(ROOT_V, columns, norms(seconds, 1), self._corrected)
        roots = torch._foreach_sqrt(seconds)
        torch._foreach_clamp_min_(roots, [max(eps, 1e-30) for *_, eps in known])
        gradients = [gradient.to(r.dtype) for (_, _, gradient, _), r in zip(known, roots, strict=True)]
        moment.pack.add(RMS, columns, squares(torch._foreach_div(gradients, roots)), self._relative)

    def _entries(self, columns: Sequence[int]) -> Values:
        return np.array([max(1, _numbers(self.parameters.tensors[c])) for c in columns], dtype=np.float64)

    def _biases(self, columns: Sequence[int]) -> Values:
        return np.array([self._bias.get(c, 1.0) for c in columns], dtype=np.float64)

    def _corrected(self, values: Values, columns: Sequence[int]) -> Values:
        found: Values = np.sqrt(values / self._entries(columns) / self._biases(columns))
        return found

    def _relative(self, values: Values, columns: Sequence[int]) -> Values:
        found: Values = np.sqrt(values * self._biases(columns) / self._entries(columns))
        return found


def _numbers(tensor: Tensor) -> int:
    """How many real numbers there are: two for each complex entry, as Adam has second moments of both."""
    return tensor.numel() * (2 if tensor.is_complex() else 1)


def _bias(step: object, beta: float) -> float:
    """1 − β₂ᵗ. Where the number of steps is on another device, reading it would wait for that: taken as long ago."""
    if isinstance(step, Tensor) and step.device.type != "cpu":
        return 1.0
    count = float(step) if isinstance(step, (int, float, Tensor)) else 0.0
    found: float = 1.0 - beta**count
    return found if found > 0 else 1.0
