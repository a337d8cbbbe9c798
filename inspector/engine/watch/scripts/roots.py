"""The models whose parameters some optimizers have, found among the objects of the process."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence

from torch import Tensor, nn

from inspector.engine.watch.called import Several
from inspector.engine.watch.parameters import WRAPPERS


def model_of(tensors: Sequence[Tensor]) -> nn.Module:
    """The module that has these parameters and is part of no other; several of them together where it takes several.

    Parameters that are in no module are left out.
    """
    roots = roots_of(tensors)
    return roots[0] if len(roots) == 1 else Several(roots)


def roots_of(tensors: Sequence[Tensor]) -> list[nn.Module]:
    """Outermost modules that together hold the parameters, those that hold most of them first.

    Where several hold the same ones, wrappers that spread a model over processes come first, then the smallest: a
    module that also holds averaged copies of a model is not what is trained.
    """
    left = {id(one) for one in tensors}
    tops = _tops(left)
    held = {id(top): {id(one) for one in top.parameters()} for top in tops}
    found = []
    while left and tops:
        best = max(tops, key=lambda top: (len(held[id(top)] & left), _spreads(top), -len(held[id(top)])))
        if not held[id(best)] & left:
            break
        found.append(best)
        left -= held[id(best)]
        tops.remove(best)
    return found


def _spreads(module: nn.Module) -> bool:
    return type(module).__name__ in WRAPPERS


def _tops(wanted: set[int]) -> list[nn.Module]:
    """Modules that are part of no other and hold one of the tensors."""
    # type(), because isinstance would ask the class of proxies, which may run code or raise
    modules = [one for one in gc.get_objects() if issubclass(type(one), nn.Module) and type(one) is not Several]
    modules = [one for one in modules if "_modules" in one.__dict__]
    parents: dict[int, list[nn.Module]] = {}
    for module in modules:
        for child in module._modules.values():
            if child is not None:
                parents.setdefault(id(child), []).append(module)
    holders = [one for one in modules if any(id(tensor) in wanted for tensor in one._parameters.values())]
    return _outermost(holders, parents)


def _outermost(modules: Iterable[nn.Module], parents: dict[int, list[nn.Module]]) -> list[nn.Module]:
    tops: dict[int, nn.Module] = {}
    seen: set[int] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        above = parents.get(id(module), [])
        waiting.extend(above)
        if not above:
            tops[id(module)] = module
    return list(tops.values())
