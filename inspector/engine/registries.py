"""The four registries of the engine. A new module family, quantity, loader or input is one new file in its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.registry import Registry

if TYPE_CHECKING:
    from inspector.engine.contracts import Input, Loader, Probe
    from inspector.engine.trace.quantity import Quantity

PROBES: Registry[type[Probe]] = Registry("probes", "inspector.engine.probes")
QUANTITIES: Registry[Quantity] = Registry("quantities", "inspector.engine.quantities")
LOADERS: Registry[Loader] = Registry("loaders", "inspector.engine.loaders")
INPUTS: Registry[Input] = Registry("inputs", "inspector.engine.inputs")
