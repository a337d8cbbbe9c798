"""What the files of a desktop say: the menu entry, the types of files, and how the command is written in them.

Formats: Desktop Entry Specification 1.0 and later, Shared MIME-info Database 0.21 (freedesktop.org).
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from inspector.capture import PACKED_SUFFIX
from inspector.capture.layout import APPLICATION_ID, INDEX
from inspector.capture.target import ID_AT
from inspector.workspace.session_files import SUFFIX as SESSION_SUFFIX

NAME = "sequence-inspector"
"""Of the entry, its icon and its file of types; on Wayland the window says it, by which a desktop knows its windows."""
WINDOW_CLASS = "inspector"
"""What its windows say on X11."""
CAPTURE, SESSION = "application/x-inspector-capture", "application/x-inspector-session"
COMMENT = "See, step by step, what happens inside a sequence model"
KEYWORDS = "rnn;lstm;gru;transformer;attention;gradient;training;pytorch;"
RESERVED = frozenset(" \t\n\"'\\><~|&;$*?#()`")
"""Characters for which an argument of `Exec` has to be quoted."""


def command() -> list[str]:
    """The words that start this very installation, whatever is first on the PATH when the menu does."""
    started = Path(sys.argv[0])
    beside = Path(sys.executable).with_name("inspector")
    for script in (started, beside):
        if script.name == "inspector" and os.access(script, os.X_OK) and script.is_file():
            return [str(script.absolute())]
    found = shutil.which("inspector")
    same = found is not None and Path(found).parent == Path(sys.executable).parent
    return [str(found)] if same else [sys.executable, "-P", "-m", "inspector"]


def quoted(word: str) -> str:
    """One argument of `Exec`: quoted by its rules, then escaped as every text of an entry is."""
    word = word.replace("%", "%%")
    if RESERVED & set(word):
        inside = "".join("\\" + letter if letter in '"`$\\' else letter for letter in word)
        word = f'"{inside}"'
    return escaped(word)


def escaped(text: str) -> str:
    """A text of an entry, on one line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def entry(words: list[str]) -> str:
    """The menu entry; it is not shown once the program that it starts is gone (TryExec)."""
    lines = {
        "Type": "Application",
        "Name": "inspector",
        "GenericName": "Sequence model inspector",
        "Comment": COMMENT,
        "TryExec": escaped(words[0]),
        "Exec": " ".join([*map(quoted, words), "%F"]),
        "Icon": NAME,
        "Terminal": "false",
        "Categories": "Science;DataVisualization;",
        "Keywords": KEYWORDS,
        "MimeType": f"{CAPTURE};{SESSION};",
        "StartupNotify": "true",
        "StartupWMClass": WINDOW_CLASS,
    }
    return "[Desktop Entry]\n" + "".join(f"{key}={value}\n" for key, value in lines.items())


def types() -> str:
    """The types: a packed capture by its name or by the index that its zip begins with; the index of a capture that is
    a folder by the number in the header of its database; a saved session by its name.

    A folder has no type of its own in any desktop, so a capture that was not packed opens by its index.
    """
    number = f"0x{APPLICATION_ID:08x}"
    text, ours = 'type="string" value="SQLite format 3"', f'type="big32" value="{number}"'
    name = 30  # bytes of a zip's first header before the name; behind the name there may be more fields
    data, most = name + len(INDEX), 60
    index = f'<match {text} offset="0"><match {ours} offset="{ID_AT}"/></match>'
    packed = (
        f'<match type="string" value="PK\\003\\004" offset="0"><match type="string" value="{INDEX}" offset="{name}">'
        f'<match {text} offset="{data}:{data + most}"><match {ours} offset="{data + ID_AT}:{data + ID_AT + most}"/>'
        "</match></match></match>"
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">
  <mime-type type="{CAPTURE}">
    <comment>Capture of a sequence model</comment>
    <icon name="{NAME}"/>
    <glob pattern="*{PACKED_SUFFIX}" weight="80"/>
    <magic priority="90">{index}{packed}</magic>
  </mime-type>
  <mime-type type="{SESSION}">
    <comment>Session of inspector</comment>
    <sub-class-of type="application/json"/>
    <icon name="{NAME}"/>
    <glob pattern="*{SESSION_SUFFIX}" weight="80"/>
  </mime-type>
</mime-info>
"""
