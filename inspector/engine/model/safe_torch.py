"""Which torch may read a checkpoint of somebody else's.

An environment that is named with --python may have another torch than this package asks for: pip only warns of it.
`weights_only` could be got round before 2.6 (CVE-2025-32434), and wrote beyond its memory before 2.10 (CVE-2026-24747).
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch.torch_version import TorchVersion

from inspector.engine.errors import InputError

OLDEST = "2.10.0a0"


def require_safe_torch(path: Path) -> None:
    """Raises InputError where the torch of this process has faults by which a checkpoint could run code."""
    if TorchVersion(torch.__version__) < OLDEST:
        raise InputError(
            f"{path.name} is not read: a checkpoint may run code in torch {torch.__version__} (CVE-2025-32434, "
            "CVE-2026-24747); install torch 2.10 or newer, or save the weights as safetensors."
        )
