"""Parameters that a model keeps in plain lists, tuples and dictionaries, where torch does not find them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from torch import Tensor, nn

MOST = 1000
"""Parameters that are told of a model."""


def outside_modules(model: nn.Module, known: Collection[int] = ()) -> list[tuple[str, Tensor]]:
    """(name, parameter) as ("encoder.layers[0].weight", …) of what requires a gradient and lies in a container which is
    an attribute of one of the model's modules; neither those that the model finds itself nor those whose id is known.
    """
    seen = {id(one) for one in model.parameters()} | set(known)
    found: dict[int, tuple[str, Tensor]] = {}
    for place, module in model.named_modules():
        for attribute, value in vars(module).items():
            if attribute.startswith("_") or not isinstance(value, (list, tuple, dict)):
                continue
            for name, one in _within(value, f"{place}.{attribute}".lstrip(".")):
                if one.requires_grad and id(one) not in seen and len(found) < MOST:
                    found.setdefault(id(one), (name, one))
    return list(found.values())


def _within(value: object, name: str, depth: int = 2) -> Iterator[tuple[str, Tensor]]:
    """(name, parameter) of what a container holds, and containers in it."""
    if isinstance(value, nn.Module):
        for below, one in value.named_parameters():
            yield f"{name}.{below}", one
    elif isinstance(value, nn.Parameter):
        yield name, value
    elif depth and isinstance(value, Mapping):
        for key, part in list(value.items())[:MOST]:
            yield from _within(part, f"{name}[{key!r:.40}]", depth - 1)
    elif depth and isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for n, part in enumerate(value[:MOST]):
            yield from _within(part, f"{name}[{n}]", depth - 1)
