"""Many sequences: a folder of files, a file with one sequence a line, or those that the model brings with it."""

from __future__ import annotations

from inspector.engine.model.batching import ALLOW_NONFINITE
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.registries import INPUTS
from inspector.engine.sources import numbered
from inspector.records import InputSpec, Option


class Sequences:
    """A run of this kind goes through all of them (engine/data_set); as a batch it is that of the option `number`."""

    title = "Many sequences"
    summary = "A folder of files, a file with one sequence a line, or the model's own data: every one of them is run."
    form = "several"
    order = 95
    options = (
        Option(name="lines", type="bool", default=False, help="Whether each line of the file is a sequence."),
        Option(name="most", type="int", default=None, low=1, help="How many are read at most."),
        Option(name="number", type="int", default=None, low=0, help="Run this one alone, counted from 0."),
        ALLOW_NONFINITE,
    )

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """The sequence of the option `number`, or the first, alone. Raises InputError."""
        return numbered(subject, spec, seed, int(spec.options.get("number") or 0))


INPUTS.register("sequences")(Sequences())
