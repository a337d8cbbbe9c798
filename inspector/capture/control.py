"""How a window tells a watched training to wait: small files in the folder `control` of the capture, one a window.

A window replaces its file as a whole; the training, or the listener that writes its capture, reads it as it would read
anything from outside: an ordinary file of bounded size with known fields. Nothing in it is executed. `number` grows
with each command, so that none is obeyed twice; `beat` changes while the window is there: clocks need not agree.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from inspector.capture.private import folder_for
from inspector.capture.regular import open_regular
from inspector.capture.whole_file import replace_whole
from inspector.records.break_condition import MOST_CHARACTERS, parse_condition
from inspector.records.json_text import read_json

FOLDER = "control"
ACTIONS = ("look", "pause", "step", "continue", "break")
MOST_BYTES = 4096
MOST_WINDOWS = 16
"""Files that are read; others are left alone."""
BEAT_SECONDS = 2.0
GONE_SECONDS = 15.0
"""A window that has given no sign of life for so long is gone."""
FARTHEST = 1 << 53
_WINDOW = re.compile(r"[0-9a-f]{16}\Z")
_FIELDS = frozenset(("window", "number", "action", "condition", "beat"))


@dataclass(frozen=True, slots=True)
class Command:
    """What one window wants.

    Attributes:
        window: 16 hexadecimal digits that it has drawn. number: of the command, 0 while it has given none.
        action: "look" (nothing), "pause", "step", "continue", or "break" at `condition` ("": at none any more).
        beat: a number that changes while the window is there.
    """

    window: str
    number: int = 0
    action: str = "look"
    condition: str = ""
    beat: int = 0

    def encoded(self) -> bytes:
        """As the content of a file or the body of a message."""
        told = {name: getattr(self, name) for name in sorted(_FIELDS)}
        return json.dumps(told).encode()

    @classmethod
    def decoded(cls, body: bytes) -> Command:
        """Of a file or message. Raises ValueError for anything that `encoded` would not make."""
        if len(body) > MOST_BYTES:
            raise ValueError(f"a command has {len(body)} bytes; expected at most {MOST_BYTES}")
        try:
            told = read_json(body)
        except ValueError:
            raise ValueError("a command is not JSON") from None
        if not isinstance(told, dict) or set(told) != _FIELDS:
            raise ValueError("a command has other fields than expected")
        window, action, condition = told["window"], told["action"], told["condition"]
        if not isinstance(window, str) or not _WINDOW.match(window) or action not in ACTIONS:
            raise ValueError("a command names no window, or an action that there is not")
        for name in ("number", "beat"):
            if type(told[name]) is not int or not 0 <= told[name] < FARTHEST:
                raise ValueError(f"the {name} of a command is no number")
        if not isinstance(condition, str) or len(condition) > MOST_CHARACTERS or (condition and action != "break"):
            raise ValueError("the condition of a command is no text")
        if condition:
            parse_condition(condition)
        return cls(window, told["number"], action, condition, told["beat"])


class Commands:
    """The training's side: what the windows have written into a capture's folder."""

    def __init__(self, path: Path) -> None:
        self._folder = path / FOLDER
        self._seen: dict[str, tuple[int, int, int]] = {}

    def new(self) -> tuple[list[Command], list[str]]:
        """(commands whose file has changed, what is wrong with others). Never raises."""
        found: list[Command] = []
        faults: list[str] = []
        for name, mark in self._files():
            if self._seen.get(name) == mark:
                continue
            self._seen[name] = mark
            try:
                with open_regular(self._folder / name) as file:
                    command = Command.decoded(file.read(MOST_BYTES + 1))
                if name != f"{command.window}.json":
                    raise ValueError("a command is of another window than its file")
                found.append(command)
            except ValueError as problem:
                faults.append(str(problem))
            except OSError:
                continue  # it is being replaced, or is no ordinary file
        return found, faults

    def _files(self) -> list[tuple[str, tuple[int, int, int]]]:
        """(name, what changes with the content) of the files of windows."""
        found: list[tuple[str, tuple[int, int, int]]] = []
        try:
            with os.scandir(self._folder) as entries:
                for entry in islice(entries, 16 * MOST_WINDOWS):
                    if _WINDOW.match(entry.name.removesuffix(".json")):
                        status = entry.stat(follow_symlinks=False)
                        found.append((entry.name, (status.st_mtime_ns, status.st_size, status.st_ino)))
        except OSError:
            return found
        newest = sorted(found, key=lambda one: one[1][0], reverse=True)  # windows that crashed leave theirs
        return newest[:MOST_WINDOWS]


class Controller:
    """The window's side: its file in the folder of the capture. Methods raise OSError where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.command = Command(secrets.token_hex(8))
        self._folder = path / FOLDER

    def send(self, action: str, condition: str = "") -> None:
        """Give a command. Raises ValueError for a condition that cannot be read, before anything is written."""
        if condition:
            parse_condition(condition)
        before = self.command
        self._put(Command(before.window, before.number + 1, action, condition, before.beat + 1))

    def beat(self) -> None:
        """A sign of life."""
        before = self.command
        self._put(Command(before.window, before.number, before.action, before.condition, before.beat + 1))

    def close(self) -> None:
        """The window looks no more: its file goes."""
        with suppress(OSError):
            if not self._folder.is_symlink():
                (self._folder / f"{self.command.window}.json").unlink(missing_ok=True)

    def _put(self, command: Command) -> None:
        replace_whole(folder_for(self._folder) / f"{command.window}.json", command.encoded())
        self.command = command
