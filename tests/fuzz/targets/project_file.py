"""`inspector.toml`."""

from __future__ import annotations

from pathlib import Path

from target import Target

from inspector.diagnosis.settings import SettingsError, read_settings
from inspector.records import Finding


def attempt(data: bytes, scratch: Path) -> None:
    """Read it, and ask it about a finding."""
    path = scratch / "inspector.toml"
    path.write_bytes(data)
    settings = read_settings(path)
    finding = Finding(rule="no-gradient", id="IN403", place="a.b", severity="warning", message="x")
    settings.parted(finding)


TARGET = Target("inspector.toml", ("inspector.diagnosis.settings",), attempt, (SettingsError,))
