"""Every field of every record, and every number and word of every text that is read, replaced by what no program writes.

Numbers of 400 and of 5,000 digits, infinities, brackets three thousand deep, other types, lone surrogates: each is read, or
refused in one plain sentence.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from every_record import examples
from mutate import NUMBERS, WORDS
from target import load, seeds, tried

from inspector.records import BadRecordError, decode, encode
from inspector.records.codec import FARTHEST, RECORDS

MARK = "\ue000"
HOSTILE = (
    "1" + "0" * 400, "-1" + "0" * 400, "9" * 5000, str(2**63), str(2**64 - 1), str(2**64), "-1", "1e999", "-1e999", "1e-999", "NaN", "Infinity",
    "null", "true", "[]", "{}", '""', '"\\ud800"', '"\\u0000"', '"NaN"', '"' + "x" * 50_000 + '"', "[" * 3000 + "]" * 3000,
    '{"a":' * 300 + "1" + "}" * 300, '{"record": "Quit"}', "[" + "1," * 2000 + "1]", "0.5", '"../../etc/passwd"',
)  # fmt: skip
TEXTS = (
    "log_csv", "log_lines", "log_history", "log_trainer_state", "hugging_face", "session", "project_file", "messages",
)  # fmt: skip
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|\b[A-Za-z_]\w*')
SOURCES = Path(__file__).parents[2] / "inspector"


def forged(value: Any) -> Iterator[str]:
    """The JSON of a record with one value after the other replaced by MARK."""
    whole = value

    def walk(inner: Any) -> Iterator[str]:
        for key in list(inner) if isinstance(inner, dict) else range(len(inner)):
            kept, inner[key] = inner[key], MARK
            yield json.dumps(whole)
            inner[key] = kept
            if isinstance(kept, (dict, list)):
                yield from walk(kept)

    yield from walk(value)


@pytest.mark.parametrize("name", RECORDS)
def test_a_forged_value_in_a_record_is_read_or_refused(name: str, tmp_path: Path) -> None:
    target, refused = load("records"), 0
    text = encode(examples()[name])
    assert decode(text) == examples()[name]
    for marked in forged(json.loads(text)):
        for value in HOSTILE:
            data = marked.replace(json.dumps(MARK), value).encode()
            refused += tried(target, data, tmp_path / "x") == "refused"
    if len(json.loads(text)) > 1:
        assert refused


@pytest.mark.parametrize("name", TEXTS)
def test_a_forged_token_in_a_text_is_read_or_refused(name: str, tmp_path: Path) -> None:
    target = load(name)
    values = [*NUMBERS[::3], *WORDS[::4]]
    for path in seeds(name)[:2]:
        data = path.read_bytes()
        assert tried(target, data, tmp_path / "x") == "read"
        for found in list(TOKEN.finditer(data))[:30]:
            for value in values:
                changed = data[: found.start()] + value + data[found.end() :]
                try:
                    tried(target, changed, tmp_path / "x")
                except Exception as fault:
                    raise AssertionError(f"{path.name}, byte {found.start()}, {value[:40]!r}") from fault


def test_whole_numbers_that_no_field_has() -> None:
    text = '{"record": "Frame", "index": %d}'
    assert decode(text % (FARTHEST - 1)).index == FARTHEST - 1
    with pytest.raises(BadRecordError, match=r"Frame\.index is a whole number of 20 digits"):
        decode(text % FARTHEST)
    with pytest.raises(BadRecordError, match="beyond any float"):
        decode('{"record": "Scalar", "name": "a", "frame": 0, "value": 1%s}' % ("0" * 400))


def test_json_from_outside_is_read_by_one_function_only() -> None:
    """`json.loads` raises RecursionError, and reads what ends those that walk through it."""
    own = {
        "records/json_text.py", "records/report.py", "workspace/session_files.py", "engine/session/sweep/identity.py",
        "analysis/text_matches.py", "engine/watch/scripts/claims.py", "engine/watch/scripts/startup/sitecustomize.py",
    }  # fmt: skip  # the others read what they wrote themselves a moment ago
    found = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if _parses(path)}
    assert found - own == set()


def _parses(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    return "json.load" in text and any(
        isinstance(node, ast.Attribute) and node.attr in ("loads", "load") and getattr(node.value, "id", "") == "json"
        for node in ast.walk(ast.parse(text))
    )
