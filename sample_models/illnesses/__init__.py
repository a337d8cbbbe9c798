"""Small trainings with one fault each, the same without it, and the same with the remedy that the rule gives.

One file a rule of `inspector diagnose`, named as the rule's file; each is a script of its own that imports nothing of
this package (torch and inspector only):

    RULE       the rule's number.
    KEY        its key, where the file is a second case of a rule and so has another name.
    EVIDENCE   where the loss of training does not suffer: what the number that `train` returns is instead (smaller is
               better), or "none: " and why nothing can suffer here.
    SEVERITY   "info" where the rule only informs; left out it is "warning", which an error is too.
    ALSO       other rules that rightly warn of the healthy or the cured version, as ("IN303",); a comment says why.
    train(version, seed, folder) -> float
               trains "ill", "healthy" or "cured", writes captures `folder/*.inspect`, and returns the mean loss over
               the last part of training (NaN allowed).

    record     trains them all, asks the rules, writes `recorded/` and docs/cures.md
    results    what is kept of it in `recorded/results.json`, and what has to be true of a case
    table      the table of docs/cures.md
    not_yet    rules without a case, with the reason
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FOLDER = Path(__file__).parent
FRAME = ("__init__", "record", "results", "table", "not_yet")
VERSIONS = ("ill", "healthy", "cured")
Level = Literal["info", "warning"]


@dataclass(frozen=True, slots=True)
class Case:
    """One rule's trainings.

    Attributes:
        name: of the file, which is that of the rule, or begins with it. rule, key: "IN205", "contracting-weight".
        fault, cure: the two sentences at the head of the file.
        evidence: what the number is that `train` returns; "" for the loss of training.
        level: the least severity that counts as firing. also: other rules that may warn of the healthy and the cured.
    """

    name: str
    rule: str
    fault: str
    cure: str
    evidence: str
    level: Level
    also: tuple[str, ...]
    train: Callable[[str, int, Path], float]
    key: str = ""

    @property
    def suffers(self) -> bool:
        """Whether the ill version has to end with a larger number than the cured one."""
        return not self.evidence.startswith("none")


def names() -> list[str]:
    """Files of cases."""
    return [path.stem for path in sorted(FOLDER.glob("*.py")) if path.stem not in FRAME]


def load(name: str) -> Case:
    """A case by the name of its file. Raises ValueError where there is none, or where the file lacks something."""
    if name not in names():
        raise ValueError(f"There is no case {name!r}; there are {', '.join(names())}.")
    module = importlib.import_module(f"{__name__}.{name}")
    fault, _, cure = " ".join((module.__doc__ or "").split()).partition(". ")
    if not cure:
        raise ValueError(
            f"{name}.py begins with {module.__doc__!r}; expected a sentence of the fault, one of the cure."
        )
    level: Level = getattr(module, "SEVERITY", "warning")
    if level not in ("info", "warning"):
        raise ValueError(f"{name}.py has SEVERITY = {level!r}; expected 'info' or 'warning'.")
    evidence, also = getattr(module, "EVIDENCE", ""), tuple(getattr(module, "ALSO", ()))
    key = getattr(module, "KEY", name.replace("_", "-"))
    return Case(name, module.RULE, f"{fault}.", cure, evidence, level, also, module.train, key)
