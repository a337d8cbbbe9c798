"""What a window saves, each as somebody at the window saves it, and how it is seen which of two versions is there."""

from __future__ import annotations

import configparser
import contextlib
import io
import json
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from captures import numbers, write

from inspector.capture import CaptureError, notes, open_capture, pack

SAVED: list[str] = []
"""What the window said as something was saved."""
FAILED: list[str] = []
"""What it said went wrong."""
SHOWN, PACKED = "shown.inspect", "a.inspect.zip"
tries: list[int] = []
"""One for each case: what is chosen and noted has its number, since the window stays the same one."""


def mine(word: str) -> str:
    """A word of this case."""
    return f"{word}{len(tries)}x"


@dataclass(frozen=True, slots=True)
class Saving:
    """One thing that a window saves. `save(window, folder)`; `found(folder)`: "old", "new" or what is wrong; files whose
    names begin with one of `beside` are its own."""

    save: Callable[[Any, Path], object]
    found: Callable[[Path], str]
    old: Callable[[Path], object] = lambda _folder: None
    beside: tuple[str, ...] = ()
    unsaid: bool = False
    """Whether nothing needs to be said: it is done beside what the user asked for."""


def to(path: Path, window: Any, act: Callable[[], object]) -> None:
    """Do something that asks for a file."""
    from PySide6.QtWidgets import QFileDialog

    QFileDialog.getSaveFileName = staticmethod(lambda *_: (str(path), ""))  # type: ignore[method-assign]
    QFileDialog.getExistingDirectory = staticmethod(lambda *_: str(path))  # type: ignore[method-assign]
    act()


def whole(name: str, check: Callable[[bytes], object], old: bytes = b"before") -> dict[str, Any]:
    """A file that is the old one or passes a check."""

    def found(folder: Path) -> str:
        data = (folder / name).read_bytes()
        if data == old:
            return "old"
        try:
            check(data)
        except Exception as problem:  # noqa: BLE001 - whatever the reader of that format raises
            return f"{name} is neither: {problem!r} of {data[:80]!r}"
        return "new"

    return {"found": found, "old": lambda folder: (folder / name).write_bytes(old), "beside": (name,)}


def begins(head: bytes, tail: bytes = b"") -> Callable[[bytes], None]:
    """A check of the first and last bytes."""

    def check(data: bytes) -> None:
        assert data.startswith(head), "another beginning"
        assert data.rstrip().endswith(tail), "another end"

    return check


def chosen(name: str, word: str) -> Callable[[Path], str]:
    """Whether a choice stands in the settings, which have what they had."""

    def found(folder: Path) -> str:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.read_string((folder / "config" / "inspector" / "window.ini").read_text())
        if parser.get("choice", "marker", fallback="") != "kept":
            return "the settings have lost what they had"
        section, _, key = name.partition("/")
        return "new" if mine(word) in parser.get(section, key, fallback="") else "old"

    return found


def capture(name: str, expected: Callable[[Any], bool]) -> Callable[[Path], str]:
    """Whether a capture is whole, and as it is expected."""

    def found(folder: Path) -> str:
        try:
            with open_capture(folder / name) as one:
                wrong = [str(each) for each in one.verify()]
                return "; ".join(wrong) or ("new" if expected(one) else "old")
        except CaptureError as problem:
            return f"{name} does not open: {problem}"

    return found


def panel(window: Any) -> Any:
    """The panel that is drawn."""
    return window.panels.made["states"]


def export(what: str, name: str) -> Callable[[Any, Path], None]:
    """Save a panel from its menu."""
    from inspector.gui.window.panel_asks import export_of

    return lambda window, folder: to(folder / name, window, lambda: export_of(window, what)("states", panel(window)))


def figures(folder: Path) -> str:
    """The folder of all figures: each is whole."""
    heads = {path.read_bytes()[:4] for path in folder.glob("*.png")}
    return "new" if heads == {b"\x89PNG"} else "old" if not heads else f"a figure begins with {heads}"


