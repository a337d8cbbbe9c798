"""The script in docs/divergence.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import inspector

DOCS = Path(__file__).parents[2] / "docs" / "divergence.md"


def test_the_script_of_the_docs_records_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"<!-- runs: operations -->\n```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(DOCS), "exec", dont_inherit=True), {})
    found = inspector.first_divergence(tmp_path / "step.inspect", tmp_path / "step.inspect")
    assert found.operations is not None and found.operations.word == "identical", found.lines()
