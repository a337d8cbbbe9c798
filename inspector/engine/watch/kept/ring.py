"""The last recorded iterations in memory: batch, random state, gradient at the output; and parameters now and then.

What is needed to run an iteration again, under a limit of bytes; written to a file when something happens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakSet, ref

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from inspector.capture.spike_files import FOLDER
from inspector.engine.model.batch import Batch
from inspector.engine.model.uncompiled import original
from inspector.engine.watch.hooks import Passing
from inspector.engine.watch.kept.call_form import form_of, tensors_in
from inspector.engine.watch.kept.kept_files import KeptFiles, Writing, file_name
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.measures.activations import first_tensor
from inspector.engine.watch.measures.updates import Updates
from inspector.engine.watch.parameters import Parameters, local
from inspector.engine.watch.tables import PLACE, About

HASH = f"{PLACE}:batch_hash"
ITERATIONS = 4
SNAPSHOT_EVERY = 100
"""Recorded iterations between snapshots of all parameters and of the optimizer's state."""
BYTES = 256 << 20
"""Most memory of the ring, and of a snapshot."""
MOST_FILES = 20
HASHED = 65_536
_MASK = (1 << 48) - 1


@dataclass(slots=True)
class Kept:
    """One recorded iteration: by name the tensors of each call of the model, and the iteration's number."""

    iteration: int = 0
    calls: int = 0
    tensors: dict[str, Tensor] = field(default_factory=dict)
    plain: dict[str, Any] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Memory of its tensors."""
        return sum(one.nbytes for one in self.tensors.values())


class Ring(Measure):
    """Keeps the last recorded iterations. `updates` has the parameters before the step where they are copied anyway."""

    tables = (
        About(
            name=HASH, title="hash of the batch", dtype="float64",
            formula="48 bits over the tensors that the model was called on: equal batches, equal numbers",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters, model: nn.Module, updates: Updates | None = None) -> None:
        super().__init__(parameters)
        self._model, self._updates = model, updates
        self._module_names = {id(part): name for name, part in model.named_children()}
        self._ring: deque[Kept] = deque(maxlen=ITERATIONS)
        self._count = 0
        self._snapshot: tuple[int, dict[str, Tensor]] | None = None
        self._optimizers: WeakSet[Optimizer] = WeakSet()
        self._writing = Writing()
        self._files = 0

    def forward_begins(self, moment: Moment, model: nn.Module, args: Any, kwargs: Any) -> None:
        """Copy the batch and the random state."""
        kept: Kept = moment.extra.setdefault(HASH, Kept())
        lead = f"call {kept.calls}"
        kept.calls += 1
        found = list(tensors_in({"args": args, "kwargs": kwargs}, lead))
        if found:
            marks = torch.stack([mark(one).to(found[0][1].device) for _, one in found]).sum().bitwise_and(_MASK)
            moment.pack.add(HASH, (0,), marks)
        if kept.nbytes + sum(one.nbytes for _, one in found) > BYTES // ITERATIONS:
            kept.plain["left out"] = "the batch is larger than the ring's limit"
            return
        kept.tensors.update((name, one.clone()) for name, one in found)
        kept.tensors[f"{lead}/random"] = torch.get_rng_state()
        devices = {one.device for _, one in found if one.device.type == "cuda"}
        kept.tensors.update((f"{lead}/random {one}", torch.cuda.get_rng_state(one)) for one in devices)
        kept.plain[f"{lead}/training"] = model.training
        kept.plain[f"{lead}/module"] = self._module_names.get(id(original(model)), "")
        kept.plain[f"{lead}/form"] = {"args": form_of(tuple(args)), "kwargs": form_of(dict(kwargs))}
        kept.plain[f"{lead}/autocast"] = autocast_now({one.device.type for _, one in found} | {"cpu"})

    def forward_ended(self, moment: Moment, model: nn.Module, output: Any) -> None:
        """Ask for the gradient at the output, by a hook that changes nothing."""
        kept: Kept | None = moment.extra.get(HASH)
        result = first_tensor(output)
        if kept is not None and result is not None and result.requires_grad and result.is_floating_point():
            name = f"call {kept.calls - 1}/output gradient"
            result.register_hook(Passing(partial(_arrived, ref(self), kept, name)))

    def take_gradient(self, kept: Kept, name: str, gradient: Tensor) -> None:
        """Keep the gradient that arrived at an output, where there is room."""
        if kept.nbytes + gradient.nbytes <= BYTES // ITERATIONS:
            # no copy: autograd changes no gradient in place that somebody else holds
            kept.tensors[name] = gradient.detach()

    def step_begins(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """Remember the optimizer."""
        self._optimizers.add(optimizer)

    def ends(self, moment: Moment) -> None:
        """The iteration is complete."""
        kept: Kept = moment.extra.pop(HASH, None) or Kept()
        kept.iteration = moment.iteration
        self._ring.append(kept)
        if self._count % SNAPSHOT_EVERY == 0:
            self._take_snapshot(moment.iteration)
        self._count += 1

    def _take_snapshot(self, iteration: int) -> None:
        named = dict(self._state())
        if sum(one.nbytes for one in named.values()) > BYTES:
            self._snapshot = None
            return
        held = {} if self._snapshot is None else self._snapshot[1]
        for name, one in named.items():
            before = held.get(name)
            same = before is not None and (before.shape, before.dtype) == (one.shape, one.dtype)
            held[name] = before.copy_(one) if same and before is not None else one.clone()
        self._snapshot = iteration, held

    def _state(self) -> Iterator[tuple[str, Tensor]]:
        for name, tensor in zip(self.parameters.names, self.parameters.tensors, strict=True):
            yield f"parameters/{name}", local(tensor)
        for name, buffer in self._model.named_buffers():
            yield f"buffers/{name}", local(buffer)
        for optimizer in list(self._optimizers):
            for tensor, state in optimizer.state.items():
                column = self.parameters.column.get(id(tensor))
                for key, value in state.items() if column is not None else ():
                    if isinstance(value, Tensor):
                        yield f"optimizer/{self.parameters.names[column or 0]}/{key}", local(value)

    def newest_sequence(self) -> Batch | None:
        """The first sequence that the model was last called on; None where it was called on none, or on more than that.

        One tensor, (b, t) ids or (b, t, i) numbers, is taken for a batch of sequences; of a top-level module that takes
        (t, b, i) it is none.
        """
        given = {} if not self._ring else self._ring[-1].tensors
        inputs = [one for name, one in given.items() if name.startswith(("call 0/args", "call 0/kwargs"))]
        time_major = isinstance(self._model, nn.RNNBase) and not self._model.batch_first
        if len(inputs) != 1 or time_major:
            return None
        shown = inputs[0][:1]
        fits = shown.dim() == (3 if shown.is_floating_point() else 2) and not shown.is_complex()
        return Batch(shown, torch.full((1,), shown.shape[1])) if fits and shown.shape[1] else None

    def keep(self, to: KeptFiles, iteration: int, text: str) -> str:
        """Write what the ring holds to a file, on a thread of its own; says where, "" where there is nothing to write
        or there are too many."""
        if self._files >= MOST_FILES or not any(kept.tensors for kept in self._ring):
            return ""
        tensors, about = self._content(iteration, text)
        nbytes = size_of(tensors)
        if not to.has_room(nbytes):
            tensors = least(tensors, iteration)
            nbytes = size_of(tensors)
        if not nbytes or not to.has_room(nbytes):
            return f"not kept: {nbytes / 1e6:,.0f} MB have no room among what waits for the listener"
        self._files += 1
        file = file_name(self._files)
        # sums go through memory in its order, so the same bits need the same layout
        about["strides"] = {name: one.stride() for name, one in tensors.items() if not one.is_contiguous()}
        ready = {name: one.detach().cpu().contiguous() for name, one in tensors.items()}
        self._writing.begin(to, file, nbytes, ready, about)
        return f"kept in {FOLDER}/{file}"

    def _content(self, iteration: int, text: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors = {
            f"iteration {kept.iteration}/{name}": one for kept in self._ring for name, one in kept.tensors.items()
        }
        about: dict[str, Any] = {"iteration": iteration, "text": text}
        about["in evaluation mode"] = [name for name, part in self._model.named_modules() if not part.training]
        about["calls"] = {kept.iteration: kept.plain for kept in self._ring}
        before = self._before_step() if self._ring and self._ring[-1].iteration == iteration else {}
        if before:
            tensors.update(before)
        if self._snapshot is not None:
            about["snapshot"] = self._snapshot[0]
            tensors.update((f"snapshot/{name}", one.clone()) for name, one in self._snapshot[1].items())
        about["parameters before the step"] = bool(before)
        return tensors, about

    def _before_step(self) -> dict[str, Tensor]:
        """Copies of the parameters as they were in the iteration that has just ended."""
        found: dict[str, Tensor] = {}
        for optimizer in list(self._optimizers) if self._updates is not None else ():
            assert self._updates is not None
            own = self.parameters.columns(one for group in optimizer.param_groups for one in group["params"])
            for column, one in zip(own, self._updates.before(optimizer), strict=False):
                found[f"before/{self.parameters.names[column]}"] = one.clone()
        return found

    def over(self) -> None:
        """Wait for files that are being written, not long."""
        self._writing.wait()


def _arrived(ring: ref[Ring], kept: Kept, name: str, gradient: Tensor) -> None:
    """A gradient has come to an output.

    A loss that the script still holds at its end holds this hook, through autograd's nodes, where Python's collector
    sees nothing: a strong reference to the ring would hold the script's module through the functions that it has
    given, and files that it leaves open would never be flushed.
    """
    one = ring()
    if one is not None:
        one.guard(one.take_gradient, kept, name, gradient)


def size_of(tensors: Mapping[str, Tensor]) -> int:
    """Bytes of all."""
    return sum(one.nbytes for one in tensors.values())


def least(tensors: Mapping[str, Tensor], iteration: int) -> dict[str, Tensor]:
    """What an iteration cannot be run again without: its calls, the parameters before its step, buffers."""
    known = {name.removeprefix("before/") for name in tensors if name.startswith("before/")}
    return {
        name: one
        for name, one in tensors.items()
        if name.startswith((f"iteration {iteration}/", "before/", "snapshot/buffers/"))
        or (name.startswith("snapshot/parameters/") and name.removeprefix("snapshot/parameters/") not in known)
    }


def autocast_now(devices: Iterable[str]) -> dict[str, str]:
    """The precision of autocast by kind of device, where it is on."""
    on = [device for device in devices if torch.is_autocast_enabled(device)]
    return {device: str(torch.get_autocast_dtype(device)).removeprefix("torch.") for device in on}


def mark(tensor: Tensor) -> Tensor:
    """() int64: a number over the bits of the first entries, computed on their device: Σ (bits_n + 1)(2n + 1)·odd."""
    flat = local(tensor).contiguous().reshape(-1)[:HASHED]
    bits = flat.view(torch.uint8) if flat.dtype != torch.bool else flat.to(torch.uint8)
    places = torch.arange(len(bits), device=bits.device, dtype=torch.int64) * 2 + 1
    return ((bits.to(torch.int64) + 1) * places * -7046029254386353131).sum()
