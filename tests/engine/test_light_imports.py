"""What a worker imports before it can run a model, and what rules and samples import before they are used: torch's
compiler and scipy, a second of work each, are not part of it."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import sys
import inspector
from inspector.engine.registries import INPUTS, LOADERS, PROBES, QUANTITIES
from inspector.diagnosis import RULES
import inspector.engine.session.service
import sample_models.subjects.mel
assert all(len(list(registry)) > 1 for registry in (INPUTS, LOADERS, PROBES, QUANTITIES, RULES))
"""
RUN = """
import torch
from torch import nn
layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
with inspector.run(nn.Sequential(layer), torch.randn(6, 8)) as attention, inspector.run(nn.GRU(3, 5), torch.randn(6, 3)) as gru:
    assert any(name.endswith(":attention") for name in attention.channels)
    assert any(name.endswith("gate/update") for name in gru.channels)
"""
HEAVY = ("torch._dynamo", "torch._inductor", "sympy", "scipy", "pyarrow", "PySide6", "inspector.engine.worker")
"""The last patches Python's loaders: only a process of its own does that."""


def test_no_compiler_is_imported() -> None:
    found = f"sys.stdout.write(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", LOADED + RUN + found], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
