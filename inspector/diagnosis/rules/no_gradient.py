"""A parameter that the optimizer has and the loss does not reach: exact, no threshold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from inspector.diagnosis.rule import COUNT, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import Table, listed, one_a_run, table_of, the_only
from inspector.records import Finding, Severity

Hits = npt.NDArray[np.bool_]
NORMS = "parameters:gradient/norm"
REMEDY = (
    "Look for a detach(), a torch.no_grad(), .data, an output that the loss does not read, or a ReLU that is always 0 "
    "before it; what is meant to stay gets requires_grad_(False)."
)
NOTHING = (
    "Look at what the loss is computed from: targets that are all ignored, a mask that leaves nothing, or CTC with "
    "zero_infinity whose targets are longer than its outputs."
)
INPUT = (
    "Look at its input: the bias beside it has a gradient, so the loss reaches the layer. Inputs that are all 0 "
    "(normalised twice, masked, a part of the data that is empty) teach a weight nothing."
)
CANCELS = (
    "The loss reaches the layer, and what the bias adds cancels in it: in a difference of outputs (the last bias of a "
    "critic or of a ranking), or in a norm or a softmax behind the layer. It may as well be left out."
)


class NoGradient:
    """Reads gradient norms by parameter. NaN stands for no gradient at all, 0 for one that is zero everywhere.

    A bias whose weight has a gradient is information: its own is the sum of what the weight's is made of, and cancels.
    Counter-example: a part that only some batches use (an expert, a rare branch) in a run that recorded none of them.
    """

    id = "IN111"
    title = "Parameters without a gradient"
    summary = "The loss does not reach a parameter in any recorded iteration."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (Limit("iterations", 10, "Fewer may be a beginning, or batches that do not use the part.", within=COUNT),)
    reference = "TrainCheck, arXiv 2506.14813: parameters that a step leaves as they are"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for those without any, one for those whose gradient is zero."""
        table = table_of(run, NORMS)
        if table is None or run.too_few(len(table.values), run.limit("iterations")):
            return
        none: Hits = np.all(np.isnan(table.values), axis=0)
        zero: Hits = ~none & np.all(np.isnan(table.values) | (table.values == 0), axis=0)
        if none.all():
            return  # gradients were not recorded
        frozen = set(run.training().get("frozen", ()))
        for which, what in ((none, "no gradient"), (zero, "a gradient of exactly 0")):
            names = [name for name, hit in zip(table.names, which.tolist(), strict=False) if hit and name not in frozen]
            if names:
                why, remedy = _why(run, table, names) if which is zero else ("", REMEDY)
                severity: Severity = "info" if remedy is CANCELS else "warning"
                yield Finding(
                    rule="no-gradient", severity=severity, place=the_only(names), places=tuple(names),
                    message=f"{len(names)} of {len(table.names)} parameters have {what} in all {len(table.values)} "
                    f"recorded iterations: {listed(names)}{why}",
                    evidence=(NORMS,), sure="exact for the recorded iterations",
                    unless="the part is used only in batches that were not recorded, or is meant to stay as it is",
                    remedy=remedy, code="print([name for name, one in model.named_parameters() if one.grad is None])",
                )  # fmt: skip


def _why(run: Run, table: Table, names: list[str]) -> tuple[str, str]:
    """(clause, remedy) where the numbers tell more: a loss that is 0, or a weight beside a bias that has a gradient."""
    losses = [line for line in one_a_run(run, "loss") if len(line.y)]
    if len(names) == len(table.names) and losses and all((line.y == 0).all() for line in losses):
        return "; the loss is 0 in all of them", NOTHING
    moved = {name for name, row in zip(table.names, table.values.T, strict=False) if (row > 0).any()}
    silent = [name for name in names if _biases(name) & moved]
    if silent and len(silent) == len(names):
        return "; what is multiplied with them is 0", INPUT
    if all(_weights(name) & moved for name in names):
        return "; the weight beside each of them has one", CANCELS
    return "", REMEDY


def _biases(name: str) -> set[str]:
    """How the bias beside a weight may be called: of nn.Linear, and of the input weights of a recurrent module."""
    head, dot, last = name.rpartition(".")
    return {f"{head}{dot}{last.replace('weight', 'bias')}"} if "weight" in last and "weight_hh" not in last else set()


def _weights(name: str) -> set[str]:
    """How the weight beside a bias may be called."""
    head, dot, last = name.rpartition(".")
    return {f"{head}{dot}{last.replace('bias', 'weight')}"} if "bias" in last else set()


RULES.register("no-gradient")(NoGradient())
