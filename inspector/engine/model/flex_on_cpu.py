"""Autograd through flex_attention on a CPU: torch refuses it, since only its compiled kernels cannot, and those are not
used where probes watch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from inspector.engine.model.late_imports import FLEX


@contextmanager
def flex_followed() -> Iterator[None]:
    """Inside, autograd follows flex_attention on a CPU too; it has to be imported before, and to run uncompiled."""
    module = sys.modules.get(FLEX)
    before = getattr(module, "_validate_device", None)
    if module is None or before is None:
        yield
        return
    vars(module)["_validate_device"] = lambda *_given: None
    try:
        with warnings.catch_warnings():  # how torch traces it, it looks at .grad of tensors that have none
            warnings.filterwarnings("ignore", message="The .grad attribute of a Tensor that is not a leaf")
            warnings.filterwarnings("ignore", message="flex_attention called without")  # what is compiled is not, here
            yield
    finally:
        vars(module)["_validate_device"] = before
