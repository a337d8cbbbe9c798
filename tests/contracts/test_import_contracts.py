"""The import contracts bite: breaks planted in a copy of the source are found, and each package keeps to its libraries."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLANTED = {
    "inspector/cli/fault.py": ("import torch", "Only the engine imports torch"),
    "inspector/records/channel.py": ("from inspector.capture import pack", "Packages import downwards only"),
    "inspector/capture/layout.py": ("from inspector.engine import errors", "Only the engine imports torch"),
    "inspector/engine/model/subject.py": ("import PySide6.QtCore", "Only the window imports Qt"),
    "inspector/gui/widgets/charts/curves.py": (
        "from inspector.gui.state import session",
        "Widgets know nothing of sessions, workers or files",
    ),
    "inspector/gui/widgets/plots/legend.py": (
        "from inspector.gui.panel import base",
        "Inside the window imports go downwards",
    ),
    "inspector/engine/cells/base.py": (
        "from inspector.engine import pipeline",
        "Inside the engine imports go downwards",
    ),
    "inspector/analysis/retention.py": (
        "if TYPE_CHECKING:\n    from inspector.analysis import unit_matching",
        "No circles, not of types either",
    ),
    "inspector/analysis/unit_matching.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from inspector.analysis import retention",
        "No circles, not of types either",
    ),
    "sample_models/tasks.py": ("import inspector.registry", "Samples never import the app"),
    "inspector/gui/panels/gates.py": ("from inspector.gui.panels import states", "Files of one registry do not import"),
}
"""File → an import that must not be there, and the contract that must say so."""

LIBRARIES = {
    "version": set(),
    "registry": set(),
    "records": {"numpy"},
    "capture": {"isal", "numpy", "pyarrow", "xarray"},
    "transport": {"click", "numpy"},  # click: its echo writes to whatever stands in for a terminal
    "workspace": {"platformdirs"},
    "analysis": {"numpy", "scipy"},
    "diagnosis": {"numpy", "tomlkit"},
    "gui": {"numpy", "scipy", "PySide6", "shiboken6", "pyqtgraph", "platformdirs", "PIL", "av"},
    "engine": {"numpy", "scipy", "torch", "safetensors", "soundfile", "distributed"},
    "cli": {"click", "tqdm"},
    "integrations": {"lightning", "pytorch_lightning", "transformers", "accelerate"},
}
"""What each package may import beside the standard library and inspector itself."""


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the import linter says of a copy of the source with every break planted at once."""
    copy = tmp_path_factory.mktemp("planted")
    for package in ("inspector", "sample_models"):
        shutil.copytree(ROOT / package, copy / package, ignore=lambda _at, names: [n for n in names if n == "data"])
    shutil.copy(ROOT / "pyproject.toml", copy)
    for file, (line, _contract) in PLANTED.items():
        path = copy / file
        text = path.read_text(encoding="utf-8")
        mark = "from __future__ import annotations\n"
        assert mark in text
        path.write_text(text.replace(mark, f"{mark}{line}\n", 1), encoding="utf-8")
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "400"},
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("file", PLANTED)
def test_a_planted_import_is_named_by_its_contract(verdict: str, file: str) -> None:
    contract = PLANTED[file][1]
    section = verdict.partition("Broken contracts")[2].partition(contract)[2]
    assert section, f"{contract} was not broken"
    module = file.removesuffix(".py").replace("/", ".")
    if contract.startswith("No circles"):
        assert "inspector.analysis" in section
    else:
        assert f"{module} ->" in section or f"{module} is not allowed" in section, section


def top_level_imports(path: Path) -> set[str]:
    """First parts of the names of the modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module).partition(".")[0])
    return found


def test_every_package_keeps_to_its_libraries() -> None:
    strange = {}
    for path in sorted((ROOT / "inspector").rglob("*.py")):
        package = path.relative_to(ROOT / "inspector").parts[0].removesuffix(".py")
        if package in ("__init__", "__main__"):
            continue
        allowed = LIBRARIES[package] | set(sys.stdlib_module_names) | {"inspector"}
        extra = top_level_imports(path) - allowed
        if extra:
            strange[str(path.relative_to(ROOT))] = extra
    assert not strange


def test_the_check_of_libraries_sees_a_late_import(tmp_path: Path) -> None:
    file = tmp_path / "late.py"
    file.write_text("def f():\n    import pyarrow.parquet\n    from torch import nn\n")
    assert top_level_imports(file) == {"pyarrow", "torch"}
