"""The loop in docs/watching.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import inspector

DOCS = Path(__file__).parents[3] / "docs" / "watching.md"


def test_the_loop_of_the_docs_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"<!-- runs: watch -->\n```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "docs"}
    code = code.replace("inspector.watch(", "watcher = inspector.watch(")  # to close it before the program ends
    exec(compile(code, str(DOCS), "exec", dont_inherit=True), names)
    watcher = names["watcher"]
    assert isinstance(watcher, inspector.engine.watch.Watcher)  # type: ignore[attr-defined]
    watcher.close()
    with inspector.open_capture(tmp_path / "watched.inspect") as capture:
        assert watcher.iteration == 50 and capture.array("training:iteration")[0] == 1