def preferred(window: Any, folder: Path) -> None:
    """A choice in the preferences."""
    from inspector.gui.window.preferences import chosen_now, use

    now = chosen_now(window)
    use(window, replace(now, runs=str(folder)), replace(now, runs=str(folder / mine("other"))))


def muted(window: Any, folder: Path) -> None:
    """A finding is muted in the project's file."""
    from inspector.diagnosis.muting import Mute
    from inspector.gui.window.muting import change_mute

    with contextlib.chdir(folder):
        change_mute(window, Mute("IN101"), on=True)


def run(window: Any, folder: Path) -> None:
    """A run is asked for, in a folder of runs that is not there yet."""
    from inspector.gui.state.shown import Shown
    from inspector.gui.state.work import Wanted
    from inspector.records import InputSpec

    session = window.session
    session.shown._kept = Shown(folder / "runs" / "mine")._kept
    session.connection.send = lambda _request: None
    session.begin_run(Wanted(InputSpec()))
    if session.running:
        session.running = False
        SAVED.append("running")
    else:
        FAILED.append(session.sentence)
    session.shown.asked = None


def trusted(window: Any, folder: Path) -> None:
    """Code is agreed to."""
    from inspector.records.requests import CodeFile, NeedsTrust

    problem = window.session.models.remember(
        NeedsTrust(files=(CodeFile(path=str(folder / "model.py"), sha256="0" * 64),))
    )
    (FAILED if problem else SAVED).append(problem)


def crash_file(window: Any, folder: Path) -> None:
    """An error of the window's own leaves a file."""
    from inspector.gui.runtime import crash_file as file

    (SAVED if file.write("details\n" * 400 + "end", folder / "log") else FAILED).append("The log has the details.")


def crash_files(folder: Path) -> str:
    """Every one of them is whole."""
    texts = [path.read_text() for path in (folder / "log").glob("error-*.txt")]
    broken = [text for text in texts if not text.endswith("end\n")]
    return f"a crash file is cut short: {broken[0][-40:]!r}" if broken else "new" if texts else "old"


def listened(window: Any, folder: Path) -> None:
    """The window listens, and makes a secret."""
    from inspector.gui.state.listening import Listening, Place

    listening = Listening()
    problem = listening.begin(Place(str(folder / "received"), port=0))
    listening.close()
    (FAILED if problem else SAVED).append(problem)


def secret(folder: Path) -> str:
    """It is whole or absent: another one would be taken for the user's."""
    path = folder / "received" / "secret"
    return ("new" if len(path.read_text()) == 65 else "a secret is cut short") if path.exists() else "old"


def noted(window: Any, folder: Path) -> None:
    """A note on the whole capture."""
    from inspector.records import Noted

    overview = window.panels.made["overview"]
    before = len(notes(overview.capture))
    overview.write_note(Noted(), mine("kept"))
    if len(notes(overview.capture)) > before:
        SAVED.append("noted")
    else:
        FAILED.append(overview.page.notes.told.text())


def bookmarked(window: Any, folder: Path) -> None:
    """The place under the cursor is marked."""
    window.looking.move(steps={"step": 3})
    window.holding._write(window.holding.about(), mine("mark"))


def choices() -> dict[str, Saving]:
    """What is remembered between starts."""
    return {
        "preference": Saving(preferred, chosen("choice/runs", "other")),
        "layout under a name": Saving(
            lambda w, _f: w._menus.layouts.save(mine("layout")), chosen("choice/layouts", "layout")
        ),
        "recent list": Saving(
            lambda w, f: (w.settings.add_recent(str(f / mine("recent"))), w.check_settings()),
            chosen("General/recent", "recent"),
        ),
        "layout at the end": Saving(
            lambda w, _f: (w.docking.remember(w.settings), w.settings.set_text("end", mine("end")), w.check_settings()),
            chosen("choice/end", "end"),
        ),
        "session": Saving(lambda w, f: w.sessions.save(f / "a.session.json"), **whole("a.session.json", json.loads)),
        "code that is trusted": Saving(
            trusted, lambda f: "new" if (f / "config" / "inspector" / "trusted.json").exists() else "old"
        ),
    }


