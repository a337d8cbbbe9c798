"""Ways to harm a capture on the disk: by chance, as disks, copies and crashes do, and on purpose."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from inspector.capture.layout import INDEX

Harm = Callable[[Path, random.Random], str]


def _file(path: Path, chance: random.Random) -> Path:
    """The index in half of the cases, since everything else is found by it."""
    files = sorted(one for one in path.rglob("*") if one.is_file() and one.stat().st_size)
    index = path / INDEX
    return index if index in files and chance.random() < 0.5 else chance.choice(files)


def _edited(path: Path, chance: random.Random, edit: Callable[[bytearray], str]) -> str:
    file = _file(path, chance)
    data = bytearray(file.read_bytes())
    said = edit(data)
    file.write_bytes(data)
    return f"{file.name}: {said}"


def flip(path: Path, chance: random.Random) -> str:
    """One to 64 bits."""

    def edit(data: bytearray) -> str:
        places = [chance.randrange(len(data)) for _ in range(chance.choice((1, 1, 1, 3, 64)))]
        for place in places:
            data[place] ^= 1 << chance.randrange(8)
        return f"bits flipped in bytes {places[:4]}"

    return _edited(path, chance, edit)


def overwrite(path: Path, chance: random.Random) -> str:
    """A block of zeros, ones or anything."""

    def edit(data: bytearray) -> str:
        size, at = chance.choice((16, 512, 4096, 1 << 16)), chance.randrange(len(data))
        size = min(size, len(data) - at)
        data[at : at + size] = chance.choice((bytes(size), b"\xff" * size, chance.randbytes(size)))
        return f"bytes {at}–{at + size - 1} overwritten"

    return _edited(path, chance, edit)


def exchange(path: Path, chance: random.Random) -> str:
    """Two blocks change places."""

    def edit(data: bytearray) -> str:
        size = min(chance.choice((64, 512, 4096)), len(data) // 2)
        first, second = (chance.randrange(len(data) - size + 1) // size * size for _ in range(2))
        one, other = bytes(data[first : first + size]), bytes(data[second : second + size])
        data[first : first + size], data[second : second + size] = other, one
        return f"blocks of {size} at {first} and {second} exchanged"

    return _edited(path, chance, edit)


def cut(path: Path, chance: random.Random) -> str:
    """A file ends early."""

    def edit(data: bytearray) -> str:
        size = chance.choice((0, 1, 100, chance.randrange(len(data)), max(0, len(data) - 1)))
        del data[size:]
        return f"cut at {size}"

    return _edited(path, chance, edit)


def grow(path: Path, chance: random.Random) -> str:
    """Bytes come after the end, or in the middle."""

    def edit(data: bytearray) -> str:
        at = chance.choice((len(data), chance.randrange(len(data))))
        data[at:at] = chance.randbytes(chance.choice((1, 512, 5000)))
        return f"bytes put in at {at}"

    return _edited(path, chance, edit)


def lose(path: Path, chance: random.Random) -> str:
    """A file is gone, is empty, is a folder, or is a link to itself."""
    file = _file(path, chance)
    file.unlink()
    what = chance.choice(("gone", "empty", "a folder", "a link to itself", "a link to nothing"))
    if what == "empty":
        file.touch()
    elif what == "a folder":
        file.mkdir()
    elif what != "gone":
        file.symlink_to(file.name if what == "a link to itself" else "nowhere")
    return f"{file.name} is {what}"


def leave_journal(path: Path, chance: random.Random) -> str:
    """Journals beside the index that are none."""
    suffix = chance.choice(("-wal", "-shm", "-journal"))
    path.joinpath(INDEX + suffix).write_bytes(chance.randbytes(chance.choice((0, 31, 4096, 40_000))))
    return f"a foreign {suffix}"


def drop_rows(path: Path, chance: random.Random) -> str:
    """Rows of a table are gone."""
    with closing(sqlite3.connect(path / INDEX)) as index, index:
        table = chance.choice(_tables(index))
        many = chance.choice(("id % 2 = 0", "id = (SELECT max(id) FROM {0})", "id = (SELECT min(id) FROM {0})", "1"))
        index.execute(f"DELETE FROM {table} WHERE {many.format(table)}")
    return f"rows of {table} are gone ({many})"


def exchange_rows(path: Path, chance: random.Random) -> str:
    """Two rows of the table of pages, or of another, change places."""
    with closing(sqlite3.connect(path / INDEX)) as index, index:
        filled = [name for name in _tables(index) if index.execute(f"SELECT count(*) FROM {name}").fetchone()[0]]
        table = chance.choice([*filled, "pages", "pages"])
        ids = [row[0] for row in index.execute(f"SELECT id FROM {table}")]
        first, second = chance.choice(ids), chance.choice(ids)
        for old, new in ((first, -1), (second, first), (-1, second)):
            index.execute(f"UPDATE {table} SET id = ? WHERE id = ?", (new, old))
    return f"rows {first} and {second} of {table} exchanged"


def add_schema(path: Path, chance: random.Random) -> str:
    """Tables, views and triggers that a capture does not have."""
    statement = chance.choice((
        "CREATE TABLE more (id INTEGER)", "DROP TABLE pages", "DROP TABLE frames",
        "CREATE VIEW hang AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
        "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM pages; END",
        "ALTER TABLE pages ADD COLUMN more TEXT", "ALTER TABLE channels RENAME TO channel",
        "PRAGMA user_version = 99000", "PRAGMA application_id = 7", "PRAGMA user_version = -1",
    ))  # fmt: skip
    with closing(sqlite3.connect(path / INDEX)) as index, index:
        index.execute(statement)
    return statement


def _tables(index: sqlite3.Connection) -> list[str]:
    return [
        name for (name,) in index.execute("SELECT name FROM sqlite_master WHERE type = 'table'") if "sqlite" not in name
    ]


def mix(path: Path, chance: random.Random) -> str:
    """A file of another capture in the place of one."""
    file = _file(path, chance)
    other = [one for one in path.parent.parent.rglob(file.name) if one.is_file() and path not in one.parents]
    if not other:
        return cut(path, chance)
    shutil.copyfile(chance.choice(other), file)
    return f"{file.name} of another capture"


HARMS: dict[str, Harm] = {
    one.__name__: one
    for one in (
        flip, overwrite, exchange, cut, grow, lose, leave_journal, drop_rows, exchange_rows, add_schema, mix,
    )
}  # fmt: skip

FORGED: dict[str, Any] = {
    "a number of 400 digits": "1" + "0" * 400,
    "more than any machine has": 2**63 - 1,
    "negative": -1,
    "no number": "nan",
    "infinite": 9e999,
    "nothing": None,
    "bytes": b"\xff\xfe\x00\x01" * 4,
    "bytes as text": "bytes",
    "deep": "[" * 100_000 + "]" * 100_000,
    "long": "x" * 200_000,
    "a path out of the folder": "../../../../etc/passwd",
    "markup": '<img src="file:///dev/zero"><table>' * 50,
    "terminal": "\x1b]0;owned\x07\x1b[2J\u202egnp.exe",
    "lone surrogate": '"\\ud800"',
    "a record of another kind": '{"record": "Quit"}',
    "huge shape": "[4611686018427387904, 4611686018427387904]",
    "many axes": "[" + ", ".join(["1"] * 5000) + "]",
    "huge counts": '{"record": "RowCounts", "first": {}, "last": {"pages": 1e400}}',
}


def forge(path: Path, value: str, chance: random.Random) -> str:
    """One cell, or one value within a record, has a hostile value."""
    with closing(sqlite3.connect(path / INDEX)) as index, index:
        table = chance.choice(_tables(index))
        columns = [row[1] for row in index.execute(f"PRAGMA table_info({table})") if row[1] != "checksum"]
        column = chance.choice(columns)
        hostile, within = FORGED[value], chance.random() < 0.5
        with suppress(sqlite3.Error, OverflowError):
            if within and "record" in columns and isinstance(hostile, (str, int)):
                return _within(index, table, hostile, chance)
            if hostile == "bytes":
                index.execute(f"UPDATE {table} SET {column} = CAST(x'fffe41' AS TEXT)")
            else:
                one = chance.choice(("", " WHERE id = (SELECT max(id) FROM {0})")).format(table)
                index.execute(f"UPDATE {table} SET {column} = ?{one}", (hostile,))
    return f"{table}.{column} is {value}"


def _within(index: sqlite3.Connection, table: str, hostile: str | int, chance: random.Random) -> str:
    """A value of a record's JSON is replaced, its structure kept."""
    import json

    number, text = chance.choice(index.execute(f"SELECT id, record FROM {table}").fetchall())
    record = json.loads(text)
    key = chance.choice(list(record))
    record[key] = chance.choice((hostile, [hostile], {"a": hostile}))
    index.execute(f"UPDATE {table} SET record = ? WHERE id = ?", (json.dumps(record), number))
    return f"{table} {number}: {key} forged"
