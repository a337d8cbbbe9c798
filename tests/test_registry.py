"""Shelves: double keys name both, broken files leave the others, look-ups say what exists."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inspector.registry import DoubleKeyError, Shelf


def make_package(folder: Path, name: str, files: dict[str, str]) -> str:
    package = folder / name
    package.mkdir()
    (package / "__init__.py").write_text(f"from inspector.registry import Shelf\nSHELF = Shelf('things', '{name}')\n")
    for file, body in files.items():
        (package / f"{file}.py").write_text(f"from {name} import SHELF\n{body}\n")
    return name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def shelf_of(name: str) -> Shelf[object]:
    __import__(name)
    shelf: Shelf[object] = sys.modules[name].SHELF
    return shelf


def test_a_new_file_is_found_and_a_broken_one_reported(folder: Path) -> None:
    files = {"good": "SHELF.register('good')(object())", "bad": "raise RuntimeError('oh')"}
    shelf = shelf_of(make_package(folder, "shelf_a", files))
    assert list(shelf) == ["good"] and "good" in shelf and len(shelf) == 1
    assert shelf.origin("good") == "shelf_a.good"
    assert shelf.broken[0].origin == "shelf_a.bad" and "oh" in shelf.broken[0].reason


def test_a_double_key_names_both_files(folder: Path) -> None:
    same = "SHELF.register('x')(object())"
    shelf = shelf_of(make_package(folder, "shelf_b", {"one": same, "two": same}))
    with pytest.raises(DoubleKeyError, match=r"shelf_b\.one.*shelf_b\.two"):
        shelf.load()


def test_an_unknown_key_lists_what_exists(folder: Path) -> None:
    shelf = shelf_of(make_package(folder, "shelf_c", {"one": "SHELF.register('x')(1)"}))
    with pytest.raises(KeyError, match="there are: x"):
        shelf["y"]
