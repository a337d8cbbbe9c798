"""What additions, products and concatenations of a call were given, so that two calls can be compared."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from inspector.engine.analyses.positions.counts import Counts
from inspector.engine.analyses.positions.stacks import Stacks

ADDED, MULTIPLIED, BESIDE = "added", "multiplied", "put beside"
KINDS = {"add": ADDED, "sub": ADDED, "addcmul": ADDED, "lerp": ADDED, "mul": MULTIPLIED, "div": MULTIPLIED}
ALIASES = {
    "iadd": "add", "radd": "add", "isub": "sub", "subtract": "sub", "imul": "mul", "rmul": "mul", "multiply": "mul",
    "truediv": "div", "itruediv": "div", "divide": "div", "true_divide": "div",
}  # fmt: skip
JOINS = frozenset(("cat", "concat", "concatenate"))
LARGEST = 1 << 24
"""Numbers of an operand that is looked at; an encoding of 16,384 positions by 1,024 has as many."""
Site = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Operands:
    """What one operation was given: a digest of each operand (empty where it was not looked at), in which module it was
    called, how it puts them together, and in the second call the tensors that the first one had at the same place, as
    they reach the result (times alpha, negative where they are subtracted, 1 / p where they divide).

    `site`: the module, code and instruction that called it, where both operands are of one step; else None.
    """

    digests: tuple[bytes, ...]
    place: str
    how: str
    tensors: tuple[Tensor | None, ...]
    site: Site | None


class Operations(TorchFunctionMode):
    """Keeps digests of operands, and of those that `before` had too the numbers."""

    def __init__(self, place: Callable[[], tuple[str, str]], counts: Counts, before: Sequence[Operands]) -> None:
        super().__init__()
        self._place, self._counts, self._before = place, counts, before
        self._stacks = Stacks()
        self.seen: list[Operands] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "").strip("_")
        name = ALIASES.get(name, name)
        if name in JOINS:
            self._keep(_joined(args, kwargs), BESIDE)
        elif name in KINDS:
            given = _given(name, args, kwargs)
            self._keep(_spread(given) if self._counts.patches else given, KINDS[name])
        elif name in ("sum", "mean"):
            self._keep(self._stacks.summed(name, args, kwargs), ADDED)
        made = func(*args, **kwargs)
        if name == "stack":
            self._stacks.keep(made, args, kwargs)
        return made

    def _keep(self, given: Sequence[tuple[Tensor, Tensor | None]], how: str) -> None:
        """given: each operand, and as what it reaches the result."""
        sources = [source for source, _ in given]
        of_one_step = len(given) == 2 and how != BESIDE and all(map(_one_step, sources))
        as_used = [one if used is None else used for one, used in given]
        over_steps = [_over_steps(one, self._counts) for one in as_used]
        if len(given) < 2 or not (of_one_step or any(over_steps)):
            return
        digests = tuple(_digest(one) if _readable(one) else b"" for one in sources)
        earlier = self._before[len(self.seen)] if len(self.seen) < len(self._before) else None
        known = () if earlier is None else earlier.digests
        kept = tuple(
            used.detach().clone()
            if digest and known[n : n + 1] == (digest,) and used is not None and (of_one_step or over_steps[n])
            else None
            for n, ((_, used), digest) in enumerate(zip(given, digests, strict=True))
        )  # fmt: skip
        place = self._place()[0]
        self.seen.append(Operands(digests, place, how, kept, _site(place) if of_one_step else None))


def _joined(args: Sequence[Any], kwargs: dict[str, Any]) -> list[tuple[Tensor, Tensor | None]]:
    """What is put together along the components; along the steps it is more steps, not positions."""
    given = tuple(args[0] if args else kwargs.get("tensors", ()))
    axis = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))
    if not all(isinstance(one, Tensor) for one in given) or not given or not isinstance(axis, int):
        return []
    wide = given[0].dim()
    if axis not in (-1, wide - 1) and not (wide == 4 and axis % wide == 1):  # channels of a picture stand before it
        return []
    return [(one, one) for one in given]


def _given(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> list[tuple[Tensor, Tensor | None]]:
    """Both operands of an operation, each as it reaches the result."""
    words = ("input", "tensor1", "tensor2") if name == "addcmul" else ("input", "end" if name == "lerp" else "other")
    given = [*args[:3], *(kwargs[word] for word in words if word in kwargs)]
    needed = 3 if name == "addcmul" else 2
    if len(given) < needed or not all(isinstance(one, Tensor) for one in given[:needed]):
        return []
    first, second = given[0], given[1]
    if name == "addcmul":
        product = second * given[2] * kwargs.get("value", 1)
        return [(first, first), (product, product)]
    if name == "lerp":
        share = given[2] if len(given) > 2 else kwargs["weight"]
        return [(first, first * (1 - share)), (second, second * share)]
    if name == "div":
        return [] if kwargs.get("rounding_mode") else [(first, None), (second, second.reciprocal())]
    if name == "mul":
        return [(first, first), (second, second)]
    alpha = kwargs.get("alpha", 1)
    factor = -alpha if name == "sub" else alpha
    return [(first, first), (second, second if factor == 1 else second * factor)]


def _spread(given: Sequence[tuple[Tensor, Tensor | None]]) -> list[tuple[Tensor, Tensor | None]]:
    """Both operands as wide as the result where that is a picture (b, d, rows, columns) or (b, rows, columns, d): what
    depends on the row alone is the same in all columns."""
    shapes = [one.shape for one, _ in given]
    if len(given) != 2 or max((len(one) for one in shapes), default=0) != 4 or shapes[0] == shapes[1]:
        return list(given)
    try:
        whole = torch.broadcast_shapes(*shapes)
    except RuntimeError:  # the operation itself will say so
        return list(given)
    return [(one, used.expand(whole) if used is not None and used.dim() > 1 else used) for one, used in given]


def _readable(one: Tensor) -> bool:
    """Whether its numbers can be read in the middle of a call."""
    return (
        one.layout == torch.strided and not one.is_nested and not one.is_quantized and one.device.type != "meta"
        and one.numel() <= LARGEST and not torch._C._functorch.is_functorch_wrapped_tensor(one)
    )  # fmt: skip


def _over_steps(one: Tensor, counts: Counts) -> bool:
    return (
        one.is_floating_point() and _readable(one) and 1 < one.dim() < 5 and one.numel() > 0
        and (any(count in one.shape for count in counts.lengths) or bool(counts.of_picture(one.shape)))
    )  # fmt: skip


def _one_step(one: Tensor) -> bool:
    """Whether it is a vector: one step of one sequence."""
    return one.is_floating_point() and 0 < one.dim() < 4 and one.numel() == one.shape[-1] > 0 and _readable(one)


def _digest(one: Tensor) -> bytes:
    """Of the type, shape and bits: what has the same is the same."""
    plain = one.detach().resolve_conj().resolve_neg().cpu().contiguous()
    bits = plain.reshape(-1).view(torch.uint8).numpy()
    return (
        hashlib.blake2b(bits.data, digest_size=16, person=f"{one.dtype}"[-12:].encode()).digest()
        + str(tuple(one.shape)).encode()
    )


def _site(place: str) -> Site:
    """The module and the instruction of its code that called an operation: a loop comes back to the same one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("torch", "inspector"):
        frame = frame.f_back
    return (place, 0, 0) if frame is None else (place, id(frame.f_code), frame.f_lasti)


@contextmanager
def watching(
    place: Callable[[], tuple[str, str]], counts: Counts, before: Sequence[Operands] = ()
) -> Iterator[list[Operands]]:
    """The operations inside, in order. counts: how many steps a sequence may have; before: those of the first call."""
    mode = Operations(place, counts, before)
    with mode:
        yield mode.seen
