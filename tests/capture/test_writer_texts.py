"""Whatever text a record holds, what is written is read again: equal, or cut with a mark that says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.capture import Writer, open_capture
from inspector.capture.layout import MAX_JSON
from inspector.records import (
    Channel,
    Finding,
    Frame,
    Labels,
    Log,
    Page,
    Place,
    Refusal,
    RunStart,
    RunStop,
    Scalar,
    encode,
)
from inspector.records.bounds import encoded

MARK = " … ["
PIECES = st.tuples(
    st.text(st.characters(exclude_categories=()), max_size=6), st.sampled_from([1, 1, 1, 1, 100, 200_000])
)
"""A text and how often it is repeated: hypothesis prints what it tried, and millions of characters are no help."""


def normal(text: str) -> str:
    """Two surrogates in a row that make a pair are that character; so they are in JSON."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def same(read: str, written: str) -> bool:
    kept, mark, _ = read.rpartition(MARK)
    cut = bool(mark) and len(written) > len(kept) and normal(written).startswith(kept[:-1])
    return read == normal(written) or cut


def alike(read: Any, written: Any) -> bool:
    return len(read) == len(written) and all(map(same, read, written))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(one=PIECES, other=PIECES, list_=st.lists(PIECES, min_size=1, max_size=4), key=st.text(max_size=20))
def test_any_text_in_any_record_is_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    one: tuple[str, int],
    other: tuple[str, int],
    list_: list[tuple[str, int]],
    key: str,
) -> None:
    (text, more), names = (piece * times for piece, times in (one, other)), tuple(p * times for p, times in list_)
    path = tmp_path_factory.mktemp("c") / "a.inspect"
    start = RunStart(
        run="r", title=text, subject=more, checkpoint=text, meta={key: more, "list": list(names)},
        places=(Place(name="", module=text), Place(name="a", module=more)),
    )  # fmt: skip
    channel = Channel(
        name="a:h", kind="state", dims=("step", "unit"), shape=(2, len(names)), title=text, formula=more, source=text,
        unit=more, method=text, module=more, labels={"unit": names}, value_domain=text,
    )  # fmt: skip
    finding = Finding(rule=text, severity="error", place=more, message=text, evidence=names, remedy=more)
    with Writer(path, start) as writer:
        for record in (
            Frame(index=0, label=text, meta={"a": more}), channel, Log(text, "error", more), Refusal("a:x", text), finding,
            Labels("step", names, 0), Labels("step", names, 0, len(names)), Scalar("a:s", 0, 1.0),
            Page("a:h", 0, (0, 0), np.ones((2, len(names)), np.float32)), RunStop("failed", more),
        ):  # fmt: skip
            writer.write(record)
    with open_capture(path) as capture:
        assert not capture.damaged and capture.status == "failed"
        assert (capture.array("a:h") == 1).all() and not capture.verify()
        began = capture.start
        assert alike((began.title, began.subject, began.checkpoint), (text, more, text))
        assert alike([place.module for place in began.places], (text, more))
        if key != "list":
            assert same(began.meta[normal(key)], more)
        read = capture.channels["a:h"]
        assert alike((read.title, read.formula, read.source, read.unit), (text, more, text, more))
        assert alike((read.method, read.module, read.value_domain), (text, more, text))
        assert alike(read.labels["unit"], names)
        assert same(capture.frames[0].label, text) and same(capture.frames[0].meta["a"], more)
        assert same(capture.logs[0].text, text) and same(capture.logs[0].source, more)
        assert same(capture.refusals[0].reason, text)
        assert alike((capture.findings[0].rule, capture.findings[0].message), (text, text))
        assert alike(capture.findings[0].evidence, names)
        assert alike(capture.labels("step"), (*names, *names))
        assert capture.stop is not None and same(capture.stop.message, more)


@pytest.mark.parametrize("character", ["x", "\0", "é", "日", "\U0001f600", "\udcff", '"'])
def test_every_record_of_five_megabytes_is_within_the_bound(character: str) -> None:
    long = character * (5_000_000 // len(encode(character)))
    records = (
        Log(long, "error", long), Refusal(f"{long}:h", long), Labels(long, (long, long)), RunStop("failed", long),
        Finding(rule=long, severity="error", place=long, message=long, evidence=(long,) * 3, remedy=long),
        Frame(index=0, label=long, meta={long: long}), RunStart(run="r", title=long, places=(Place(name=long, module=long),)),
        Channel(name=f"{long}:{long}", kind="state", dims=("step",), shape=(None,), title=long, labels={"step": (long,) * 3}),
    )  # fmt: skip
    for record in records:
        for data in encoded(record, MAX_JSON):
            assert len(data) <= MAX_JSON, type(record)


def test_what_is_short_is_never_cut() -> None:
    assert encoded(Log("x" * 900_000), MAX_JSON) == [
        b'{"record": "Log", "text": "' + b"x" * 900_000 + b'", "level": "info", "source": "worker"}'
    ]


def test_a_vocabulary_of_half_a_million_words_and_a_hundred_thousand_steps(tmp_path: Path) -> None:
    words = tuple(f"word {number} {'w' * (number % 50)}" for number in range(500_000))
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Labels("vocabulary", words, -1))
        writer.write(Labels("step", words[:40_000], 0))
        writer.write(Labels("step", words[40_000:100_000], 0, 40_000))
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.labels("vocabulary") == words and capture.labels("step", 0) == words[:100_000]
        assert not capture.damaged


