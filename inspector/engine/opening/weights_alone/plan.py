"""What stands before, between and behind the recurrent layers of a file of weights: a guess, and what changes it.

A file does not say in which order its tensors are used. Layers follow one another where the widths fit, in the order of
the file; the last one before a layer of other width ends the chain. Counter-example: a decoder as wide as the encoder's
output is put behind it, whatever it reads; `layers` says which ones are run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.opening.weights_alone.stacks import Stack
from inspector.engine.wording import text_of
from inspector.records.plain_text import shortened

ARGUMENTS = ("layers", "embedding", "before", "head", "nonlinearity", "task", "gates", "backward")
"""What `--arguments` may say of a file of weights."""
LETTERS = {"LSTM": "ifgo", "GRU": "rzn"}
"""Gates in torch's order: input, forget, cell, output; reset, update, new."""
NONLINEARITIES, TASKS = ("tanh", "relu"), ("next token", "none")
EMBEDDING, HEAD = re.compile(r"emb|wte|lookup|token"), re.compile(r"head|out|fc|dec|proj|lin|logit|class|pred|lm")


@dataclass(frozen=True, slots=True)
class Matrix:
    """A weight of two axes and its bias: a table of an embedding, or a linear layer.

    Attributes:
        place: name of its module; rows, columns: of the weight; bias: whether there is one; at: its place in the file.
    """

    place: str
    rows: int
    columns: int
    bias: bool
    at: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run, in this order: embedding or first linear layer (or neither), recurrent layers, last linear layer."""

    embedding: Matrix | None
    before: Matrix | None
    stacks: tuple[Stack, ...]
    head: Matrix | None
    nonlinearity: str
    next_token: bool
    gates: str = ""
    backward: tuple[str, ...] = ()

    def told(self) -> str:
        """In words, with what is a guess."""
        parts = [f"{self.embedding.place}: embedding of {self.embedding.rows} tokens"] if self.embedding else []
        parts += [f"{self.before.place}: linear {self.before.columns} → {self.before.rows}"] if self.before else []
        parts += [self._layers(stack) for stack in self.stacks]
        parts += [f"{self.head.place}: linear {self.head.columns} → {self.head.rows}"] if self.head else []
        return "; ".join(parts)

    def _layers(self, stack: Stack) -> str:
        """Recurrent layers in words, with what was asked for."""
        said = [f"its gates in the order {' '.join(self.gates)}"] if reordered(stack, self.gates) else []
        said += ["from the last step to the first"] if stack.place in self.backward else []
        return ", ".join([stack.told(), *said])

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that would ask for it."""
        ends = {"embedding": self.embedding, "before": self.before, "head": self.head}
        return {
            "layers": [stack.place for stack in self.stacks],
            **{name: None if one is None else one.place for name, one in ends.items()},
            "nonlinearity": self.nonlinearity, "task": TASKS[not self.next_token], "gates": self.gates,
            "backward": list(self.backward),
        }  # fmt: skip

    @property
    def modules(self) -> frozenset[str]:
        """Names of the modules that are run."""
        ends = [one.place for one in (self.embedding, self.before, self.head) if one is not None]
        return frozenset([*ends, *(stack.place for stack in self.stacks)])


def matrices(tensors: Mapping[str, Tensor], stacks: Sequence[Stack]) -> list[Matrix]:
    """Weights of two axes that are not those of recurrent layers, in the order of the file."""
    taken = frozenset().union(*(stack.names for stack in stacks))
    found = []
    for at, (name, tensor) in enumerate(tensors.items()):
        place, _, part = name.rpartition(".")
        if part == "weight" and place and name not in taken and tensor.dim() == 2 and tensor.is_floating_point():
            bias = tensors.get(f"{place}.bias")
            fits = bias is not None and tuple(bias.shape) == (tensor.shape[0],)
            found.append(Matrix(place, int(tensor.shape[0]), int(tensor.shape[1]), fits, at))
    return found


