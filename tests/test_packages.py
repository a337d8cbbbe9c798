"""What is installed: the wheel and the source archive carry everything, and anybody builds the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOT_SOURCE = {
    "__pycache__",
    ".git",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    ".import_linter_cache",
}


def build(tree: Path, folder: Path, *, umask: int) -> dict[str, Path]:
    """The wheel and the source archive of a tree, by their endings."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(command, cwd=tree, umask=umask, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return {path.suffix: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build(ROOT, tmp_path_factory.mktemp("built"), umask=0o022)


def files_of(folder: str) -> set[str]:
    """Files of the checkout below a folder, without what running made."""
    found = (path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.as_posix() for path in found if not NOT_SOURCE & set(path.parts) and path.suffix != ".pyc"}


def test_the_wheel_carries_samples_pages_and_licence(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built[".whl"]) as wheel:
        names = set(wheel.namelist())
        assert wheel.read("inspector/docs/watching.md") == (ROOT / "docs" / "watching.md").read_bytes()
    code = files_of("inspector")
    samples = {name for name in files_of("sample_models") if not name.startswith("sample_models/illnesses/recorded/")}
    docs = {f"inspector/{name}" for name in files_of("docs")} | {"inspector/docs/README.md"}
    told = {name for name in names if ".dist-info/" in name}
    assert names - told == code | samples | docs
    assert {Path(name).name for name in told} == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE"}
    assert len([name for name in samples if name.endswith(".safetensors")]) > 100 and len(docs) > 40


def test_the_source_archive_is_the_checkout(built: dict[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("inspector", "sample_models", "tests", "docs", ".ci"):
        assert files_of(folder) <= names, sorted(files_of(folder) - names)[:5]
    assert {"README.md", "LICENSE", "SECURITY.md", "constraints.txt", "pyproject.toml"} <= names


def test_anybody_builds_the_same_bytes(built: dict[str, Path], tmp_path: Path) -> None:
    """From the unpacked source archive, with other times and permissions of the files."""
    with tarfile.open(built[".gz"]) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (tree,) = (tmp_path / "source").iterdir()
    for number, path in enumerate(sorted(tree.rglob("*"))):
        if path.is_file():
            path.chmod(0o700 if path.stat().st_mode & 0o100 else 0o600)
            os.utime(path, (1.7e9 + number, 1.7e9 + number))
    again = build(tree, tmp_path / "again", umask=0o077)
    assert again.keys() == built.keys() == {".whl", ".gz"}
    for kind, path in built.items():
        assert again[kind].name == path.name and again[kind].read_bytes() == path.read_bytes(), kind
