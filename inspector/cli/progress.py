"""Progress of a run in a terminal: a bar, or a line now and then where the output goes elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any

from inspector.records import Progress
from inspector.records.plain_text import plain_line
from inspector.transport.terminal import say

WIDTH, LONGEST = 58, 300
"""Characters of what goes on: beside a bar, and on a line of its own."""
EVERY_SECONDS = 10.0
"""Seconds between two lines: a shorter run says nothing."""


class Told:
    """A context in which `tell` takes the progress of a run; notes are printed as lines of their own. `first` is what
    goes on before anything is told."""

    def __init__(self, every: float = EVERY_SECONDS, first: str = "the model is opened") -> None:
        from tqdm import tqdm

        form = f"{{desc:<{WIDTH}}} {{bar}} {{percentage:3.0f}} %"
        silent = True if sys.stderr is None else None  # None: only where it is a terminal
        self._bar: Any = tqdm(total=1.0, disable=silent, leave=False, bar_format=form)
        self._first = first
        self._every, self._began = every, time.monotonic()
        self._last: Progress | None = None
        self._over = threading.Event()
        self._lines = threading.Thread(target=self._repeat, name="progress-lines", daemon=True)

    def __enter__(self) -> Told:
        if self._bar.disable and sys.stderr is not None:
            self._lines.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        self._over.set()
        if self._lines.ident is not None:
            self._lines.join()
        self._bar.close()

    def tell(self, told: Progress) -> None:
        """One report of the worker."""
        if told.note:
            self.aside(plain_line(told.text))
            return
        if not told.total or told.done < told.total:  # a part that is done says nothing of the rest
            self._last = told
        self._bar.set_description_str(plain_line(told.text, WIDTH), refresh=False)
        self._bar.n = told.done / told.total if told.total else 0.0
        self._bar.refresh()

    def aside(self, text: str) -> None:
        """A line that stays."""
        self._bar.clear()
        say(text, err=True)

    def _repeat(self) -> None:
        while not self._over.wait(self._every):
            told, taken = self._last, time.monotonic() - self._began
            what = plain_line(told.text, LONGEST) if told is not None and told.text else self._first
            share = f", {100 * told.done / told.total:.0f} % of this run" if told and told.total and told.done else ""
            say(f"  {taken:.0f} s: {what}{share}", err=True)
