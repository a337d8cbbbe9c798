"""A model is called by the signature of its forward; what that leaves open is said in one sentence, never guessed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypedDict

import pytest
import torch
from torch import Tensor, nn

from inspector.engine.errors import InputError
from inspector.engine.model.batch import Batch, NamedInput
from inspector.engine.model.call import arguments, takes_batch


class Pair(TypedDict):
    src: Tensor
    tgt: Tensor


def model_of(forward: Callable[..., Any]) -> nn.Module:
    """A module whose forward has the parameters of a function."""

    class Model(nn.Module):
        pass

    Model.forward = forward  # type: ignore[assignment]
    return Model()


def batch_of(*names: str, absent: tuple[str, ...] = ()) -> Batch:
    one = torch.ones(2, dtype=torch.int64)
    named = {
        name: NamedInput(tensor=None if name in absent else torch.full((2, 3), float(n)), kind="other", lengths=one)
        for n, name in enumerate(names)
    }
    return Batch.of(named, next(name for name in names if name not in absent))


def told(call: tuple[tuple[Any, ...], dict[str, Any]]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments as the numbers that fill the tensors."""

    def number(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: number(one) for name, one in value.items()}
        return None if value is None else int(value.flatten()[0])

    return [number(value) for value in call[0]], {name: number(value) for name, value in call[1].items()}


