"""Tables with a header and a column of steps: Lightning's metrics.csv, W&B's CSV exports, and any other.

An empty cell is no point. Lightning writes the file anew when a column comes to it; then it is read anew.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

from inspector.capture.layout import CaptureError
from inspector.capture.logs.csv_header import Columns, columns_of
from inspector.capture.logs.flat_yaml import settings_beside
from inspector.capture.logs.json_values import LITERALS
from inspector.capture.logs.lines import TOO_LONG, Line, is_quiet, lines, refuse_other_texts
from inspector.capture.logs.reader import LOGS, Intake, OneFile, ReplacedError, folder_or_name
from inspector.capture.logs.row_ends import RowEnds
from inspector.capture.logs.rows import LONGEST_PHASE, note_time, seconds_of
from inspector.capture.logs.run_log import EPOCH, NOTHING, TOKENS
from inspector.capture.logs.tail import Tail
from inspector.records.plain_text import plain_line

USUAL = ("metrics", "log", "logs", "history", "train", "train_log", "training_log", "progress", "results", "scalars")
"""Names of files that say nothing of their run: the folder does."""
TOLD = 1 << 20
LONGEST_ROW = 8 << 20
ZEROS = "a row has bytes of zero, as a crash leaves them"
SEMICOLON = ";"
"""Between cells it stands where the comma is taken: in the locales whose decimal sign is a comma. Counter-example: a
table with semicolons in which 1,234 is 1234, and is read as 1.234; of tables with tabs nothing is assumed."""
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
COMMAS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
"""Commas between thousands."""
COMMA = re.compile(r"[+-]?(\d*|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?")


@dataclass(slots=True)
class Told:
    """What was said of a file already, once each."""

    kinds: set[str] = field(default_factory=set)

    def once(self, kind: str, tell: Callable[[], None]) -> None:
        """Say it the first time."""
        if kind not in self.kinds:
            self.kinds.add(kind)
            tell()


@dataclass(slots=True)
class Row:
    """The lines of one row: a quoted cell may have several. Each is looked at once, however many follow a quote that
    has no end."""

    text: bytearray = field(default_factory=bytearray)
    begun: bool = False
    quoted: bool = False

    def goes_on(self, line: bytes) -> bool:
        """Take one more line; whether a quoted cell goes on in the next one."""
        if self.begun:
            self.text += b"\n"
        self.text += line
        self.begun = True
        self.quoted ^= bool(line.count(b'"') % 2)
        return self.quoted and len(self.text) < LONGEST_ROW


class Table(OneFile):
    """One file that grows line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tail = Tail(path)
        self._columns: Columns | None = None
        self._told = Told()
        self._numbered: set[int] = set()
        self._nearly: dict[int, tuple[int, str]] = {}
        """Of a column, by its place: whether it had a number, and the first cell that is nearly one and where."""
        self._commas = False
        """Whether a number had a decimal comma: then a step of 1.000 is a thousand, also in rows of whole numbers."""
        self._unended = False
        """Whether the last line that was taken had no end."""
        self._within = False
        """Whether the place that was reached lies within a line that is too long."""
        self._ends = RowEnds(-1)

    def read(self, into: Intake) -> None:
        """Every whole row from where the last reading ended."""
        with self.tail.opened() as (file, size):
            at = self._rows(file, size, into)
            self.tail.reach(file, at)
            into.progress(at)
        if self._columns is not None and self._nearly and not self._numbered:  # no curve at all, and this is why
            first = min(self._nearly)
            self._tell_nearly(first, self._columns.names[first], into)

    def _rows(self, file: FileIO, size: int, into: Intake) -> int:
        at = told = self.tail.at
        row, begin = Row(), at
        for line in lines(file, at, size, within=self._within):
            if line.where == at and self._unended and line.text:
                raise ReplacedError  # the line that seemed to be the last one goes on
            self._unended = False
            if line.where == 0:
                refuse_other_texts(line.text[:2], self.path.name)
            if self._is_left_out(line, into):
                row, at = Row(), line.stop
                continue
            if not line.ended and not is_quiet(file):
                break
            begin = begin if row.begun else line.where
            if row.goes_on(line.text) and line.ended:
                continue
            self._take(bytes(row.text), begin, line.ended, into)
            row, at, self._unended = Row(), line.stop, not line.ended
            if at - told > TOLD:
                told = at
                self.tail.reach(file, at)
                into.progress(at)
        if row.begun and is_quiet(file):
            self._told.once("quote", lambda: into.run().lose(
                self.path.name, begin, "a quoted cell has no end, so nothing behind it is read"
            ))  # fmt: skip
        return at

    def _is_left_out(self, line: Line, into: Intake) -> bool:
        """Whether a line is too long to be read."""
        if line.too_long and not self._within:
            into.run().lose(self.path.name, line.where, TOO_LONG)
        self._within = line.too_long and not line.ended
        return line.too_long

    def _take(self, line: bytes, where: int, ended: bool, into: Intake) -> None:
        if not line.strip():
            return
        if self._columns is None:
            if b"\r" in line and b'"' not in line:
                raise CaptureError(f"{self.path.name} ends its lines by carriage returns alone; expected line feeds.")
            if not line.startswith(b"#"):
                self._begin(line, into)
            return
        if b"\0" in line:
            self._told.once("zero", lambda: into.run().lose(self.path.name, where, ZEROS))
            return
        cells = _cells(line.decode("utf-8", "replace"), self._columns.delimiter)
        if self._is_header(cells, line):
            return
        if not ended and (why := self._ends.why_cut(cells)):
            into.run().lose(self.path.name, where, f"the last row has no end and {why}, so it is left out")
            return
        self._ends.note(cells)
        if len(cells) > self._columns.count:
            self._told.once("wide", lambda: into.run().lose(
                self.path.name, where, f"a row has {len(cells):,} cells, the header {len(self._columns.names)}"  # type: ignore[union-attr]
            ))  # fmt: skip
        self._put(cells, self._columns, where, into)

    def _is_header(self, cells: list[str], line: bytes) -> bool:
        """Whether a row names columns, as a program writes them that is started anew and appends: they hold from there
        on. Counter-example: a header without a word for the step, whose rows are read by the one before."""
        known = self._columns
        if known is None or any(_value(cell) != cell for cell in cells if cell.strip()):
            return False
        if known.step >= len(cells) or not cells[known.step].strip():
            return False
        try:
            found = columns_of(line.decode("utf-8-sig", "replace"), self.path.name, _cells)
        except CaptureError:
            return False
        if found != known:
            self._columns, self._nearly, self._ends = found, {}, RowEnds(found.step)
            self._numbered.clear()
        return True

    def _tell_nearly(self, at: int, column: str, into: Intake) -> None:
        """Names like 2024_01 are no gap: only a column that has numbers too lacks one there."""
        where, cell = self._nearly[at]
        said = f"a cell of {plain_line(column, 60)} is {plain_line(cell, 40)!r}, which is not read as a number"
        self._told.once(f"cell {at}", lambda: into.run().lose(self.path.name, where, said))

    def _begin(self, line: bytes, into: Intake) -> None:
        header = line.decode("utf-8-sig", "replace")
        self._columns = columns_of(header, self.path.name, _cells)
        self._ends = RowEnds(self._columns.step)
        if not self._columns.runs:
            into.run().config.update(settings_beside(self.path))

    def _put(self, cells: list[str], columns: Columns, where: int, into: Intake) -> None:
        if columns.delimiter == SEMICOLON:
            self._commas |= any(COMMA.fullmatch(cell.strip()) for cell in cells)
            cells = _with_points(cells)
            if self._commas and columns.step < len(cells) and THOUSANDS.fullmatch(cells[columns.step].strip()):
                cells[columns.step] = cells[columns.step].replace(".", "")
        step = _number(cells[columns.step]) if columns.step < len(cells) else None
        if step is None or not math.isfinite(step):
            said = plain_line(cells[columns.step], 40) if columns.step < len(cells) else ""
            self._told.once("step", lambda: into.run().lose(
                self.path.name, where, f"a row has no step: {columns.step_name} is {said!r}"
            ))  # fmt: skip
            return
        time = seconds_of(_value(cells[columns.time])) if -1 < columns.time < len(cells) else math.nan
        others = {}
        for name, at in ((EPOCH, columns.epoch), (TOKENS, columns.tokens)):
            number = _number(cells[at]) if -1 < at < len(cells) else None
            if number is not None:
                others[name] = number
        by_run: dict[str, dict[str, float]] = {}
        before = f"{phase}/" if (phase := _text(cells, columns.phase)) and len(phase) <= LONGEST_PHASE else ""
        for (run, name), at in columns.curves:
            number = _number(cells[at]) if at < len(cells) else None
            if number is not None:
                by_run.setdefault(run or _text(cells, columns.run), {})[before + name] = number
                self._numbered.add(at)
            elif at < len(cells) and _is_nearly_a_number(cells[at]):
                self._nearly.setdefault(at, (where, cells[at]))
        for at in self._nearly.keys() & self._numbered:
            self._tell_nearly(at, columns.names[at], into)
        for word, values in by_run.items():
            found = into.run(word)
            found.along = columns.along
            note_time(found, time)
            found.row(step, values, time, others or NOTHING)


