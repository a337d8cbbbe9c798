"""How the operators of torch treat their inputs, in one table by the operator's own name.

`sub_`, `__isub__`, `__rsub__`, `torch.subtract` and `aten::sub.Tensor` are one operator, `sub`: `operator_of` maps a
name to its operator, and knows whether that name writes into its first argument or takes its two arguments in reverse
order. Every pass over recorded operations uses this table. An operator that is not in it is unknown (Kind.OTHER): it is
run again as it was recorded, and no pass follows values through it.

Only the name is used. Counter-example: a function of another library that takes part in torch's dispatch and is called
`add`, but multiplies, is taken for torch's; the function itself is run again, so states and Jacobians are still right,
but the variable may wrongly be shown, or not be shown, as a recurrence.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Any

EVERY = range(1 << 30)
"""All operands."""
FACTORS = {"alpha": 1, "beta": 0}
"""A keyword argument that is a factor of an operand, and the number of that operand."""


class Kind(Enum):
    """What an operator is."""

    SUM = auto()  # adds or subtracts, elementwise
    PRODUCT = auto()  # multiplies, elementwise
    QUOTIENT = auto()  # divides, elementwise
    BLEND = auto()  # sums of products, or a choice, elementwise
    MATRIX = auto()  # products with a matrix
    SQUASH = auto()  # a nonlinear function of every entry, or of every row
    PIECE = auto()  # parts of a tensor
    LAYOUT = auto()  # the same entries in the same order, in another shape or other memory
    CAST = auto()  # the same entries in another type or on another device
    DETACH = auto()  # the same entries, without a gradient
    TURN = auto()  # the same entries in another order
    JOIN = auto()  # tensors side by side
    REDUCTION = auto()  # fewer entries, each made of many
    DROPOUT = auto()  # random entries set to zero and the others scaled
    CREATION = auto()  # a new tensor in the shape of another one, with none of its entries
    RANDOM = auto()  # random entries
    CHOICE = auto()  # indices of entries: no derivative
    WRITE = auto()  # writes into a tensor
    QUESTION = auto()  # returns something other than entries
    CELL = auto()  # one step of a recurrent cell of torch's
    FUSED = auto()  # a whole recurrent layer of torch's
    OTHER = auto()  # unknown


@dataclass(frozen=True, slots=True)
class Traits:
    """The properties of one operator. Operands are its tensors, numbered as in `a.op(b)`: a is 0 and b is 1.

    Attributes:
        operands: the names by which they may be passed.
        added: those that enter the result with the factor 1. A variable whose next value is computed from it by such
            operators alone is a running sum (or a list that grows) and not a recurrent state.
        entrywise: those of which each entry reaches its own entry of the result only, times something that does not
            depend on it: the direct path of a state goes through them.
        scales: a sigmoid among its inputs is a gate: it multiplies something, or makes the `1 - z` that does.
        unit: the result lies between 0 and 1. normalises: it does so over a row. symmetric: between −1 and 1.
        gain: max |φ′| of a squashing function; None where it is not known.
        factors: the two operands that are multiplied as matrices.
        values_stay: the in-place form changes no entry (`detach_`).
        names_type: its result is not float64, whatever its input.
    """

    name: str
    kind: Kind
    operands: tuple[str, ...] = ("input", "other")
    added: Container[int] = ()
    entrywise: Container[int] = ()
    scales: bool = False
    unit: bool = False
    normalises: bool = False
    symmetric: bool = False
    gain: float | None = None
    factors: tuple[int, int] | None = None
    values_stay: bool = False
    names_type: bool = False

    @property
    def keeps_entries(self) -> bool:
        """The result has the entries of the input, in order; dropout's are scaled."""
        return self.kind in (Kind.LAYOUT, Kind.CAST, Kind.DETACH, Kind.DROPOUT)

    @property
    def hands_on(self) -> bool:
        """The result is the input, or a part of it, and nothing else:
        a torch cell's state is still recognised in it."""
        return self.kind in (Kind.PIECE, Kind.LAYOUT, Kind.CAST, Kind.DETACH)

    @property
    def rearranges(self) -> bool:
        """The result has entries of the input, unchanged, in some order."""
        return self.hands_on or self.kind is Kind.TURN

    @property
    def forgets(self) -> bool:
        """The result does not depend on the input's values, or not differentiably: it stays as recorded."""
        return self.kind in (Kind.CREATION, Kind.RANDOM, Kind.CHOICE)

    def adds(self, operand: int, kwargs: Mapping[str, Any]) -> bool:
        """True where an operand enters the result with the factor 1, whatever factors are passed by name."""
        scaled = any(kwargs.get(name, 1) != 1 for name, number in FACTORS.items() if number == operand)
        return operand in self.added and not scaled


