"""PySide 6.12 on a Python before 3.12 loses references to None until the interpreter aborts: refused at the start."""

from __future__ import annotations

import importlib.metadata
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from inspector.gui import app
from inspector.gui.window import first_frame


class Version(NamedTuple):
    """As `sys.version_info` begins."""

    major: int
    minor: int


@pytest.mark.parametrize(
    ("qt", "python", "aborts"),
    [
        ("6.12.0", Version(3, 11), True), ("6.12.3", Version(3, 10), True), ("6.12.0", Version(3, 12), False),
        ("6.11.3", Version(3, 11), False), ("6.8.3", Version(3, 11), False),
    ],
)  # fmt: skip
def test_the_pair_that_aborts_is_refused_in_one_line(
    qt: str, python: Version, aborts: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: qt)
    monkeypatch.setattr(first_frame, "sys", SimpleNamespace(version_info=python))
    said = first_frame.refused()
    assert bool(said) is aborts and "\n" not in said
    if aborts:
        assert f"PySide6 {qt} aborts on Python {python.major}.{python.minor}" in said and "install" in said
        monkeypatch.setattr(app, "the_application", lambda: pytest.fail("Qt was started"))
        assert app.run([]) == 2 and capsys.readouterr().err == f"{said}\n"
