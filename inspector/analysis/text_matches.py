"""Steps of a sequence that match a text, a regular expression, or a list of ranges.

A regular expression of a person may take longer than anyone waits (nested repetition), and Python's `re` cannot be
interrupted: it is searched in a process of its own, which is ended when its time is over.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

TEXT, PATTERN, STEPS = "Text", "Regular expression", "Steps"
KINDS = (TEXT, PATTERN, STEPS)
SECONDS = 2.0
"""A pattern may take."""
MOST = 50_000
"""Matches that are found at most."""
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
Ranges = tuple[tuple[int, int], ...]
"""(first, last) step of each match, in order."""
_PROGRAM = """
import itertools, json, re, sys
asked = json.load(sys.stdin)
found = re.finditer(asked["pattern"], asked["text"], re.MULTILINE)
print(json.dumps([one.span() for one in itertools.islice(found, asked["most"])]))
"""


def matches(names: Sequence[str], steps: int, kind: str, asked: str, seconds: float = SECONDS) -> Ranges:
    """The matches in a sequence of so many steps with these tokens. Raises ValueError with one sentence where what is
    asked for cannot be searched for; no match is no error."""
    if not asked:
        return ()
    if kind == STEPS:
        return steps_of(asked, steps)
    if not names:
        raise ValueError("The steps of this sequence have no text; ask for steps instead, such as 12-20, 40.")
    text, starts = joined(names)
    if kind == TEXT:
        wanted = unescaped(asked)
        spans = [one.span() for one in re.finditer(re.escape(wanted), text)][:MOST]
    else:
        spans = found_by(asked, text, seconds)
    return steps_at(spans, starts)


def unescaped(asked: str) -> str:
    r"""What was typed, with \n, \t, \r and \\ as the characters that they stand for."""
    return re.sub(r"\\([ntr\\])", lambda one: ESCAPES[one.group(1)], asked)


def joined(names: Sequence[str]) -> tuple[str, npt.NDArray[np.int64]]:
    """The tokens as one text, and where in it each begins (and the end). Words that have no space of their own, as the
    tokens of a vocabulary of words, are joined by one."""
    words = any(len(name) > 1 for name in names) and not any(
        name[:1].isspace() or name[-1:].isspace() for name in names
    )
    between = " " if words else ""
    sizes = np.array([len(name) + len(between) for name in names], np.int64)
    return between.join(names), np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))


def steps_at(spans: Sequence[tuple[int, int]], starts: npt.NDArray[np.int64]) -> Ranges:
    """The steps whose tokens are in each span of characters, first <= character < last; empty spans match nothing."""
    found = []
    for first, stop in spans:
        if stop > first:
            ends = np.searchsorted(starts, (first, stop - 1), side="right") - 1
            found.append((int(ends[0]), min(int(ends[1]), len(starts) - 2)))
    return tuple(found)


def found_by(pattern: str, text: str, seconds: float) -> list[tuple[int, int]]:
    """Where a regular expression matches, in characters. Raises ValueError where it is none, or takes too long."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as problem:
        raise ValueError(f"This is no regular expression: {problem}.") from None
    asked = json.dumps({"pattern": pattern, "text": text, "most": MOST})
    command = [sys.executable, "-I", "-c", _PROGRAM]
    try:
        done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"The regular expression took longer than {seconds:g} s and was given up: "
            "nested repetition such as (a+)+ does that."
        ) from None
    if done.returncode:
        raise ValueError("The regular expression could not be searched for: it needs more memory than there is.")
    return [(int(first), int(stop)) for first, stop in json.loads(done.stdout)]


def steps_of(asked: str, steps: int) -> Ranges:
    """Ranges typed as "12-20, 40". Raises ValueError for what is none, or is not in the sequence."""
    found = []
    for part in filter(None, (one.strip() for one in asked.split(","))):
        typed = re.fullmatch(r"(\d{1,12})(?:\s*[-–]\s*(\d{1,12}))?", part)
        if typed is None:
            raise ValueError(f"{part!r} is no range of steps; type such as 12-20, 40.")
        first, last = int(typed[1]), int(typed[2] or typed[1])
        if not first <= last < steps:
            there = f"they are numbered 0 to {steps - 1}" if steps else "there are none"
            raise ValueError(f"{part} is no range of steps of this sequence: {there}.")
        found.append((first, last))
    return tuple(sorted(found))


def marked(ranges: Ranges, steps: int) -> npt.NDArray[np.bool_]:
    """(steps,) which steps are in a match."""
    mark = np.zeros(steps, np.bool_)
    for first, last in ranges:
        mark[first : last + 1] = True
    return mark
