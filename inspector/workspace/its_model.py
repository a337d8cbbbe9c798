"""The model of a capture, to be opened again: what its beginning says of it, looked up without running any code."""

from __future__ import annotations

from inspector.capture.regular import is_a_file, is_there
from inspector.records import Load, RunStart
from inspector.workspace.samples import find_sample


def load_of(start: RunStart) -> Load:
    """The request that opens the model of a capture. Raises LookupError, which says why there is none.

    Whether a module that is named can be imported is not looked up, since that would run code of its packages.
    """
    subject = start.subject
    if not subject:
        raise LookupError("the capture does not name its model")
    where, named, _ = subject.rpartition(":")
    if where.endswith(".py") and not is_a_file(where):
        raise LookupError(f"its model is {subject}, and there is no file {where} here")
    sample = None if named else find_sample(subject)
    if not named and sample is None and not is_a_file(subject):
        raise LookupError(f"its model, {subject}, was an object of the code that ran it, which no name opens")
    if start.checkpoint and not is_there(start.checkpoint):
        raise LookupError(f"its checkpoint {start.checkpoint} is no longer there")
    alone = not named and sample is None  # a checkpoint of a sample, which names both
    return Load(subject=subject, checkpoint="" if alone else start.checkpoint, seed=start.seed or 0)


def words_of(start: RunStart) -> tuple[str, ...]:
    """The words that name a capture's model and its checkpoint on the command line; "SUBJECT" where none do.

    A sweep has a folder of checkpoints, of which no command takes all as one: "CHECKPOINT" stands for any of them.
    """
    try:
        load = load_of(start)
    except LookupError:
        return ("SUBJECT",)
    if "sweep" in start.meta:
        return (load.subject, "--checkpoint", "CHECKPOINT")
    return (load.subject, *(("--checkpoint", load.checkpoint) if load.checkpoint else ()))


def weights_of(load: Load) -> str:
    """The checkpoint that a request loads: its own, or the one that a sample has for it; "" for none."""
    sample = find_sample(load.subject)
    return str((sample.checkpoint(load.checkpoint) if sample is not None else None) or load.checkpoint)
