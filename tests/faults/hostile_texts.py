"""Captures whose every text was written to be obeyed: by a terminal, a spreadsheet, a browser or Qt."""

from __future__ import annotations

import csv
import io
import os
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from campaign import Outcome, Section

from inspector.capture import Writer
from inspector.records import (
    Axis,
    Channel,
    Frame,
    Labels,
    Log,
    Note,
    Noted,
    Page,
    Place,
    Refusal,
    RunStart,
    RunStop,
    Scalar,
)

SPECIAL = (
    "\x1b[2J", "\x1b]0;owned\x07", "\x9b31m", "\x07\x08\x7f", "\u202eexe.txt\u2066", "\ufeff\u200b\u2028", "<s>", "<script>alert(1)</script>",
    "<img src={canary}>", "<a href={canary}>x</a>", "&lt;b&gt;", "]]><svg onload=alert(1)>", "'\"><table>" * 60, "=cmd|'/c calc'!A1", "+1+1", "@SUM(A1)", "-2+3",
    "\t=1", "\r\n=1", "../../etc/passwd", "C:\\CON", "%s%n%x", "{0.__class__}", "日本" * 400, "a" * 5000, "e" + "\u0301" * 300, "\x00nul", "",
    " ", "\n\n\n", "<style>*{{display:none}}</style>", "javascript:alert(1)", "\\u202e", "$(touch {canary})", "`touch {canary}`", "; touch {canary}",
)  # fmt: skip
DOORS = ("terminal", "csv", "report", "figures", "window")


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Each way out in turn; the text is put together from several."""
    for number in range(count):
        yield {"door": DOORS[number % len(DOORS)], "seed": seed * 1_000_003 + number}


def text_of(seed: int, canary: Path) -> str:
    """One to four of them, with the canary's address where they have room for one."""
    chance = random.Random(seed)
    parts = [chance.choice(SPECIAL) for _ in range(chance.choice((1, 1, 2, 4)))]
    return "".join(part.replace("{canary}", f"file://{canary}") for part in parts)


def capture(path: Path, text: str) -> Path:
    """A finished run of which every text is that one."""
    name = "".join(text.split())[:80] or "x"
    with Writer(
        path, RunStart(run="r", title=text, subject=text, checkpoint=text, places=(Place(name="rnn", module=text),))
    ) as writer:
        writer.write(Frame(index=0, label=text))
        for number, where in enumerate(("rnn.l0", name)):
            with suppress(ValueError):
                units = {"unit": tuple(text + str(i) for i in range(3))}
                one = Channel(
                    name=f"{where}:h", kind="state", dims=("step", "unit"), shape=(6, 3), title=text, unit=text[:20], formula=text, method=text, labels=units,
                )  # fmt: skip
                writer.write(one)
                writer.write(
                    Page(one.name, 0, (0, 0), np.random.default_rng(number).normal(size=(6, 3)).astype(np.float32))
                )
        writer.write(Labels("step", (text, *"bcdef"), 0))
        writer.write(Axis(name="step", title=text or "t", length=6))
        writer.write(Scalar("rnn.l0:loss", 0, 1.0))
        writer.write(Refusal("rnn.l0:c", text))
        writer.write(Log(text, "warning", text))
        writer.write(Note(Noted(), text))
        writer.write(RunStop("failed", text))
    return path


@dataclass(slots=True)
class Prepared:
    """What is kept from case to case: the window, and what went wrong in it."""

    window: Any = None
    faults: list[str] = field(default_factory=list)


def attempt(case: dict[str, Any], prepared: Prepared, scratch: Path) -> Outcome:
    """Take the capture through a way out, and look at what came out of it."""
    canary = scratch / "canary"
    os.mkfifo(canary)  # whoever opens it never comes back
    text = text_of(case["seed"], canary)
    path = capture(scratch / "a.inspect", text)
    said = WAYS[case["door"]](path, scratch, prepared)
    return Outcome("lost", f"{said} by {text[:120]!r}") if said else Outcome("survived")


def _called(*arguments: str) -> tuple[int, str, str]:
    from commands import called

    done = called(*arguments, cwd=Path.cwd())
    return done.code, done.stdout, done.stderr


def _terminal(path: Path, _scratch: Path, _prepared: Prepared) -> str:
    from test_terminal_text import UNSEEN

    for arguments in (["list"], ["diagnose"], ["list", "--json"], ["diagnose", "--json"]):
        code, out, err = _called(arguments[0], str(path), *arguments[1:])
        if found := UNSEEN.search((out + err).replace("\t", "")):
            return f"{arguments} printed {found.group()!r}"
        if code not in (0, 1, 2) or "Traceback" in err:
            return f"{arguments} ended with {code}: {err[-200:]!r}"
    return ""


