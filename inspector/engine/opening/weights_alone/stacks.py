"""Recurrent layers in a table of tensors, by the names and shapes of torch's modules.

The weights of `nn.RNN`, `nn.GRU` and `nn.LSTM` determine them but for the nonlinearity of `nn.RNN` and dropout: with
hidden size h, projection p and G gates (1, 3, 4), `weight_ih_l0` is (G·h, i), `weight_hh_l0` (G·h, p or h) and
`weight_hr_l0` (p, h) (torch.nn.LSTM's documentation). Cells have the same names without the number of a layer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor, nn

NAME = re.compile(r"(?:(?P<place>.+)\.)?(?P<part>weight_ih|weight_hh|weight_hr|bias_ih|bias_hh)"
                  r"(?:_l(?P<layer>\d{1,4})(?P<reverse>_reverse)?)?")  # fmt: skip
KINDS = {1: "RNN", 3: "GRU", 4: "LSTM"}
"""By the number of gates."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Recurrent layers of one module.

    Attributes:
        place: name of the module, "" where the file is its own state.
        kind: "RNN", "GRU" or "LSTM".
        width, hidden, projected: numbers of the input, of the state, and of the projected state (0 for none).
        layers: their number; 0 for a cell.
        both: in both directions.
        bias: whether there are biases.
        names: of its tensors.
    """

    place: str
    kind: str
    width: int
    hidden: int
    projected: int
    layers: int
    both: bool
    bias: bool
    names: frozenset[str] = field(compare=False)

    @property
    def out(self) -> int:
        """Numbers of its output at each step."""
        return (self.projected or self.hidden) * (2 if self.both else 1)

    def module(self, nonlinearity: str = "tanh") -> nn.Module:
        """The module of torch's, sequences first."""
        if not self.layers:
            cells: dict[str, type[nn.Module]] = {"RNN": nn.RNNCell, "GRU": nn.GRUCell, "LSTM": nn.LSTMCell}
            said = {"nonlinearity": nonlinearity} if self.kind == "RNN" else {}
            return cells[self.kind](self.width, self.hidden, bias=self.bias, **said)
        kinds: dict[str, type[nn.Module]] = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}
        more = {"nonlinearity": nonlinearity} if self.kind == "RNN" else {}
        if self.projected:
            more["proj_size"] = self.projected  # type: ignore[assignment]
        return kinds[self.kind](
            self.width, self.hidden, num_layers=self.layers, bias=self.bias, batch_first=True,
            bidirectional=self.both, **more,
        )  # fmt: skip

    def told(self) -> str:
        """In words: `rnn: LSTM 32 → 64, 2 layers, both directions`."""
        many = "cell" if not self.layers else "1 layer" if self.layers == 1 else f"{self.layers} layers"
        parts = [many, *(["both directions"] if self.both else []), *([] if self.bias else ["no biases"])]
        inner = f" (state of {self.hidden}, projected)" if self.projected else ""
        return f"{self.place or 'the file'}: {self.kind} {self.width} → {self.out}{inner}, {', '.join(parts)}"


def find_stacks(tensors: Mapping[str, Tensor]) -> tuple[list[Stack], list[str]]:
    """(stacks in the order of the file, sentences on what is named like one and does not fit together)."""
    groups: dict[str, dict[tuple[int, bool, str], Tensor]] = {}
    names: dict[str, set[str]] = {}
    for name, tensor in tensors.items():
        found = NAME.fullmatch(name)
        if found is not None and tensor.is_floating_point():
            place = found["place"] or ""
            layer = -1 if found["layer"] is None else int(found["layer"])
            groups.setdefault(place, {})[layer, bool(found["reverse"]), found["part"]] = tensor
            names.setdefault(place, set()).add(name)
    stacks, problems = [], []
    for place, parts in groups.items():
        stack = _stack(place, parts, frozenset(names[place]))
        if isinstance(stack, Stack):
            stacks.append(stack)
        else:
            problems.append(f"{place or 'The file'} is named like recurrent layers, but {stack}.")
    return stacks, problems


def _stack(place: str, parts: Mapping[tuple[int, bool, str], Tensor], names: frozenset[str]) -> Stack | str:
    """The stack of these tensors, or what is wrong with them."""
    layers = {layer for layer, _, _ in parts}
    cell = layers == {-1}
    count = 0 if cell else max(layers) + 1
    first = -1 if cell else 0
    ih, hh, hr = (parts.get((first, False, f"weight_{part}")) for part in ("ih", "hh", "hr"))
    if ih is None or hh is None or ih.dim() != 2 or hh.dim() != 2 or (hr is not None and hr.dim() != 2):
        return "its first layer has no weight_ih and weight_hh of two axes"
    hidden = int((hh if hr is None else hr).shape[1])
    gates = ih.shape[0] // hidden if hidden and ih.shape[0] % hidden == 0 else 0
    if gates not in KINDS or (hr is not None and gates != 4):
        return f"weight_ih of {ih.shape[0]} rows and a state of {hidden} are those of no RNN, GRU or LSTM"
    both, bias = any(reverse for _, reverse, _ in parts), any(part.startswith("bias") for _, _, part in parts)
    stack = Stack(
        place, KINDS[gates], int(ih.shape[1]), hidden, 0 if hr is None else int(hr.shape[0]), count, both, bias, names
    )
    return _check(stack, parts)


def _check(stack: Stack, parts: Mapping[tuple[int, bool, str], Tensor]) -> Stack | str:
    """The stack where torch's module has just these tensors; else the first that differs."""
    prefix = f"{stack.place}." if stack.place else ""
    expected = _expected(stack)
    for key in (*expected, *parts):
        layer, reverse, part = key
        name = prefix + part + (f"_l{layer}" if layer >= 0 else "") + ("_reverse" if reverse else "")
        if key not in parts:
            return f"there is no {name}"
        if key not in expected:
            return f"{name} has no place in them"
        if tuple(parts[key].shape) != expected[key]:
            return f"{name} is {tuple(parts[key].shape)}, where {expected[key]} would fit"
    return stack


def _expected(stack: Stack) -> dict[tuple[int, bool, str], tuple[int, ...]]:
    """The shapes of the tensors of torch's module, by layer, direction and part."""
    rows = {"RNN": 1, "GRU": 3, "LSTM": 4}[stack.kind] * stack.hidden
    expected: dict[tuple[int, bool, str], tuple[int, ...]] = {}
    for layer in range(max(1, stack.layers)):
        for reverse in (False, True) if stack.both else (False,):
            at = (layer if stack.layers else -1, reverse)
            width = stack.width if layer == 0 else stack.out
            expected[*at, "weight_ih"] = (rows, width)
            expected[*at, "weight_hh"] = (rows, stack.projected or stack.hidden)
            if stack.projected:
                expected[*at, "weight_hr"] = (stack.projected, stack.hidden)
            if stack.bias:
                expected[*at, "bias_ih"] = expected[*at, "bias_hh"] = (rows,)
    return expected