CALLS: dict[str, tuple[Callable[..., Any], Batch, list[Any], dict[str, Any]]] = {
    "one without a name": (lambda self, x: x, Batch(torch.zeros(1, 2), torch.tensor([2])), [0], {}),
    "one by the only keyword": (lambda self, *, x: x, Batch(torch.zeros(1, 2), torch.tensor([2])), [], {"x": 0}),
    "by names": (lambda self, src, tgt: src, batch_of("src", "tgt"), [0, 1], {}),
    "by names in another order": (lambda self, tgt, src: src, batch_of("src", "tgt"), [1, 0], {}),
    "names after a gap": (lambda self, src, mask=None, tgt=None: src, batch_of("src", "tgt"), [0], {"tgt": 1}),
    "in order": (lambda self, a, b: a, batch_of("src", "tgt"), [0, 1], {}),
    "in order, all that there are": (lambda self, a, b=None: a, batch_of("src", "tgt"), [0, 1], {}),
    "in order, the required": (lambda self, a, b, c=None: a, batch_of("src", "tgt"), [0, 1], {}),
    "one left over": (lambda self, x, mask=None: x, batch_of("ids", "mask"), [0, 1], {}),
    "keyword only": (lambda self, *, tgt, src: src, batch_of("src", "tgt"), [], {"src": 0, "tgt": 1}),
    "any positional": (lambda self, *args: args, batch_of("src", "tgt"), [0, 1], {}),
    "any keyword": (lambda self, **kwargs: kwargs, batch_of("src", "tgt"), [], {"src": 0, "tgt": 1}),
    "anything": (lambda self, *args, **kwargs: args, batch_of("src", "tgt"), [], {"src": 0, "tgt": 1}),
    "a mapping by its name": (lambda self, batch: batch, batch_of("src", "tgt"), [{"src": 0, "tgt": 1}], {}),
    "left out": (lambda self, src, h=None: src, batch_of("src", "h", absent=("h",)), [0], {}),
    "left out, but needed": (lambda self, src, h: src, batch_of("src", "h", absent=("h",)), [0, None], {}),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_a_call_follows_the_signature(case: str) -> None:
    forward, batch, args, kwargs = CALLS[case]
    assert told(arguments(model_of(forward), batch)) == (args, kwargs)


@pytest.mark.parametrize("kind", [dict[str, Tensor], Mapping[str, Tensor], dict, Pair, "dict[str, Unknown]"])
def test_a_mapping_by_its_annotation(kind: Any) -> None:
    def forward(self: Any, x: Any) -> Any:
        return x

    forward.__annotations__ = {"x": kind}
    assert told(arguments(model_of(forward), batch_of("src", "tgt"))) == ([{"src": 0, "tgt": 1}], {})
    assert told(arguments(model_of(forward), batch_of("src"))) == ([{"src": 0}], {})


def test_a_tensor_is_no_mapping() -> None:
    def forward(self: Any, batch: Tensor) -> Tensor:
        return batch

    assert told(arguments(model_of(forward), batch_of("src"))) == ([0], {})
    with pytest.raises(InputError):
        arguments(model_of(forward), batch_of("src", "tgt"))


UNCLEAR: dict[str, tuple[Callable[..., Any], Batch]] = {
    "too many": (lambda self, x: x, batch_of("src", "tgt")),
    "too few": (lambda self, a, b: a, batch_of("src")),
    "an optional in between": (lambda self, a, b, m=None, n=None: a, batch_of("s", "t", "u")),
    "two keywords without names": (lambda self, *, a, b: a, batch_of("src", "tgt")),
    "one without a name, two keywords": (lambda self, *, a, b: a, Batch(torch.zeros(1, 2), torch.tensor([2]))),
    "an unknown beside a known": (lambda self, src, m=None: src, batch_of("src", "tgt")),
    "a keyword that is missing": (lambda self, *args, k: args, batch_of("src", "tgt")),
}


@pytest.mark.parametrize("case", UNCLEAR)
def test_what_is_not_clear_is_said_with_both_sides(case: str) -> None:
    forward, batch = UNCLEAR[case]
    with pytest.raises(
        InputError, match=r"not clear how to call Model: its forward takes \(.*\), the batch has .*\."
    ) as e:
        arguments(model_of(forward), batch)
    assert all(name in str(e.value) for name in batch.named) and "\n" not in str(e.value)


def test_positional_only_parameters_are_given_by_their_place() -> None:
    def forward(self: Any, tgt: Tensor, src: Tensor, /, mask: Any = None) -> Tensor:
        return tgt

    assert told(arguments(model_of(forward), batch_of("src", "tgt"))) == ([1, 0], {})

    def gap(self: Any, a: Any = None, tgt: Any = None, /) -> Any:
        return tgt

    with pytest.raises(InputError):
        arguments(model_of(gap), batch_of("tgt", "src"))


class Object:
    def __call__(self, model: nn.Module, batch: Batch) -> None: ...

    def method(self, model: nn.Module, inputs: Tensor, lengths: Tensor) -> None: ...


FORWARDS: list[tuple[Callable[..., Any], bool | None]] = [
    (lambda model, inputs, lengths: None, False),
    (lambda m, x, n, extra=1: None, False),
    (lambda model, inputs, lengths=None: None, False),
    (lambda model, batch: None, True),
    (lambda model, batch, k=3: None, True),
    (lambda model, batch, *, k=3: None, True),
    (partial(lambda k, model, batch: None, 3), True),
    (Object(), True),
    (Object().method, False),
    (lambda model: None, None),
    (lambda *args: None, None),
    (lambda model, inputs, *rest: None, None),
    (lambda a, b, c, d: None, None),
]


@pytest.mark.parametrize(("forward", "batch"), FORWARDS)
def test_the_number_of_parameters_tells_what_a_forward_is_given(
    forward: Callable[..., Any], batch: bool | None
) -> None:
    if batch is None:
        with pytest.raises(InputError, match=r"expected \(model, batch\) or \(model, inputs, lengths\)\.$"):
            takes_batch(forward, "it")
    else:
        assert takes_batch(forward, "it") is batch


def test_one_input_is_too_few_for_a_forward_that_reads_two() -> None:
    def forward(self: nn.Module, x: Tensor, lengths: Tensor) -> Tensor:
        return x

    one = Batch(torch.ones(2, 3, dtype=torch.int64), torch.full((2,), 3))
    with pytest.raises(InputError, match=r"lengths.*the batch has input\. Name the inputs"):
        arguments(model_of(forward), one)
    hooked = model_of(forward)
    hooked.register_forward_pre_hook(lambda _module, given: (*given, one.lengths))
    assert len(arguments(hooked, one)[0]) == 1
