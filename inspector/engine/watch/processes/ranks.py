"""Several processes that train one model: what each measured is put together by one collective a recorded iteration.

Sums over the entries of sharded parameters are added up over all processes, the loss becomes its mean, and the first
process, which alone writes, says which iteration is recorded next. A process in which watching ends says so in the next
collective, and all others end too: nobody waits for one that does not come. Where not every process watches the model,
which the processes find out through the store that they met in, there is no collective at all, and the numbers are
those of the one process.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor, nn

from inspector.engine.model.uncompiled import original
from inspector.engine.watch.loss import LOSS
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.pack import Finish
from inspector.engine.watch.parameters import WRAPPERS, Parameters, local
from inspector.engine.watch.processes.collectives import summed

_HEAD = 4
"""Numbers before the tables: processes that end, iterations to the next recorded one, sum of losses, their count."""
_watchers: MutableMapping[Any, int] = WeakKeyDictionary()
"""Store of a process group → how many watchers of this process have met in it; those of an earlier group do not count,
which only one process may have had."""


class Ranks:
    """One process alone."""

    bound = False
    """Whether other processes will wait for this one at the next recorded iteration."""
    collectives = 0
    rank = 0
    sharded = False

    def share(self, moment: Moment, following: int, measures: Sequence[Measure]) -> int:
        """Complete the sums of a recorded iteration; returns the iteration that all record next."""
        return following

    def goodbye(self) -> None:
        """Join the collective in which the others wait, to say that this process watches no longer."""


class Together(Ranks):
    """This process among others that train the same model."""

    def __init__(self, parameters: Parameters, summed: Sequence[str]) -> None:
        self.rank, self._world = dist.get_rank(), dist.get_world_size()
        self._weights = [share_of(one) for one in parameters.tensors]
        self._tables = list(summed)
        self._columns = [c for c, weight in enumerate(self._weights) if weight is not None]
        self.sharded = bool(self._columns)
        self._device = next((local(one).device for one in parameters.tensors), torch.device("cpu"))
        self._store: Any = dist.distributed_c10d._get_default_store()
        number = _watchers.get(self._store, 0)
        self._key = f"inspector/watch/{number}"
        _watchers[self._store] = number + 1
        self._store.set(f"{self._key}/here/{self.rank}", "1")
        self._agreed: bool | None = None

    @property
    def bound(self) -> bool:  # type: ignore[override]
        """Until it is known that there are no collectives."""
        return self._agreed is not False

    def _agree(self) -> bool:
        """Whether all processes watch. Asked after a first step, before which all have met in a backward pass."""
        if self._agreed is None:
            here = [f"{self._key}/here/{n}" for n in range(self._world)]
            alone = any(self._store.check([f"{self._key}/alone/{n}"]) for n in range(self._world))
            self._agreed = not alone and bool(self._store.check(here))
            if not self._agreed:
                self._store.set(f"{self._key}/alone/{self.rank}", "1")
        return self._agreed

    @property
    def alone(self) -> bool:
        """Whether it is known that not all processes watch."""
        return self._agreed is False

    def share(self, moment: Moment, following: int, measures: Sequence[Measure]) -> int:
        """One all-reduce. Raises RuntimeError where another process has ended."""
        if not self._agree():
            return following
        found = self._reduce(self._packed(moment, following))
        head: list[float] = found[:_HEAD].tolist()
        if head[0]:
            self._agreed = False
            raise RuntimeError("it ended in another process of this training")
        moment.shared = True
        self._unpack(moment, found, {k: v for one in measures for k, v in one.finishing.items()})
        if head[3]:
            moment.pack.add(LOSS, (0,), found[2:3] / found[3:4])
        return moment.iteration + max(1, round(head[1]))

    def goodbye(self) -> None:
        """All zero but for the first number."""
        if self._agree():
            numbers = self._zeros()
            numbers[0] = 1
            self._reduce(numbers)
        self._agreed = False

    def _zeros(self) -> Tensor:
        return torch.zeros(_HEAD + 2 * len(self._tables) * len(self._columns), dtype=torch.float64, device=self._device)

    def _reduce(self, numbers: Tensor) -> Tensor:
        self.collectives += 1
        return summed(numbers)

    def _packed(self, moment: Moment, following: int) -> Tensor:
        """Values by table and sharded parameter, then as many numbers that count who has the value."""
        numbers = self._zeros()
        numbers[1] = following - moment.iteration if self.rank == 0 else 0
        loss = moment.pack.parts.get((LOSS, (0,)))
        if loss is not None:
            numbers[2], numbers[3] = loss.values[0], 1.0
        place = {column: n for n, column in enumerate(self._columns)}
        values, counts = numbers[_HEAD:].view(2, len(self._tables), len(self._columns))
        for (table, _), part in list(moment.pack.parts.items()):
            if table not in self._tables:
                continue
            where = [n for n, column in enumerate(part.columns) if column in place]
            if not where:
                continue
            to = torch.tensor([place[part.columns[n]] for n in where], device=self._device)
            weights = torch.tensor([self._weights[part.columns[n]] for n in where], device=self._device)
            row = self._tables.index(table)
            values[row, to] = part.values[where].to(self._device, torch.float64) * weights.double()
            counts[row, to] = 1.0
        return numbers

    def _unpack(self, moment: Moment, numbers: Tensor, finishing: Mapping[str, Finish]) -> None:
        """The sums in place of this process's own."""
        if not self._columns:
            return
        values, counts = numbers[_HEAD:].view(2, len(self._tables), len(self._columns))
        there = (counts > 0).tolist()
        own = set(self._columns)
        for key, part in list(moment.pack.parts.items()):
            if part.table in self._tables:
                left = [n for n, column in enumerate(part.columns) if column not in own]
                del moment.pack.parts[key]
                moment.pack.add(part.table, [part.columns[n] for n in left], part.values[left], part.finish)
        for row, table in enumerate(self._tables):
            known = [n for n in range(len(self._columns)) if there[row][n]]
            columns = [self._columns[n] for n in known]
            moment.pack.add(table, columns, values[row, known], finishing.get(table))


def share_of(tensor: Any) -> float | None:
    """1 / how many processes hold the same shard of a parameter; None where each holds all of it."""
    placements = getattr(tensor, "placements", None)
    if placements is None or not any(one.is_shard() for one in placements):
        return None
    copies = 1
    for n, one in enumerate(placements):
        copies *= tensor.device_mesh.size(n) if one.is_replicate() else 1
    return 1.0 / copies


def several() -> bool:
    """Whether this process is one of several that can talk to each other."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def longest_wait() -> float | None:
    """Seconds that this process can let the others wait for it: half of the time after which their collectives fail.

    None where there are no others; 0 where that time is not known.
    """
    if not several():
        return None
    try:
        groups: Any = dist.distributed_c10d._world.pg_map  # also those of a part of the processes, or of a mesh
        backends = [group._get_backend(device) for group in list(groups) for device in group._device_types]
        found = [one.options._timeout.total_seconds() for one in backends]
    except (AttributeError, RuntimeError, ValueError):
        return 0.0
    return min(found) / 2 if found else 0.0


def ranks_of(model: nn.Module, parameters: Parameters, summed: Sequence[str]) -> Ranks:
    """How this process shares its numbers: with others where torch spreads the model over them."""
    return Together(parameters, summed) if several() and spread(model) else Ranks()


def spread(model: nn.Module) -> bool:
    """Whether torch spreads a model over processes, by a wrapper or by sharding its parameters."""
    wrapped = type(original(model)).__name__ in WRAPPERS
    return wrapped or any(share_of(one) is not None for one in model.parameters())
