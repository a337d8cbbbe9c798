"""Parameters that are one, or begin equal, or are declared to be one: how far each two of them are apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from inspector.engine.model.declared_ties import declared_tied
from inspector.engine.watch.measure import Measure, Moment
from inspector.engine.watch.parameters import Parameters, in_8_bits, inner, plain_name
from inspector.engine.watch.tables import About

APART = "parameters:pair/distance"
PAIRS = "pair of parameters"
EVERY, MOST_PAIRS = 4, 16
MOST_ENTRIES = 1 << 16
FEWEST = 16
"""Entries of a matrix that is compared: of fewer, two may be equal by chance, as with one-hot rows."""
SIDE = 8
"""Rows and columns of the sample by which equal matrices are found."""
ONE, DECLARED, EMBEDDING, EQUAL = "one at the start", "declared to be one", "an embedding and its equal", "equal"
"""How two belong together."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two parameters of a model: the module and the attribute of each, by which they are found again."""

    why: str
    names: tuple[str, str]
    places: tuple[tuple[nn.Module, str], tuple[nn.Module, str]]

    def apart(self) -> Tensor | None:
        """() ‖a − b‖ / ‖a‖ over some entries, as they are now, 0 of one parameter; None where they are no longer
        alike."""
        first, second = (getattr(module, name, None) for module, name in self.places)
        if not isinstance(first, Tensor) or not isinstance(second, Tensor) or not (_plain(first) and _plain(second)):
            return None
        if first is second or first.data_ptr() == second.data_ptr():
            return torch.zeros((), device=first.device)
        second = second.t() if first.dim() == 2 and first.shape != second.shape else second
        if first.shape != second.shape or first.device != second.device:
            return None
        every = max(1, first.numel() // MOST_ENTRIES)
        one, other = (torch.atleast_1d(each.detach())[::every].float() for each in (first, second))
        distance: Tensor = (one - other).norm() / one.norm().clamp(min=1e-30)
        return distance


class Pairs(Measure):
    """0 of two names of one parameter, as it should be."""

    tables = (
        About(
            name=APART, title="distance of parameters that were equal, or declared to be one",
            column=("pair", PAIRS), formula="‖a − b‖ / ‖a‖", source="Press & Wolf 2017, arXiv 1608.05859",
            method=f"of the weights after every {EVERY}th recorded step, over evenly spaced rows of about "
            f"{MOST_ENTRIES:,} entries, of up to {MOST_PAIRS} pairs; 0 while two names are one parameter",
        ),
    )  # fmt: skip

    def __init__(self, parameters: Parameters, model: nn.Module) -> None:
        super().__init__(parameters)
        self.pairs = pairs_of(inner(model))
        self._seen = 0

    def step_ended(self, moment: Moment, optimizer: Optimizer, columns: Sequence[int]) -> None:
        """The last step of an iteration counts: what another optimizer does comes before it."""
        if not self.pairs:
            return
        if APART not in moment.extra:
            moment.extra[APART] = self._seen % EVERY == 0
            self._seen += 1
        for pair in self.pairs if moment.extra[APART] else ():
            if (distance := pair.apart()) is not None:
                moment.pack.add(APART, (self.column(PAIRS, f"{pair.names[0]} and {pair.names[1]}"),), distance[None])

    def described(self) -> list[dict[str, str]]:
        """For the run's meta: the pairs, and why each is one."""
        return [{"pair": f"{one.names[0]} and {one.names[1]}", "why": one.why} for one in self.pairs]


def pairs_of(model: nn.Module) -> list[Pair]:
    """Names of one parameter; the embeddings that a configuration ties; matrices that are equal in every entry."""
    places = {
        plain_name(f"{place}.{name}".lstrip(".")): (module, name)
        for place, module in model.named_modules() for name, _ in module._parameters.items()
    }  # fmt: skip
    tensors = {name: module._parameters[key] for name, (module, key) in places.items()}
    known = {name: one for name, one in tensors.items() if one is not None and _plain(one)}
    said = [name for name, one in known.items() if any(one is each for each in declared_tied(model))]
    found: dict[tuple[str, str], str] = {}
    for names in _of_one(known):
        found.update({(names[0], other): ONE for other in names[1:]})
    for first, second in combinations(said, 2):
        found.setdefault((first, second), DECLARED)
    embeddings = {name for name, (module, _) in places.items() if isinstance(module, nn.Embedding)}
    for one, other in _equal(known):
        two = (other, one) if other in embeddings else (one, other)
        found.setdefault(two, EMBEDDING if two[0] in embeddings else EQUAL)
    told = sorted(found.items(), key=lambda item: not embeddings.intersection(item[0]))[:MOST_PAIRS]
    return [Pair(why, two, (places[two[0]], places[two[1]])) for two, why in told]


def _plain(tensor: Tensor) -> bool:
    """Whether its entries are all here, and torch computes with them."""
    if is_lazy(tensor) or tensor.is_meta or hasattr(tensor, "_local_tensor") or tensor.layout != torch.strided:
        return False
    return tensor.is_floating_point() and not in_8_bits(tensor) and tensor.numel() > 0


def _of_one(known: dict[str, nn.Parameter]) -> list[list[str]]:
    names: dict[int, list[str]] = {}
    for name, one in known.items():
        names.setdefault(id(one), []).append(name)
    return [one for one in names.values() if len(one) > 1]


def _equal(known: dict[str, nn.Parameter]) -> Iterator[tuple[str, str]]:
    """Two that learn and are equal in every entry, or one the transpose of the other.

    Not modules that are copies of each other, as layers of nn.TransformerEncoder are: their names differ by numbers
    only, or in the part above the module's own. Not matrices of few numbers (identities, zeros).
    """
    alike: dict[tuple[object, ...], list[str]] = {}
    first = {id(one): name for name, one in reversed(known.items())}
    for name, one in known.items():
        if one.dim() != 2 or one.numel() < FEWEST or not one.requires_grad or first[id(one)] != name:
            continue
        numbers = _sample(one)
        if len(set(numbers)) > len(numbers) // 2:
            alike.setdefault((one.device, *sorted(one.shape), *numbers), []).append(name)
    for names in alike.values():
        for this, other in combinations(names, 2):
            if _own(this) != _own(other) and torch.equal(_lying(known[this]), _lying(known[other])):
                yield this, other


def _lying(matrix: Tensor) -> Tensor:
    """With at least as many rows as columns."""
    return matrix.detach() if matrix.shape[0] >= matrix.shape[1] else matrix.detach().t()


def _sample(matrix: Tensor) -> tuple[float, ...]:
    lying = _lying(matrix)
    rows, columns = (max(1, size // SIDE) for size in lying.shape)
    return tuple(lying[::rows, ::columns][:SIDE, :SIDE].reshape(-1).tolist())


def _own(name: str) -> tuple[str, ...]:
    """A parameter's own name with its module's, without numbers: "layers.3.linear1.weight" → ("linear", "weight")."""
    return tuple(part for part in re.sub(r"\d+", "", name).split(".") if part)[-2:]
