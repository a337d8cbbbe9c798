"""Arrays in an archive of numpy: none is written over another, also where upper and lower case are one; their axes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from inspector.capture import Writer, open_capture
from inspector.gui.export.number_files import Numbers, axes_of, keys_of, npz
from inspector.records import Channel, Frame, Page, RunStart, RunStop


def test_names_that_differ_in_case_alone_or_become_the_same_end_with_a_hash() -> None:
    names = ["rnn.L0:h", "rnn.l0:h", "a b:h", "a_b:h", "alone:h"]
    keys = keys_of(names)
    assert keys["alone:h"] == "alone:h" and keys["rnn.L0:h"].startswith("rnn.L0:h-")
    assert len({key.casefold() for key in keys.values()}) == len(names)
    assert keys == keys_of(reversed(names))


def test_all_arrays_are_in_the_archive() -> None:
    arrays = {"a b:h": np.ma.masked_equal([1.0, 2.0], 2.0), "a_b:h": np.ma.array([3.0, 4.0])}
    axes = dict.fromkeys(arrays, ("step",))
    with np.load(io.BytesIO(npz(Numbers(arrays, axes, "value", {})))) as found:
        assert len(found.files) == 3
        assert sorted(found[name].tolist() for name in found.files) == [[False, True], [1.0, 2.0], [3.0, 4.0]]


def test_one_head_of_a_map_keeps_its_queries_and_keys(tmp_path: Path) -> None:
    shapes = {
        "a:attention": ((4, 9, 9), ("head", "query", "key")),
        "b:attention": ((9, 9, 9), ("head", "query", "key")),
    }
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for name, (shape, dims) in shapes.items():
            writer.write(Channel(name=name, kind="attention", dims=dims, shape=shape))
            writer.write(Page(name, 0, (0, 0, 0), np.zeros(shape, np.float32)))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        assert axes_of(capture, "a:attention head 1", np.zeros((9, 9))) == ("query", "key")
        assert axes_of(capture, "a:attention", np.zeros((4, 9, 9))) == ("head", "query", "key")
        assert axes_of(capture, "a:attention of one query", np.zeros((4,))) == ("head",)
        assert axes_of(capture, "b:attention head 1", np.zeros((9, 9))) == ("index 0", "index 1"), (
            "any two of three fit"
        )
