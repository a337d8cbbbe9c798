"""Registries: double keys name both, broken files leave the others, look-ups say what exists."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inspector.registry import DoubleKeyError, Registry


def make_package(folder: Path, name: str, files: dict[str, str]) -> str:
    package = folder / name
    package.mkdir()
    (package / "__init__.py").write_text(
        f"from inspector.registry import Registry\nREGISTRY = Registry('things', '{name}')\n"
    )
    for file, body in files.items():
        (package / f"{file}.py").write_text(f"from {name} import REGISTRY\n{body}\n")
    return name


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def registry_of(name: str) -> Registry[object]:
    __import__(name)
    registry: Registry[object] = sys.modules[name].REGISTRY
    return registry


def test_a_new_file_is_found_and_a_broken_one_reported(folder: Path) -> None:
    files = {"good": "REGISTRY.register('good')(object())", "bad": "raise RuntimeError('oh')"}
    registry = registry_of(make_package(folder, "registry_a", files))
    assert list(registry) == ["good"] and "good" in registry and len(registry) == 1
    assert registry.origin("good") == "registry_a.good"
    assert registry.broken[0].origin == "registry_a.bad" and "oh" in registry.broken[0].reason


def test_a_double_key_names_both_files(folder: Path) -> None:
    same = "REGISTRY.register('x')(object())"
    registry = registry_of(make_package(folder, "registry_b", {"one": same, "two": same}))
    with pytest.raises(DoubleKeyError, match=r"registry_b\.one.*registry_b\.two"):
        registry.load()


def test_an_unknown_key_lists_what_exists(folder: Path) -> None:
    registry = registry_of(make_package(folder, "registry_c", {"one": "REGISTRY.register('x')(1)"}))
    with pytest.raises(KeyError, match="there are: x"):
        registry["y"]
