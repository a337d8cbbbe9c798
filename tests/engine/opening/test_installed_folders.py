"""Which code may run without being asked about: torch's too where it lies in site-packages that are not Python's own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from inspector.engine.opening import checked_imports


@pytest.mark.parametrize(
    ("lies", "all_around"),
    [
        ("apps/pytorch/site-packages/torch", True),
        ("usr/lib/dist-packages/torch", True),
        ("home/me/pytorch/torch", False),
    ],
)
def test_what_torch_imports_late_need_not_be_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lies: str, all_around: bool
) -> None:
    file = tmp_path / lies / "__init__.py"
    monkeypatch.setattr(checked_imports, "torch", SimpleNamespace(__file__=str(file)))
    found = checked_imports.installed_folders()
    assert str(file.parent) in found
    assert (str(file.parents[1]) in found) is all_around, "a checkout of torch lies beside its owner's other files"
    assert str(tmp_path) not in found
