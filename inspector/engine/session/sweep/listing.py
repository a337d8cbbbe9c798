"""The checkpoints that a sweep would run, in its order, before anything of it is begun."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.engine.errors import InputError
from inspector.engine.session.sweep.candidates import checkpoints_in, nothing_in
from inspector.engine.session.sweep.ordering import in_order, said_of_order
from inspector.records import CheckpointList, ListedCheckpoint


def listing(paths: Sequence[str], generation: int = 0) -> CheckpointList:
    """The checkpoints of folders, patterns and files. Raises InputError where there are none."""
    found = checkpoints_in(paths)
    if not found:
        raise InputError(nothing_in(paths))
    candidates, order = in_order(found)
    listed = tuple(
        ListedCheckpoint(path=str(one.path), name=one.name, step=one.step, told_by=one.told_by) for one in candidates
    )
    return CheckpointList(checkpoints=listed, order=said_of_order(candidates, order), generation=generation)