def test_the_tree_of_a_hundred_thousand_modules(tmp_path: Path) -> None:
    places = tuple(
        Place(name=f"layers.{number}.attention.out", module="Linear", parameters=9) for number in range(100_000)
    )
    start = RunStart(run="r", title="t", places=places, meta={"torch": "2"})
    with Writer(tmp_path / "a.inspect", start) as writer:
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.start == start and capture.status == "done"


def test_lists_of_very_many_entries_in_other_records_are_cut_with_a_mark(tmp_path: Path) -> None:
    many = tuple(f"evidence {number}" for number in range(100_000))
    finding = Finding(rule="r", severity="info", place="a", message="m", evidence=many, steps=tuple(range(100_000)))
    channel = Channel(name="a:h", kind="depth", dims=("layer",), shape=(100_000,), title="h", labels={"layer": many})
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(finding)
        writer.write(channel)
        writer.write(Page("a:h", 0, (0,), np.ones(100_000, np.float32)))
    with open_capture(tmp_path / "a.inspect") as capture:
        read = capture.findings[0].evidence
        assert read[: len(read) - 1] == many[: len(read) - 1] and read[-1] == f"… [{100_000 - len(read) + 1:,} more]"
        assert capture.array("a:h").shape == (100_000,) and not capture.damaged


def test_names_of_any_length_stay_apart_and_keep_their_place(tmp_path: Path) -> None:
    stem = "m" * 3_000
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        for number, place in enumerate((f"{stem}.a", f"{stem}.b")):
            for signal in ("h", "gate/" + "g" * 2_000):
                name = f"{place}:{signal}"
                writer.write(Channel(name=name, kind="state", dims=("step",), shape=(None,), title="h"))
                writer.write(Page(name, 0, (0,), np.full(3, number, np.float32)))
        writer.write(Refusal(f"{stem}.a:x", "not here"))
        writer.write(Scalar(f"{stem}.a:x", 0, 1.0))
    with open_capture(tmp_path / "a.inspect") as capture:
        names = list(capture.channels)
        assert len(names) == 4 and all(len(name) <= 1_000 for name in names)
        assert [float(capture.array(name)[0]) for name in names] == [0, 0, 1, 1]
        places = [channel.place for channel in capture.channels.values()]
        assert places[0] == places[1] != places[2] == places[3] and all(place.startswith("mmm") for place in places)
        assert capture.refusals[0].channel == f"{places[0]}:x" == capture.scalars[0].name
        assert Place(name=f"{stem}.a", module="M").name == places[0]


def test_a_path_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "m\udcff.inspect"
    try:
        path.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    with Writer(path, RunStart(run="r", title="m\udcff", subject="m\udcff.py:make")) as writer:
        writer.write(RunStop("done", "m\udcff"))
    with open_capture(path) as capture:
        assert capture.start.subject == "m\udcff.py:make" and capture.stop == RunStop("done", "m\udcff")


def test_a_writer_that_meets_a_fault_of_its_own_says_so(tmp_path: Path) -> None:
    from inspector.capture import CaptureError

    writer = Writer(tmp_path / "a.inspect", RunStart(run="r", title="t"))
    writer.write(Scalar("loss", 0, object()))  # type: ignore[arg-type]
    with pytest.raises(CaptureError, match="could not be written"):
        writer.close()


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict", "latin-1:strict"])
def test_a_capture_whose_words_no_terminal_can_show_is_listed(tmp_path: Path, encoding: str) -> None:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t\udcff\ud800")) as writer:
        writer.write(Channel(name="a\udcfe:h", kind="state", dims=("step",), shape=(2,)))
        writer.write(Frame(index=0, label="f\udc80"))
        writer.write(Page("a\udcfe:h", 0, (0,), np.ones(2, np.float32)))
        writer.write(Refusal("a:c\udcff", "It is \udcff."))
        writer.write(RunStop("done"))
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    for more in ([], ["--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "inspector", "list", str(tmp_path / "a.inspect"), *more],
            capture_output=True, timeout=60, env=environment,
        )  # fmt: skip
        assert done.returncode == 0 and not done.stderr and b"dcff" in done.stdout.lower(), done
