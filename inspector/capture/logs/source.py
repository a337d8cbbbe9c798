"""A log as it was opened: its files, its runs, and reading what is new."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from inspector.capture.damage import Damage
from inspector.capture.layout import CaptureError
from inspector.capture.logs.growing import Floats
from inspector.capture.logs.reader import (
    LOGS,
    CancelledError,
    Intake,
    LogFile,
    LogReader,
    NotThisFormatError,
    ReplacedError,
)  # fmt: skip
from inspector.capture.logs.run_log import FILE_BITS, MOST_TOLD, RunLog
from inspector.capture.logs.search import Search, logs_at
from inspector.capture.regular import NotRegularError, in_words, regular_stat
from inspector.records.plain_text import plain_line, plain_sentence

SEARCH_SECONDS = 1.0
"""Seconds after which a folder is searched again for new files."""
MOST_RUNS = 10_000

Progress = Callable[[int, int], None]


class Opened:
    """One file of a log: its reader, the run that it belongs to, and the runs that it brought something to."""

    def __init__(self, path: Path, key: str, reader: LogReader, run: str, number: int) -> None:
        self.path, self.key, self.reader, self.run, self.number = path, key, reader, run, number
        self.file: LogFile | None = None
        self.runs: set[str] = set()
        self.problem = ""
        """Why it cannot be read now."""
        self.passed_over = False
        """Whether it looked like a log and is none."""


class LogSource:
    """The files at a path, and their runs by name. Raises CaptureError where nothing can be read.

    `progress(bytes read, bytes in all)` is called while files are read; where `cancelled()` is true CancelledError is
    raised, and what was read so far stays.
    """

    def __init__(
        self, path: Path, progress: Progress | None = None, cancelled: Callable[[], bool] | None = None,
        found: Search | None = None,
    ) -> None:  # fmt: skip
        self.path = path
        self.is_folder = path.is_dir()
        self.files: dict[Path, Opened] = {}
        self.runs: dict[str, RunLog] = {}
        self.problems: list[Damage] = []
        self._progress, self._cancelled = progress, cancelled
        self._numbers = 0
        self._searched = -math.inf
        self._sizes: dict[Path, int] = {}
        self.refresh(found, first=True)

    @property
    def formats(self) -> list[str]:
        """Titles of the formats that its files have."""
        return list(dict.fromkeys(one.reader.title for one in self.files.values()))

    # -- what is there

    def refresh(self, found: Search | None = None, *, first: bool = False) -> None:
        """Look for new files, unless they were `found` just now, and read what is new in all of them."""
        if first or (self.is_folder and time.monotonic() - self._searched > SEARCH_SECONDS):
            self._look_again(found, first=first)
        self._read(list(self.files.values()), first=first)
        problem = next((one.problem for one in self.files.values() if one.problem), "")
        if first and not any(run.curves.by_name for run in self.runs.values()) and (problem or not self.runs):
            raise CaptureError(problem or f"{self.path} has a log without any numbers.")

    def _look_again(self, found: Search | None, *, first: bool) -> None:
        """Look for files. A folder that cannot be listed any more keeps those that were there."""
        self._searched = time.monotonic()
        try:
            self._look(found)
        except OSError as problem:
            if first:
                raise
            said = f"{self.path.name} cannot be looked through for new files: {in_words(problem)}."
            self.problems = [Damage("", -1, None, plain_sentence(said))]

    def _look(self, first: Search | None) -> None:
        found = first if first is not None else logs_at(self.path, {path: one.key for path, one in self.files.items()})
        self.problems = [Damage("", -1, None, said) for said in found.left_out]
        grouped: dict[tuple[str, str], list[Path]] = {}
        for path, key in found.found:
            root = self.path
            grouped.setdefault((key, LOGS[key].run_of(path, root)), []).append(path)
        wanted: dict[Path, tuple[str, str]] = {}
        owners = {one.run: (one.key, one.reader.run_of(one.path, self.path)) for one in self.files.values()}
        for (key, run), paths in grouped.items():
            name = self._named(run, key, owners)
            wanted.update(dict.fromkeys(LOGS[key].chosen(paths), (key, name)))
        gone = [one for path, one in self.files.items() if path not in wanted]
        for one in gone:
            if any(
                self._named_by(path, one)
                for path, (key, _) in wanted.items()
                if path not in self.files and key == one.key
            ):
                self._forget(one)  # another file has taken its place
        for path, (key, run) in wanted.items():
            if path not in self.files and self._numbers < 1 << (52 - FILE_BITS):
                self.files[path] = Opened(path, key, LOGS[key], run, self._numbers)
                self._numbers += 1

    def _named_by(self, path: Path, one: Opened) -> bool:
        return one.reader.run_of(path, self.path) == one.reader.run_of(one.path, self.path)

    def _named(self, run: str, key: str, owners: dict[str, tuple[str, str]]) -> str:
        """The whole name of a run: "" is that of the folder, or of the file that was opened. Where two formats, or the
        folder and one in it, would have one name, the later one has its format behind it."""
        own = self.path.name if self.is_folder else self.path.stem
        name = plain_line(run or own or Path(os.path.realpath(self.path)).name or "run", 400)
        for shown in (name, f"{name} ({key})", f"{name} ({key}, {'below' if run else 'here'})"):
            if owners.setdefault(shown, (key, run)) == (key, run):
                return shown
        return name

    # -- reading

    def _read(self, files: Iterable[Opened], *, first: bool) -> None:
        total = done = 0
        if self._progress is not None:
            self._sizes = {one.path: _size(one.path) for one in self.files.values()}
            total = sum(self._sizes.values())
        again: set[str] = set()
        for one in files:
            before = done
            try:
                self._read_one(one, lambda read, before=before: self._tell(before + read, total))  # type: ignore[misc]
            except ReplacedError:
                again |= one.runs or {one.run}
            done += self._sizes.get(one.path, 0)
        if again:
            self._read_again(again)

    def _tell(self, done: int, total: int) -> None:
        if self._cancelled is not None and self._cancelled():
            raise CancelledError(f"Reading {self.path.name} was cancelled.")
        if self._progress is not None:
            self._progress(min(done, total), total)

    def _read_one(self, one: Opened, progress: Callable[[int], None]) -> None:
        """Read one file. What is wrong with it is told, and the others are read."""
        try:
            if one.file is None:
                one.file = one.reader.open(one.path)
            one.file.read(Intake(lambda name: self._run(one, name), progress))
            one.problem = ""
        except (CancelledError, ReplacedError):
            raise
        except NotThisFormatError as problem:
            one.problem, one.passed_over = str(problem), self.is_folder
        except NotRegularError as problem:
            one.problem = f"{one.path.name} cannot be read: {in_words(problem)}."
        except FileNotFoundError:
            return  # it was removed: what was read of it stays
        except (OSError, CaptureError) as problem:
            said = in_words(problem) if isinstance(problem, OSError) else ""
            one.problem = f"{one.path.name} cannot be read: {said}." if said else str(problem)
            if not one.runs and len(self.files) > 1 and len(self.runs) < MOST_RUNS:
                self._run(one, "")  # which has no numbers, and says why
        finally:
            for name in one.runs:
                self.runs[name].flush()

    def _run(self, one: Opened, name: str) -> RunLog:
        whole = one.run
        if name:
            inner = plain_line(name, 400)
            alone = one.reader.run_of(one.path, self.path) == ""
            whole = inner if alone else f"{one.run}/{inner}"
        if whole not in self.runs:
            if len(self.runs) >= MOST_RUNS:
                raise CaptureError(f"{self.path.name} has more than the {MOST_RUNS:,} runs that are read.")
            self.runs[whole] = RunLog(whole)
        one.runs.add(whole)
        run = self.runs[whole]
        run.file = one.number
        run.is_root |= not name and one.reader.run_of(one.path, self.path) == ""
        return run

    def _read_again(self, names: set[str]) -> None:
        """Forget runs of which a file was replaced, and read all their files anew."""
        while more := {name for one in self.files.values() if one.runs & names for name in one.runs} - names:
            names |= more
        for name in names & self.runs.keys():
            self.runs[name].clear()
        again = [one for one in self.files.values() if one.runs & names or one.run in names]
        for one in again:
            one.file, one.runs = None, set()
        for one in again:
            try:
                self._read_one(one, lambda _read: None)
            except ReplacedError:
                one.file = None  # it changed once more: at the next call

    def _forget(self, one: Opened) -> None:
        del self.files[one.path]
        for name in one.runs:
            self.runs[name].clear()

    # -- what readers find again

    def histogram(self, place: float, name: str) -> tuple[Floats, Floats]:
        """(edges, counts) at a place that a run noted. Raises CaptureError."""
        whole = int(place)
        number, where = whole >> FILE_BITS, whole & ((1 << FILE_BITS) - 1)
        for one in self.files.values():
            if one.number == number and one.file is not None:
                try:
                    return one.file.histogram(where, name)
                except (OSError, ReplacedError) as problem:
                    why = in_words(problem) if isinstance(problem, OSError) else "it was replaced"
                    raise CaptureError(f"{one.path.name} cannot be read: {why}.") from None
        raise CaptureError(f"The file that had the histogram {name} is not there any more.")

    def damage_of(self, run: RunLog) -> list[Damage]:
        """What could not be read of a run."""
        more = f"{run.name}: … and {run.more_damage:,} more beyond the first {MOST_TOLD}."
        rest = [] if not run.more_damage else [
            Damage("", -1, None, more, anywhere=True)
        ]  # fmt: skip
        return [*self.problems, *self._problems_of(run), *run.damage, *rest]

    def _problems_of(self, run: RunLog) -> list[Damage]:
        """Why files of a run cannot be read now; they may be read again."""
        own = [one for one in self.files.values() if run.name in one.runs or run.name == one.run]
        said = [one.problem for one in own if one.problem and not one.passed_over]
        if run.cleared and not run.curves.by_name and not any(run.name in one.runs for one in own) and not said:
            said = [f"The run {run.name} is not in {self.path.name} any more, whose contents were replaced."]
        return [Damage("", -1, None, plain_sentence(what), anywhere=True) for what in said]


def _size(path: Path) -> int:
    try:
        return regular_stat(path).st_size
    except OSError:
        return 0
