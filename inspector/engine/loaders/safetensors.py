"""safetensors files: tensors only, no code; the header's claims are checked before they are used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from inspector.capture.regular import open_regular
from inspector.engine.contracts import MAX_STEP, State
from inspector.engine.errors import InputError
from inspector.engine.registries import LOADERS
from inspector.records.json_text import NamedTwiceError, read_json
from inspector.records.plain_text import shortened
from inspector.records.unreadable import why_unreadable

MAX_HEADER = 16 << 20
MAX_TENSORS = 50_000
PACKED = ("F4", "F6_E2M3", "F6_E3M2")
STEPS = ("global_step", "step", "iteration", "iter", "epoch")


class Safetensors:
    """The format of Hugging Face; the step is read from the metadata where the trainer wrote it."""

    title = "safetensors"
    summary = "Files of safetensors: tensors only, no code."
    suffixes = (".safetensors",)

    def sniff(self, path: Path, head: bytes) -> bool:
        """Eight bytes of header length, then JSON."""
        return path.suffix == ".safetensors" or (len(head) > 9 and head[8:9] == b"{")

    def load(self, path: Path) -> State:
        """Copies of all tensors: a memory map would crash this process if the file were truncated meanwhile."""
        _check_kinds(path, _check_header(path))
        try:
            with safe_open(path, framework="pt", device="cpu") as file:
                names = list(file.keys())
                if len(names) > MAX_TENSORS:
                    raise InputError(f"{path.name} declares {len(names)} tensors; at most {MAX_TENSORS} are read.")
                tensors = {name: file.get_tensor(name).clone() for name in names}
                meta = file.metadata() or {}
        except InputError:
            raise
        except (SafetensorError, OSError, ValueError, RuntimeError) as problem:  # RuntimeError: no room to map it
            raise InputError(f"{path.name} is damaged or cut short: {_said(problem)}.") from None
        told = _step(meta)
        return State(tensors, "safetensors", None if told is None else told[0], dict(meta))

    def step(self, path: Path) -> tuple[int, str] | None:
        """The step in the metadata, from the header alone."""
        header = _check_header(path)
        _check_length(path, header)
        return _step(header.get("__metadata__"))


def _step(meta: Any) -> tuple[int, str] | None:
    for key in STEPS if isinstance(meta, Mapping) else ():
        text = meta.get(key)
        if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < len(str(MAX_STEP)):
            return int(text), f"the key {key!r}"
    return None


def _check_length(path: Path, header: Mapping[str, Any]) -> None:
    """Raises InputError where the file ends before the last number that its header places."""
    with open_regular(path) as file:
        begins = 8 + int.from_bytes(file.read(8), "little")
    ends = [one["data_offsets"][1] for one in header.values() if isinstance(one, dict) and _has_place(one)]
    if begins + max(ends, default=0) > path.stat().st_size:
        raise InputError(f"{path.name} is damaged or cut short: its numbers end after the file does.")


def _check_kinds(path: Path, header: Mapping[str, Any]) -> None:
    """Raises InputError for numbers of less than a byte, with which torch computes nothing."""
    for name, one in header.items():
        kind = one.get("dtype") if isinstance(one, dict) else None
        if kind in PACKED:
            raise InputError(
                f"{path.name}: tensor {shortened(name, 80)} is of {kind}; numbers of less than a byte are not read."
            )


def _has_place(entry: Mapping[str, Any]) -> bool:
    found = entry.get("data_offsets")
    return isinstance(found, list) and len(found) == 2 and isinstance(found[1], int)


def _check_header(path: Path) -> dict[str, Any]:
    """The header. Raises InputError where it is not whole."""
    with open_regular(path) as file:
        length = int.from_bytes(file.read(8), "little")
        size = path.stat().st_size
        if length > MAX_HEADER or length + 8 > size:
            raise InputError(
                f"{path.name} is not a whole safetensors file: its header says {length} bytes, the file has {size}."
            )
        try:
            header = read_json(file.read(length), once=True)
        except NamedTwiceError as problem:
            raise InputError(f"{path.name} is not read: its header {problem}.") from None
        except ValueError:
            raise InputError(f"{path.name} is not a safetensors file: its header is not JSON.") from None
    if not isinstance(header, dict):
        raise InputError(f"{path.name} is not a safetensors file: its header is not a table.")
    return header


def _said(problem: BaseException) -> str:
    """The library says first what it was doing, and last which of all it knows would have been right."""
    said = why_unreadable(problem, 400).removeprefix("Error while deserializing header: ")
    return shortened(said.partition(", expected one of")[0], 160)


LOADERS.register("safetensors")(Safetensors())
