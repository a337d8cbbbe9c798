"""Damaged and hostile logs: nothing but CaptureError, in bounded memory, and nothing is opened that is no ordinary file."""

from __future__ import annotations

import json
import os
import random
import struct
import sys
import time
import tracemalloc
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from log_files import (
    BEGIN,
    GROWING,
    curve,
    event,
    events,
    histogram,
    history,
    item,
    metadata,
    part,
    record,
    scalar,
    tensor,
    trackio,
    varint,
    wandb_file,
)

from inspector.capture import CancelledError, CaptureError, LogView, open_any, open_log
from inspector.capture.logs import search

NAME = "events.out.tfevents.1"
ROUNDS = 60


def tensorboard(path: Path) -> None:
    values = [
        scalar("loss", 1),
        tensor("t", 1, part(4, struct.pack("<f", 1))),
        histogram("w", [0, 1, 2], [1, 2, 3], 0, 2),
    ]
    settings = part(1, "_hparams_/x") + metadata("hparams", part(3, part(1, part(1, "lr") + part(2, part(2, 0.5)))))
    table = tensor("h", 2, part(4, struct.pack("<6d", *range(6))), (2, 3), "histograms")
    events(path, *(event(n, *values, table, settings) for n in range(8)), *curve("x", range(8)))


def wandb(path: Path) -> None:
    bins = {"_type": "histogram", "values": [1, 2], "bins": [0, 1, 2]}
    wandb_file(
        path,
        part(5, part(1, item(["lr"], 1))),
        *(history(n, item(["a", "b"], n), item(["h"], bins)) for n in range(20)),
    )


def table(path: Path) -> None:
    path.write_text('step,_timestamp,loss,"a b"\n' + "".join(f'{n},{n},{n / 3},"{n}"\n' for n in range(30)))


def lines(path: Path) -> None:
    path.write_text("".join(json.dumps({"step": n, "loss": n / 3, "o": {"x": [n]}}) + "\n" for n in range(30)))


def state(path: Path) -> None:
    path.write_text(json.dumps({"log_history": [{"step": n, "loss": n} for n in range(20)], "max_steps": 3}))


def columns(path: Path) -> None:
    path.write_text(json.dumps({"step": list(range(20)), "loss": list(range(20)), "m": {"step": [1], "n": [2]}}))


def database(path: Path) -> None:
    with closing(trackio(path, [("a", n, {"loss": n}) for n in range(40)])) as base:
        base.execute("INSERT INTO configs VALUES (1, 'id-a', 'a', '{}', '')")
        base.commit()


FILES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "tensorboard": (NAME, tensorboard), "wandb": ("run-x.wandb", wandb), "csv": ("x.csv", table), "jsonl": ("x.jsonl", lines),
    "trainer state": ("trainer_state.json", state), "columns": ("history.json", columns), "trackio": ("x.db", database),
}  # fmt: skip


def use(log: LogView) -> None:
    """Everything that a panel may ask of it."""
    for name, channel in log.channels.items():
        with suppress(CaptureError):
            assert log.array(name).shape == log.extent(name) == log.known(name).shape
            log.overview(name, size=(10, 10))
        assert channel.domain("iteration") in log.axes and log.damage_of(name) is not None
    assert all("\n" not in sentence and "\x1b" not in sentence for sentence in log.damaged)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("seed", range(3))
