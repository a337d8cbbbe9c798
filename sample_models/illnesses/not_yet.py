"""Rules that have no case yet, each with the reason."""

from __future__ import annotations

SOON = "its training is not written yet"
NOT_YET: dict[str, str] = {}
