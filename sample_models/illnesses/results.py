"""What the rules said of each training, as `recorded/results.json` keeps it, and what has to be true of a case."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import inspector
from sample_models.illnesses import FOLDER, VERSIONS, Case

RECORDED = FOLDER / "recorded"
RESULTS = RECORDED / "results.json"
SEVERITIES = ("", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Result:
    """One training.

    Attributes:
        loss: what `train` returned. fired: the worst severity of the case's rule; "" where it was silent.
        others: findings of other rules at warning or above, "IN303 plateau".
    """

    version: str
    seed: int
    loss: float
    fired: str
    others: tuple[str, ...]

    def fires(self, level: str) -> bool:
        """Whether the rule fired at a severity or above."""
        return SEVERITIES.index(self.fired) >= SEVERITIES.index(level)


def captures(folder: Path) -> list[Path]:
    """The captures that a training wrote."""
    return sorted(folder.glob("*.inspect"))


def judged(case: Case, version: str, seed: int, loss: float, folder: Path) -> Result:
    """What all rules say of the captures of one training. Raises RuntimeError where there are none, or a rule fails."""
    fired, others = "", set()
    paths = captures(folder)
    if not paths:
        raise RuntimeError(f"{case.name}, {version}, seed {seed}: no capture was written.")
    for path in paths:
        found = inspector.diagnose(path)
        if found.broken:
            raise RuntimeError(f"{path}: {'; '.join(found.broken)}")
        for finding in found.findings:
            if finding.id == case.rule:
                fired = max(fired, finding.severity, key=SEVERITIES.index)
            elif finding.severity != "info":
                others.add(f"{finding.id} {finding.rule}")
    return Result(version, seed, loss, fired, tuple(sorted(others)))


def faults(case: Case, results: Sequence[Result]) -> list[str]:
    """One sentence for each thing that is not as it has to be."""
    said = []
    for one in results:
        where = f"{case.name}, {one.version}, seed {one.seed}"
        if one.version == "ill" and not one.fires(case.level):
            said.append(f"{where}: {case.rule} gives {one.fired or 'nothing'}; expected {case.level}.")
        if one.version != "ill" and one.fires(case.level):
            said.append(f"{where}: {case.rule} gives {one.fired}; expected nothing at {case.level}.")
        more = [rule for rule in one.others if rule.split()[0] not in case.also]
        if one.version != "ill" and more:
            said.append(f"{where}: other rules warn: {', '.join(more)}.")
    for ill, cured in _pairs(results, "ill", "cured"):
        if case.suffers and not (cured.loss < ill.loss or math.isnan(ill.loss) > math.isnan(cured.loss)):
            said.append(f"{case.name}, seed {ill.seed}: {cured.loss:.4g} when cured, {ill.loss:.4g} when ill.")
    return said


def _pairs(results: Sequence[Result], first: str, second: str) -> Iterable[tuple[Result, Result]]:
    by = {(one.version, one.seed): one for one in results}
    return [(by[first, seed], by[second, seed]) for version, seed in by if version == first and (second, seed) in by]


def read(path: Path = RESULTS) -> dict[str, list[Result]]:
    """{name of the case: its results}; empty where nothing was recorded."""
    if not path.exists():
        return {}
    table: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {name: [_result(one) for one in rows] for name, rows in table.items()}


def _result(row: Mapping[str, Any]) -> Result:
    return Result(row["version"], row["seed"], float(row["loss"]), row["fired"], tuple(row["others"]))


def write(results: Mapping[str, Sequence[Result]], path: Path = RESULTS) -> None:
    """One line for each training, in order, so that two people can add cases. Numbers that are not finite are texts."""
    path.parent.mkdir(exist_ok=True)
    blocks = []
    for name in sorted(results):
        rows = sorted(results[name], key=lambda one: (VERSIONS.index(one.version), one.seed))
        lines = ",\n  ".join(json.dumps({**asdict(one), "loss": _number(one.loss)}) for one in rows)
        blocks.append(f"{json.dumps(name)}: [\n  {lines}\n ]")
    path.write_text("{\n " + ",\n ".join(blocks) + "\n}\n", encoding="utf-8")


def _number(value: float) -> float | str:
    return float(f"{value:.5g}") if math.isfinite(value) else str(value)