@dataclass(frozen=True, slots=True)
class Operator:
    """The operator of a function's name. `in_place`: it writes into operand 0; `reflected`:
    its arguments are swapped."""

    traits: Traits
    in_place: bool = False
    reflected: bool = False


UNKNOWN = Traits("", Kind.OTHER)


class _Table(dict[str, Traits]):
    """Filled group by group; each name is in it once."""

    def put(self, kind: Kind, names: str, **traits: Any) -> None:
        for name in names.split():
            assert name not in self, name
            self[name] = Traits(name, kind, **traits)


def _arithmetic(table: _Table) -> None:
    table.put(Kind.SUM, "add", added=EVERY, entrywise=EVERY)
    table.put(Kind.SUM, "sub", added=(0,), entrywise=EVERY, scales=True)
    table.put(Kind.SUM, "neg", entrywise=EVERY)
    table.put(Kind.PRODUCT, "mul", entrywise=EVERY, scales=True)
    table.put(Kind.QUOTIENT, "div", entrywise=(0,))
    table.put(Kind.BLEND, "lerp", operands=("input", "end", "weight"), entrywise=EVERY, scales=True)
    table.put(Kind.BLEND, "where", operands=("condition", "input", "other"), entrywise=EVERY, scales=True)
    table.put(Kind.BLEND, "masked_fill", operands=("input", "mask", "value"), entrywise=(0,))
    table.put(Kind.BLEND, "index_fill", operands=("input", "dim", "index", "value"), entrywise=(0,))
    products = ("input", "tensor1", "tensor2")
    table.put(Kind.BLEND, "addcmul", operands=products, added=(0,), entrywise=EVERY, scales=True)
    table.put(Kind.BLEND, "addcdiv", operands=products, added=(0,), entrywise=(0, 1))


def _matrices_and_functions(table: _Table) -> None:
    table.put(Kind.MATRIX, "linear", operands=("input", "weight", "bias"), factors=(0, 1))
    table.put(Kind.MATRIX, "matmul", factors=(0, 1))
    table.put(Kind.MATRIX, "mm bmm", operands=("input", "mat2"), factors=(0, 1))
    table.put(Kind.MATRIX, "mv", operands=("input", "vec"), factors=(0, 1))
    table.put(Kind.MATRIX, "addmm", operands=("input", "mat1", "mat2"), added=(0,), factors=(1, 2))
    table.put(Kind.MATRIX, "addmv", operands=("input", "mat", "vec"), added=(0,), factors=(1, 2))
    table.put(Kind.MATRIX, "baddbmm", operands=("input", "batch1", "batch2"), added=(0,), factors=(1, 2))

    table.put(Kind.SQUASH, "sigmoid", unit=True, gain=0.25)
    table.put(Kind.SQUASH, "hardsigmoid", unit=True, gain=1 / 6)
    table.put(Kind.SQUASH, "softmax", unit=True, normalises=True)
    table.put(Kind.SQUASH, "tanh hardtanh softsign", symmetric=True, gain=1.0)
    table.put(Kind.SQUASH, "relu relu6 softplus log_sigmoid", gain=1.0)
    table.put(Kind.SQUASH, "leaky_relu elu selu celu gelu silu")  # leaky_relu's gain: see state_matrices.py


