"""What a test found, and its channels: `model:structure/TEST`, and by module in the order in which they returned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from inspector.engine.analyses.structure.modules import Moved
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe

PLACE = "model"
MODULES = "structure modules of {}"
"""Label domain of the modules of a test."""
FIRST = "structure first module of {}"
"""Label domain of one name: the module in which the change came in."""


@dataclass(frozen=True, slots=True)
class Found:
    """One test.

    Attributes:
        test: "causal", "batch", …; the channel is model:structure/TEST.
        about: what its channel says of itself.
        dims: of `values`, the changes relative to the largest output.
        rounding: changes up to this are rounding.
        moved: by module, where something moved.
        domains: the label domains of dims that are not the primary input's steps.
    """

    test: str
    about: Describe
    dims: tuple[str, ...]
    values: npt.NDArray[np.float64]
    rounding: float
    moved: Moved | None = None
    domains: Mapping[str, str] = field(default_factory=dict)


def write(found: Found, emit: Emitter) -> None:
    """Write the channels and scalars of a test."""
    name = f"{PLACE}:structure/{found.test}"
    shape = tuple(found.values.shape)
    emit.array(found.about.channel(name, found.dims, shape, "float64", domains=dict(found.domains)), found.values)
    emit.scalar(f"structure/{found.test}/rounding", found.rounding)
    if found.moved is None or not found.moved.names:
        return
    domain = MODULES.format(found.test)
    emit.labels(domain, found.moved.names)
    emit.labels(FIRST.format(found.test), (found.moved.first,))
    by_module = Describe(
        kind="structure", compare="separate", scale="log", title=f"{found.about.title}, by module",
        formula="the same, of the output of each module, in the order in which they return",
    )  # fmt: skip
    emit.array(
        by_module.channel(
            f"{name}/modules", ("module",), (len(found.moved.names),), "float64", domains={"module": domain}
        ),
        np.array(found.moved.change),
    )
