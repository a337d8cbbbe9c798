"""The four shelves of the engine. A new module family, quantity, loader or input is one new file in its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.registry import Shelf

if TYPE_CHECKING:
    from inspector.engine.inputs import Input
    from inspector.engine.loaders import Loader
    from inspector.engine.probes import Probe
    from inspector.engine.trace.quantity import Quantity

PROBES: Shelf[type[Probe]] = Shelf("probes", "inspector.engine.probes")
QUANTITIES: Shelf[Quantity] = Shelf("quantities", "inspector.engine.quantities")
LOADERS: Shelf[Loader] = Shelf("loaders", "inspector.engine.loaders")
INPUTS: Shelf[Input] = Shelf("inputs", "inspector.engine.inputs")
