"""Hugging Face's `trainer_state.json`: the log history of a Trainer, in each of its checkpoints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from inspector.capture.layout import CaptureError
from inspector.capture.logs.document import Document
from inspector.capture.logs.json_values import number_of
from inspector.capture.logs.reader import LOGS, Intake, OneFile, folder_of
from inspector.capture.logs.rows import put_row

HISTORY = "log_history"
CLOSING = "train_runtime"
"""Only the last row, which sums up the whole training, has it."""
LEFT_OUT = frozenset({HISTORY, "trial_params", "stateful_callbacks", "is_hyper_param_search", "is_local_process_zero",
                      "is_world_process_zero"})  # fmt: skip
_CHECKPOINT = re.compile(r"checkpoint-(\d{1,18})\Z")


class TrainerState(Document):
    """One file."""

    def take(self, found: Any, into: Intake) -> None:
        """Every row of the history is a point but the closing summary."""
        history = found.get(HISTORY) if isinstance(found, dict) else None
        if not isinstance(history, list):
            raise CaptureError(f"{self.path.name} has no list {HISTORY!r}; expected what transformers.Trainer writes.")
        run = into.run()
        run.config.update({name: value for name, value in found.items() if name not in LEFT_OUT})
        without = 0
        for row in history:
            if not isinstance(row, dict):
                without += 1
            elif CLOSING in row:
                run.summary.update({name: value for name, value in row.items() if number_of(value) is not None})
            else:
                without += not put_row(run, row, "step")
        if without:
            run.lose(self.path.name, None, f"{without:,} rows have no step")
        run.flush()


class TrainerStates(OneFile):
    """Of the checkpoints of one training only the newest is read: its history has those of all before."""

    title = "Hugging Face trainer state"
    summary = "The log history that a Trainer keeps in each checkpoint; the newest checkpoint is read."
    names = ("trainer_state.json",)
    order = 20

    def open(self, path: Path) -> TrainerState:
        """One file."""
        return TrainerState(path)

    def sniff(self, path: Path, head: bytes) -> bool:
        """The name decides, since its keys may come in any order."""
        return b'"log_history"' in head

    def run_of(self, path: Path, root: Path) -> str:
        """The folder that holds the checkpoints."""
        folder = folder_of(path, root)
        above, _, last = folder.rpartition("/")
        return above if _CHECKPOINT.match(last) else folder

    def chosen(self, files: list[Path]) -> list[Path]:
        """That of the training's end, which lies beside the checkpoints, else that of the last checkpoint."""
        return [max(files, key=lambda path: (_number(path), path))]


def _number(path: Path) -> float:
    found = _CHECKPOINT.match(path.parent.name)
    return int(found[1]) if found else float("inf")


LOGS.register("trainer-state")(TrainerStates())