def _is_nearly_a_number(cell: str) -> bool:
    """Whether it is a number with low lines between its digits, as Python writes 1_000, or with a comma, as in 0,25 and
    1,234; no table means one number by it for certain."""
    if "," in cell:
        return bool(COMMA.fullmatch(cell.strip()) or COMMAS.fullmatch(cell.strip()))
    try:
        return "_" in cell and math.isfinite(float(cell))
    except ValueError:
        return False


def _cells(line: str, delimiter: str) -> list[str]:
    """The cells of a row."""
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line.replace("\n", " ")], delimiter=delimiter), [])
    except csv.Error:  # a cell of more than 131,072 characters
        return line.split(delimiter)


def _with_points(cells: list[str]) -> list[str]:
    """Numbers with a decimal comma as numbers with a point; in a row that has one, a point stands between thousands."""
    commas = [bool(COMMA.fullmatch(cell.strip())) for cell in cells]
    if not any(commas):
        return cells
    return [
        cell.replace(".", "").replace(",", ".") if comma or THOUSANDS.fullmatch(cell.strip()) else cell
        for cell, comma in zip(cells, commas, strict=True)
    ]


def _number(cell: str) -> float | None:
    """A number, NaN and Infinity too; None for an empty cell or a text."""
    try:
        return float(cell) if "_" not in cell else None
    except ValueError:
        return LITERALS.get(cell.strip())


def _value(cell: str) -> float | str:
    number = _number(cell)
    return cell if number is None else number


def _text(cells: list[str], at: int) -> str:
    return cells[at].strip() if -1 < at < len(cells) else ""


class Tables(OneFile):
    """Recognised by a header with a column of steps."""

    title = "CSV with steps"
    summary = "A header, a column of steps and columns of numbers: Lightning's metrics.csv, W&B's exports, any other."
    names = ("*.csv", "*.tsv")
    order = 90
    certain = False

    def sniff(self, path: Path, head: bytes) -> bool:
        """The first line that is no comment names a step. One that begins as JSON does is damaged JSON, no header."""
        whole = [line for line in head.split(b"\n")[:-1] if line.strip() and not line.startswith(b"#")]
        if not whole or b"\0" in head or whole[0].removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"[")):
            return False
        try:
            columns_of(whole[0].decode("utf-8-sig", "replace").rstrip("\r"), path.name, _cells)
        except CaptureError:
            return False
        return True

    def open(self, path: Path) -> Table:
        """One table."""
        return Table(path)

    def run_of(self, path: Path, root: Path) -> str:
        """The folder, or the file where its name says which run it is."""
        return folder_or_name(path, root, USUAL)


LOGS.register("csv")(Tables())
