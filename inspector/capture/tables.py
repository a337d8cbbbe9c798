"""A channel's numbers as files that other programs read: npy, npz, csv, and parquet and NetCDF with their extras.

Unknown values (a page that is damaged, or was never written) are distinguished from the model's: an empty cell, a null,
a mask. They are never numbers, and NaN only where a format has nothing else.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.coordinates import numbers_along
from inspector.capture.damage import summary
from inspector.capture.layout import CaptureError
from inspector.capture.pyramid import with_nan
from inspector.capture.regular import regular_stat
from inspector.capture.view import View
from inspector.capture.whole_file import replace_whole
from inspector.records import Channel

Array = npt.NDArray[Any]
SCHEMA = "inspector-channel-1"
"""What the JSON of a channel calls itself; its number grows where a field changes its meaning or goes."""
_RISKY = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z|[+-]?(inf|nan)\Z")


class DamagedError(CaptureError):
    """The requested data is damaged, and `damaged` does not allow that."""


@dataclass(frozen=True, slots=True)
class Table:
    """A channel's array, or a region of it, with what describes it.

    `known`: which cells are, None where all are. `first`: the indices of the region's first cell, () for the whole.
    """

    channel: Channel
    array: Array
    labels: Mapping[str, tuple[str, ...]]
    known: npt.NDArray[np.bool_] | None = None
    first: tuple[int, ...] = ()

    def index(self, dim: int, position: Any) -> Any:
        """The index in the whole channel of a position, or of many, along a dim of the region."""
        return position + (self.first[dim] if self.first else 0)


def export_channel(
    capture: View, name: str, frame: int, to: Path | str, *, damaged: bool = False,
    slices: Mapping[str, tuple[int, int]] | None = None,
) -> Path:  # fmt: skip
    """Write one channel of one frame to a file in the format of its suffix; damaged data only if `damaged` allows it.

    `slices`: of some dims the first position and the one after the last, all of the others.
    Raises DamagedError, or CaptureError, with a one-line message.
    """
    target = Path(to)
    writer = WRITERS.get(target.suffix.lower())
    if writer is None:
        raise CaptureError(
            f"Cannot write data as {target.suffix or target.name!r}; there are {', '.join(sorted(WRITERS))}."
        )
    table = table_of(capture, name, frame, slices or {})
    found = capture.damage_of(name, frame)
    if found and not damaged:
        raise DamagedError(f"{name} is damaged: {summary(found)}")
    write_atomically(target, writer(table))
    return target


def table_of(
    capture: View, name: str, frame: int, slices: Mapping[str, tuple[int, int]] = MappingProxyType({})
) -> Table:
    """A channel of a frame, or a region of it, read and checked. Raises CaptureError where there is none of that name
    or a slice does not lie in it."""
    capture.frame_of(name)
    channel = capture.channel(name, frame)
    labels = {dim: _names(capture, channel, dim, frame) for dim in channel.dims}
    if not slices:
        array, known = capture.array(name, frame), capture.known(name, frame)
        return Table(channel, np.ma.getdata(array), labels, None if known.all() else known)
    region = _region(channel, capture.extent(name, frame), slices)
    array, known = capture.block(name, frame, region), capture.known(name, frame, region)
    labels = {dim: labels[dim][part] for dim, part in zip(channel.dims, region, strict=True)}
    first = tuple(part.start for part in region)
    return Table(channel, np.ma.getdata(array), labels, None if known.all() else known, first)


def _region(channel: Channel, extent: tuple[int, ...], slices: Mapping[str, tuple[int, int]]) -> tuple[slice, ...]:
    """Raises CaptureError."""
    if strange := [dim for dim in slices if dim not in channel.dims]:
        there = ", ".join(channel.dims) or "none"
        raise CaptureError(f"{channel.name} has no dim {strange[0]!r}; its dims are {there}.")
    region = []
    for dim, length in zip(channel.dims, extent, strict=True):
        low, high = slices.get(dim, (0, length))
        if not 0 <= low < high <= length and dim in slices:
            raise CaptureError(
                f"{dim}={low}:{high} does not lie in {channel.name}, whose {dim} goes from 0 to {length}."
            )
        region.append(slice(low, high))
    return tuple(region)


def write_atomically(target: Path, data: bytes) -> None:
    """Write a file so that it is either complete or absent; where a link is, what it leads to. Raises CaptureError,
    also where a pipe or a device is in the way, which would be replaced."""
    try:
        into = Path(os.path.realpath(target))
        if into.exists() and not into.is_dir():
            regular_stat(into)
        replace_whole(into, data, shared=True, synchronised=True)
    except OSError as problem:
        raise CaptureError(f"Cannot write {target}: {problem.strerror or problem}.") from None


def _names(capture: View, channel: Channel, dim: str, frame: int) -> tuple[str, ...]:
    """The names along a dim; where its positions have numbers instead of names, those."""
    names = channel.labels.get(dim) or capture.labels(channel.domain(dim), frame)
    numbers = None if names else numbers_along(capture, channel.domain(dim), frame)
    return names if numbers is None else tuple(f"{number:.15g}" for number in numbers)


def rows_of(table: Table) -> Iterator[list[str]]:
    """Rows of a CSV: wide for (step,) and (step, unit) arrays, one row a number for more axes. First the header.

    Cells that are not known are empty.
    """
    channel, array, labels = table.channel, table.array, table.labels
    cells = texts(array, table.known)
    first = channel.axis_word(channel.dims[0]) if channel.dims else "value"
    named = labels.get(channel.dims[0], ()) if channel.dims else ()
    if array.ndim <= 2:
        columns = (
            [f"{channel.axis_word(channel.dims[1])} {table.index(1, j)}" for j in range(array.shape[1])]
            if array.ndim == 2
            else [channel.signal]
        )
        if array.ndim == 2 and len(names := labels.get(channel.dims[1], ())) == array.shape[1]:
            unique = len(set(names)) == len(names)  # tokens stand many times in a text
            columns = list(names) if unique else [f"{one} {name}" for one, name in zip(columns, names, strict=True)]
        yield [first, *(["label"] if named else []), *columns]
        for i, row in enumerate(np.atleast_1d(array)):
            label = [named[i] if i < len(named) else ""] if named else []
            yield [str(table.index(0, i)), *label, *(next(cells) for _ in range(np.size(row)))]
        return
    yield [*map(channel.axis_word, channel.dims), channel.signal]
    for place in np.ndindex(array.shape):
        yield [*(str(table.index(dim, at)) for dim, at in enumerate(place)), next(cells)]


def texts(array: Array, known: npt.NDArray[np.bool_] | None) -> Iterator[str]:
    """Every number of an array in order, as text; what is not known as ""."""
    for i, value in enumerate(array.flat):
        yield "" if known is not None and not known.flat[i] else str(value.item())


def safe_cell(text: str) -> str:
    """A CSV cell that no spreadsheet takes for a formula."""
    return "'" + text if text.startswith(_RISKY) and not _NUMBER.match(text) else text


def csv_bytes(rows: Iterable[list[str]]) -> bytes:
    """Rows as UTF-8 CSV with safe cells."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    for row in rows:
        writer.writerow([safe_cell(cell) if cell[:1] in _RISKY else cell for cell in row])
    return out.getvalue().encode("utf-8", "replace")


