"""Lightning's `hparams.yaml` as far as it is a list of `name: value`: whatever is nested is left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from inspector.capture.regular import open_regular
from inspector.records.plain_text import plain_line

NAME = "hparams.yaml"
LARGEST = 1 << 20
_LINE = re.compile(r"([A-Za-z_][\w./-]*):[ \t]+(\S.*?)[ \t]*\r?\Z")
WORDS: dict[str, Any] = {"null": None, "~": None, "true": True, "false": False}


def settings_beside(path: Path) -> dict[str, Any]:
    """The settings in the file of that name beside a log; none where there is no such file."""
    try:
        with open_regular(path.with_name(NAME)) as file:
            text = file.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return {}
    found = (_LINE.match(line) for line in text.split("\n"))
    return {match[1]: _value(match[2]) for match in found if match and not match[2].startswith(("!", "&", "|", ">"))}


def _value(text: str) -> Any:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return plain_line(text.strip("'\""))