def test_flipped_and_cut_files(tmp_path: Path, name: str, seed: int) -> None:
    file, make = FILES[name]
    path = tmp_path / file
    make(path)
    whole, chance = path.read_bytes(), random.Random(seed)
    log = open_log(path)
    for _ in range(ROUNDS // 3):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3, 20))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        if chance.random() < 0.4:
            data = data[: chance.randrange(len(data))]
        if chance.random() < 0.2:
            at = chance.randrange(len(data) + 1)
            data[at:at] = chance.randbytes(chance.randrange(40))
        path.write_bytes(data)
        log.refresh()
        use(log)
        with suppress(CaptureError):
            use(open_log(path))


@pytest.mark.parametrize("name", FILES)
def test_another_file_of_that_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / FILES[name][0]
    for content in (
        b"",
        b"\0",
        b"\0" * 70_000,
        b"\xff" * 70_000,
        os.urandom(5000),
        b"{" * 70_000,
        b"[" * 70_000,
        b"," * 70_000,
        b'"' * 70_000,
    ):
        path.write_bytes(content)
        with suppress(CaptureError):
            use(open_log(path))


def peak(what: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        with suppress(CaptureError):
            what()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


HOSTILE: dict[str, Callable[[], bytes]] = {
    "a length beyond the file": lambda: BEGIN + struct.pack("<Q", 1 << 60) + bytes(4000),
    "a string beyond its message": lambda: BEGIN + record(b"\x2a" + varint(1 << 40) + b"x" * 50),
    "a tensor of an endless shape": lambda: BEGIN + record(event(1, tensor("x", 1, part(5, struct.pack("<f", 1)), (1 << 40, 3), ""))),
    "messages inside messages": lambda: BEGIN + record(event(1, part(1, "_hparams_/x") + metadata("hparams", b"\x1a\x7f" * 5000))),
    "more tags than are read": lambda: BEGIN + record(event(1, *(scalar(f"tag {n}", 1) for n in range(30_000)))),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_lengths_take_no_memory(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.capture.logs.run_log.MOST_CURVES", 2000)
    path = tmp_path / NAME
    path.write_bytes(HOSTILE[what]())
    assert peak(lambda: use(open_log(path))) < 60 << 20


def test_bins_and_rows_have_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.capture.logs.histogram_table.MOST_CELLS", 100)
    wide = histogram("w", list(range(30)), [1] * 30, 0, 30)
    log = open_log(events(tmp_path / NAME, *(event(n, wide) for n in range(10))))
    with pytest.raises(CaptureError, match="w has 10 histograms of up to 30 numbers: read a region of it"):
        log.array("log:w")
    assert log.block("log:w", -1, (slice(2, 4),)).shape == (2, 30)


def test_too_many_curves_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.capture.logs.run_log.MOST_CURVES", 10)
    log = open_log(events(tmp_path / NAME, *(event(n, scalar(f"t{n}", 1)) for n in range(30))))
    assert len([one for one in log.channels.values() if one.kind == "series"]) == 10
    (said,) = log.damaged
    assert "'t10' and further names are left out: 10 curves are read" in said


def test_memory_of_a_long_log_is_that_of_its_packed_points(tmp_path: Path) -> None:
    tags, steps = 20, 2000
    block = BEGIN + b"".join(
        record(event(1 << 14 | n, *(scalar(f"t{k:02d}", k) for k in range(tags)))) for n in range(steps)
    )
    path = tmp_path / NAME
    path.write_bytes(block)
    points = 8 * tags * steps + 16 * steps
    assert peak(lambda: open_log(path)) < 4 * points + (30 << 20)


def test_progress_is_told_and_reading_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.capture.logs.tfrecord.WINDOW", 1000)
    path = events(tmp_path / NAME, *curve("loss", range(200)))
    told: list[tuple[int, int]] = []
    open_log(path, progress=lambda done, total: told.append((done, total)))
    assert len(told) > 5 and told == sorted(told) and told[-1] == (path.stat().st_size,) * 2
    with pytest.raises(CancelledError, match="was cancelled"):
        open_log(path, progress=lambda *_: None, cancelled=lambda: len(told) > 0)


CANCELLED = {
    "tensorboard": "tfrecord.WINDOW",
    "wandb": "readers.wandb.TOLD",
    "csv": "readers.csv_table.TOLD",
    "jsonl": "readers.json_lines.TOLD",
}


@pytest.mark.parametrize("name", CANCELLED)
def test_after_a_cancelled_reading_the_rest_follows(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"inspector.capture.logs.{CANCELLED[name]}", 1000)
    file, content = GROWING[name]
    path, asked = tmp_path / file, [-1000]
    path.write_bytes(content(20))

    def cancelled() -> bool:
        asked[0] += 1
        return asked[0] == 2

    log = open_log(path, cancelled=cancelled)
    path.write_bytes(content(1000))
    asked[0] = 0
    with pytest.raises(CancelledError):
        log.refresh()
    log.refresh()
    assert list(log.array("log:loss")) == list(range(1000)) and not log.events


def test_a_histogram_that_is_read_hides_nothing_new(tmp_path: Path) -> None:
    shown = histogram("w", [1, 2], [1, 2], 0, 2)
    path = events(tmp_path / NAME, event(0, shown, scalar("loss", 0)))
    log = open_log(path)
    with path.open("ab") as growing:
        growing.write(record(event(1, shown, scalar("loss", 1))))
    log.array("log:w")
    log.refresh()
    assert list(log.array("log:loss")) == [0, 1] and log.extent("log:w") == (2, 2)


# -- what lies in a folder


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes among files")
def test_pipes_links_that_lead_out_and_circles(tmp_path: Path) -> None:
    root, outside = tmp_path / "logs", tmp_path / "outside"
    events(root / "a" / NAME, *curve("loss", [1]))
    events(outside / NAME, *curve("loss", [2]))
    os.mkfifo(root / "events.out.tfevents.pipe")
    os.mkfifo(root / "x.csv")
    (root / "out").symlink_to(outside)
    (root / "a" / "circle").symlink_to(root)
    (root / "file.csv").symlink_to(outside / NAME)
    (root / "dangling.jsonl").symlink_to(root / "nothing")
    log = open_log(root)
    assert log.runs == ("a",) and not log.damage
    with pytest.raises(CaptureError, match="it is a named pipe, not an ordinary file"):
        open_log(root / "x.csv")


def test_a_folder_of_too_much_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(6):
        events(tmp_path / str(n) / NAME, *curve("loss", [1]))
    monkeypatch.setattr(search, "MOST_FILES", 3)
    log = open_log(tmp_path)
    assert len(log.runs) == 3 and "more than the 3 log files that are read" in log.damaged[0]
    monkeypatch.setattr(search, "MOST_ENTRIES", 4)
    with suppress(CaptureError):
        assert "more than the 4 files that are looked at" in open_log(tmp_path).damaged[0]


def test_texts_from_a_log_are_plain(tmp_path: Path) -> None:
    evil = "a\x1b]0;x\x07\u202eb:c\n" + "z" * 5000
    log = open_log(events(tmp_path / NAME, event(0, scalar(evil, 1))))
    (name,) = [name for name, one in log.channels.items() if one.kind == "series"]
    shown = name + log.channel(name).title + log.channel(name).domain("iteration")
    assert not set("\x1b\u202e\n") & set(shown) and len(name) < 1000
    np.testing.assert_array_equal(log.array(name), [1])


def test_what_is_no_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(100))
    (tmp_path / "sub").mkdir()
    for path in (tmp_path / "x.bin", tmp_path):
        with pytest.raises(CaptureError, match=r"is neither a capture .* nor a log: .*events.out.tfevents") as caught:
            open_any(path)
        assert len(str(caught.value)) < 700
    with pytest.raises(CaptureError, match=r"it holds sub, x.bin\."):
        open_log(tmp_path)
    with pytest.raises(CaptureError, match="There is no capture"):
        open_any(tmp_path / "nothing")


def test_a_log_far_down_is_found_and_what_is_deeper_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path.joinpath(*"abcdefghijklmnopqrst")
    deep.mkdir(parents=True)
    (deep / "metrics.csv").write_text("step,loss\n1,0.5\n")
    log = open_log(tmp_path)
    assert len(log.runs) == 1 and not log.damaged
    monkeypatch.setattr("inspector.capture.logs.search.DEEPEST", 19)
    (tmp_path / "metrics.csv").write_text("step,loss\n1,0.5\n")
    log = open_log(tmp_path)
    assert len(log.runs) == 1 and "t is more than 19 folders deep" in log.damaged[0]


def test_a_quote_without_an_end_takes_time_with_the_lines_not_their_square(tmp_path: Path) -> None:
    def taken(lines: int) -> float:
        (tmp_path / "metrics.csv").write_bytes(b'step,loss\n1,2\n2,"3\n' + b"1,2\n" * lines)
        os.utime(tmp_path / "metrics.csv", (1e9, 1e9))  # nobody writes it any more
        began = time.process_time()
        with closing(open_log(tmp_path / "metrics.csv")) as log:
            assert log.array("log:loss").tolist() == [2.0]
            assert "quoted cell has no end" in log.damaged[0]
        return time.process_time() - began

    taken(10)
    assert taken(160_000) < 24 * max(taken(20_000), 0.01), "eight times as many lines"


def test_a_quoted_cell_of_many_lines_is_one_cell(tmp_path: Path) -> None:
    lines = ["step,note,loss", '1,"two\n\nlines, and ""quotes""\r\n",0.5', '2,"a"",\n""\nb",0.25', "3,c,0.125"]
    (tmp_path / "metrics.csv").write_bytes("\n".join(lines).encode() + b"\n")
    with closing(open_log(tmp_path / "metrics.csv")) as log:
        assert log.array("log:loss").tolist() == [0.5, 0.25, 0.125] and not log.damaged
