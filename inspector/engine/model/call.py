"""How a model is called on a batch, where the subject has no `forward`: by the signature of the model's own.

Inputs that have the names of parameters are passed by name; the others, where only one assignment is left, in their
order. Nothing is guessed beyond that: a model may run with two inputs exchanged and show something wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, get_type_hints

from torch import Tensor, nn

from inspector.engine.errors import InputError
from inspector.engine.model.batch import INPUT, Batch
from inspector.engine.wording import text_of

WHOLE = ("batch", "inputs", "data", "example", "features", "sample")
"""Parameter names, in a forward without annotations, of one mapping with all inputs. `features` may be a tensor as
well; but then a batch of several inputs could not be passed to that forward at all."""
POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""


def arguments(model: nn.Module, batch: Batch) -> Call:
    """The arguments for the model's forward. Raises InputError where they are not clear."""
    given = {name: batch[name] for name in batch.named}
    present = {name: tensor for name, tensor in given.items() if tensor is not None}
    try:
        parameters = dict(inspect.signature(model.forward).parameters)
    except (TypeError, ValueError):  # code without a readable signature is called with its inputs in order
        return tuple(present.values()), {}
    signature = _Signature(model, parameters)
    if list(given) == [INPUT]:
        return signature.one(batch.inputs)
    return signature.several(present, [name for name in given if name not in present])


class _Signature:
    """The parameters of a forward, sorted by how they are given."""

    def __init__(self, model: nn.Module, parameters: Mapping[str, Parameter]) -> None:
        self.model = model
        self.parameters = parameters
        self.named = {n: p for n, p in parameters.items() if p.kind in (*POSITIONAL, Parameter.KEYWORD_ONLY)}
        self.positional = [n for n, p in self.named.items() if p.kind in POSITIONAL]
        self.required = [n for n, p in self.named.items() if p.default is Parameter.empty]
        kinds = {p.kind for p in parameters.values()}
        self.more = Parameter.VAR_POSITIONAL in kinds
        self.any_name = Parameter.VAR_KEYWORD in kinds

    def one(self, tensor: Tensor) -> Call:
        """The call with one input that has no name: in the first place, or as the only keyword there is."""
        given_by_hooks = self.model._forward_pre_hooks or type(self.model).__call__ is not nn.Module.__call__
        if len(self.required) > 1 and not given_by_hooks:
            raise self.unclear([INPUT])
        if self.positional or self.more:
            return (tensor,), {}
        choices = self.required or list(self.named)
        if len(choices) != 1:
            raise self.unclear([INPUT])
        return (), {choices[0]: tensor}

    def several(self, present: Mapping[str, Tensor], absent: list[str]) -> Call:
        """The call with inputs that have names; those that are absent are left to their defaults, or None."""
        if self._takes_a_mapping(present):
            return (dict(present),), {}
        values: dict[str, Any] = {n: t for n, t in present.items() if n in self.named or self.any_name}
        left = [n for n in present if n not in values]
        places = [n for n in self.required if n not in values and n not in absent]
        by_place = all(n in self.positional for n in places)
        if not values and by_place and self.more and len(left) >= len(places):
            return tuple(present.values()), {}
        if not values and by_place and len(left) == len(self.positional):
            places = self.positional
        if len(left) != len(places) or not (by_place or len(places) == 1):
            raise self.unclear(present)
        values.update(zip(places, (present[n] for n in left), strict=True))
        values.update({n: None for n in absent if n in self.required})
        return self._laid_out(values)

    def _laid_out(self, values: dict[str, Any]) -> Call:
        """Positional arguments as far as none is missing, as an author writes them, then keyword arguments."""
        args: list[Any] = []
        for name in self.positional:
            if name not in values:
                break
            args.append(values.pop(name))
        if any(p.kind is Parameter.POSITIONAL_ONLY and n in values for n, p in self.named.items()):
            raise self.unclear(values)
        return tuple(args), values

    def _takes_a_mapping(self, present: Mapping[str, Tensor]) -> bool:
        """Whether the only required argument is a mapping, by its annotation or, without one, by its name."""
        wanted = [name for name in self.required if name in self.positional]
        if len(self.required) != 1 or len(wanted) != 1 or any(name in self.named for name in present):
            return False
        known = self._annotation(wanted[0])
        if known is Parameter.empty:
            return len(present) > 1 and wanted[0] in WHOLE
        return _is_mapping(known)

    def _annotation(self, name: str) -> Any:
        try:
            return get_type_hints(self.model.forward).get(name, Parameter.empty)
        except Exception:  # noqa: BLE001 - annotations that only a type checker understands may raise anything
            return self.parameters[name].annotation

    def unclear(self, names: Mapping[str, Any] | list[str]) -> InputError:
        """The error that names the parameters and the inputs."""
        described = ", ".join(text_of(p) if p.default is Parameter.empty else p.name for p in self.parameters.values())
        return InputError(
            f"It is not clear how to call {type(self.model).__name__}: its forward takes ({described}), the batch has "
            f"{', '.join(names)}. Name the inputs as the parameters are named, or give `forward(model, batch)`."
        )


def _is_mapping(annotation: Any) -> bool:
    """Whether an annotation means a dictionary: dict[str, Tensor], Mapping, a TypedDict, or one of these as text."""
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].lower().startswith(("dict", "mapping", "mutablemapping"))
    kind = getattr(annotation, "__origin__", annotation)
    return isinstance(kind, type) and issubclass(kind, Mapping)


def takes_by_name(model: nn.Module, name: str) -> bool:
    """Whether the model's forward has a parameter of that name."""
    try:
        found = inspect.signature(model.forward).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return found is not None and found.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def names_taken(model: nn.Module) -> list[str]:
    """The parameters of the model's forward that can be given by name; none where code has no readable signature."""
    try:
        found = inspect.signature(model.forward).parameters
    except (TypeError, ValueError):
        return []
    return [name for name in found if takes_by_name(model, name)]


def takes_batch(forward: Callable[..., Any], who: str) -> bool:
    """Whether a subject's `forward` is (model, batch) rather than (model, inputs, lengths).

    Decided by the number of required parameters, two or three. A third one with a default is one that the author added
    to the batch (`lambda model, batch, k=3: …`), unless it is called `lengths`. Raises InputError otherwise.
    """
    try:
        parameters = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):  # code without a readable signature gets (model, inputs, lengths)
        return False
    positional = [p for p in parameters if p.kind in POSITIONAL]
    required = sum(p.default is Parameter.empty for p in positional)
    more = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    if required == 3 or (required == 2 and len(positional) > 2 and positional[2].name == "lengths"):
        return False
    if required == 2 and not more:
        return True
    described = ", ".join(map(text_of, parameters))
    raise InputError(f"`forward` of {who} takes ({described}); expected (model, batch) or (model, inputs, lengths).")
