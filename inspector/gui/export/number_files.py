"""What a panel shows as numbers in a file: CSV and JSON whose axes have their names, and NPZ."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import csv_bytes
from inspector.capture.view import View

Array = npt.NDArray[Any]
SCHEMA = "inspector-figure-1"
"""What the JSON of a figure calls itself; its number grows where a field changes its meaning or goes."""
WORDS = {float("inf"): "inf", float("-inf"): "-inf"}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Arrays by name, with the name of each axis of each array; cells that are not known are masked.

    `title`: what the numbers are: "value", or which runs they compare. `about`: panel, run, checkpoint. `names`: of an
    array what its axes have names for, instead of numbers ("statistic": "median", "p10", …).
    """

    arrays: Mapping[str, Array]
    axes: Mapping[str, tuple[str, ...]]
    title: str
    about: Mapping[str, str]
    names: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def named(self, name: str) -> list[tuple[str, ...]]:
        """The names along each axis of an array, () where its positions are numbers."""
        own, shape = self.names.get(name, {}), self.arrays[name].shape
        found = [own.get(axis, ()) for axis in self.axes[name]]
        return [names if len(names) == size else () for names, size in zip(found, shape, strict=True)]


def axes_of(view: View | None, name: str, array: Array) -> tuple[str, ...]:
    """The names of an array's axes: the dims of the channel that its name begins with, in their order, without those
    along which one was chosen (a map of queries and keys of equally many is one head of the channel); "index N" where
    that fits in no way or in several."""
    known = [one for one in view.channels.values() if name.startswith(one.name)] if view is not None else []
    if view is None or not known:
        return _plain(array)
    channel = max(known, key=lambda one: len(one.name))
    if name == channel.name and len(channel.dims) == array.ndim:
        return channel.dims
    extent = view.extent(channel.name)
    pairs = tuple(zip(channel.dims, extent, strict=True))
    kept = [some for some in combinations(pairs, array.ndim) if tuple(length for _, length in some) == array.shape]
    if len(kept) == 1 and array.ndim < len(pairs):  # a part of the channel, such as one head of all
        return tuple(dim for dim, _ in kept[0])
    found = []
    for axis, size in enumerate(array.shape):
        fitting = [dim for dim, length in pairs if length == size]
        found.append(fitting[0] if len(fitting) == 1 else f"index {axis}")
    return tuple(found) if len(set(found)) == len(found) else _plain(array)


def names_of(view: View | None, name: str) -> dict[str, tuple[str, ...]]:
    """The names along the dims of a channel, where these are words."""
    channel = view.channels.get(name) if view is not None else None
    found = channel.labels if channel is not None else {}
    return {dim: tuple(names) for dim, names in found.items() if not all(one.isdigit() for one in names)}


def _plain(array: Array) -> tuple[str, ...]:
    return tuple(f"index {axis}" for axis in range(array.ndim))


def npz(numbers: Numbers) -> bytes:
    """The arrays, and beside those of which some cells are not known "NAME_missing", True there."""
    found = {name: np.ma.getdata(array) for name, array in numbers.arrays.items()}
    for name, array in numbers.arrays.items():
        if np.ma.is_masked(array):
            found[f"{name}_missing"] = np.ma.getmaskarray(array)
    keys, out = keys_of(found), io.BytesIO()
    np.savez(out, **{keys[name]: array for name, array in found.items()})  # type: ignore[arg-type]
    return out.getvalue()


def keys_of(names: Iterable[str]) -> dict[str, str]:
    """{name: name of its file in the archive}: of letters, digits and `_.:-`, and no two the same where upper and lower
    case are one, as on the disks of Windows and macOS: such names end with a hash."""
    plain = {name: re.sub(r"[^A-Za-z0-9_.:-]", "_", name) for name in names}
    times = Counter(key.casefold() for key in plain.values())
    return {name: key if times[key.casefold()] == 1 else f"{key}-{_hash(name)}" for name, key in plain.items()}


def _hash(name: str) -> str:
    return hashlib.blake2s(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def csv(numbers: Numbers) -> bytes:
    """Long form, one row a number: channel, a column for every axis, value; several channels fit into one table so.

    A column of an axis that a channel does not have is empty in its rows.
    """
    columns = list(dict.fromkeys(axis for axes in numbers.axes.values() for axis in axes))
    rows = [["channel", *columns, numbers.title]]
    for name, array in numbers.arrays.items():
        own, named = numbers.axes[name], numbers.named(name)
        values = zip(np.ma.getdata(array).ravel().tolist(), np.ma.getmaskarray(array).ravel().tolist(), strict=True)
        for place, (value, lost) in zip(np.ndindex(array.shape), values, strict=True):
            words = (names[n] if names else str(n) for n, names in zip(place, named, strict=True))
            at = dict(zip(own, words, strict=True))
            rows.append([name, *(at.get(column, "") for column in columns), "" if lost else str(value)])
    return csv_bytes(rows)


def as_json(numbers: Numbers) -> bytes:
    """One object; NaN and infinities are "nan", "inf" and "-inf", what is not known is null."""
    listed = [_told(numbers, name, array) for name, array in numbers.arrays.items()]
    told = {"schema": SCHEMA, **{key.lower().replace(" ", "_"): text for key, text in numbers.about.items()}}
    return json.dumps({**told, "what": numbers.title, "numbers": listed}, allow_nan=False).encode()


def _told(numbers: Numbers, name: str, array: Array) -> dict[str, Any]:
    labels = zip(numbers.axes[name], numbers.named(name), strict=True)
    told = {"name": name, "dims": list(numbers.axes[name]), "shape": list(array.shape)}
    return {**told, "labels": {dim: list(words) for dim, words in labels if words}, "values": _nested(array)}


def _nested(array: Array) -> Any:
    """Lists in lists, as deep as the array has axes."""
    values = zip(np.ma.getdata(array).ravel().tolist(), np.ma.getmaskarray(array).ravel().tolist(), strict=True)
    found: list[Any] = [_cell(value, lost) for value, lost in values]
    for size in reversed(array.shape[1:]):
        found = [found[start : start + size] for start in range(0, len(found), size)] if size else []
    return found if array.ndim else found[0]


def _cell(value: Any, lost: bool) -> Any:
    if lost:
        return None
    if isinstance(value, float) and value - value != 0:  # NaN or an infinity
        return WORDS.get(value, "nan")
    return value if isinstance(value, (bool, int, float, str)) else str(value)


FORMATS = {".npz": npz, ".csv": csv, ".json": as_json}
