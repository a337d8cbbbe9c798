"""Commands that write a file which somebody asked for, while one of their writes fails, run below `failing_writes.c`.

One line of JSON a case on stdin, one line of what became of it on stdout: the command's exit code and what it said, what
is in the place of each of its files ("old", "new" or what is wrong with it), which other files are there that were not
before, and whether the next try works. Each case is a copy of this process, whose settings and temporary files are below
the failing calls too.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import io
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from captures import NAME, numbers, write
from with_parent import ends_with_parent

from inspector import cli

STEPS = 5
BEFORE = b"what was there before"
SHOWN, OTHER = "shown.inspect", "other.inspect"
FIGURE = ("--panel", "states", "--size", "300x200", "--dpi", "72")
MOVING = ("export", SHOWN, *FIGURE, "--animate", "steps", "--to")


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its arguments, and of each file that it writes a check, which raises where it is not whole."""

    arguments: tuple[str, ...]
    files: dict[str, Callable[[bytes], object]]
    replaces: bool = True
    """Whether it replaces a file that is there already."""


def pictures(data: bytes) -> None:
    """As many as there are steps, each of them whole."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        assert getattr(image, "n_frames", 1) == STEPS, "another number of pictures"
        for number in range(STEPS):
            image.seek(number)
            image.load()


def film(data: bytes) -> None:
    """The same of an MP4."""
    import av

    with av.open(io.BytesIO(data)) as container:
        assert sum(1 for _ in container.decode(video=0)) == STEPS, "another number of pictures"


def begins(head: bytes, tail: bytes = b"") -> Callable[[bytes], None]:
    """A check of the first and last bytes."""

    def check(data: bytes) -> None:
        assert data.startswith(head) and data.rstrip().endswith(tail), "cut short, or something else"

    return check


def array(data: bytes) -> None:
    """All steps of the channel."""
    assert len(np.load(io.BytesIO(data))) == STEPS, "another number of steps"


def table(data: bytes) -> None:
    """A header, and a row for each step."""
    assert len(data.decode().splitlines()) == STEPS + 1 and data.endswith(b"\n"), "another number of rows"


def archive(data: bytes) -> None:
    """Every member has its checksum."""
    with zipfile.ZipFile(io.BytesIO(data)) as members:
        assert members.testzip() is None and members.namelist(), "a member is damaged"


def commands() -> dict[str, Command]:
    """Each of them by what it writes."""
    export, values = ("export", SHOWN), ("export", SHOWN, "--channel", NAME, "--to")
    png = begins(b"\x89PNG", b"IEND\xaeB`\x82")
    return {
        "report": Command(("diagnose", SHOWN, "--to", "a.html"), {"a.html": begins(b"<!DOCTYPE html>", b"</html>")}),
        "findings as SARIF": Command(("diagnose", SHOWN, "--sarif", "a.sarif"), {"a.sarif": json.loads}),
        "animation as GIF": Command((*MOVING, "a.gif"), {"a.gif": pictures}),
        "animation as APNG": Command((*MOVING, "a.apng"), {"a.apng": pictures}),
        "animation as WebP": Command((*MOVING, "a.webp"), {"a.webp": pictures}),
        "animation as MP4": Command((*MOVING, "a.mp4"), {"a.mp4": film}),
        "figure and its numbers": Command(
            (*export, *FIGURE, "--numbers", "npz", "--to", "a.png"), {"a.png": png, "a.npz": archive}
        ),
        "figure as SVG": Command((*export, *FIGURE, "--to", "a.svg"), {"a.svg": begins(b"<?xml", b"</svg>")}),
        "figure as PDF": Command((*export, *FIGURE, "--to", "a.pdf"), {"a.pdf": begins(b"%PDF", b"%%EOF")}),
        "figures of panels": Command(
            (*export, "--panels", "states,overview", "--dpi", "72", "--to", "all"),
            {"all/states.png": png, "all/overview.png": png}, replaces=False,
        ),
        "numbers as NPY": Command((*values, "a.npy"), {"a.npy": array}),
        "numbers as CSV": Command((*values, "a.csv"), {"a.csv": table}),
        "numbers as JSON": Command((*values, "a.json"), {"a.json": json.loads}),
        "comparison": Command(("compare", SHOWN, OTHER, "--out", "c.json"), {"c.json": json.loads}),
        "script of a rule": Command(("reproduce", "IN205", "--to", "a.py", "--overwrite"), {"a.py": ast.parse}),
        "packed capture": Command(("pack", SHOWN, "--to", "a.inspect.zip"), {"a.inspect.zip": archive}, replaces=False),
    }  # fmt: skip


def found(folder: Path, command: Command) -> list[str]:
    """What is in the place of each file."""
    return [_found(folder / name, check) for name, check in command.files.items()]


def _found(path: Path, check: Callable[[bytes], object]) -> str:
    if not path.exists() or (data := path.read_bytes()) == BEFORE:
        return "old"
    try:
        check(data)
    except Exception as problem:  # noqa: BLE001 - whatever the reader of that format raises
        return f"{path.name} is neither: {problem!r} of {data[:60]!r}"
    return "new"


def called(command: Command, kept: Path, folder: Path) -> tuple[int, str]:
    """(exit code, what it said on stderr) of the command in a folder; captures are beside it."""
    out, err = io.StringIO(), io.StringIO()
    names = {*command.files, "all"}
    arguments = [
        str(kept / one if one in (SHOWN, OTHER) else folder / one) if one in {SHOWN, OTHER, *names} else one
        for one in command.arguments
    ]
    sys.argv = ["inspector", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main()
    return code, err.getvalue()


def files(folder: Path) -> set[str]:
    """All that is below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def tried(case: dict[str, Any], kept: Path) -> dict[str, Any]:
    """Write what is asked for while one of the calls fails, then once more while none does."""
    libc, folder, command = ctypes.CDLL(None), Path(case["folder"]), commands()[case["what"]]
    libc.fail_first.restype = ctypes.c_char_p
    os.environ |= {f"XDG_{one}_HOME": str(folder / one.lower()) for one in ("CONFIG", "DATA", "CACHE", "STATE")}
    tempfile.tempdir = str(folder / "temporary")
    (folder / "temporary").mkdir()
    os.chdir(folder)
    if command.replaces and case["there"]:
        for name in command.files:
            (folder / name).write_bytes(BEFORE)
    libc.fail_at(str(folder).encode(), ctypes.c_long(case["nth"]), case["errno"], int(case["later"]))
    code, said = called(command, kept, folder)
    calls, hits, first = libc.fail_calls(), libc.fail_hits(), libc.fail_first().decode()
    libc.fail_at(b"", ctypes.c_long(0), 0, 0)
    own = {*command.files, "all", "temporary", "config", "data", "cache", "state"}
    left = [name for name in files(folder) if name not in own]
    states = found(folder, command)
    if not command.replaces:  # what was written before the failure is not replaced unasked
        for name in command.files:
            (folder / name).unlink(missing_ok=True)
    again, why = called(command, kept, folder)
    return {
        "code": code, "said": said, "calls": calls, "hits": hits, "first": first, "found": states, "left": left,
        "again": found(folder, command), "again_code": again, "again_said": why,
    }  # fmt: skip


def cases() -> Iterator[dict[str, Any]]:
    """One a line."""
    for line in sys.stdin:
        yield json.loads(line)


def answer(case: dict[str, Any], kept: Path) -> bytes:
    """What became of a case in a copy of this process; nothing where that ended without a word."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            told = json.dumps(tried(case, kept)).encode()
        except BaseException as fault:  # noqa: BLE001 - what this looks for
            told = json.dumps({"fault": f"{type(fault).__name__}: {fault}"}).encode()
        os.write(writing, told)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        told = file.read()
    os.waitpid(child, 0)
    return told


def main() -> None:
    """Answer until stdin ends."""
    ends_with_parent()
    answers = os.dup(1)
    os.dup2(2, 1)
    kept = Path(sys.argv[1]).absolute()
    for name in (SHOWN, OTHER):
        write(kept / name, numbers(STEPS))
    import inspector.cli.report
    import inspector.diagnosis
    import inspector.gui.export.animation
    import inspector.gui.export.drawn
    import inspector.gui.export.offscreen
    import inspector.gui.panel.registry  # noqa: F401 - imported once for all copies

    for case in cases():
        os.write(answers, answer(case, kept) + b"\n")


if __name__ == "__main__":
    main()
