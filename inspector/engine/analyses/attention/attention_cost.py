"""What attention costs: parameters by part, multiplications and memory as functions of the length.

Letters: T queries, S keys, e width of the stream, a heads, d width of a head, v width of its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor, nn

from inspector.records import counted

ALL, KEYS_AND_VALUES = "Q, K and V together", "K and V together"
PARTS = ("Q", "K", "V", "O", ALL, KEYS_AND_VALUES, "other")
FLOP_PARTS = ("Q", "K", "V", "O", "scores", "sums of values")
MEMORY_PARTS = ("queries, keys, values and sums", "maps of all heads")
_TOGETHER = {
    ALL: re.compile(r"qkv|c_attn|query_key_value|in_proj"),
    KEYS_AND_VALUES: re.compile(r"kv|key_?value|vk"),
}
"""Layers that project several at once; the first that fits."""
_ONE = {
    "Q": re.compile(r"^(w_?|to_?|lin_?|linear_?)?q(uery|ueries)?(_?(proj|lin|layer|linear|weight))?\d*$"),
    "K": re.compile(r"^(w_?|to_?|lin_?|linear_?)?k(ey|eys)?(_?(proj|lin|layer|linear|weight))?\d*$"),
    "V": re.compile(r"^(w_?|to_?|lin_?|linear_?)?v(alue|alues)?(_?(proj|lin|layer|linear|weight))?\d*$"),
    "O": re.compile(r"^(w_?|to_?|lin_?|linear_?|c_)?(o|out|output|dense|proj)(_?(proj|lin|layer|linear|weight))?\d*$"),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of one attention.

    Attributes:
        heads, groups: heads, and those that have keys and values of their own.
        width: of the stream that it reads; key, value: of one head; out: of what it gives, 0 without a projection.
        projected: whether queries, keys and values are projections of the stream.
    """

    heads: int
    groups: int
    width: int
    key: int
    value: int
    out: int
    projected: bool = True

    def flops(self, queries: int, keys: int) -> tuple[float, ...]:
        """By `FLOP_PARTS`, two for a multiplication with its addition: Q 2Te·ad, K 2Se·gd, V 2Se·gv, O 2T·av·e',
        scores 2aTSd, sums of values 2aTSv. A softmax and masks are some 5 aTS more and not counted."""
        t, s, a, g = float(queries), float(keys), self.heads, self.groups
        given = 2 * self.width * self.projected
        return (
            given * t * a * self.key, given * s * g * self.key, given * s * g * self.value,
            2 * t * a * self.value * self.out, 2 * a * t * s * self.key, 2 * a * t * s * self.value,
        )  # fmt: skip

    def memory(self, queries: int, keys: int, entry: int) -> tuple[float, ...]:
        """Bytes by `MEMORY_PARTS`, `entry` bytes a number: a kernel that streams holds the first, one that keeps the
        maps for its backward pass both."""
        t, s, a, g = float(queries), float(keys), self.heads, self.groups
        rows = t * a * self.key + s * g * self.key + s * g * self.value + t * a * self.value
        return entry * rows, entry * a * t * s


def parameters(module: nn.Module) -> dict[str, int]:
    """Numbers of the parameters of a module that attends, by `PARTS`; those of linear layers by their names.

    Counter-example: a layer called "dense" inside that is no projection behind the heads counts as O.
    """
    found = dict.fromkeys(PARTS, 0)
    for part, value in _parameters(module):
        found[part] += value.numel()
    return found


