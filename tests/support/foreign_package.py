"""Packages of somebody else, installed beside this one: the examples of docs/adding, and one whose every entry is broken."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "adding"
_FILE = re.compile(r"<!-- file: (?P<name>\w+)\.py -->\n```python\n(?P<code>.*?)```", re.DOTALL)
GROUPS = {
    "quantity": "quantities", "cells": "cells", "probe": "probes", "loader": "loaders", "input": "inputs", "panel": "panels",
    "rule": "rules", "sample": "samples", "log": "logs", "cure": "cures",
}  # fmt: skip
"""Page of docs/adding → the entry-point group that its example belongs to."""


def examples() -> dict[str, tuple[str, str]]:
    """Page → (module, code) of the one file that stands on it."""
    found = {}
    for page in GROUPS:
        ((name, code),) = _FILE.findall((PAGES / f"{page}.md").read_text(encoding="utf-8"))
        found[page] = name, code
    return found


def install(site: Path, package: str, files: Mapping[str, str], points: Mapping[str, Mapping[str, str]]) -> None:
    """Put a package with its entry points into a folder of installed packages, as an installer would."""
    (site / package).mkdir(parents=True)
    (site / package / "__init__.py").write_text("", encoding="utf-8")
    for name, code in files.items():
        (site / package / f"{name}.py").write_text(code, encoding="utf-8")
    about = site / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    sections = [
        f"[inspector.{group}]\n" + "".join(f"{k} = {v}\n" for k, v in own.items()) for group, own in points.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(sections), encoding="utf-8")


def install_examples(site: Path) -> None:
    """The ten examples of docs/adding as the package `other`."""
    found = examples()
    points = {GROUPS[page]: {page: f"other.{name}"} for page, (name, _) in found.items()}
    install(site, "other", dict(found.values()), points)


BROKEN = {
    "raises": "raise RuntimeError('no good')",
    "leaves": "import sys\nsys.exit(3)",
    "taken": "from inspector.engine.registries import QUANTITIES\nQUANTITIES.register('states')(QUANTITIES)",
    "halfway": "from inspector.engine.registries import PROBES\nPROBES.register('half')(object)\nraise OSError('half')",
    "strange": (
        "from inspector.engine.registries import INPUTS\n\nclass Strange:\n    summary, options, form = 'x', 3, ['y']\n\n"
        "INPUTS.register('strange')(Strange())"
    ),
    "no_card": "def build(): pass",
}
BROKEN_POINTS = {
    "quantities": {"a": "broken.taken", "b": "broken.missing"}, "probes": {"a": "broken.halfway"}, "inputs": {"a": "broken.strange"},
    "loaders": {"a": "broken.leaves"}, "rules": {"a": "broken.raises"}, "panels": {"a": "broken.raises"}, "cells": {"a": "broken.raises"},
    "logs": {"a": "broken.raises"},
    "samples": {"a": "broken.no_card", "b": "broken.missing"},
}  # fmt: skip


def install_broken(site: Path) -> None:
    """A package each of whose entries cannot be used in another way."""
    install(site, "broken", BROKEN, BROKEN_POINTS)


def environment(site: Path) -> dict[str, str]:
    """That of a process that finds the packages in a folder, and this checkout."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(site))), "QT_QPA_PLATFORM": "offscreen"}
