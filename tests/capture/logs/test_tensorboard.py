"""Event files: both encodings of scalars, histograms, runs in folders, restarts, damage. Files by tests/support/log_files."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from log_files import BEGIN, curve, event, events, histogram, metadata, part, record, scalar, tensor, varint

from inspector.capture import CaptureError, LogView, open_log

NAME = "events.out.tfevents.1"


def values(log: LogView, name: str) -> list[float]:
    return list(log.array(f"log:{name}"))


def iterations(log: LogView, name: str) -> list[float]:
    axis = log.channel(f"log:{name}").domain("iteration")
    return list(log.array(f"log:{axis}"))


def test_a_scalar_of_the_older_encoding(tmp_path: Path) -> None:
    events(tmp_path / NAME, *curve("train/loss", [0.5, np.nan, np.inf, -np.inf, 0.25]))
    log = open_log(tmp_path)
    np.testing.assert_array_equal(values(log, "train/loss"), [0.5, np.nan, np.inf, -np.inf, 0.25])
    assert iterations(log, "train/loss") == [0, 1, 2, 3, 4] and not log.damage
    assert list(log.array("log:time")) == [0, 1, 2, 3, 4], "seconds since the run began"
    channel = log.channel("log:train/loss")
    assert (channel.kind, channel.dims, channel.dtype) == ("series", ("iteration",), "float64")
    assert log.known("log:train/loss").all(), "NaN that was logged is known"


PACKED = {
    "float content": (1, part(4, struct.pack("<f", 1.5)), 1.5), "float values": (1, part(5, struct.pack("<f", 1.5)), 1.5),
    "float unpacked": (1, b"\x2d" + struct.pack("<f", 1.5), 1.5), "double content": (2, part(4, struct.pack("<d", 0.1)), 0.1),
    "double values": (2, part(6, struct.pack("<d", 0.1)), 0.1), "half values": (19, part(13, varint(0x3E00)), 1.5),
    "half content": (19, part(4, struct.pack("<e", 1.5)), 1.5), "bfloat16": (14, part(13, varint(0x3FC0)), 1.5),
    "int32": (3, part(7, varint(-3)), -3), "int64 content": (9, part(4, struct.pack("<q", -(2**40))), -(2**40)),
    "int64": (9, part(10, -7), -7), "uint8": (4, part(7, 200), 200), "bool": (10, part(11, 1), 1),
    "nan": (2, part(4, struct.pack("<d", np.nan)), np.nan),
}  # fmt: skip


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("plugin", ["scalars", ""])
def test_a_scalar_as_a_tensor(tmp_path: Path, name: str, plugin: str) -> None:
    dtype, body, expected = PACKED[name]
    events(
        tmp_path / NAME,
        event(3, tensor("x", dtype, body, plugin=plugin)),
        event(5, tensor("x", dtype, body, plugin="")),
    )
    log = open_log(tmp_path)
    np.testing.assert_array_equal(values(log, "x"), [expected] * 2)
    assert iterations(log, "x") == [3, 5]


def test_steps_that_are_negative_or_large(tmp_path: Path) -> None:
    steps = [-5, -1, 0, 127, 128, 16_384, 2**40]
    events(tmp_path / NAME, *(event(step, scalar("x", step)) for step in steps))
    assert iterations(open_log(tmp_path), "x") == steps


def test_several_values_of_one_event_and_what_is_no_number(tmp_path: Path) -> None:
    image = part(1, "picture") + part(4, part(1, 4))
    words = tensor("note", 7, part(8, "hello\x1b[31m"), plugin="text")
    events(tmp_path / NAME, event(1, scalar("a", 1), image, words, scalar("b", 2)), event(2, scalar("a", 3)))
    log = open_log(tmp_path)
    assert values(log, "a") == [1, 3] and values(log, "b") == [2]
    assert "log:picture" not in log.channels and log.start.meta["texts"]["note"].startswith("hello")


def test_histograms_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    big = 1.7976931348623157e308
    events(
        tmp_path / NAME,
        event(1, histogram("w", [0.0, 1.0, 2.0], [0, 4, 5], 0.0, 1.5)),  # as torch writes: an empty first bin
        event(2, histogram("w", [-1.0, 0.0, 3.0, big], [1, 2, 3, 4], -2.0, 7.0)),
        event(3, tensor("t", 1, part(4, struct.pack("<6f", 0, 1, 5, 1, 3, 6)), (2, 3), "histograms")),
    )
    log = open_log(tmp_path)
    counts, edges = log.array("log:w"), log.array("log:w/edges")
    np.testing.assert_array_equal(counts, [[4, 5, np.nan, np.nan], [1, 2, 3, 4]])
    assert log.extent("log:w") == (2, 4) and log.extent("log:t") == (1, 2)
    np.testing.assert_array_equal(edges, [[0, 1, 2, np.nan, np.nan], [-2, -1, 0, 3, 7]])
    assert log.known("log:w").sum() == 6 and log.channel("log:w").dims == ("iteration", "bin")
    np.testing.assert_array_equal(log.array("log:t/edges"), [[0, 1, 3]])
    np.testing.assert_array_equal(log.block("log:w", -1, (slice(1, 2), slice(0, 2))), [[1, 2]])


def test_settings_of_the_hparams_plugin(tmp_path: Path) -> None:
    settings = b"".join(
        part(1, part(1, name) + part(2, value))
        for name, value in {"lr": part(2, 0.1), "opt": part(3, "adam"), "flag": part(4, 1)}.items()
    )
    about = part(1, "_hparams_/session_start_info") + metadata("hparams", part(3, settings))
    events(tmp_path / NAME, event(0, about), *curve("loss", [1, 2]))
    assert open_log(tmp_path).start.meta["config"] == {"lr": 0.1, "opt": "adam", "flag": True}


def test_folders_are_runs_and_add_scalars_belongs_to_the_one_above(tmp_path: Path) -> None:
    events(tmp_path / "a" / NAME, *curve("loss", [1, 2]))
    events(tmp_path / "a" / "both_parts_x" / NAME, *curve("both/parts", [5]))
    events(tmp_path / "b" / NAME, *curve("loss", [3]))
    log = open_log(tmp_path)
    assert log.runs == log.shown == ("a", "b")
    assert list(log.array("a:loss")) == [1, 2] and list(log.array("b:loss")) == [3]
    assert list(log.array("a:both/parts/x")) == [5]
    assert log.channel("a:loss").domain("iteration") != log.channel("b:loss").domain("iteration")
    one = open_log(tmp_path, "b")
    assert values(one, "loss") == [3] and one.runs == ("a", "b") and one.shown == ("b",)
    with pytest.raises(CaptureError, match=r"There is no run 'c' in .*; there are a, b"):
        open_log(tmp_path, "c")


# -- restarts


def test_a_restart_in_a_new_file_takes_the_place_of_what_came_after(tmp_path: Path) -> None:
    both = [event(n, scalar("loss", n), scalar("lr", 1)) for n in range(10)]
    events(tmp_path / f"{NAME}00", *both, *curve("once", [4], first=20))
    events(tmp_path / f"{NAME}01", *(event(n, scalar("loss", -n), scalar("lr", 2)) for n in range(6, 9)))
    log = open_log(tmp_path)
    assert iterations(log, "loss") == list(range(9))
    assert values(log, "loss") == [0, 1, 2, 3, 4, 5, -6, -7, -8] and values(log, "lr")[-3:] == [2, 2, 2]
    assert values(log, "once") == [4]
    (restart,) = log.events
    assert (restart.kind, restart.iteration) == ("restart", 6) and "iteration 9" in restart.text


def test_a_restart_in_the_same_file(tmp_path: Path) -> None:
    events(tmp_path / NAME, *curve("loss", range(8)), *curve("loss", [70, 80], first=3))
    log = open_log(tmp_path)
    assert iterations(log, "loss") == [0, 1, 2, 3, 4] and values(log, "loss") == [0, 1, 2, 70, 80]
    assert [one.iteration for one in log.events] == [3]


def test_neighbours_that_a_thread_swapped_are_no_restart(tmp_path: Path) -> None:
    order = [0, 1, 3, 2, 4, 5, 7, 6]
    events(tmp_path / NAME, *(event(n, scalar("loss", n)) for n in order))
    log = open_log(tmp_path)
    assert values(log, "loss") == list(range(8)) and not log.events


def test_a_session_that_starts_removes_what_comes_later_of_every_curve(tmp_path: Path) -> None:
    start = event(4) + part(7, part(1, 1))
    events(tmp_path / NAME, *curve("a", range(8)), *curve("b", range(3)), start, *curve("a", [50], first=5))
    log = open_log(tmp_path)
    assert values(log, "a") == [0, 1, 2, 3, 50] and values(log, "b") == [0, 1, 2]
    assert [one.iteration for one in log.events] == [4]


def test_points_without_a_step_are_all_kept(tmp_path: Path) -> None:
    events(tmp_path / NAME, *(event(0, scalar("loss", n), time=1000.0 + n) for n in range(4)))
    log = open_log(tmp_path)
    assert values(log, "loss") == [0, 1, 2, 3] and list(log.array("log:time")) == [0, 1, 2, 3]


def test_of_two_files_that_write_one_curve_at_once_the_later_one_counts(tmp_path: Path) -> None:
    first, second = tmp_path / f"{NAME}00", tmp_path / f"{NAME}01"
    events(first, *curve("loss", [1, 1, 1]))
    events(second, *curve("loss", [2, 2, 2]))
    log = open_log(tmp_path)
    for path, value in ((first, 1), (second, 2), (first, 1)):
        with path.open("ab") as file:
            file.write(record(event(3 + (path == first), scalar("loss", value))))
        log.refresh()
    assert set(values(log, "loss")) == {2} and len(log.events) == 1


# -- damage


def damaged(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize("what", ["data", "checksum", "length", "length's checksum"])
def test_a_damaged_record_is_told_with_its_place_and_the_others_are_read(tmp_path: Path, what: str) -> None:
    path = events(tmp_path / NAME, *curve("loss", range(6)))
    size = len(record(curve("loss", range(6))[2]))
    start = path.stat().st_size - 3 * size
    damaged(path, start + {"length": 0, "length's checksum": 9, "data": 30, "checksum": size - 1}[what])
    log = open_log(tmp_path)
    assert values(log, "loss") == [0, 1, 2, 4, 5]
    (one,) = log.damage
    assert f"byte {start:,}:" in one.sentence and NAME in one.sentence and one.anywhere
    assert log.damage_of("log:loss") == (one,)


def test_a_record_that_is_no_event(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(BEGIN + record(b"\xff" * 30) + record(event(1, scalar("loss", 2))))
    log = open_log(tmp_path)
    assert values(log, "loss") == [2] and "is not an event" in log.damaged[0]


def test_a_record_that_is_too_large_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.capture.logs.tfrecord.WINDOW", 200)
    monkeypatch.setattr("inspector.capture.logs.tfrecord.LARGEST", 1000)
    events(
        tmp_path / NAME,
        *curve("loss", [1]),
        event(1, part(1, "x" * 2000)),
        event(2, part(1, "x" * 500)),
        *curve("loss", [2], 3),
    )
    log = open_log(tmp_path)
    assert values(log, "loss") == [1, 2] and "more than the 1,000" in log.damaged[0]
