"""A project's file with a mute more or one less: only that entry of its list changes, all else stays as it is written.

tomlkit changes the text, comments and all; it is read again by the standard library, and kept only where it then says
what was meant.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from inspector.capture import CaptureError, write_atomically
from inspector.diagnosis.settings import FILE, Mute, SettingsError, project_file, read_settings


def change_mutes(mute: Mute, folder: Path, *, on: bool = True, file: Path | None = None) -> Path:
    """Mute findings, or no longer, in a file, or the nearest one of a folder, or a new one there; the file that was
    written. Nothing changes where they are muted already. Raises SettingsError, and OSError."""
    path = file or project_file(folder) or folder / FILE
    there = path.is_file()
    had = read_settings(path).muted if there else ()  # a file that cannot be used is not changed either
    text = path.read_bytes().decode() if there else ""  # ends of lines as they are
    same = [one for one in had if (one.rule, one.place) == (mute.rule, mute.place)]
    if on == bool(same):
        if not on:
            raise SettingsError(f"{path} does not mute {_named(mute)}; nothing has changed.")
        return path
    try:
        changed = _with(text, mute) if on else _without(text, [n for n, one in enumerate(had) if one in same])
    except Exception:  # noqa: BLE001 - what the other reader of TOML takes and this one does not
        changed = ""
    wanted = (*had, mute) if on else tuple(one for one in had if one not in same)
    if not _says(changed, text, wanted):
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


def _with(text: str, mute: Mute) -> str:
    """A text with an entry more at the end of its list; on a line of its own where the others have lines."""
    from tomlkit import dumps, parse, table

    document = parse(text)
    diagnosis: Any = document.setdefault("diagnosis", table())
    new: Any = parse(f"mute = [{entry(mute)}]")["mute"]
    if "mute" not in diagnosis:
        diagnosis["mute"] = new
    elif lines := re.findall(r"\n([ \t]*)[\"'{]", diagnosis["mute"].as_string()):
        diagnosis["mute"].add_line(new[0], indent=lines[-1])
    else:
        diagnosis["mute"].append(new[0])
    changed = dumps(document)
    return changed if changed.endswith("\n") else f"{changed}\n"


def _without(text: str, numbers: list[int]) -> str:
    from tomlkit import dumps, parse

    document: Any = parse(text)
    for n in sorted(numbers, reverse=True):
        del document["diagnosis"]["mute"][n]
    return dumps(document)


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
