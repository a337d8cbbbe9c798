"""What a model adds to its stream, or puts beside it, that depends on the step and not on what stands there.

Two runs on one token repeated, another one in each: an operand of an addition or a concatenation that is the same in
both, differs from step to step, and meets one that is not the same, is an encoding of positions, whatever made it (a
parameter, an embedding of 0, 1, 2 …, a formula in `forward`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

ADDITIONS = frozenset(("add", "add_", "__add__", "__radd__", "__iadd__"))
JOINS = frozenset(("cat", "concat", "concatenate", "hstack"))
ADDED, BESIDE = "added", "put beside"
LARGEST = 1 << 24
"""Numbers of an operand that is looked at; an encoding of 16,384 positions by 1,024 has as many."""


@dataclass(frozen=True, slots=True)
class Operands:
    """What an addition or a concatenation was given: a digest of each (empty where it was not looked at), where it was
    called, which of the two it was, and in the second run the tensors that the first one had at the same place."""

    digests: tuple[bytes, ...]
    place: str
    how: str
    tensors: tuple[Tensor | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """(t, d) numbers of each step, at what place of the model, and how they reach the stream."""

    rows: Tensor
    place: str
    how: str


class Additions(TorchFunctionMode):
    """Keeps digests of the operands of additions and concatenations, and of those that `before` had too the numbers."""

    def __init__(
        self, place: Callable[[], tuple[str, str]], counts: Collection[int], before: Sequence[Operands]
    ) -> None:
        super().__init__()
        self._place, self._counts, self._before = place, counts, before
        self.seen: list[Operands] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in ADDITIONS or name in JOINS:
            self._keep(_operands(name, args, kwargs), ADDED if name in ADDITIONS else BESIDE)
        return func(*args, **kwargs)

    def _keep(self, given: Sequence[Tensor], how: str) -> None:
        if len(given) < 2 or not any(_looked_at(one, self._counts) for one in given):
            return
        digests = tuple(_digest(one) if one.numel() <= LARGEST else b"" for one in given)
        earlier = self._before[len(self.seen)] if len(self.seen) < len(self._before) else None
        known = () if earlier is None else earlier.digests
        kept = tuple(
            one.detach().clone() if digest and known[n : n + 1] == (digest,) and _looked_at(one, self._counts) else None
            for n, (one, digest) in enumerate(zip(given, digests, strict=True))
        )
        self.seen.append(Operands(digests, self._place()[0], how, kept))


def _operands(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Tensor, ...]:
    if name in ADDITIONS:
        given = (*args[:2], *(kwargs[word] for word in ("input", "other") if word in kwargs))
    else:
        given = tuple(args[0] if args else kwargs.get("tensors", ()))
    return given if all(isinstance(one, Tensor) for one in given) else ()


def _looked_at(one: Tensor, counts: Collection[int]) -> bool:
    return (
        one.is_floating_point() and one.layout == torch.strided and not one.is_nested and 1 < one.dim() < 5
        and any(count in one.shape for count in counts) and 0 < one.numel() <= LARGEST
    )  # fmt: skip


def _digest(one: Tensor) -> bytes:
    """Of the type, shape and bits: what has the same is the same."""
    bits = one.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return (
        hashlib.blake2b(bits.data, digest_size=16, person=f"{one.dtype}"[-12:].encode()).digest()
        + str(tuple(one.shape)).encode()
    )


@contextmanager
def watching(
    place: Callable[[], tuple[str, str]], counts: Collection[int], before: Sequence[Operands] = ()
) -> Iterator[list[Operands]]:
    """The additions and concatenations inside, in order. counts: how many steps a sequence may have, padding included;
    before: those of the first run."""
    mode = Additions(place, counts, before)
    with mode:
        yield mode.seen


def encodings(first: Sequence[Operands], second: Sequence[Operands], counts: Collection[int]) -> list[Encoding]:
    """The encodings of positions that two runs on one token repeated have in common, each once, in order.

    Counter-examples: a table as wide as there are steps looks like a mask and is left out; so is what a model
    multiplies by, and what it adds to scores (that is a bias of the scores).
    """
    found: list[Encoding] = []
    for before, after in zip(first, second, strict=False):
        if before.how != after.how or len(before.digests) != len(after.digests):
            break  # the runs took different ways
        alike = [a == b and bool(a) for a, b in zip(before.digests, after.digests, strict=True)]
        if all(alike) or not any(alike):
            continue
        for one in after.tensors:
            rows = _rows(one, counts) if one is not None else None
            if rows is not None and not any(_same(known.rows, rows) for known in found):
                found.append(Encoding(rows, after.place, after.how))
    return found


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)


def _rows(one: Tensor, counts: Collection[int]) -> Tensor | None:
    """(t, d) of an operand (…, t, d) or (t, …, d) that is the same in every sequence and differs between steps."""
    for axis in (one.dim() - 2, 0):
        steps = one.shape[axis]
        if steps not in counts or one.shape[-1] == steps:
            continue
        rows = one.movedim(axis, 0).reshape(steps, -1, one.shape[-1])
        whole = rows[:, 0]
        differs = bool((whole != whole[:1]).any())
        if bool((rows == rows[:, :1]).all()) and differs and bool(whole.isfinite().all()):
            return whole.double().cpu()
    return None
