"""Trackio's databases: SQLite tables of metrics and settings, with several runs in a project.

The database is only read, a few thousand rows at a time, so that its writer never waits for longer than such a read
takes. One with a write-ahead log is read from a private copy.
"""

from __future__ import annotations

import math
import re
import sqlite3
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspector.capture.layout import BusyError, CaptureError
from inspector.capture.logs.bins import listed_bins, listed_histogram
from inspector.capture.logs.growing import Floats
from inspector.capture.logs.json_values import BadJsonError, numbers_in, parsed
from inspector.capture.logs.reader import LOGS, Intake, NotThisFormatError, OneFile, ReplacedError, folder_of
from inspector.capture.logs.rows import note_time, seconds_of
from inspector.capture.logs.run_log import EPOCH, NOTHING, RunLog
from inspector.capture.logs.tail import changed
from inspector.capture.logs.wandb_metrics import SYSTEM
from inspector.capture.regular import regular_stat
from inspector.capture.snapshot import PrivateCopy, has_log
from inspector.records.plain_text import plain_line
from inspector.records.unreadable import why_unreadable

MAGIC = b"SQLite format 3\0"
ROWS = 2_000
"""Rows of one read."""
LONGEST = 16 << 20
"""Bytes of the longest cell."""
WAIT = 0.2
"""Seconds that a read waits for the writer."""
MOST_RUNS = 1_000
WANTED = {"run_name", "step", "metrics"}
SYSTEM_TABLE = "system_metrics"
VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL", re.IGNORECASE)