def _parameters(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, value in module.named_parameters():
        if name.endswith(("in_proj_weight", "in_proj_bias")):
            yield from zip("QKV", value.chunk(3), strict=True)
        else:
            yield part_of(name), value


def part_of(name: str) -> str:
    """The part to which a parameter belongs, by the name of its layer ("q_proj.weight" is Q)."""
    words = name.lower().split(".")
    leaf = words[-1].removesuffix("_weight").removesuffix("_bias")
    layer = words[-2] if words[-1] in ("weight", "bias") and len(words) > 1 else leaf
    if layer.isdigit() and len(words) > 2:
        layer = words[-3]
    one = next((part for part, pattern in _ONE.items() if pattern.match(layer)), "")
    return one or next((part for part, pattern in _TOGETHER.items() if pattern.search(layer)), "other")


HEADS = ("num_heads", "n_heads", "n_head", "nhead", "num_attention_heads", "heads")
"""Names of the number of heads, of a module or of its `config`."""
LENGTHS = (1024, 4096, 16384)


def foreseen(model: nn.Module) -> dict[str, Shape]:
    """The sizes of the attention of a model that has not run, by module: those whose layers are called Q, K and V.

    Counter-example: attention without such names, or with a number of heads that is no attribute, is not foreseen.
    """
    found: dict[str, Shape] = {}
    for name, module in model.named_modules():
        own = _matrices(module)
        if {"Q", "K", "V"} <= own.keys() or {"Q", KEYS_AND_VALUES} <= own.keys() or ALL in own:
            shape = _foreseen(module, own)
            if shape is not None:
                found[name] = shape
    inner = {name: one for name, one in found.items() if not any(other.startswith(f"{name}.") for other in found)}
    return {name or "model": one for name, one in inner.items() if name or len(found) == 1}


def _matrices(module: nn.Module) -> dict[str, Tensor]:
    """The weights of the parts, (out, in), of a module's own layers and of its direct children."""
    found: dict[str, Tensor] = {}
    for name, value in module.named_parameters():
        if value.dim() == 2 and name.count(".") <= 2:
            part = ALL if name.endswith("in_proj_weight") else part_of(name)
            if part in found:
                return {}  # several layers: one of them attends
            if part != "other":
                found[part] = value
    return found


def _foreseen(module: nn.Module, own: dict[str, Tensor]) -> Shape | None:
    config = getattr(module, "config", None)
    given = (getattr(at, name, None) for at in (module, config) for name in HEADS)
    heads = next((one for one in given if isinstance(one, int) and one > 0), 0)
    if not heads:
        return None
    out = own["O"].shape[0] if "O" in own else 0
    if ALL in own:
        width = min(own[ALL].shape)
        key, rows = max(1, width // heads), own[ALL].numel() // width
        groups = min(heads, max(1, (rows // key - heads) // 2))
        return Shape(heads, groups, width, key, key, width if out else 0)
    width, key = own["Q"].shape[1], own["Q"].shape[0] // heads
    if KEYS_AND_VALUES in own:
        return Shape(heads, max(1, own[KEYS_AND_VALUES].numel() // width // (2 * key)), width, key, key, out)
    groups = max(1, own["K"].shape[0] // key)
    return Shape(heads, groups, width, key, own["V"].shape[0] // groups, out)


def told(model: nn.Module, steps: int, entry: int = 4) -> str:
    """What attention will cost, as a sentence, before the model runs; "" where no attention is foreseen."""
    shapes = list(foreseen(model).values())
    if not shapes:
        return ""

    def at(length: int) -> str:
        flops = sum(sum(one.flops(length, length)) for one in shapes)
        square = sum(sum(one.flops(length, length)[4:]) for one in shapes)
        maps = sum(one.memory(length, length, entry)[1] for one in shapes)
        return f"{flops / 1e9:.3g} GFLOP ({square / flops:.0%} in scores and sums), {maps / 1e6:.3g} MB of maps"

    later = "; ".join(f"at {length:,}: {at(length)}" for length in LENGTHS if length > steps)
    these = f"Attention of {counted(len(shapes), 'module')}, one sequence of {steps:,} steps"
    more = f"; {later}" if later else ""
    return f"{these}: {at(steps)} where a kernel keeps them{more}. Counted from the sizes of the modules."
