"""Why something could not be read is said in plain words: never in those of Python or of a library."""

from __future__ import annotations

import ast
import errno
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.records import BadRecordError
from inspector.records.unreadable import DO_NOT_FIT, in_plain_words, why_unreadable

PACKAGE = Path(__file__).parents[2] / "inspector"
OWN = "NamedTwiceError"
NOTHING: Any = None
ONE: Any = [1]
TRIPLES: Any = [(1, 2, 3)]


def zip_of_another_name() -> None:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", b"x")
    changed = BytesIO(file.getvalue().replace(b"a.npy", b"b.npy", 1))
    zipfile.ZipFile(changed).read("a.npy")


OF_PROGRAMS: list[Callable[[], object]] = [
    lambda: tuple(ONE)[3],
    lambda: [][3],
    lambda: [][NOTHING],
    lambda: dict[str, int]()["key"],
    lambda: NOTHING.append(1),
    lambda: NOTHING[0],
    lambda: len(NOTHING),
    lambda: int("x"),
    lambda: float("x"),
    lambda: struct.unpack("<I", b"x"),
    lambda: (lambda a, b: a)(*ONE),
    lambda: dict(TRIPLES),
    lambda: zlib.decompress(b"no"),
    lambda: np.zeros(3).reshape(2, 4),
    lambda: np.dtype("f99"),
    lambda: np.frombuffer(b"abc", np.float32),
    lambda: bytes([300]),
    lambda: memoryview(b"abc").cast("I"),
    lambda: 10.0**400,
    zip_of_another_name,
]


@pytest.mark.parametrize("fault", OF_PROGRAMS)
def test_words_of_programs_are_not_said(fault: Callable[[], object]) -> None:
    with pytest.raises(Exception) as raised:
        fault()
    assert why_unreadable(raised.value) == DO_NOT_FIT
    assert in_plain_words(f"{type(raised.value).__name__}: {raised.value}") == DO_NOT_FIT


def test_where_a_text_is_damaged_is_said() -> None:
    with pytest.raises(ValueError) as text:
        b"abc\xff".decode()
    assert why_unreadable(text.value) == "byte 3 is no text in UTF-8"
    with pytest.raises(ValueError) as broken:
        json.loads('{\n"a": }')
    assert why_unreadable(broken.value) == "expecting value in line 2, column 6"


def test_sentences_of_this_program_and_reasons_of_the_system_stay() -> None:
    assert why_unreadable(BadRecordError("Channel.dtype must be a text.")) == "Channel.dtype must be a text"
    assert why_unreadable(ValueError("it holds two\nentries.")) == "it holds two entries"
    assert why_unreadable(OSError(errno.EACCES, "Permission denied")) == "Permission denied"
    assert why_unreadable(OSError(errno.EINVAL, "Invalid argument")) == DO_NOT_FIT
    assert why_unreadable(EOFError()) == "it ends too early"
    assert why_unreadable(ValueError("\x1b[31m" + "x" * 900)) and len(why_unreadable(ValueError("x" * 900))) <= 160
    assert "\x1b" not in why_unreadable(ValueError("\x1b[31mred"))
    assert (why_unreadable(RecursionError()), why_unreadable(MemoryError())) != ("", "")


def test_no_reader_says_what_python_says() -> None:
    """In files that read what comes from outside, an exception that may be Python's is put into plain words."""
    found = []
    for path in (path for folder in ("loaders", "inputs") for path in (PACKAGE / "engine" / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ExceptHandler) and node.name is not None and ast.unparse(node.type or node) != OWN:
                quoted = {ast.unparse(one.value) for one in ast.walk(node) if isinstance(one, ast.FormattedValue)}
                if quoted & {node.name, f"str({node.name})"}:
                    found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert found == []