def make_plan(tensors: Mapping[str, Tensor], stacks: Sequence[Stack], arguments: Mapping[str, Any]) -> Plan:
    """The guess, with what `arguments` say in its place. Raises InputError for names that do not exist or fit."""
    _check(arguments)
    order = {name: at for at, name in enumerate(tensors)}
    found = matrices(tensors, stacks)
    chain = _chain(stacks, arguments.get("layers"))
    first, last = chain[0], chain[-1]
    begins = min(order[name] for name in first.names)
    embedding = _named("embedding", found, arguments) or _embedding(found, first, begins)
    embedding = None if "embedding" in arguments and arguments["embedding"] is None else embedding
    before = _named("before", found, arguments)
    if before is None and "before" not in arguments and embedding is None:
        before = _before(found, first, begins)
    head = _named("head", found, arguments)
    if head is None and "head" not in arguments:
        head = _head([one for one in found if one not in (embedding, before)], last, max(order[n] for n in last.names))
    ends = [one.place for one in (embedding, before, head) if one is not None]
    twice = next((place for place in ends if ends.count(place) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is asked for twice, of embedding, before and head.")
    gates, backward = _gates(chain, arguments.get("gates")), _backward(chain, arguments.get("backward"))
    plan = Plan(embedding, before, chain, head, arguments.get("nonlinearity", "tanh"), False, gates, backward)
    _check_widths(plan)
    tokens = embedding is not None and head is not None and head.rows == embedding.rows
    asked = arguments.get("task", "next token" if tokens and not any(one.both for one in chain) else "none")
    if asked == "next token" and not tokens:
        raise InputError('The task "next token" needs an embedding and a head of as many rows.')
    return replace(plan, next_token=asked == "next token")


def _check(arguments: Mapping[str, Any]) -> None:
    unknown = next((name for name in arguments if name not in ARGUMENTS), None)
    if unknown is not None:
        raise InputError(
            f"A file of weights takes no argument {shortened(text_of(unknown), 40)!r}; there are "
            f"{', '.join(ARGUMENTS)}."
        )
    for name, known in (("nonlinearity", NONLINEARITIES), ("task", TASKS)):
        if name in arguments and arguments[name] not in known:
            given = text_of(arguments[name])[:40]
            raise InputError(f"The {name} asked for is {given!r}; expected {' or '.join(known)}.")


def _chain(stacks: Sequence[Stack], asked: Any) -> tuple[Stack, ...]:
    """The recurrent layers that are run one after the other."""
    if asked is not None:
        names = [asked] if isinstance(asked, str) else list(asked) if isinstance(asked, (list, tuple)) else []
        own = {stack.place: stack for stack in stacks}
        wrong = next((name for name in names if name not in own), None)
        if wrong is not None or not names:
            given = text_of(asked if wrong is None else wrong)[:60]
            raise InputError(f"The layers asked for are {given!r}; there are {', '.join(map(repr, own))}.")
        return tuple(own[name] for name in names)
    chain = [stacks[0]]
    for stack in stacks[1:]:
        if stack.width == chain[-1].out:
            chain.append(stack)
    return tuple(chain)


def _gates(chain: Sequence[Stack], asked: Any) -> str:
    """The order in which the file has the gates, as letters; "" for torch's. Raises InputError."""
    if asked in (None, ""):
        return ""
    kinds = [stack.kind for stack in chain if type(stack) is Stack and stack.kind in LETTERS]
    known = [LETTERS[kind] for kind in dict.fromkeys(kinds)]
    if not isinstance(asked, str) or not any(sorted(asked) == sorted(letters) for letters in known):
        orders = " or ".join(f"those of {letters}" for letters in known) or "none, without an LSTM or GRU of torch's"
        raise InputError(
            f"The order of gates asked for is {shortened(text_of(asked), 40)!r}; its letters are {orders}."
        )
    return "" if asked in known else asked


def _backward(chain: Sequence[Stack], asked: Any) -> tuple[str, ...]:
    """Names of layers that read from the last step to the first. Raises InputError."""
    names = () if asked is None else (asked,) if isinstance(asked, str) else tuple(asked)
    own = [stack.place for stack in chain if stack.place and not stack.both]
    wrong = next((name for name in names if name not in own), None)
    if wrong is not None:
        known = ", ".join(map(repr, own)) or "none: they have no name or both directions"
        raise InputError(
            f"Read backward should be {shortened(text_of(wrong), 60)!r}; of the layers that are run this is for "
            f"{known}."
        )
    return tuple(dict.fromkeys(names))


def reordered(stack: Stack, gates: str) -> bool:
    """Whether these letters are another order of the gates of a layer than torch's."""
    letters = LETTERS.get(stack.kind, "") if type(stack) is Stack else ""
    return bool(gates) and gates != letters and sorted(gates) == sorted(letters)


def _named(what: str, found: Sequence[Matrix], arguments: Mapping[str, Any]) -> Matrix | None:
    asked = arguments.get(what)
    if asked is None:
        return None
    chosen = next((one for one in found if one.place == asked), None)
    if chosen is None:
        names = ", ".join(one.place for one in found) or "none"
        raise InputError(
            f"The {what} asked for is {shortened(text_of(asked), 60)!r}; of two axes are the weights of {names}."
        )
    return chosen


def _embedding(found: Sequence[Matrix], first: Stack, begins: int) -> Matrix | None:
    """A table whose rows the first layer reads: by its name, else without a bias and before it in the file."""
    fit = [one for one in found if one.columns == first.width and not one.bias]
    named = [one for one in fit if EMBEDDING.search(one.place.lower())]
    ahead = [one for one in fit if one.at < begins]
    return next(iter(named or ahead), None)


def _before(found: Sequence[Matrix], first: Stack, begins: int) -> Matrix | None:
    """A linear layer whose result the first layer reads, before it in the file."""
    return next((one for one in reversed(found) if one.rows == first.width and one.at < begins), None)


def _head(found: Sequence[Matrix], last: Stack, ends: int) -> Matrix | None:
    """A linear layer that reads the last layer's output: behind it in the file, by its name first."""
    fit = [one for one in found if one.columns == last.out and one.at > ends]
    return next(iter([one for one in fit if HEAD.search(one.place.lower())] or fit), None)


def _check_widths(plan: Plan) -> None:
    """Raises InputError where one part gives other numbers than the next one reads."""
    width, given = None, ""
    for one in (plan.embedding, plan.before, *plan.stacks, plan.head):
        if one is None:
            continue
        reads = one.width if isinstance(one, Stack) else one.columns
        if one is not plan.embedding and width is not None and reads != width:
            raise InputError(f"{one.place or 'the file'} reads {reads} numbers a step and {given} gives {width}.")
        gives = one.out if isinstance(one, Stack) else one.columns if one is plan.embedding else one.rows
        width, given = gives, one.place or "the file"