class Database(OneFile):
    """One database."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._after = 0
        self._seen: Any = None
        self._file: tuple[int, int] | None = None
        self._names: dict[tuple[str, str], str] = {}
        self._after_system = 0
        self._when: dict[str, tuple[array[float], array[float]]] = {}
        """By run the times and steps of its rows: readings of the machine have a time only."""

    def read(self, into: Intake) -> None:
        """The rows that were added. Raises ReplacedError where rows that were read are gone."""
        now = (changed(self.path), changed(Path(f"{self.path}-wal")))
        if self._seen is not None and now == self._seen:
            return
        found = regular_stat(self.path)
        identity = (found.st_dev, found.st_ino)
        if self._file not in (None, identity):
            raise ReplacedError
        try:
            with self._opened() as base:
                self._check(base)
                self._settings(base, into)
                self._metrics(base, into)
                self._system(base, into)
        except BusyError:
            return  # its writer has it: at the next call
        self._seen, self._file = now, identity

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection that can only read. Raises BusyError, CaptureError."""
        copy = None
        try:
            if has_log(self.path):
                copy = PrivateCopy(self.path)
                copy.update()
            where = self.path if copy is None else copy.path
            base = sqlite3.connect(f"{where.absolute().as_uri()}?mode=ro", uri=True, timeout=WAIT)
            try:
                base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
                base.text_factory = _text
                for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "query_only=ON", "mmap_size=0"):
                    base.execute(f"PRAGMA {pragma}")
                yield base
            finally:
                base.close()
        except (sqlite3.Error, UnicodeDecodeError) as problem:  # also a message that quotes what is damaged
            if getattr(problem, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BusyError(f"{self.path.name} is locked.") from None
            said = why_unreadable(problem)
            raise CaptureError(f"{self.path.name} cannot be read as an SQLite database: {said}.") from None
        finally:
            if copy is not None:
                copy.close()

    def _check(self, base: sqlite3.Connection) -> None:
        if not _columns(base, "metrics") >= WANTED:
            tables = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type='table' LIMIT 12")]
            listed = ", ".join(plain_line(str(name), 40) for name in tables) or "none"
            raise NotThisFormatError(f"{self.path.name} has no table of trackio's metrics; its tables are {listed}.")

    def _run(self, name: Any, number: Any, into: Intake) -> RunLog | None:
        """The run of a name; of several with one name each further one has the beginning of its id behind it."""
        key = (str(name), str(number or ""))
        if key not in self._names:
            if len(self._names) >= MOST_RUNS:
                return None
            shown = plain_line(key[0], 200) or "run"
            self._names[key] = shown if shown not in self._names.values() else f"{shown} {key[1][:8]}"
        return into.run(self._names[key])

    def _settings(self, base: sqlite3.Connection, into: Intake) -> None:
        known = _columns(base, "configs")
        if not {"run_name", "config"} <= known:
            return
        number = "run_id" if "run_id" in known else "''"
        for name, own, text in base.execute(f"SELECT run_name, {number}, config FROM configs LIMIT {MOST_RUNS}"):
            run, value = self._run(name, own, into), _object(text)
            if run is not None and value is not None:
                run.config.update({key: item for key, item in value.items() if not key.startswith("_")})

    def _metrics(self, base: sqlite3.Connection, into: Intake) -> None:
        for number, name, own, step, time, text in self._rows(base, "metrics", self._after, into):
            run = self._run(name, own, into)
            if run is not None:
                self._put(run, number, step, seconds_of(time), text)
            self._after = number

    def _system(self, base: sqlite3.Connection, into: Intake) -> None:
        """Readings of the machine, at the step that their run had made when they were taken, as W&B's are."""
        if not {"id", "run_name", "metrics", "timestamp"} <= _columns(base, SYSTEM_TABLE):
            return
        for number, name, own, _, time, text in self._rows(base, SYSTEM_TABLE, self._after_system, into):
            run, row, seconds = self._run(name, own, into), _object(text), seconds_of(time)
            self._after_system = number
            if run is None:
                continue
            if row is None:
                run.lose(self.path.name, None, f"row {number} of its system metrics cannot be read")
                continue
            values = {_of_system(key): value for key, value in numbers_in(row).items()}
            run.row(self._step_at(run.name, seconds), values, seconds)

    def _step_at(self, run: str, seconds: float) -> float:
        times, steps = self._when.get(run, (array("d"), array("d")))
        at = bisect_right(times, seconds) - 1
        return steps[at] if at >= 0 else 0.0

    def _rows(self, base: sqlite3.Connection, table: str, after: int, into: Intake) -> Iterator[tuple[Any, ...]]:
        """(id, name of the run, its own id, step or None, time or None, JSON) of every row after one, a few thousand
        at a time. Raises ReplacedError where rows that were read are gone, and CaptureError."""
        known = _columns(base, table)
        own, step, time = (word if word in known else "NULL" for word in ("run_id", "step", "timestamp"))
        (highest,) = base.execute(f"SELECT max(id) FROM {table}").fetchone()
        if (highest if isinstance(highest, int) else 0) < after:
            raise ReplacedError
        asked = (
            f"SELECT id, run_name, {own}, {step}, {time}, metrics FROM {table} WHERE id > ? ORDER BY id LIMIT {ROWS}"
        )
        while rows := base.execute(asked, (after,)).fetchall():
            last = rows[-1][0]
            if not isinstance(last, int) or last <= after:  # SQLite goes round in a circle in a damaged file
                raise CaptureError(f"{self.path.name} is damaged: the rows of its {table} are not in order.")
            yield from rows
            after = last
            into.progress(0)

    def _put(self, run: RunLog, number: int, step: Any, time: float, text: Any) -> None:
        row = _object(text)
        if row is None or not isinstance(step, (int, float)):
            run.lose(self.path.name, None, f"row {number} of its metrics cannot be read")
            return
        values = numbers_in(row)
        note_time(run, time)
        times, steps = self._when.setdefault(run.name, (array("d"), array("d")))
        if math.isfinite(time) and (not times or time >= times[-1]):
            times.append(time)
            steps.append(step)
        run.row(step, values, time, {EPOCH: values["epoch"]} if "epoch" in values else NOTHING)
        for name, value in row.items():
            if isinstance(value, dict) and str(value.get("_type", "")).endswith("histogram"):
                run.histogram(name, step, number, listed_bins(value), time)

    def histogram(self, where: int, name: str) -> tuple[Floats, Floats]:
        """Read the row of that number again."""
        with self._opened() as base:
            found = base.execute("SELECT metrics FROM metrics WHERE id = ?", (where,)).fetchone()
        value = (_object(found[0]) or {}).get(name) if found else None
        return listed_histogram(value if isinstance(value, dict) else {})


def _of_system(name: str) -> str:
    return name if name.startswith(f"{SYSTEM}/") else f"{SYSTEM}/{name}"


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _columns(base: sqlite3.Connection, table: str) -> set[str]:
    """The columns of a table that hold what was written. A view, a virtual table and a generated column are computed
    when they are read, for as long as whoever made the file wants: they have none."""
    asked = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"
    made = [str(sql) for (sql,) in base.execute(asked, (table,))]
    if len(made) != 1 or VIRTUAL.match(made[0]):
        return set()
    return {str(row[1]) for row in base.execute(f"PRAGMA table_xinfo({table})") if row[6] == 0}


def _object(text: Any) -> dict[str, Any] | None:
    try:
        found = parsed(text) if isinstance(text, (str, bytes)) else None
    except BadJsonError:
        return None
    return found if isinstance(found, dict) else None


class Trackio(OneFile):
    """Recognised by SQLite's first bytes and the table `metrics`."""

    title = "Trackio database"
    summary = "The metrics, settings and measurements of the machine of all runs of a project."
    magic = (MAGIC,)
    names = ("*.db",)
    order = 20

    def open(self, path: Path) -> Database:
        """One project."""
        return Database(path)

    def run_of(self, path: Path, root: Path) -> str:
        """The project, in front of its runs, where a folder of projects is opened."""
        if path == root:
            return ""
        folder = folder_of(path, root)
        return f"{folder}/{path.stem}" if folder else path.stem


LOGS.register("trackio")(Trackio())
