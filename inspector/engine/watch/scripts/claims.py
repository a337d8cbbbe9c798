"""Which process writes which capture, and what the command that started the script is told of it.

All processes below one command share a folder: a file in it, made exclusively, is a capture that one of them writes.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

VARIABLE = "INSPECTOR_WATCH"
MOST_CAPTURES = 20
"""Models that one script trains one after the other and that are watched."""
_RANK = "RANK"
"""Set by torchrun and others for each of the processes that train together."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command was asked for: where captures go, how `watch` is called, and the shared folder."""

    out: Path
    folder: Path
    options: dict[str, Any]

    @classmethod
    def of_environment(cls) -> Self:
        """As the command left it in the environment. Raises KeyError or ValueError."""
        told = json.loads(os.environ[VARIABLE])
        return cls(Path(told["out"]), Path(told["folder"]), dict(told["options"]))

    def claim(self) -> Path | None:
        """A path of its own for a capture; None where enough are written. Raises OSError."""
        for n, path in enumerate(_numbered(self.out)):
            if n >= 100_000 or len(list(self.folder.glob("capture-*"))) >= MOST_CAPTURES:
                return None
            if not path.exists() and _made(self.folder / f"capture-{path.name}", str(path)):
                return path
        return None

    def may_write(self) -> bool:
        """Whether this process writes, as far as its own environment tells: of processes of one training the first.

        Of the processes that `multiprocessing` starts for one script the first that asks: workers that train one model
        together without a process group cannot be told apart otherwise.
        """
        if os.environ.get(_RANK, "0") not in ("", "0"):
            return False
        parent = multiprocessing.parent_process()
        if parent is None:
            return True
        mark = self.folder / f"child-{parent.pid}"
        return _made(mark, str(os.getpid())) or mark.read_text("utf-8") == str(os.getpid())


def _numbered(path: Path) -> Iterator[Path]:
    yield path
    stem, n = path.name.removesuffix(path.suffix), 2
    while True:
        yield path.with_name(f"{stem}-{n}{path.suffix}")
        n += 1


def _made(file: Path, text: str) -> bool:
    """Whether the file did not exist and now does. Raises OSError."""
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError:
        return False
    return True
