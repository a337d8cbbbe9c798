"""A headless Chromium, where this machine has one: pages as a reader's browser shows them."""

from __future__ import annotations

import os
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
VOID = frozenset(("meta", "img", "source", "br", "hr", "link", "input"))
MISSING = f"no Chromium is installed (none of {', '.join(NAMES)}, and CHROMIUM names none)"


def chromium() -> str | None:
    """Its program, or None."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


needs_chromium = pytest.mark.skipif(chromium() is None, reason=MISSING)


def browse(page: Path, folder: Path, *words: str, dark: bool = False, width: int = 1000) -> tuple[str, str]:
    """Load a page: (what was asked for on stdout, what the browser complained of)."""
    program = chromium()
    assert program is not None
    done = subprocess.run(
        [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={width},1400", *words, page.as_uri(),
        ],
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout.decode(), done.stderr.decode()


class Parsed(HTMLParser):
    """A page that is read strictly: every element is closed in its order.

    Attributes:
        tags: (name, attributes) of each element; texts: what is read on the page, without its style.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute stands twice: {attrs}"
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1] == tag, f"</{tag}> closes {self._open[-3:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All that is read, with single spaces."""
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of each element of a name."""
        return [found for name, found in self.tags if name == tag]
