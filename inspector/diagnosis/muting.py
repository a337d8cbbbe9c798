"""A project's file with a mute more or one less: only that entry of its list changes, all else stays as it is written.

There is no writer of TOML in the standard library, and one would lose comments. So the text is changed, read again, and
kept only where it then says what was meant; a file that is written in another way is left as it is, and said.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from inspector.capture import CaptureError, write_atomically
from inspector.diagnosis.settings import FILE, Mute, SettingsError, project_file, read_settings

HEADER = re.compile(r"(?m)^[ \t]*\[[ \t]*diagnosis[ \t]*\][ \t]*(?:#.*)?$")
NEXT = re.compile(r"(?m)^[ \t]*\[")
KEY = re.compile(r"(?m)^[ \t]*mute[ \t]*=[ \t]*(?=\[)")
TOKEN = re.compile(r"""\"\"\".*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*|[\[\]{},]""", re.DOTALL)
Span = tuple[int, int]


def change_mutes(mute: Mute, folder: Path, *, on: bool = True, file: Path | None = None) -> Path:
    """Mute findings, or no longer, in a file, or the nearest one of a folder, or a new one there; the file that was
    written. Nothing changes where they are muted already. Raises SettingsError, and OSError."""
    path = file or project_file(folder) or folder / FILE
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    had = read_settings(path).muted if path.is_file() else ()  # a file that cannot be used is not changed either
    same = [one for one in had if (one.rule, one.place) == (mute.rule, mute.place)]
    if on == bool(same):
        if not on:
            raise SettingsError(f"{path} does not mute {_named(mute)}; nothing has changed.")
        return path
    changed = _with(text, entry(mute)) if on else _without(text, [n for n, one in enumerate(had) if one in same])
    wanted = (*had, mute) if on else tuple(one for one in had if one not in same)
    if changed is None or not _says(changed, text, wanted):
        what = f"add {entry(mute)} to diagnosis.mute" if on else f"take {_named(mute)} out of diagnosis.mute"
        raise SettingsError(f"{path} is written in a way that is not changed here: {what} by hand.")
    try:
        write_atomically(path.resolve(), changed.encode())  # what a link leads to
    except CaptureError as problem:
        raise SettingsError(f"{problem} It is as it was.") from None
    return path


def entry(mute: Mute) -> str:
    """A mute as it stands in the list."""
    parts = {"rule": mute.rule, "place": "" if mute.place == "*" else mute.place, "reason": mute.reason}
    if not parts["place"] and not parts["reason"]:
        return _text(mute.rule)
    return "{ " + ", ".join(f"{key} = {_text(value)}" for key, value in parts.items() if value) + " }"


def exactly(place: str) -> str:
    """A pattern that only this place matches."""
    return re.sub(r"([*?\[])", r"[\1]", place)


def _named(mute: Mute) -> str:
    return mute.rule if mute.place == "*" else f"{mute.rule} at {mute.place}"


def _text(words: str) -> str:
    """A basic string: those of JSON are some, but for one character that TOML does not take as it is."""
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")


def _with(text: str, new: str) -> str | None:
    header = HEADER.search(text)
    if header is None:
        before = f"{text.rstrip()}\n\n" if text.strip() else ""
        return f"{before}[diagnosis]\nmute = [{new}]\n"
    found = _list_of(text, header.end())
    if found is None:
        return f"{text[: header.end()]}\nmute = [{new}]{text[header.end() :]}"
    (start, end), entries = found
    if not entries:
        return f"{text[: start + 1]}{new}{text[start + 1 :]}"
    last = entries[-1]
    line = text.rfind("\n", start, last[0])
    apart = ", " if line < 0 else ",\n" + re.sub(r"\S.*", "", text[line + 1 : last[0]], flags=re.DOTALL)
    return f"{text[: last[1]]}{apart}{new}{text[last[1] :]}" if last[1] <= end else None


def _without(text: str, numbers: list[int]) -> str | None:
    header = HEADER.search(text)
    found = None if header is None else _list_of(text, header.end())
    if found is None or max(numbers, default=-1) >= len(found[1]):
        return None
    (_start, end), entries = found
    for n in sorted(numbers, reverse=True):
        first, last = entries[n]
        after = re.compile(r"\s*,[ \t]*").match(text, last, end)
        if after is not None:
            last = after.end()
        elif n:  # the last one: the comma before it goes
            first = entries[n - 1][1]
        text = text[:first] + text[last:]
        end -= last - first
        entries = entries[:n]
    return text


def _list_of(text: str, start: int) -> tuple[Span, list[Span]] | None:
    """Where the list of mutes stands in the table that begins there, with where each entry does; None without one."""
    after = NEXT.search(text, start)
    key = KEY.search(text, start, after.start() if after is not None else len(text))
    if key is None:
        return None
    depth, entries, begun, ended = 0, list[Span](), -1, -1
    at = key.end()
    for token in TOKEN.finditer(text, at):
        between = text[at : token.start()]
        word, at = token.group(), token.end()
        if depth == 1 and between.strip() and begun < 0:
            begun = token.start() - len(between.lstrip())
        if word.startswith("#"):
            continue
        if word in "]}":
            depth -= 1
        closes = word == "]" and depth == 0
        if (depth == 1 and word == ",") or closes:
            if begun >= 0:
                entries.append((begun, ended))
            begun = -1
            if closes:
                return (key.end(), token.end()), entries
            continue
        if word in "[{":
            begun = token.start() if depth == 1 and begun < 0 else begun
            depth += 1
        elif depth == 1 and begun < 0:
            begun = token.start()
        ended = token.end()
    return None


def _says(changed: str, text: str, wanted: tuple[Mute, ...]) -> bool:
    """Whether a text says what the one before said, with these mutes."""
    try:
        after, before = tomllib.loads(changed), tomllib.loads(text)
    except ValueError:
        return False
    had: dict[str, Any] = before.setdefault("diagnosis", {})
    said = after.get("diagnosis", {}).pop("mute", None)
    had.pop("mute", None)
    mutes = [Mute(one) if isinstance(one, str) else Mute(**one) for one in said or ()]
    return after == before and tuple(mutes) == wanted
