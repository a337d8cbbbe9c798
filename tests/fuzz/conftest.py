"""The targets import each other and the helpers of the fault suite by their plain names."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [one for one in (str(HERE), str(HERE.parent / "faults")) if one not in sys.path]
