"""Opening whatever a path leads to: a capture, or a log that another tool wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from inspector.capture.layout import INDEX, PACKED_SUFFIX, SUFFIX, CaptureError
from inspector.capture.logs.reader import LOGS
from inspector.capture.logs.search import Noted, has_logs, logs_at
from inspector.capture.logs.source import Progress
from inspector.capture.logs.view import LogView
from inspector.capture.reader import Capture
from inspector.capture.regular import in_words, is_a_file, is_a_folder, is_there, open_regular
from inspector.records.plain_text import plain_line

ZIP = b"PK\3\4"
MOST_NAMED = 6


def open_log(
    path: Path | str, run: str | None = None, *, progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> LogView:  # fmt: skip
    """Open the log at a path, a file or a folder of any number of runs.

    `run` is the name of one run; without it the only one, or all of them together (`LogView.runs` lists them).
    `progress(bytes read, bytes in all)` is called now and then. Raises CaptureError with a one-line message:
    CancelledError where `cancelled()` became true.
    """
    at = Path(path)
    try:
        found = logs_at(at)
        if not found.found:
            raise CaptureError(f"{at} is no log: {looked_for(at)}.")
    except OSError as problem:
        raise CaptureError(_unreadable(at, problem)) from None
    return LogView(at, run, progress=progress, cancelled=cancelled, found=found)


def open_any(path: Path | str, run: str | None = None) -> Capture | LogView:
    """Open a capture or a log; `run` as in `open_log`. Raises CaptureError, which says what was looked for."""
    at = capture_of_index(Path(path))
    if _is_capture(at):
        if run is not None:
            raise CaptureError(f"{at.name} is a capture, which has no runs to choose from; runs are chosen in logs.")
        return Capture(at)
    try:
        found = logs_at(at)
        if not found.found:
            raise CaptureError(f"{at} is neither a capture ({INDEX} in a folder, or a file {PACKED_SUFFIX}) nor a log: "
                               f"{looked_for(at)}.")  # fmt: skip
    except OSError as problem:
        raise CaptureError(_unreadable(at, problem)) from None
    return LogView(at, run, found=found)


def capture_of_index(path: Path) -> Path:
    """The capture whose index a path is, which is what a double click in a file manager opens; else the path."""
    return path.absolute().parent if path.name == INDEX and is_a_file(path) else path


def is_log(path: Path | str, noted: Noted | None = None) -> bool:
    """Whether a path is that of a log, by first bytes and names; False for a capture and for what cannot be read.

    A folder is looked through as far as its first log: where it has none, all of it (`logs.search.MOST_ENTRIES`).
    `noted(entries seen)` is called meanwhile; what it raises ends the look.
    """
    try:
        return not _is_capture(Path(path)) and has_logs(Path(path), noted)
    except OSError:
        return False


def _is_capture(path: Path) -> bool:
    """Whether the reader of captures says best what is there: a capture, what is called one, and nothing at all."""
    if is_a_folder(path):
        return path.name.endswith(SUFFIX) or is_there(path / INDEX)
    if path.name.endswith((SUFFIX, PACKED_SUFFIX)) or not is_there(path):
        return True
    try:
        with open_regular(path) as file:
            return file.read(len(ZIP)) == ZIP
    except OSError:
        return True


def looked_for(path: Path) -> str:
    """The end of a sentence: which files make a log, and what is there instead."""
    names = ", ".join(dict.fromkeys(name for _, reader in LOGS.items() for name in reader.names[:1]))
    if not path.is_dir():
        return f"its first bytes and its name are those of none of {names}, and no first line names a step"
    found = sorted(one.name for one in path.iterdir())
    listed = ", ".join(plain_line(name, 60) for name in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED:,} more" if len(found) > MOST_NAMED else ""
    return f"no file in it or below is one of {names} with a step and numbers; it holds {listed or 'nothing'}{more}"


def _unreadable(path: Path, problem: OSError) -> str:
    return f"{problem.filename or path} cannot be read: {in_words(problem)}."