def _npy(table: Table) -> bytes:
    if table.known is not None and table.array.dtype.kind != "f":
        missing = int((~table.known).sum())
        raise CaptureError(
            f"{missing:,} cells of {table.channel.name} are not known, which .npy cannot say of whole numbers; choose "
            ".npz (with a mask) or .csv."
        )
    out = io.BytesIO()
    np.save(out, table.array, allow_pickle=False)
    return out.getvalue()


def _npz(table: Table) -> bytes:
    """`missing` is True where values are not known."""
    channel, out = table.channel, io.BytesIO()
    extra: dict[str, Any] = {
        f"{dim}_labels": np.array(names, dtype=np.str_) for dim, names in table.labels.items() if names
    }
    if table.known is not None:
        extra["missing"] = ~table.known
    about = np.array([channel.name, channel.unit, channel.formula], dtype=np.str_)
    if table.first:
        extra["first"] = np.array(table.first)
    axes = np.array([channel.domain(dim) for dim in channel.dims], dtype=np.str_)
    np.savez(out, values=table.array, dims=np.array(channel.dims, dtype=np.str_), axes=axes, about=about, **extra)
    return out.getvalue()


def _csv(table: Table) -> bytes:
    return csv_bytes(rows_of(table))


def _json(table: Table) -> bytes:
    """Values as nested lists: null where they are not known, NaN and infinities as text, which JSON has not."""
    channel, array = table.channel, table.array.astype(object)
    if table.array.dtype.kind == "f":
        strange = ~np.isfinite(table.array)
        array[strange] = [str(value) for value in table.array[strange].tolist()]
    if table.known is not None:
        array[~table.known] = None
    told = {
        "schema": SCHEMA,
        "channel": channel.name,
        "title": channel.title,
        "unit": channel.unit,
        "formula": channel.formula,
        "method": channel.method,
        "dims": list(channel.dims),
        "axes": [channel.domain(dim) for dim in channel.dims],
        "shape": list(array.shape),
        "first": list(table.first or (0,) * array.ndim),
        "labels": {dim: list(names) for dim, names in table.labels.items() if names},
        "values": array.tolist(),
    }
    return json.dumps(told, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _parquet(table: Table) -> bytes:
    arrow = _need("pyarrow", "parquet")
    grid = np.indices(table.array.shape).reshape(table.array.ndim, -1)
    columns = {dim: table.index(axis, grid[axis]) for axis, dim in enumerate(table.channel.dims)}
    missing = None if table.known is None else ~table.known.reshape(-1)
    columns[table.channel.signal] = arrow.array(table.array.reshape(-1), mask=missing)
    return parquet_bytes(columns)


def parquet_bytes(columns: Mapping[str, Any]) -> bytes:
    """Named columns of equal length. Raises CaptureError where the extra is not installed."""
    arrow, parquet = _need("pyarrow", "parquet"), _need("pyarrow.parquet", "parquet")
    out = io.BytesIO()
    parquet.write_table(arrow.table(dict(columns)), out)
    return out.getvalue()


def _netcdf(table: Table) -> bytes:
    _need("xarray", "netcdf")
    array, fill = table.array, None
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    elif table.known is not None and array.dtype.kind != "f":
        array, fill = _filled(table.array, table.known)
    data = _data_array(table.channel, array, table.labels, table.first)
    if fill is not None:
        data.attrs["_FillValue"] = fill
    data.name = re.sub(r"[^A-Za-z0-9_]", "_", table.channel.name)
    try:
        return bytes(data.to_netcdf())
    except ValueError as problem:
        raise CaptureError(
            f"{table.channel.name} cannot be written as NetCDF: {str(problem).partition('.')[0]}."
        ) from None


def _filled(array: Array, known: npt.NDArray[np.bool_]) -> tuple[Array, Any]:
    """(whole numbers with a fill value where they are not known, that value): every NetCDF reader takes it as missing.

    Numbers beyond 32 bits, which classic NetCDF lacks, become doubles with NaN.
    """
    fill = np.int32(np.iinfo(np.int32).min)
    seen = array[known].astype(object)
    if all(fill < value <= np.iinfo(np.int32).max for value in (seen.min(initial=0), seen.max(initial=0))):
        return np.where(known, array.astype(np.int32), fill), fill
    return np.where(known, array.astype(np.float64), np.nan), None


def _need(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise CaptureError(
            f"This needs {module.split('.')[0]}, which is not installed: pip install 'sequence-inspector[{extra}]'."
        ) from None


def _data_array(
    channel: Channel, array: Array, labels: Mapping[str, tuple[str, ...]], first: tuple[int, ...] = ()
) -> Any:
    xarray = _need("xarray", "notebook")
    starts = first or (0,) * array.ndim
    coordinates: dict[str, Any] = {
        dim: np.arange(low, low + n) for dim, low, n in zip(channel.dims, starts, array.shape, strict=True)
    }
    for dim, names in labels.items():
        if len(names) == array.shape[channel.dims.index(dim)]:
            coordinates[f"{dim}_label"] = (dim, np.array(names, dtype=np.str_))
    about = {"unit": channel.unit, "long_name": channel.title, "formula": channel.formula, "method": channel.method}
    return xarray.DataArray(array, dims=channel.dims, coords=coordinates, attrs=about, name=channel.name)


def to_xarray(capture: View, frame: int = -1) -> Any:
    """Every channel of a frame as a Dataset; whole numbers of which some are not known become floats with NaN there.

    A dim gets the name of its axis where that is not the default one, so that axes of equal length are
    not taken for one; axes of different length get their channel's place as a suffix.
    """
    xarray = _need("xarray", "notebook")
    lengths: dict[str, int] = {}
    arrays = {}
    for name in capture.channels:
        channel = capture.channel(name, frame)
        array = capture.array(name, frame)
        if np.ma.isMaskedArray(array):
            array = with_nan(array)
        data = _data_array(channel, array, {dim: _names(capture, channel, dim, frame) for dim in channel.dims})
        data = data.drop_vars([key for key in data.coords if key not in data.dims])
        renamed = {}
        for dim, length in zip(channel.dims, array.shape, strict=True):
            word = channel.axis_word(dim)
            renamed[dim] = word if lengths.setdefault(word, length) == length else f"{word} of {name}"
        arrays[name] = data.rename({dim: word for dim, word in renamed.items() if word != dim})
    return xarray.Dataset(arrays, attrs={"title": capture.start.title, "run": capture.start.run})


WRITERS: dict[str, Callable[[Table], bytes]] = {
    ".npy": _npy, ".npz": _npz, ".csv": _csv, ".json": _json, ".parquet": _parquet, ".nc": _netcdf,
}  # fmt: skip
"""Writers of data by file suffix."""
