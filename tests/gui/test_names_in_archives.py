"""Arrays in an archive of numpy: none is written over another, also where upper and lower case are one."""

from __future__ import annotations

import io

import numpy as np

from inspector.gui.export.number_files import Numbers, keys_of, npz


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
