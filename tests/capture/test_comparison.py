"""Any two (capture, frame) references as one view: differences, ratios, and the reason where there is neither."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from captures import START, channel, flip

from inspector.capture import (
    Capture,
    CaptureError,
    Comparison,
    DamagedError,
    Difference,
    Reference,
    Writer,
    export_channel,
    open_capture,
)
from inspector.records import Axis, Channel, Frame, Labels, Page, RunStop

STATE = channel("rnn.l0:h", method="exact", limits=(-1.0, 1.0))
NORM = channel(
    "rnn.l0:jacobian/spectral_norm",
    dims=("step",),
    shape=(None,),
    kind="jacobian",
    compare="ratio",
    title="spectral norm",
)
TABLE = channel("rnn.l0:spectrum", dims=("rank",), shape=(None,), kind="spectrum", compare="separate", scale="log")
TOKENS = channel("output:token", "int64", dims=("step",), shape=(None,), kind="output", value_domain="vocabulary")
LOGARITHMIC = channel("rnn.l0:logged", dims=("step",), shape=(None,), kind="lag", scale="log")
"""Drawn on a logarithmic scale, and yet a difference, for it says so."""
ALL = (STATE, NORM, TABLE, TOKENS, LOGARITHMIC)


def values(described: Channel, seed: int, steps: int = 20) -> npt.NDArray[np.generic]:
    shape = (steps, described.shape[1]) if len(described.dims) == 2 else (steps,)
    numbers = np.random.default_rng([seed, len(described.name)]).random(shape) + 0.1  # type: ignore[arg-type]
    return (100 * numbers).astype(described.dtype)


def run(
    path: Path, seed: int, *, steps: int = 20, tokens: str = "abcdefghijklmnopqrstuvwxyz", more: tuple[Channel, ...] = (),
    changes: dict[str, dict[str, Any]] | None = None, rows: int = 8, frames: int = 1, done: bool = True,
) -> Path:  # fmt: skip
    with Writer(path, START) as writer:
        writer.write(Axis(name="step", title="token", length=steps))
        for frame in range(frames):
            writer.write(Frame(index=frame))
            writer.write(Labels("step", tuple(tokens[:steps]), frame))
            for plain in (*ALL, *more):
                described = replace(plain, **(changes or {}).get(plain.name, {}))
                writer.write(described)
                array = values(described, seed + frame, steps)
                for start in range(0, steps, rows):
                    offset = (start, *[0] * (array.ndim - 1))
                    writer.write(Page(described.name, frame, offset, array[start : start + rows]))
        if done:
            writer.write(RunStop("done"))
    return path


class Pair:
    """Two captures and their comparison."""

    def __init__(self, first: Path, second: Path) -> None:
        self.captures: list[Capture] = [open_capture(first), open_capture(second)]
        self.both = Comparison(*(Reference(one, name=name) for one, name in zip(self.captures, "ab", strict=True)))

    def __enter__(self) -> Comparison:
        return self.both

    def __exit__(self, *_: object) -> None:
        for one in self.captures:
            one.close()


def test_the_channel_alone_says_what_two_of_it_make(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a.inspect", 1), run(tmp_path / "b.inspect", 2)
    with Pair(a, b) as both:
        assert list(both.channels) == [STATE.name, NORM.name, LOGARITHMIC.name]
        assert both.separate == (TABLE.name,)
        assert both.refused == {TOKENS.name: "Its numbers are indices, counts or marks, which do not subtract."}
        for described in (STATE, LOGARITHMIC):
            found = both.channels[described.name]
            np.testing.assert_array_equal(both.array(described.name), values(described, 2) - values(described, 1))
            assert (found.title, found.scale, found.limits) == (f"Δ {described.title}", "diverging", None)
            assert found.unit == described.unit and found.shape == both.extent(described.name)
        ratio = both.channels[NORM.name]
        np.testing.assert_allclose(both.array(NORM.name), values(NORM, 2) / values(NORM, 1), rtol=1e-6)
        assert (ratio.scale, ratio.unit, ratio.title) == ("ratio", "×", "spectral norm")
        assert both.channel(NORM.name, 0) == ratio
        for name, said in (
            (TABLE.name, "one run at a time"),
            (TOKENS.name, "do not subtract"),
            ("x:y", "Neither has it"),
        ):
            for ask in (both.channel, both.array, both.extent, both.holes):
                with pytest.raises(CaptureError, match=said):
                    ask(name)
            assert both.revision(name) == 0


def test_zero_by_zero_is_no_change(tmp_path: Path) -> None:
    for name, numbers in (("a", [0, 0, 2]), ("b", [0, 3, 0])):
        with Writer(tmp_path / f"{name}.inspect", START) as writer:
            writer.write(NORM)
            writer.write(Page(NORM.name, 0, (0,), np.array(numbers, np.float32)))
    with Pair(tmp_path / "a.inspect", tmp_path / "b.inspect") as both:
        assert both.array(NORM.name).tolist() == [1.0, np.inf, 0.0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_differences_are_as_exact_as_the_numbers(tmp_path: Path, dtype: str) -> None:
    changes = {STATE.name: {"dtype": dtype}}
    a, b = (run(tmp_path / f"{n}.inspect", n, changes=changes) for n in (1, 2))
    with Pair(a, b) as both:
        wanted = "float64" if dtype == "float64" else "float32"
        one, other = (values(replace(STATE, dtype=dtype), n).astype(wanted) for n in (1, 2))
        found = both.array(STATE.name)
        assert str(found.dtype) == both.channels[STATE.name].dtype == wanted
        np.testing.assert_array_equal(found, other - one)


def test_two_lengths_are_compared_as_far_as_both_go_and_that_is_said(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a.inspect", 1, steps=20), run(tmp_path / "b.inspect", 2, steps=13)
    for first, second, seeds in ((a, b, (1, 2)), (b, a, (2, 1))):
        with Pair(first, second) as both:
            assert both.extent(STATE.name) == (13, 4)
            one, other = (values(STATE, seed, {1: 20, 2: 13}[seed])[:13] for seed in seeds)
            np.testing.assert_array_equal(both.array(STATE.name), other - one)
            assert both.channels[STATE.name].method == "exact; the first 13 along step, which both have"
            assert both.known(STATE.name).shape == (13, 4) and not both.holes(STATE.name)
            for region in ((slice(5, None),), (slice(-3, None), slice(1, 3)), (slice(3, 900),), (slice(9, 4),)):
                np.testing.assert_array_equal(both.block(STATE.name, region=region), (other - one)[region])
                assert both.known(STATE.name, region=region).shape == (other - one)[region].shape


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shape": (None, 5)}, "Its shapes differ: unit 4 and unit 5."),
        ({"kind": "gate"}, "It has the kind 'state' in a, and 'gate' in b."),
        ({"dims": ("step", "head")}, "It has the axes step × unit in a, and step × head in b."),
        ({"unit": "bit"}, "It has the unit '1' in a, and 'bit' in b."),
        ({"compare": "ratio"}, "It has the comparison 'difference' in a, and 'ratio' in b."),
        ({"dtype": "int32"}, "Its numbers are indices, counts or marks, which do not subtract."),
    ],
)
def test_what_is_not_the_same_kind_of_thing_is_refused_with_the_reason(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    a, b = run(tmp_path / "a.inspect", 1), run(tmp_path / "b.inspect", 2, changes={STATE.name: change})
    with Pair(a, b) as both:
        assert both.refused[STATE.name] == said and NORM.name in both.channels


def test_what_one_side_alone_has_is_refused(tmp_path: Path) -> None:
    other = channel("decoder.l0:h")
    a, b = run(tmp_path / "a.inspect", 1), run(tmp_path / "b.inspect", 2, more=(other,))
    for pair, said in (((a, b), "Only b has it."), ((b, a), "Only a has it.")):
        with Pair(*pair) as both:
            assert both.refused[other.name] == said and other.name not in both.channels


def test_numbers_of_other_tokens_are_refused_unless_they_are_the_edit(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a.inspect", 1), run(tmp_path / "b.inspect", 2, tokens="abcdXfghijklmnopqrst")
    with Pair(a, b) as both:
        assert both.refused[STATE.name] == "Their tokens differ from step 4 on: 'e' and 'X'."
        assert not both.channels
        edited = Comparison(both.before, both.after, edited=True)
        assert set(edited.channels) == {STATE.name, NORM.name, LOGARITHMIC.name}
    with Pair(a, run(tmp_path / "c.inspect", 2, steps=4, tokens="abcd")) as both:  # as far as both go they are equal
        assert STATE.name in both.channels


def test_any_two_frames(tmp_path: Path) -> None:
    """Two checkpoints of one capture, and frames of two captures."""
    a, b = run(tmp_path / "a.inspect", 1, frames=3), run(tmp_path / "b.inspect", 7, frames=2)
    with open_capture(a) as one, open_capture(b) as other:
        for first, second, seeds in (
            (Reference(one, 0), Reference(one, 2), (1, 3)),
            (Reference(one, 1), Reference(other, 0), (2, 7)),
            (Reference(other, -1), Reference(one, 0), (8, 1)),
        ):
            both = Comparison(first, second)
            before, after = (values(STATE, seed) for seed in seeds)
            np.testing.assert_array_equal(both.array(STATE.name), after - before)
            assert both.frame_of(STATE.name) == (second.frame if second.frame >= 0 else 2)
            assert both.start is second.view.start and both.labels("step")[:3] == ("a", "b", "c")
            assert both.axis("step").title == "token" and set(both.axes) == {"step"}


def test_how_both_were_computed_is_said(tmp_path: Path) -> None:
    estimated = {STATE.name: {"method": "estimated from 8 directions"}}
    a, b = run(tmp_path / "a.inspect", 1), run(tmp_path / "b.inspect", 2, changes=estimated)
    with Pair(a, b) as both:
        assert both.channels[STATE.name].method == "a: exact; b: estimated from 8 directions"
        assert both.channels[NORM.name].method == "exact"


def test_damage_of_either_side_shows(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a.inspect", 1, steps=24), run(tmp_path / "b.inspect", 2, steps=20)
    flip(a, 1)
    flip(b, 2)
    with Pair(a, b) as both:
        lost = np.array([True] * 16 + [False] * 4)
        np.testing.assert_array_equal(np.isnan(both.array(STATE.name)[:, 0]), lost)
        np.testing.assert_array_equal(both.known(STATE.name)[:, 0], ~lost)
        assert both.holes(STATE.name).damaged == (((0, 8), (0, 4)), ((8, 16), (0, 4)))
        assert [one.sentence.partition(":")[0] for one in both.damage_of(STATE.name)] == ["a", "b"]
        assert both.damage_of(NORM.name) == () and both.known(NORM.name).all()
        with pytest.raises(DamagedError, match="2 damaged pages: a: "):
            export_channel(both, STATE.name, -1, tmp_path / "x.csv")
        export_channel(both, NORM.name, -1, tmp_path / "x.npy")


def test_a_region_reads_no_more_than_its_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.capture.files import GuardedFile

    long = channel("rnn.l0:long", units=64)
    for n in (1, 2):
        with Writer(tmp_path / f"{n}.inspect", START) as writer:
            writer.write(long)
            for start in range(0, 40_000, 1000):
                writer.write(Page(long.name, 0, (start, 0), values(long, n * 1000 + start, 1000)))
    read: list[int] = []
    real = GuardedFile.read_into
    monkeypatch.setattr(
        GuardedFile, "read_into", lambda self, at, room: (read.append(len(room)), real(self, at, room))[1]
    )
    with Pair(tmp_path / "1.inspect", tmp_path / "2.inspect") as both:
        assert both.block(long.name, region=(slice(7100, 7200),)).shape == (100, 64)
        assert sum(read) == 2 * 1000 * 64 * 4
        assert both.known(long.name, region=(slice(7100, 7200),)).all() and sum(read) == 2 * 1000 * 64 * 4
        low, high = both.overview(long.name, size=(300, 64))
        whole = both.array(long.name)
        width = -(-40_000 // 300)
        for i, start in enumerate(range(0, 40_000, width)):
            np.testing.assert_array_equal(low[i], whole[start : start + width].min(0))
            np.testing.assert_array_equal(high[i], whole[start : start + width].max(0))


def test_a_comparison_follows_two_runs_that_grow(tmp_path: Path) -> None:
    a = run(tmp_path / "a.inspect", 1)
    with Writer(tmp_path / "b.inspect", START) as writer:
        writer.write(STATE)
        writer.flush()
        with Pair(a, tmp_path / "b.inspect") as both:
            live = both.after.view
            assert isinstance(live, Capture)
            assert both.refused[STATE.name] == "Only a has it." and both.revision(STATE.name) == 0
            seen = 0
            for start in (0, 8):
                writer.write(Page(STATE.name, 0, (start, 0), values(STATE, 2)[start : start + 8]))
                writer.flush()
                live.refresh()
                assert both.revision(STATE.name) > seen
                seen = both.revision(STATE.name)
                assert both.extent(STATE.name) == (start + 8, 4) and both.array(STATE.name).shape == (start + 8, 4)
            writer.write(Labels("step", ("a", "Z"), 0))
            writer.flush()
            live.refresh()
            assert both.refused[STATE.name] == "Their tokens differ from step 1 on: 'b' and 'Z'."


@pytest.mark.parametrize("later", ["first", "second"])
def test_a_channel_that_one_side_gets_later_is_compared_from_its_first_page_on(tmp_path: Path, later: str) -> None:
    a = run(tmp_path / "a.inspect", 1)
    with Writer(tmp_path / "b.inspect", START) as writer:
        writer.flush()
        paths = (a, tmp_path / "b.inspect") if later == "second" else (tmp_path / "b.inspect", a)
        with Pair(*paths) as both:
            live = (both.after if later == "second" else both.before).view
            assert isinstance(live, Capture) and STATE.name not in live.channels
            assert both.refused[STATE.name].startswith("Only ")
            writer.write(STATE)
            writer.write(Page(STATE.name, 0, (0, 0), values(STATE, 2)))
            writer.flush()
            live.refresh()
            assert live.revision(STATE.name) == 1, "the first page"
            assert STATE.name not in both.refused and both.array(STATE.name).shape[1] == 4


def test_a_run_and_its_edit_are_a_comparison(tmp_path: Path) -> None:
    with open_capture(run(tmp_path / "a.inspect", 1, frames=2)) as capture:
        both = Difference(capture, 0, 1)
        assert isinstance(both, Comparison) and both.frames == capture.frames and both.frame_of(STATE.name) == 1
        np.testing.assert_array_equal(both.array(STATE.name), values(STATE, 2) - values(STATE, 1))
        assert set(both.channels) == {STATE.name, NORM.name, LOGARITHMIC.name} and both.separate == (TABLE.name,)


def test_series_over_training_are_compared_where_the_iterations_are_the_same(tmp_path: Path) -> None:
    curve = channel("loss:curve", "float64", dims=("iteration",), shape=(None,), kind="training")
    numbers = channel(
        "iteration:numbers", "int64", dims=("iteration",), shape=(None,), kind="coordinate", compare="separate"
    )
    for name, every in (("a", 10), ("b", 10), ("c", 25)):
        with Writer(tmp_path / f"{name}.inspect", START) as writer:
            for described, array in ((curve, np.arange(5.0) * every), (numbers, np.arange(5) * every)):
                writer.write(described)
                writer.write(Page(described.name, 0, (0,), array))
    with Pair(tmp_path / "a.inspect", tmp_path / "b.inspect") as both:
        assert (both.array(curve.name) == 0).all()
    with Pair(tmp_path / "a.inspect", tmp_path / "c.inspect") as both:
        assert both.refused[curve.name] == "They were taken at different iterations."
