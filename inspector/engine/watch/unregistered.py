"""Parameters that a model keeps in plain lists, tuples and dictionaries, where torch does not find them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from torch import Tensor, nn
from torch.optim import Optimizer

from inspector.engine.watch.parameters import inner

MOST = 1000
"""Names that are told of a model."""


def unregistered(model: nn.Module, optimizers: Iterable[Optimizer]) -> list[str]:
    """Names ("encoder.layers[0].weight") of parameters that require a gradient, that neither the model's parameters nor
    an optimizer has, and that lie in a container which is an attribute of one of its modules."""
    known = {id(one) for one in inner(model).parameters()}
    known |= {id(one) for each in optimizers for group in each.param_groups for one in group["params"]}
    found: dict[int, str] = {}
    for place, module in inner(model).named_modules():
        for attribute, value in vars(module).items():
            if attribute.startswith("_") or not isinstance(value, (list, tuple, dict)):
                continue
            for name, one in _within(value, f"{place}.{attribute}".lstrip(".")):
                if one.requires_grad and id(one) not in known and len(found) < MOST:
                    found.setdefault(id(one), name)
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
