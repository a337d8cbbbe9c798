"""`inspector docs`: the installed pages on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from inspector.cli import docs as module
from inspector.cli.command import cli

ROOT = Path(__file__).resolve().parents[1]


def asked(*words: str) -> str:
    done = CliRunner().invoke(cli, ["docs", *words], catch_exceptions=False, standalone_mode=False)
    return done.output


def test_pages_are_listed_and_one_is_printed_as_it_is() -> None:
    listed = asked()
    assert "Watching a training run" in listed and listed.splitlines()[0].split() == ["README", "README"]
    assert len(listed.splitlines()) == 1 + len(list((ROOT / "docs").rglob("*.md")))
    assert asked("watching") == (ROOT / "docs" / "watching.md").read_text(encoding="utf-8")
    assert asked("watching", "--where").strip() == str(ROOT / "docs" / "watching.md")
    assert asked("--where").strip() == str(ROOT / "docs")


def test_what_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        module.Fault, match=r"There is no page wotching; there are README, architecture, .*adding/sample\."
    ):
        asked("wotching")
    monkeypatch.setattr(module, "pages", lambda: ())
    with pytest.raises(module.Fault, match="were not installed"):
        asked()
