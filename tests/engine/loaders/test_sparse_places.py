"""A sparse tensor whose places lie outside of it ends a process in native code, unless torch looks at them first."""

from __future__ import annotations

import subprocess
import sys

MADE = (
    "import torch\n"
    "{first}\n"
    "torch.sparse_coo_tensor(torch.tensor([[7]]), torch.ones(1), (3,), is_coalesced=True)\n"
    "torch.sparse_csr_tensor(torch.tensor([0, 1, 1]), torch.tensor([10**9]), torch.ones(1), (2, 3))\n"
)


def made(first: str) -> str:
    """What becomes of such tensors in a process that did something `first`."""
    done = subprocess.run([sys.executable, "-c", MADE.format(first=first)], capture_output=True, text=True, timeout=240)
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def test_places_outside_are_refused_by_a_worker() -> None:
    assert made("pass") == ""  # torch by itself makes them
    assert "RuntimeError" in made("from inspector.engine.session.catalogue import catalog; catalog()")
