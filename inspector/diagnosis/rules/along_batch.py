"""A recurrent module that went along the sequences of its batch instead of along their steps."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.analysis.along_batch import along_batch
from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.records import Finding


class AlongBatch:
    """Reads what the run noted of modules with batch_first=False that were given (batch, step, …).

    Counter-example: a model that reads (step, batch, …) on purpose, and was given the other order because its input was
    not declared so; hence a warning and no error. IN104 says the same of outputs, where pre-flight has tested them.
    """

    id = "IN130"
    untried = "which axis is the batch is in the model's code"
    title = "Goes along the batch"
    summary = "A recurrent module took the sequences of the batch for steps, so nothing it says of steps is of time."
    trust: Trust = "exact"
    scope: Scope = "frame"
    reads = ("input", "state")
    needs = ()
    limits = ()
    reference = "pytorch/pytorch documentation of nn.LSTM: batch_first is False unless given"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each module."""
        kept = [one for one in run.channels.values() if run.revision(one.name, frame)]
        for noted in along_batch(run, frame):
            place = noted.channel.rpartition(":")[0]
            states = [one.name for one in kept if one.kind == "state" and one.place.startswith(f"{place}.")]
            read = [one.name for one in kept if one.kind == "input"]
            yield Finding(
                rule="along-batch", severity="warning", place=place, message=noted.reason.rstrip("."),
                evidence=tuple(states or read[:1]),
                sure="exact: the module reads (step, batch, …), and was given (batch, step, …)",
                unless="the model reads (step, batch, …) on purpose; then declare its input with batch_dim 1",
                remedy="Make the module with batch_first=True, or transpose what it reads and what it gives.",
                code="nn.LSTM(n, n, batch_first=True)",
            )  # fmt: skip


RULES.register("along-batch")(AlongBatch())