def _rearranged(table: _Table) -> None:
    table.put(Kind.PIECE, "chunk split tensor_split hsplit vsplit dsplit unbind getitem narrow select index_select")
    table.put(Kind.PIECE, "gather take take_along_dim masked_select diagonal")
    table.put(Kind.LAYOUT, "view view_as reshape reshape_as flatten unflatten ravel contiguous clone positive",
        added=EVERY, entrywise=EVERY)  # fmt: skip
    table.put(Kind.LAYOUT, "squeeze unsqueeze requires_grad", added=EVERY, entrywise=EVERY, values_stay=True)
    table.put(Kind.CAST, "to type_as double cpu cuda", added=EVERY, entrywise=EVERY)
    table.put(Kind.CAST, "float half bfloat16 type", added=EVERY, entrywise=EVERY, names_type=True)
    table.put(Kind.DETACH, "detach", added=EVERY, entrywise=EVERY, values_stay=True)
    table.put(Kind.TURN, "T mT H mH t adjoint transpose permute movedim", values_stay=True)
    table.put(Kind.TURN, "flip fliplr flipud roll rot90")
    table.put(Kind.JOIN, "cat stack hstack vstack dstack column_stack", operands=("tensors",), added=EVERY)
    table.put(Kind.REDUCTION, "sum", added=EVERY)
    table.put(Kind.REDUCTION, "mean prod amax amin")


def _others(table: _Table) -> None:
    table.put(Kind.DROPOUT, "dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout",
        entrywise=EVERY)  # fmt: skip
    table.put(
        Kind.CREATION, "zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty new_tensor"
    )
    table.put(
        Kind.RANDOM, "rand_like randn_like randint_like bernoulli multinomial normal poisson uniform random exponential"
    )
    table.put(Kind.CHOICE, "argmax argmin")
    table.put(Kind.WRITE, "setitem", operands=("input", "value"), added=EVERY)
    table.put(Kind.WRITE, "copy", operands=("input", "other"))
    table.put(Kind.QUESTION, "size dim len shape stride data_ptr numel storage_offset")
    table.put(Kind.CELL, "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell")
    table.put(Kind.FUSED, "lstm gru rnn_tanh rnn_relu")


def _table() -> dict[str, Traits]:
    table = _Table()
    for fill in (_arithmetic, _matrices_and_functions, _rearranged, _others):
        fill(table)
    return table


TABLE: Mapping[str, Traits] = _table()
"""Name of an operator → its traits."""

ALIASES: Mapping[str, str] = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "truediv": "div", "negative": "neg",
    "pos": "positive", "concat": "cat", "concatenate": "cat", "row_stack": "vstack", "expit": "sigmoid",
    "logsigmoid": "log_sigmoid", "data": "detach", "swapaxes": "transpose", "swapdims": "transpose",
    "moveaxis": "movedim", "split_with_sizes": "split", "unsafe_split": "split", "unsafe_chunk": "chunk",
    "expand_dims": "unsqueeze",
}  # fmt: skip
"""Another name of torch's or Python's → the operator's."""

ARITHMETIC = frozenset({"add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"})
"""Operators of Python of which `__iadd__` is the in-place form and `__radd__` the one with its arguments swapped."""


@lru_cache(maxsize=4096)
def operator_of(name: str) -> Operator:
    """The operator of a function's name: `sub` of "__rsub__", "sub_", "torch.sub" and "aten::sub.Tensor"."""
    bare, in_place, reflected = _bare(name), False, False
    if bare.startswith("__") and bare.endswith("__"):
        bare = bare[2:-2]
        in_place, reflected = (bare[:1] == letter and bare[1:] in ARITHMETIC for letter in "ir")
        bare = bare[1:] if in_place or reflected else bare
        in_place |= bare == "setitem"
    elif bare.endswith("_"):
        bare, in_place = bare[:-1], True
    elif bare == "rsub":
        bare, reflected = "sub", True
    traits = TABLE.get(ALIASES.get(bare, bare), UNKNOWN)
    return Operator(traits, in_place and not traits.values_stay, reflected)


def _bare(name: str) -> str:
    """The name without its namespace: "sub_" of "aten::sub_.Tensor", "torch.ops.aten.sub_" and "Tensor.sub_"."""
    if "::" in name:
        return name.rpartition("::")[2].partition(".")[0]
    parts = name.split(".")
    bare = parts[parts.index("aten") + 1] if "aten" in parts[:-1] else parts[-1]
    return bare.removeprefix("special_")  # torch.special.expit calls itself special_expit


def traits_of(name: str) -> Traits:
    """The traits of the operator of a name."""
    return operator_of(name).traits
