"""A channel's numbers as files that other programs read: npy, npz, csv, and parquet and NetCDF with their extras."""

from __future__ import annotations

import csv
import importlib
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.layout import CaptureError
from inspector.capture.view import View
from inspector.records import Channel

Array = npt.NDArray[Any]
_RISKY = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z|[+-]?(inf|nan)\Z")


def export_channel(capture: View, name: str, frame: int, to: Path | str) -> Path:
    """Write one channel of one frame to a file whose suffix says how. Raises CaptureError in one sentence."""
    target = Path(to)
    writer = WRITERS.get(target.suffix.lower())
    if writer is None:
        raise CaptureError(
            f"Cannot write data as {target.suffix or target.name!r}; there are {', '.join(sorted(WRITERS))}."
        )
    if name not in capture.channels:
        capture.frame_of(name)
    channel = capture.channels[name]
    labels = {dim: _names(capture, channel, dim, frame) for dim in channel.dims}
    data = writer(channel, capture.array(name, frame), labels)
    write_atomically(target, data)
    return target


def write_atomically(target: Path, data: bytes) -> None:
    """Write a file so that it is either whole or not there. Raises CaptureError."""
    try:
        number, partial = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}-")
        try:
            with os.fdopen(number, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(partial).chmod(0o666 & ~_umask())
            Path(partial).replace(target)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise CaptureError(f"Cannot write {target}: {problem.strerror or problem}.") from None


def _umask() -> int:
    present = os.umask(0)
    os.umask(present)
    return present


def _names(capture: View, channel: Channel, dim: str, frame: int) -> tuple[str, ...]:
    return channel.labels.get(dim) or capture.labels(channel.domain(dim), frame)


def table(channel: Channel, array: Array, labels: dict[str, tuple[str, ...]]) -> Iterator[list[str]]:
    """Rows of a CSV: wide for (step,) and (step, unit) arrays, one row a number for more axes. First the header."""
    first = channel.dims[0] if channel.dims else "value"
    named = labels.get(first, ())
    if array.ndim <= 2:
        columns = [f"{channel.dims[1]} {j}" for j in range(array.shape[1])] if array.ndim == 2 else [channel.signal]
        if array.ndim == 2 and len(labels.get(channel.dims[1], ())) == array.shape[1]:
            columns = list(labels[channel.dims[1]])
        yield [first, *(["label"] if named else []), *columns]
        for i, row in enumerate(np.atleast_1d(array)):
            label = [named[i] if i < len(named) else ""] if named else []
            yield [str(i), *label, *(_text(v) for v in np.atleast_1d(row))]
        return
    yield [*channel.dims, channel.signal]
    for place in np.ndindex(array.shape):
        yield [*map(str, place), _text(array[place])]


def _text(value: Any) -> str:
    return str(value.item() if hasattr(value, "item") else value)


def safe_cell(text: str) -> str:
    """A CSV cell that no spreadsheet takes for a formula."""
    return "'" + text if text.startswith(_RISKY) and not _NUMBER.match(text) else text


def csv_bytes(rows: Iterable[list[str]]) -> bytes:
    """Rows as UTF-8 CSV with safe cells."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    for row in rows:
        writer.writerow([safe_cell(cell) for cell in row])
    return out.getvalue().encode("utf-8", "replace")


def _npy(_channel: Channel, array: Array, _labels: dict[str, tuple[str, ...]]) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def _npz(channel: Channel, array: Array, labels: dict[str, tuple[str, ...]]) -> bytes:
    out = io.BytesIO()
    extra: dict[str, Any] = {f"{dim}_labels": np.array(names, dtype=np.str_) for dim, names in labels.items() if names}
    about = np.array([channel.name, channel.unit, channel.formula], dtype=np.str_)
    np.savez(out, values=array, dims=np.array(channel.dims, dtype=np.str_), about=about, **extra)
    return out.getvalue()


def _csv(channel: Channel, array: Array, labels: dict[str, tuple[str, ...]]) -> bytes:
    return csv_bytes(table(channel, array, labels))


def _parquet(channel: Channel, array: Array, _labels: dict[str, tuple[str, ...]]) -> bytes:
    arrow, parquet = _need("pyarrow", "parquet"), _need("pyarrow.parquet", "parquet")
    grid = np.indices(array.shape).reshape(array.ndim, -1)
    columns = {dim: grid[axis] for axis, dim in enumerate(channel.dims)}
    columns[channel.signal] = array.reshape(-1)
    out = io.BytesIO()
    parquet.write_table(arrow.table(columns), out)
    return out.getvalue()


def _netcdf(channel: Channel, array: Array, labels: dict[str, tuple[str, ...]]) -> bytes:
    _need("xarray", "netcdf")
    data = _data_array(channel, array.astype(np.float32) if array.dtype == np.float16 else array, labels)
    data.name = re.sub(r"[^A-Za-z0-9_]", "_", channel.name)
    return bytes(data.to_netcdf())


def _need(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise CaptureError(
            f"This needs {module.split('.')[0]}, which is not installed: pip install 'sequence-inspector[{extra}]'."
        ) from None


def _data_array(channel: Channel, array: Array, labels: dict[str, tuple[str, ...]]) -> Any:
    xarray = _need("xarray", "notebook")
    coordinates: dict[str, Any] = {dim: np.arange(n) for dim, n in zip(channel.dims, array.shape, strict=True)}
    for dim, names in labels.items():
        if len(names) == array.shape[channel.dims.index(dim)]:
            coordinates[f"{dim}_label"] = (dim, np.array(names, dtype=np.str_))
    about = {"unit": channel.unit, "long_name": channel.title, "formula": channel.formula, "method": channel.method}
    return xarray.DataArray(array, dims=channel.dims, coords=coordinates, attrs=about, name=channel.name)


def to_xarray(capture: View, frame: int = -1) -> Any:
    """Every channel of a frame as a Dataset. Axes of different length get their channel's place as a suffix."""
    xarray = _need("xarray", "notebook")
    lengths: dict[str, int] = {}
    arrays = {}
    for name, channel in capture.channels.items():
        array = capture.array(name, frame)
        data = _data_array(channel, array, {dim: _names(capture, channel, dim, frame) for dim in channel.dims})
        data = data.drop_vars([key for key in data.coords if key not in data.dims])
        clash = {
            d: f"{d} of {name}" for d, n in zip(channel.dims, array.shape, strict=True) if lengths.setdefault(d, n) != n
        }
        arrays[name] = data.rename(clash)
    return xarray.Dataset(arrays, attrs={"title": capture.start.title, "run": capture.start.run})


WRITERS: dict[str, Callable[[Channel, Array, dict[str, tuple[str, ...]]], bytes]] = {
    ".npy": _npy, ".npz": _npz, ".csv": _csv, ".parquet": _parquet, ".nc": _netcdf,
}  # fmt: skip
"""How data is written, by file suffix."""
