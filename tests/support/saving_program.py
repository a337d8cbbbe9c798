"""A window that saves everything that it saves while one of its writes fails, run below `failing_writes.c`.

One line of JSON a case on stdin, one line of what became of it on stdout: what the window said, what is in the place of
what was saved ("old", "new" or what is wrong with it), which other files are there that were not before, and whether the
next try works. All of a case is below one folder, the settings too.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from captures import numbers, write
from window_savings import FAILED, SAVED, SHOWN, Saving, panel, savings, tries
from with_parent import ends_with_parent


def make_window(folder: Path) -> Any:
    """A window without a worker, that tells what it says instead of showing boxes."""
    from PySide6.QtWidgets import QApplication

    from inspector.gui.app import make_window as make

    QApplication.instance() or QApplication([])
    window = make()
    window.session.start_worker = lambda: None
    window.session.background.budget = -1.0
    window.load_panels()
    window.show()
    window.tell = lambda sentence, details="": FAILED.append(sentence)
    said = window.say
    window.say = lambda sentence: ((FAILED if "not" in sentence else SAVED).append(sentence), said(sentence))
    return window


def opened(window: Any, path: Path) -> None:
    """Show a capture, with panels that are drawn."""
    from PySide6.QtWidgets import QApplication

    window.session.open_capture(path)
    window.new_capture()
    for key in ("states", "overview"):
        window.panels.make(key)
    for _ in range(200):
        QApplication.processEvents()
        window.tick()
        if panel(window).state == "figure":
            break
    panel(window).draw_if_seen()


def files(folder: Path) -> set[str]:
    """All that is below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def as_before(folder: Path, saving: Saving) -> None:
    """Without what the case before has saved, under another number."""
    tries.append(len(tries))
    for path in folder.iterdir():
        if path.name.startswith(saving.beside) and path.name != SHOWN:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / "config" / "inspector" / "trusted.json").unlink(missing_ok=True)
    saving.old(folder)


def tried(window: Any, case: dict[str, Any], folder: Path, faults: list[str]) -> dict[str, Any]:
    """Save one thing while one of the calls fails, then once more while none does."""
    from PySide6.QtWidgets import QApplication

    libc, saving = ctypes.CDLL(None), savings()[case["what"]]
    libc.fail_first.restype = ctypes.c_char_p
    as_before(folder, saving)
    QApplication.processEvents()
    before = files(folder)
    said_before = window.session.sentence
    for one in (SAVED, FAILED, faults):
        one.clear()
    libc.fail_at(str(folder).encode(), ctypes.c_long(case["nth"]), case["errno"], int(case["later"]))
    try:
        saving.save(window, folder)
    except Exception as fault:  # noqa: BLE001 - what this looks for
        faults.append(f"{type(fault).__name__}: {fault}")
    calls, hits, first = libc.fail_calls(), libc.fail_hits(), libc.fail_first().decode()
    libc.fail_at(b"", ctypes.c_long(0), 0, 0)
    if window.session.sentence not in (said_before, *SAVED, *FAILED):
        FAILED.append(window.session.sentence)
    said, failed, found = list(SAVED), list(FAILED), saving.found(folder)
    left = [
        name
        for name in files(folder) - before
        if Path(name).name.startswith(".") or not name.startswith(("config/inspector/trusted.lock", *saving.beside))
    ]
    left = [name for name in left if not name.endswith(("trusted.json", "window.ini"))]
    saving.save(window, folder)
    return {"calls": calls, "hits": hits, "first": first, "said": said, "failed": failed, "found": found, "left": left,
            "again": saving.found(folder), "faults": list(faults), "unsaid": saving.unsaid}  # fmt: skip


def cases() -> Iterator[dict[str, Any]]:
    """One a line."""
    for line in sys.stdin:
        yield json.loads(line)


def main() -> None:
    """Answer until stdin ends."""
    ends_with_parent()
    answers = os.dup(1)
    os.dup2(2, 1)
    folder = Path(sys.argv[1])
    os.environ.update({f"XDG_{one}_HOME": str(folder / one.lower()) for one in ("CONFIG", "DATA", "CACHE", "STATE")})
    faults: list[str] = []
    sys.excepthook = lambda kind, fault, _trace: faults.append(f"{kind.__name__}: {fault}")
    (folder / "config" / "inspector").mkdir(parents=True)
    (folder / "config" / "inspector" / "window.ini").write_text("[choice]\nmarker=kept\n")
    window = make_window(folder)
    opened(window, write(folder / SHOWN, numbers(12)))
    for case in cases():
        os.write(answers, json.dumps(tried(window, case, folder, faults)).encode() + b"\n")


if __name__ == "__main__":
    main()
