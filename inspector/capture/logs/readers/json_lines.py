"""JSON lines: an object in each line with a step and numbers; and a list of such objects as one document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspector.capture.layout import CaptureError
from inspector.capture.logs.document import Document
from inspector.capture.logs.json_values import BadJsonError, number_of, parsed
from inspector.capture.logs.lines import LONGEST, TOO_LONG, Line, lines, refuse_other_texts
from inspector.capture.logs.reader import LOGS, Intake, LogFile, OneFile, folder_or_name
from inspector.capture.logs.rows import put_row, run_word, step_name
from inspector.capture.logs.tail import Tail
from inspector.capture.regular import open_regular
from inspector.records.plain_text import plain_line

USUAL = ("metrics", "log", "logs", "history", "train", "train_log", "training_log", "scalars", "wandb-history")
"""Names of files that say nothing of their run: the folder does."""
TOLD = 1 << 20
MOST_KEYS_TOLD = 12


class Rows:
    """Puts objects into the runs that they belong to, and remembers what the step is called."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.step = ""
        self._told: set[str] = set()
        self._begun: set[str] = set()
        """Runs that had a row with a step."""

    def put(self, row: Any, where: int | None, into: Intake) -> None:
        """One object. What has no step at all, and a step that is no number or not finite, is told once each; the first
        object without one, if no step was met yet, may be the settings of the run."""
        if not isinstance(row, dict):
            self._tell("object", into, where, "a line is no JSON object")
            return
        if not self.step or self.step not in row:
            self.step = step_name(row) or self.step
        run = into.run(word := run_word(row))
        if self.step and put_row(run, row, self.step):
            self._begun.add(word)
            return
        is_number = self.step in row and number_of(row[self.step]) is not None  # one that is not finite
        if not self._told and word not in self._begun and not is_number:
            run.config.update(row)
        elif self.step in row:
            self._tell("value", into, where, f"a line has no step: {_quoted(self.step)} is {_quoted(row[self.step])}")
        else:
            self._tell("step", into, where, f"a line has no step; it has {_keys(row)}")

    def _tell(self, kind: str, into: Intake, where: int | None, what: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            into.run().lose(self.path.name, where, what)


class JsonLines(OneFile):
    """One file that grows line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tail = Tail(path)
        self._rows = Rows(path)
        self._within = False
        """Whether the place that was reached lies within a line that is too long."""

    def read(self, into: Intake) -> None:
        """Every whole line. The last one needs no end: an object shows that it is whole."""
        if self.tail.unchanged():
            return
        with self.tail.opened() as (file, size):
            at = told = self.tail.at
            for line in lines(file, at, size, within=self._within):
                if line.where == 0:
                    refuse_other_texts(line.text[:2], self.path.name)
                if not self._take(line, into):
                    break
                at = line.stop
                if at - told > TOLD:
                    told = at
                    self.tail.reach(file, at)
                    into.progress(at)
            self.tail.reach(file, at, more=self._within and at < size)
            into.progress(at)

    def _take(self, line: Line, into: Intake) -> bool:
        """One line; whether it need not be read again."""
        if line.too_long and not self._within:
            into.run().lose(self.path.name, line.where, TOO_LONG)
        self._within = line.too_long and not line.ended
        if not line.text.strip():
            return line.ended or line.too_long
        try:
            row = parsed(line.text.removeprefix(b"\xef\xbb\xbf"))
        except BadJsonError as problem:
            if line.ended:
                into.run().lose(self.path.name, line.where, f"a line cannot be read: {problem}")
            return line.ended
        if row is not None:
            self._rows.put(row, line.where, into)
        return True


class JsonList(Document):
    """One document: a list of objects."""

    def take(self, found: Any, into: Intake) -> None:
        """Each object is a row."""
        if not isinstance(found, list) or not any(isinstance(row, dict) and step_name(row) for row in found):
            raise CaptureError(
                f"{self.path.name} is no log: expected a list of objects, or one in each line, with a step and numbers"
                f"{f'; it has {_keys(found)}' if isinstance(found, dict) else ''}."
            )
        rows = Rows(self.path)
        for row in found:
            rows.put(row, None, into)


def _quoted(value: Any) -> str:
    """A value of a line in a sentence; of what is long only its kind."""
    short = isinstance(value, (str, int, float)) or value is None
    if isinstance(value, int) and value.bit_length() > 1_000:  # str() of it may be refused
        return "a number of hundreds of digits"
    return plain_line(value if isinstance(value, str) else json.dumps(value), 40) if short else "no number"


def _keys(row: Mapping[str, Any]) -> str:
    listed = ", ".join(plain_line(key, 40) for key in list(row)[:MOST_KEYS_TOLD])
    more = len(row) - MOST_KEYS_TOLD
    return f"{listed} and {more:,} more" if more > 0 else listed or "nothing"


class JsonLogs(OneFile):
    """Recognised by its first line: an object with a step."""

    title = "JSON lines"
    summary = "An object with a step and numbers in each line; numbers of objects inside it have names with slashes."
    names = ("*.jsonl", "*.ndjson", "*.json")
    order = 80
    certain = False

    def sniff(self, path: Path, head: bytes) -> bool:
        """The first line is an object that has a step, or that has one inside a list."""
        first, end, _ = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
        if not first.startswith(b"{") or not end:
            return False
        try:
            row = parsed(first)
        except BadJsonError:
            return False
        return isinstance(row, dict) and bool(step_name(row))

    def open(self, path: Path) -> LogFile:
        """Lines, or one document where the file begins with a list or is called .json and has no whole first line."""
        with open_regular(path) as file:
            head = file.read(LONGEST).removeprefix(b"\xef\xbb\xbf").lstrip()
        if head.startswith(b"[") or (path.suffix == ".json" and not self.sniff(path, head + b"\n")):
            return JsonList(path)
        return JsonLines(path)

    def run_of(self, path: Path, root: Path) -> str:
        """The folder, or the file where its name says which run it is."""
        return folder_or_name(path, root, USUAL)


LOGS.register("json-lines")(JsonLogs())
