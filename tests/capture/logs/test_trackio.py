"""Trackio's databases: runs, settings, a writer that goes on writing, and other databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from log_files import OLDER, add_rows, trackio

from inspector.capture import CaptureError, open_log
from inspector.capture.logs.reader import Intake
from inspector.capture.logs.readers.trackio import Database
from inspector.capture.logs.run_log import RunLog

ROWS = [("a", n, {"loss": 1 / (n + 1), "epoch": n / 2}) for n in range(4)] + [
    ("b", 0, {"loss": "NaN", "x": {"y": "-Infinity"}})
]


@pytest.mark.parametrize("wal", [False, True])
def test_runs_and_settings(tmp_path: Path, wal: bool) -> None:
    with closing(trackio(tmp_path / "project.db", ROWS, wal=wal)) as base:
        base.execute("INSERT INTO configs VALUES (1, 'id-a', 'a', '{\"lr\": 0.1, \"_Username\": \"x\"}', '')")
        base.commit()
        log = open_log(tmp_path / "project.db")
    assert log.runs == ("a", "b") and log.one("a").start.meta["config"] == {"lr": 0.1}
    np.testing.assert_array_equal(log.array("a:loss"), [1, 1 / 2, 1 / 3, 1 / 4])
    np.testing.assert_array_equal(log.array("a:time/a" if "a:time/a" in log.channels else "a:time"), range(4))
    assert np.isnan(log.array("b:loss")).all() and log.array("b:x/y")[0] == -np.inf
    np.testing.assert_array_equal(log.one("a").array("log:epoch"), [0, 0.5, 1, 1.5])


@pytest.mark.parametrize("wal", [False, True])
def test_the_writer_goes_on_and_is_followed(tmp_path: Path, wal: bool) -> None:
    with closing(trackio(tmp_path / "p.db", ROWS[:2], wal=wal)) as base:
        log = open_log(tmp_path)
        for n in range(2, 6):
            add_rows(base, [("a", n, {"loss": float(n)})])  # never "database is locked"
            log.refresh()
            assert len(log.array("log:loss")) == n + 1
        base.execute("BEGIN EXCLUSIVE")
        log.refresh()
        assert len(log.array("log:loss")) == 6, "what was read stays while the database is locked"
        base.rollback()
        add_rows(base, [("new", 0, {"loss": 1.0})])
        log.refresh()
    assert log.runs == ("p/a", "p/new")


def test_runs_of_one_name_and_the_older_schema(tmp_path: Path) -> None:
    with closing(trackio(tmp_path / "p.db", [("a", 0, {"loss": 1})])) as base:
        base.execute(
            "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES ('0123456789', '', 'a', 0, '{\"loss\": 2}')"
        )
        base.commit()
        assert open_log(tmp_path / "p.db").runs == ("a", "a 01234567")
    with closing(sqlite3.connect(tmp_path / "old.db")) as base:
        base.execute(OLDER)
        base.execute("INSERT INTO metrics (run_name, step, metrics) VALUES ('a', 5, '{\"loss\": 2}')")
        base.commit()
        assert open_log(tmp_path / "old.db").array("log:loss")[0] == 2


def test_histograms(tmp_path: Path) -> None:
    value = {"_type": "trackio.histogram", "bins": [0, 1, 2], "values": [3, 4]}
    with closing(trackio(tmp_path / "p.db", [("a", 1, {"h": value})])):
        log = open_log(tmp_path)
        np.testing.assert_array_equal(log.array("log:h"), [[3, 4]])
        np.testing.assert_array_equal(log.array("log:h/edges"), [[0, 1, 2]])


def test_rows_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with closing(trackio(tmp_path / "p.db", [("a", 1, {"x": 1}), ("a", 2, "{"), ("a", 3, "[1]"), ("a", 4, {"x": 4})])):
        log = open_log(tmp_path)
    assert list(log.array("log:x")) == [1, 4] and "row 2" in log.damaged[0] and len(log.damaged) == 2


def test_other_databases_are_passed_over_in_a_folder_and_named_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as base:
        base.execute("CREATE TABLE runs (x)")
        base.commit()
    with pytest.raises(CaptureError, match=r"other.db has no table of trackio's metrics; its tables are runs"):
        open_log(tmp_path / "other.db")
    trackio(tmp_path / "p.db", ROWS[:1]).close()
    assert open_log(tmp_path).runs == ("p/a",) and not open_log(tmp_path).damage


def test_a_database_that_is_replaced_is_read_anew(tmp_path: Path) -> None:
    trackio(tmp_path / "p.db", ROWS[:4]).close()
    log = open_log(tmp_path / "p.db")
    trackio(tmp_path / "q.db", [("a", 0, {"loss": 9})]).close()
    (tmp_path / "q.db").replace(tmp_path / "p.db")
    log.refresh()
    assert list(log.array("log:loss")) == [9]


def test_a_message_that_quotes_damaged_bytes(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    trackio(path, ROWS).close()
    data = path.read_bytes().replace(b"tableconfigsconfigs", b"tableco\xc3figsco\xc3figs")
    path.write_bytes(data.replace(b"CREATE TABLE configs (id", b"CREATE TABLE configs (\xff("))
    with closing(sqlite3.connect(path)) as base, pytest.raises(UnicodeDecodeError):
        base.execute("PRAGMA table_info(metrics)")
    with pytest.raises(CaptureError, match=r"p.db cannot be read as an SQLite database: "):
        open_log(path)


class Circle:
    """A connection to a database whose pages are in a circle: the last row comes again and again."""

    def execute(self, query: str, _values: tuple[int, ...] = ()) -> Circle:
        self.query = query
        return self

    def fetchone(self) -> tuple[int]:
        return (5,)

    def fetchall(self) -> list[tuple[object, ...]]:
        return [(5, "a", "id", 0, "", '{"loss": 1}')]

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        if "sqlite_master" in self.query:
            return iter([("CREATE TABLE metrics (…)",)])
        return iter([(0, name, "", 0, None, 0, 0) for name in ("run_name", "run_id", "step", "metrics")])


def test_rows_that_go_round_in_a_circle_end() -> None:
    run = RunLog("a")
    base = Circle()
    with pytest.raises(CaptureError, match=r"x.db is damaged: the rows of its metrics are not in order"):
        Database(Path("x.db"))._metrics(base, Intake(lambda _name: run, lambda _read: None))  # type: ignore[arg-type]


def readings(base: sqlite3.Connection, rows: list[tuple[int, str]]) -> None:
    for second, told in rows:
        stamp = f"2026-01-01T00:00:{second:02d}+00:00"
        base.execute(
            "INSERT INTO system_metrics (run_id, timestamp, run_name, metrics) VALUES ('id-a', ?, 'a', ?)",
            (stamp, told),
        )
    base.commit()


@pytest.mark.parametrize("wal", [False, True])
def test_measurements_of_the_machine_are_at_the_step_that_was_made(tmp_path: Path, wal: bool) -> None:
    """The rows of the training are of second n at step n."""
    with closing(trackio(tmp_path / "p.db", ROWS[:3], wal=wal)) as base:
        base.execute(
            "CREATE TABLE system_metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL,"
            " run_name TEXT NOT NULL, metrics TEXT NOT NULL, log_id TEXT, space_id TEXT)"
        )
        readings(base, [(0, '{"cpu": 10, "gpu/0/memory": 0.5}'), (2, '{"cpu": 30}')])
        log = open_log(tmp_path / "p.db")
        assert log.array("log:system/cpu").tolist() == [10, 30] and log.array("log:system/gpu/0/memory").tolist() == [
            0.5
        ]
        assert log.array(f"log:{log.channel('log:system/cpu').domain('iteration')}").tolist() == [0, 2]
        add_rows(base, [("a", 7, {"loss": 0.0})])
        readings(base, [(8, '{"cpu": 40}'), (9, "no JSON")])
        log.refresh()
        assert log.array("log:system/cpu").tolist() == [10, 30, 40]
        assert log.array(f"log:{log.channel('log:system/cpu').domain('iteration')}").tolist() == [0, 2, 7]
        assert "row 4 of its system metrics cannot be read" in log.damaged[0]


ENDLESS = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
    "SELECT x AS id, 'r' AS run_name, x AS step, '{}' AS metrics FROM n"
)
LONG = "metrics TEXT GENERATED ALWAYS AS (printf('%.*c', 15000000, 'x')) VIRTUAL"


@pytest.mark.parametrize(
    "made",
    [
        f"CREATE VIEW metrics AS {ENDLESS}",
        f"CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_name TEXT, step INTEGER, m TEXT, {LONG})",
    ],
    ids=["a view without an end", "a column that is computed"],
)
def test_what_a_file_computes_is_not_read(made: str, tmp_path: Path) -> None:
    """Reading such a database would take as long as it wants."""
    with closing(sqlite3.connect(tmp_path / "p.db")) as base:
        base.execute(made)
        base.commit()
    with pytest.raises(CaptureError, match="has no table of trackio's metrics"):
        open_log(tmp_path / "p.db")


@pytest.mark.parametrize("table", ["configs", "system_metrics"])
def test_views_beside_the_metrics_are_not_read(table: str, tmp_path: Path) -> None:
    with closing(trackio(tmp_path / "p.db", ROWS)) as base:
        base.execute(f"DROP TABLE IF EXISTS {table}")
        more = ENDLESS.replace("AS metrics", "AS metrics, 1 AS timestamp, 1 AS config")
        base.execute(f"CREATE VIEW {table} AS {more}")
        base.commit()
    assert open_log(tmp_path / "p.db").runs == ("a", "b")