def exports() -> dict[str, Saving]:
    """Files that the user asks for."""
    from inspector.gui.window import saving
    from inspector.records import Finding

    finding = Finding(rule="clipped", id="IN201", severity="warning", place="", message="m", frame=-1)
    zipped = {"check": lambda data: zipfile.ZipFile(io.BytesIO(data)).testzip()}
    script = whole("a.py", lambda data: compile(data, "a.py", "exec"))
    return {
        "figure as PNG": Saving(export("save", "a.png"), **whole("a.png", begins(b"\x89PNG", b"IEND\xaeB`\x82"))),
        "figure as SVG": Saving(export("save", "a.svg"), **whole("a.svg", begins(b"<?xml", b"</svg>"))),
        "figure as PDF": Saving(export("save", "a.pdf"), **whole("a.pdf", begins(b"%PDF", b"%%EOF"))),
        "numbers as NPZ": Saving(export("numbers", "a.npz"), **whole("a.npz", **zipped)),
        "numbers as CSV": Saving(
            export("numbers", "a.csv"), **whole("a.csv", lambda data: data.decode().index("\n"))
        ),
        "all figures": Saving(
            lambda w, f: to(f / "all", w, lambda: saving.export_all(w)),
            lambda f: figures(f / "all"), lambda f: (f / "all").mkdir(), ("all",),
        ),
        "script of a finding": Saving(
            lambda w, f: to(f / "a.py", w, lambda: saving.save_script(w, finding)), **script
        ),
    }  # fmt: skip


def one_channel(view: Any) -> str:
    """The channel of a capture that has one."""
    (name,) = view.channels
    return str(name)


def packed(folder: Path) -> None:
    """A packed capture is there already, of other numbers."""
    other = write(folder.parent / mine("other.inspect"), numbers(3))
    pack(other, folder / PACKED)


def captures() -> dict[str, Saving]:
    """Captures, and what is written into one."""
    from inspector.gui.window import menus

    menus.complete = lambda *_: True  # what the run has not computed is not asked about
    has = {word: capture(SHOWN, lambda one, word=word: any(each.text == mine(word) for each in notes(one)))  # type: ignore[misc]
           for word in ("kept", "mark")}  # fmt: skip
    copied = capture("copy.inspect", lambda _one: True)
    return {
        "copy of the capture": Saving(
            lambda w, f: to(f / "copy.inspect", w, lambda: menus.save_as(w)),
            lambda f: copied(f) if (f / "copy.inspect").exists() else "old", beside=("copy.inspect",),
        ),
        "packed capture": Saving(
            lambda w, f: to(f / PACKED, w, lambda: menus.pack_as(w)),
            capture(PACKED, lambda one: one.extent(one_channel(one))[0] == 12), packed, (PACKED,),
        ),
        "note": Saving(noted, has["kept"], beside=(SHOWN,)),
        "bookmark": Saving(bookmarked, has["mark"], beside=(SHOWN,)),
    }  # fmt: skip


def others() -> dict[str, Saving]:
    """What is made beside that."""
    project = whole("inspector.toml", lambda data: tomllib.loads(data.decode())["diagnosis"], b"# mine\n")
    return {
        "mute": Saving(muted, **project),
        "folder of the runs": Saving(
            run, lambda f: "new" if (f / "runs" / "mine").is_dir() else "old", beside=("runs",)
        ),
        "file of an error": Saving(crash_file, crash_files, beside=("log",)),
        "secret of a listener": Saving(listened, secret, beside=("received",)),
    }


def savings() -> dict[str, Saving]:
    """Each of them by name."""
    return {**choices(), **exports(), **captures(), **others()}
