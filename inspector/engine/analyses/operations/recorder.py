"""The mode that records: below autograd, so that it sees every operation of the forward and of the backward pass.

A torch function mode, as hand-written loops are recorded with, sees what the user's code calls; the backward pass and
what torch's own modules are made of it does not. Views are not recorded: they compute nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from inspector.engine.analyses.fingerprints import bits_of, fingerprint
from inspector.engine.analyses.operations.places import Origins
from inspector.engine.analyses.operations.response import NONE, again, distances
from inspector.engine.wording import error_text

MOST = 20_000
"""Operations that are recorded: about 20 MB. Counter-example: a loop of 5,000 steps of ten operations is recorded up to
step 2,000 of its forward pass, which is said."""
INPUTS, OUTPUTS = 8, 4
"""Tensors of one operation that are compared. Of `cat` with more inputs the first eight are; all show in its output."""
LONGEST = 200
UNSET = frozenset(("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_"))
"""What these return is whatever was in the memory."""
WORKING = ("mkldnn_rnn", "_cudnn_rnn", "miopen_rnn", "_scaled_dot_product", "_flash_attention", "_efficient_attention")
"""These also return memory that their backward pass works with, or states of generators, as whole numbers."""
OVERWRITES = frozenset((
    "copy_", "fill_", "zero_", "bernoulli_", "normal_", "uniform_", "random_", "exponential_", "log_normal_", "cauchy_",
    "geometric_",
))  # fmt: skip
"""These do not read what they write to."""
NOT_SAID = frozenset(("dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "generator", "size"))
"""Arguments that may differ between machines, or follow from the shapes."""


@dataclass(slots=True)
class Operation:
    """One operation. `inputs`, `outputs`: rows of the table of values; `sources` of each input: the number of the
    operation that wrote it last, or a name; `response` by output."""

    name: str
    line: str
    module: str
    node: str
    arguments: str
    random: bool
    inputs: list[int]
    sources: list[int | str]
    outputs: list[int]
    response: list[float]


@dataclass(slots=True)
class Values:
    """Contents of tensors, each once: by the hash of their bits."""

    rows: dict[int, int] = field(default_factory=dict)
    bits: list[int] = field(default_factory=list)
    numbers: list[npt.NDArray[np.float64]] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)

    def row(self, tensor: Tensor) -> int:
        """The row of what a tensor holds now."""
        key = bits_of(tensor)
        if key not in self.rows:
            self.rows[key] = len(self.bits)
            self.bits.append(key)
            self.numbers.append(fingerprint(tensor))
            self.shapes.append(tuple(tensor.shape))
            self.dtypes.append(str(tensor.dtype).removeprefix("torch."))
        return self.rows[key]


class OperationRecorder(TorchDispatchMode):
    """Records while it is entered. `names` tells tensors that were there before: parameters, buffers, inputs.

    `full` says that there were more than MOST; `broken` why recording ended, which never ends what is recorded.
    """

    def __init__(self, model: nn.Module | None = None, names: Sequence[tuple[str, Tensor]] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self.values = Values()
        self.full, self.broken = False, ""
        own = [] if model is None else [*model.named_parameters(), *model.named_buffers()]
        self._wrote: dict[int, int | str] = {memory(tensor): name for name, tensor in (*own, *names)}
        self._held = [tensor for _, tensor in (*own, *names)]
        self._unset: set[int] = set()
        self._origins = Origins(model)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation as it is, and note it."""
        kwargs = kwargs or {}
        if self.broken or self.full or torch.compiler.is_compiling():
            return func(*args, **kwargs)
        begun: Operation | None = None
        moved: Any = None
        try:
            begun = self._begin(func, args, kwargs)
            if begun is not None:
                moved = again(func, args, kwargs, random=begun.random)
        except Exception as fault:  # noqa: BLE001 - the user's model continues
            self.broken = error_text(fault)
        out = func(*args, **kwargs)
        if begun is not None and not self.broken:
            try:
                self._end(func, begun, args, kwargs, out, moved)
            except Exception as fault:  # noqa: BLE001 - as above
                self.broken = error_text(fault)
        return out

    def name(self, what: str, tensor: Tensor) -> None:
        """A result of the computation, under a name: as the last operations, which only read."""
        if self.broken or self.full:
            return
        row = self.values.row(tensor)
        source = self._wrote.get(memory(tensor), "")
        self.operations.append(Operation("result", "", what, "", "", False, [row], [source], [], []))

    def _begin(self, func: Any, args: Any, kwargs: Any) -> Operation | None:
        """Everything that is known before it has run; None for what is not recorded."""
        origin, node = self._origins.here()
        schema, name = func._schema, func._schema.name.partition("::")[2]
        if all(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns) and schema.returns:
            if (
                name == "lift_fresh"
            ):  # a tensor that was just made from numbers, in memory that may have been used before
                self._wrote.pop(memory(args[0]), None)
            return None  # a view, which computes nothing
        if len(self.operations) >= MOST:
            self.full = True
            return None
        given = [
            (one.name, args[n] if n < len(args) else kwargs.get(one.name)) for n, one in enumerate(schema.arguments)
        ]
        written = {one.name for one in schema.arguments if one.alias_info is not None and one.alias_info.is_write}
        unread = written if name in OVERWRITES or "out" in written else set()
        read = [leaf for key, value in given if key not in unread for leaf in tree_leaves(value)]
        tensors = [one for one in read if isinstance(one, Tensor) and memory(one) not in self._unset][:INPUTS]
        random = torch.Tag.nondeterministic_seeded in func.tags and not _no_draw(name, given)
        return Operation(
            name, origin.line, origin.module, node, _said(given), random, [self.values.row(one) for one in tensors],
            [self._wrote.get(memory(one), "") for one in tensors], [], [],
        )  # fmt: skip

    def _end(self, func: Any, done: Operation, args: Any, kwargs: Any, out: Any, moved: Any) -> None:
        outputs = [one for one in tree_leaves(out) if isinstance(one, Tensor)]
        if not func._schema.returns:  # only in place: of lists of tensors
            written = [n for n, one in enumerate(func._schema.arguments) if one.alias_info and one.alias_info.is_write]
            outputs = [one for n in written if n < len(args) for one in tree_leaves(args[n]) if isinstance(one, Tensor)]
        if not outputs:
            return
        if done.name in UNSET:
            self._unset |= {memory(one) for one in outputs}
            self._wrote |= {memory(one): "" for one in outputs}
            return
        for one in outputs:
            self._unset.discard(memory(one))
            self._wrote[memory(one)] = len(self.operations)
        spare = [n for n, one in enumerate(outputs) if done.name.startswith(WORKING) and not one.is_floating_point()]
        self._unset |= {memory(outputs[n]) for n in spare}
        told = [n for n in range(len(outputs)) if n not in spare][:OUTPUTS]
        done.outputs = [self.values.row(outputs[n]) for n in told]
        other = [one for one in tree_leaves(moved) if isinstance(one, Tensor)]
        distance = distances(other, outputs) if moved is not None else [NONE] * len(outputs)
        done.response = [distance[n] for n in told]
        self.operations.append(done)


def memory(tensor: Tensor) -> int:
    """A number for the memory that a tensor is in."""
    try:
        found = int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):  # sparse and the like have none
        found = 0
    return found or -id(tensor)


def _no_draw(name: str, given: Sequence[tuple[str, Any]]) -> bool:
    """Attention and recurrent layers draw only where they drop out."""
    rates = [value for key, value in given if key in ("dropout_p", "dropout", "p")]
    return name.startswith(("_scaled_dot", "scaled_dot", "_cudnn_rnn", "rrelu")) and all(
        isinstance(rate, float) and math.isclose(rate, 0.0) for rate in rates
    )


def _said(given: Sequence[tuple[str, Any]]) -> str:
    """Arguments that are no tensors, as "alpha=0.1, dim=1"."""
    said = []
    for key, value in given:
        leaves = tree_leaves(value)
        if key in NOT_SAID or value is None or any(isinstance(one, Tensor) for one in leaves):
            continue
        said.append(f"{key}={value}")
    return ", ".join(said)[:LONGEST]
