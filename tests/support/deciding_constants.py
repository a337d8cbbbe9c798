"""Numbers at the head of modules on which a verdict may depend, found in the source: nothing is imported."""

from __future__ import annotations

import ast
from pathlib import Path

import inspector

ROOT = Path(inspector.__file__).parent
JUDGES = ("diagnosis", "analysis/before_training")
"""Folders all of whose modules judge; and modules of `analysis` that these import."""
MEASURE = (
    "hooks/loss_nodes", "hooks/loss_broadcast", "hooks/attention_nodes", "hooks/turned_nodes", "hooks/skipped_nodes",
    "hooks/score_facts", "watch/measures/read_ahead", "watch/measures/exchanged", "watch/measures/unused_rows",
    "watch/measures/score_facts",
)  # fmt: skip
"""Modules of the engine whose numbers are verdicts nearly as they are."""


def constants() -> dict[str, str]:
    """{"causes.DEAD": its value as it is written}, of every module that judges; several at once, one by one."""
    return {f"{path.stem}.{name}": value for path in judging() for name, value in _of(path).items()}


def judging() -> list[Path]:
    """Modules that judge, the rules and what they import of `analysis`, directly or by one another."""
    found = {path for folder in JUDGES for path in (ROOT / folder).rglob("*.py") if "report" not in path.parts}
    found |= {ROOT / "engine" / f"{name}.py" for name in MEASURE}
    waiting = list(found)
    while waiting:
        for path in _imported(waiting.pop()):
            if path not in found:
                found.add(path)
                waiting.append(path)
    return sorted(found)


def _imported(path: Path) -> list[Path]:
    """Modules of `inspector.analysis` that a module imports."""
    names = [
        node.module if base is None else f"{node.module}.{base}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("inspector.analysis")
        for base in (None, *(one.name for one in node.names))
    ]
    files = [ROOT.parent / f"{name.replace('.', '/')}.py" for name in names if name]
    return [one for one in files if one.is_file()]


def _of(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                found |= _number(target.id, node.value)
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for one, value in zip(target.elts, node.value.elts, strict=True):
                    found |= _number(one.id, value) if isinstance(one, ast.Name) else {}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found |= _number(node.target.id, node.value)
    return found


def _number(name: str, value: ast.expr) -> dict[str, str]:
    """A constant in capitals that is made of numbers alone."""
    allowed = (
        ast.Constant, ast.UnaryOp, ast.USub, ast.BinOp, ast.operator, ast.Tuple, ast.Load, ast.Call, ast.Attribute,
        ast.Name, ast.Dict,
    )  # fmt: skip
    nodes = list(ast.walk(value))
    numbers = [one for one in nodes if isinstance(one, ast.Constant) and type(one.value) in (int, float)]
    texts = any(isinstance(one, ast.Constant) and type(one.value) not in (int, float) for one in nodes)
    plain = all(isinstance(one, allowed) for one in nodes)
    is_ours = name.isupper() and numbers and plain and not texts
    return {name: ast.unparse(value)} if is_ours else {}
