"""Edited runs: a token changed, a unit or a gate clamped from a step on, and the model run again with it.

Fused modules are written out as loops first (`eager_loops.py`). A first pass without the change finds
the operation that makes the value; in the second one that operation's result is replaced, and everything after it
follows as the model computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any

from torch import Tensor, nn

from inspector.engine.cells.family import sequence_family, step_family
from inspector.engine.errors import InputError
from inspector.engine.interventions.eager_loops import Layer, Sequences, cell_forward_of, forward_of, layers_of
from inspector.engine.model.batch import INPUT, SEQUENCES, Batch, NamedInput
from inspector.engine.model.batching import encode_text
from inspector.engine.model.subject import Subject
from inspector.engine.recurrent.traced.record.operation import Chain
from inspector.records import Edit

Where = tuple[tuple[tuple[CodeType, int], ...], str, int]
"""The code places of an operation's calls, innermost last; its function's name; the id of its frame's object."""


@dataclass(slots=True)
class Target:
    """One value to be changed: which output of which operation, at which of its occurrences, to what.

    `entry`: True at the unit that is clamped, where the value has several axes of units; it broadcasts over the batch.
    """

    edit: Edit
    output: int
    occurrences: frozenset[int]
    entry: Tensor | None = None


@dataclass(slots=True)
class Editor:
    """Replaces the results of operations while a model runs; see `OperationRecorder.editor`."""

    targets: dict[Where, list[Target]] = field(default_factory=dict)
    hot: set[tuple[CodeType, int]] = field(default_factory=set)
    _seen: dict[Where, int] = field(default_factory=dict)
    used: int = 0

    def add(self, where: Where, target: Target) -> None:
        """Add one more operation to be replaced."""
        self.targets.setdefault(where, []).append(target)
        self.hot.add(where[0][-1])

    def wants(self, chain: Chain, name: str, owner: Callable[[FrameType], Any]) -> list[Target]:
        """The targets whose operation has just run, at this occurrence."""
        frame, at = chain[-1]
        if (frame.f_code, at) not in self.hot:
            return []
        where = code_location(chain, name, owner(frame))
        found = self.targets.get(where)
        if found is None:
            return []
        n = self._seen[where] = self._seen.get(where, -1) + 1
        chosen = [target for target in found if n in target.occurrences]
        self.used += len(chosen)
        return chosen


def code_location(chain: Chain, name: str, owner: Any) -> Where:
    """Where an operation is in the code, the same in every run of the same code. `owner`: what its frame belongs to."""
    return tuple((frame.f_code, at) for frame, at in chain), name, id(owner)


class WrittenOut:
    """A model's recurrent modules and cells as loops, which replace their forwards while `on`.

    Only those of a known family. `places`: id of a layer, and of its step → its place. The same layers are used every
    time, so that operations are recognised.
    """

    def __init__(self, model: nn.Module) -> None:
        self.places: dict[int, str] = {}
        self._forwards: list[tuple[nn.Module, Any]] = []
        self._layers: list[Layer] = []
        self._sequences: list[Sequences] = []
        for name, module in model.named_modules():
            place = name or type(module).__name__.lower()
            sequence, step = sequence_family(module), step_family(module)
            if sequence is not None:
                rows = layers_of(sequence, module, place)
                self._layers += [layer for row in rows for layer in row]
                calls = Sequences(rows)
                self._sequences.append(calls)
                self._forwards.append((module, forward_of(sequence, module, calls)))
            elif step is not None:
                forward, layer = cell_forward_of(step, module, place)
                self._layers.append(layer)
                self._forwards.append((module, forward))
        self.places.update({id(one): layer.place for layer in self._layers for one in (layer, layer.cell)})

    def goes_on(self) -> bool:
        """Whether some call continued the one before in the last run: the modules that were called in a loop."""
        return any(calls.continued for calls in self._sequences)

    def leave_to_loops(self, shown: Collection[str]) -> bool:
        """Leave the modules that were called in a loop to that loop, but those whose places are `shown` as recurrences
        of their own. Whether there were any."""
        left = [calls for calls in self._sequences if calls.continued and calls.layers[0][0].place not in shown]
        for calls in left:
            calls.leave_to_the_loop()
        return bool(left)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Inside, the model computes with the loops."""
        for calls in self._sequences:
            calls.forget()
        for module, forward in self._forwards:
            module.forward = forward
        try:
            yield
        finally:
            for module, _ in self._forwards:
                del module.forward
            for calls in self._sequences:
                calls.let_go()


def edited_input(subject: Subject, batch: Batch, edits: Sequence[Edit]) -> Batch:
    """The batch with its tokens or numbers changed. Raises InputError."""
    named = dict(batch.named)
    for edit in edits:
        if edit.of_input:
            name = edit.place.removeprefix(f"{INPUT}.") if edit.place != INPUT else batch.primary
            if name not in batch or not named[name].axis or named[name].kind not in SEQUENCES:
                known = [INPUT, *(f"{INPUT}.{other}" for other, _ in batch.others())]
                raise InputError(f"There is no sequence {edit.place!r} to be changed; there are {', '.join(known)}.")
            view = subject if name not in subject.declared else subject.view(name, subject.declared[name])
            named[name] = _changed(view, named[name], edit, batch.look_at)
    if not any(edit.of_input for edit in edits):
        return batch
    return Batch.of(named, batch.primary, targets=batch.targets, look_at=batch.look_at, title=batch.title)


def _changed(subject: Subject, one: NamedInput, edit: Edit, row: int) -> NamedInput:
    """One input with its tokens or numbers changed in one sequence."""
    assert one.tensor is not None
    values, names, length = one.tensor.clone(), [list(own) for own in one.names], int(one.lengths[row])
    stop = edit.start + 1 if edit.stop is None else edit.stop
    if not 0 <= edit.start < stop <= length:
        raise InputError(f"The sequence has steps 0 to {length - 1}; step {edit.start} cannot be changed.")
    if one.kind == "tokens":
        token = _token(subject, edit)
        values[row, edit.start : stop] = token
        if names:
            label = str(subject.vocabulary[token]) if subject.vocabulary is not None else str(token)
            names[row][edit.start : stop] = [label] * (stop - edit.start)
    else:
        units = slice(None) if edit.unit is None else edit.unit
        values[row, edit.start : stop, units] = edit.value
    return replace(one, tensor=values, names=tuple(map(tuple, names)))


def _token(subject: Subject, edit: Edit) -> int:
    if not edit.text:
        return int(edit.value)
    known = [str(entry) for entry in subject.vocabulary or ()]
    if edit.text in known:
        return known.index(edit.text)
    if subject.encode is not None:
        ids = encode_text(subject, edit.text).flatten()
        if len(ids) == 1:
            return int(ids[0])
    raise InputError(f"{edit.text!r} is not one entry of the vocabulary of {subject.name}.")