def _csv(path: Path, scratch: Path, _prepared: Prepared) -> str:
    to = scratch / "numbers.csv"
    code, _, err = _called("export", str(path), "--channel", "rnn.l0:h", "--to", str(to))
    if code:
        return f"export ended with {code}: {err[-200:]!r}"
    rows = list(csv.reader(io.StringIO(to.read_text(encoding="utf-8"), newline="")))
    for cell in (cell for row in rows for cell in row):
        with suppress(ValueError):
            float(cell)
            continue
        if cell[:1] in ("=", "+", "-", "@", "\t", "\r"):
            return f"a cell begins with {cell[:20]!r}"
    return "" if len(rows) >= 7 and all(len(row) == len(rows[0]) for row in rows) else "rows were broken"


def _report(path: Path, scratch: Path, _prepared: Prepared) -> str:
    from browser import Parsed

    to = scratch / "report.html"
    code, _, err = _called("diagnose", str(path), "--to", str(to))
    if code not in (0, 1) or not to.exists():
        return f"diagnose ended with {code}: {err[-200:]!r}"
    try:
        page = Parsed(to.read_text(encoding="utf-8"))
    except AssertionError as broken:
        return f"the page is broken: {broken}"
    for tag, attributes in page.tags:
        outside = [
            value
            for key, value in attributes.items()
            if key in ("src", "href") and not value.startswith(("#", "data:"))
        ]
        hears = [key for key in attributes if key.startswith("on")]
        if tag == "script" or hears or any("canary" in value or "alert" in value for value in outside):
            return f"the page has <{tag} {attributes}>"[:200]
    return ""


def _figures(path: Path, scratch: Path, _prepared: Prepared) -> str:
    import xml.etree.ElementTree as ElementTree

    to = scratch / "states.svg"
    code, _, err = _called("export", str(path), "--panel", "states", "--to", str(to))
    if code:
        return f"export ended with {code}: {err[-200:]!r}"
    for element in ElementTree.fromstring(to.read_text(encoding="utf-8")).iter():
        if element.tag.endswith(("script", "foreignObject")) or any(key.startswith("on") for key in element.attrib):
            return f"the picture has <{element.tag}>"
    return ""


def _window(path: Path, _scratch: Path, prepared: Prepared) -> str:
    from PySide6.QtWidgets import QApplication

    if prepared.window is None:
        prepared.window = opened_window(prepared.faults)
    window = prepared.window
    window.open_path(str(path))
    for name in ("states", "overview", "log", *random.Random(0).sample(sorted(window.panels), 4)):
        if name in window.panels:
            window.docks[name].raise_()
        window.tick()
        QApplication.processEvents()
    window.grab()
    faults, prepared.faults[:] = list(prepared.faults), []
    return faults[0][:300] if faults else ""


def opened_window(faults: list[str]) -> Any:
    """A window of this process; what goes wrong in it, Qt's warnings too, is added to `faults`."""
    from in_process_worker import InProcessWorker
    from PySide6.QtCore import qInstallMessageHandler
    from PySide6.QtWidgets import QApplication

    import inspector.gui.app as app

    application = QApplication.instance() or QApplication(["inspector"])
    application.setStyle("Fusion")  # type: ignore[attr-defined]
    app.WorkerProcess = InProcessWorker  # type: ignore[misc, assignment]
    window = app.make_window()
    window.show()
    app.begin(window, [], demo=False)
    sys.excepthook = lambda kind, fault, trace: faults.append(
        "".join(traceback.format_exception(kind, fault, trace))[-300:]
    )
    qInstallMessageHandler(
        lambda _kind, _where, text: faults.append(str(text)) if "propagateSizeHints" not in str(text) else None
    )
    return window


WAYS: dict[str, Callable[[Path, Path, Prepared], str]] = {
    "terminal": _terminal, "csv": _csv, "report": _report, "figures": _figures, "window": _window,
}  # fmt: skip


def prepare(_folder: Path) -> Prepared:
    """Tests of the terminal say what may not be printed."""
    sys.path.append(str(Path(__file__).parents[1]))
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    return Prepared()


SECTIONS = [
    Section(
        "texts",
        "hostile texts in the terminal, tables, reports, pictures and the window",
        30,
        200,
        cases,
        prepare,
        attempt,
        90.0,
    )
]
