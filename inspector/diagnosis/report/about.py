"""What was run, as rows of a table: model, checkpoint, input, training, frames, versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspector.analysis.about import model_lines, run_lines
from inspector.diagnosis.rule import Captured
from inspector.records import STEP_DOMAIN, Frame, report
from inspector.records.dates import at_utc

MOST_FRAMES, MOST_SETTINGS = 6, 12
MOST_CHARACTERS = 300
PASSED_OVER = frozenset({"training", report.KEY, "spike", "config", "texts"})
"""What has a row of its own, or a panel, or belongs to the program and not to the run."""


def about(view: Captured, frames: Sequence[Frame], source: str) -> list[tuple[str, str]]:
    """(what, value in words), only what is known."""
    start = view.start
    rows = [
        ("file", source),
        ("title", start.title),
        ("model", "; ".join(model_lines(view))),
        ("subject", start.subject),
        ("checkpoint file", start.checkpoint),
        ("its SHA-256", loaded.sha256 if (loaded := report.from_meta(start.meta)) is not None else ""),
        ("run", "; ".join(run_lines(view))),
        ("input", _input(view)),
        ("frames", _frames(frames)),
        ("optimizer", _training(start.meta)),
        ("seed", "" if start.seed is None else str(start.seed)),
        ("made", at_utc(start.created) if start.created else ""),
        ("settings", _settings(start.meta)),
    ]
    return [(what, _cut(value)) for what, value in rows if value]


def _input(view: Captured) -> str:
    """The tokens of the input, where it has names."""
    names = view.labels(STEP_DOMAIN)
    return ("" if max(map(len, names), default=0) == 1 else " ").join(names[:MOST_CHARACTERS])


def _frames(frames: Sequence[Frame]) -> str:
    labels = [frame.label or str(frame.index) for frame in frames]
    more = f" and {len(labels) - MOST_FRAMES} more" if len(labels) > MOST_FRAMES else ""
    return f"{', '.join(labels[:MOST_FRAMES])}{more}" if labels else ""


def _training(meta: Mapping[str, Any]) -> str:
    """Optimizers and how far apart the recorded iterations are; what was written by hand may be of any form."""
    said = meta.get("training")
    optimizers = said.get("optimizers") if isinstance(said, Mapping) else None
    if not isinstance(optimizers, list):
        return ""
    return ", ".join(_optimizer(one) for one in optimizers if isinstance(one, Mapping))


def _optimizer(one: Mapping[str, Any]) -> str:
    groups = [group for group in one.get("groups", ()) if isinstance(group, Mapping)]
    rates = [group["settings"].get("lr") for group in groups if isinstance(group.get("settings"), Mapping)]
    told = ", ".join(dict.fromkeys(f"{rate:g}" for rate in rates if isinstance(rate, int | float)))
    name = str(one.get("class", "an optimizer")).rpartition(".")[2]
    return f"{name}, learning rate {told}" if told else name


def _settings(meta: Mapping[str, Any]) -> str:
    """What a log says of its run, and the versions that made a capture."""
    config = meta.get("config")
    plain = {
        key: value for key, value in meta.items() if key not in PASSED_OVER and isinstance(value, str | int | float)
    }
    plain |= config if isinstance(config, Mapping) else {}
    return ", ".join(f"{key}={value}" for key, value in list(plain.items())[:MOST_SETTINGS])


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
