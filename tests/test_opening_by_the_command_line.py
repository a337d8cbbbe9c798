"""What may stand on the command line that opens the window: a model in a file, and options before or after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from inspector.cli.command import cli
from inspector.cli.fault import Fault
from inspector.records import model_in_file


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], bool]]:
    """What the window was begun with, instead of beginning it."""
    found: list[tuple[list[str], bool]] = []

    def begin(paths: list[str], *, new_window: bool, **_: object) -> int:
        found.append((paths, new_window))
        return 0

    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text("def make(): ...\n", encoding="utf-8")
    monkeypatch.setattr("inspector.gui.app.run", begin)
    return found


def test_a_model_in_a_file_is_opened(opened: list[tuple[list[str], bool]]) -> None:
    CliRunner().invoke(cli, ["net.py:make"], catch_exceptions=False)
    assert opened == [(["net.py:make"], False)]
    with pytest.raises(Fault, match=r"There is no file, .* none\.py:make"):
        CliRunner().invoke(cli, ["none.py:make"], catch_exceptions=False, standalone_mode=False)


@pytest.mark.parametrize("words", [["--new-window", "net.py"], ["net.py", "--new-window"]])
def test_a_window_of_its_own_is_asked_for_before_or_after_the_path(
    opened: list[tuple[list[str], bool]], words: list[str]
) -> None:
    CliRunner().invoke(cli, words, catch_exceptions=False)
    assert opened == [(["net.py"], True)]


@pytest.mark.parametrize(
    ("text", "file"),
    [("a/b.py:Net", "a/b.py"), ("b.py:Net.make", "b.py"), ("b.py", ""), ("b.py:", ""), ("pkg.mod:Net", ""),
     ("b.py:1", ""), ("C:\\b.py", "")],
)  # fmt: skip
def test_which_file_a_model_is_in(text: str, file: str) -> None:
    assert model_in_file(text) == file
