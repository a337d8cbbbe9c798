"""Weights of llama.cpp: .gguf, by the library gguf. Quantised tensors are computed back to single precision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from inspector.engine.contracts import State
from inspector.engine.errors import InputError
from inspector.engine.model.gguf_header import check_header
from inspector.engine.model.named_arrays import MOST_TENSORS, as_tensor, needed
from inspector.engine.registries import LOADERS
from inspector.records.plain_text import shortened
from inspector.records.unreadable import why_unreadable

MOST_BYTES = 16 << 30
"""Of all tensors in single precision: a quantised file takes some eight times its size."""
PLAIN = ("F32", "F16", "F64", "I8", "I16", "I32", "I64")


class GgufFile:
    """Tensors under llama.cpp's names (blk.0.attn_q.weight)."""

    title = "GGUF"
    summary = "Weights of llama.cpp, computed back from their quantisation (extra [formats])."
    suffixes = (".gguf",)
    magic = (b"GGUF",)

    def sniff(self, path: Path, head: bytes) -> bool:
        """The magic number."""
        return head.startswith(self.magic)

    def load(self, path: Path) -> State:
        """All tensors, axes in torch's order. Raises InputError for a damaged or very large file, or without gguf."""
        gguf: Any = needed(path, "a GGUF file", "gguf")
        try:
            check_header(path)
            with np.errstate(over="ignore"):  # an offset of 2⁶⁴, which is refused below
                reader = gguf.GGUFReader(str(path))
            listed = list(reader.tensors)
            _require_places(reader.data_offset, listed)
            claimed = sum(4 * int(one.n_elements) for one in listed)
            if claimed > MOST_BYTES or len(listed) > MOST_TENSORS:
                raise InputError(
                    f"{path.name} holds {len(listed):,} tensors that take {claimed / 1e9:.3g} GB in single precision; "
                    f"at most {MOST_TENSORS:,} of {MOST_BYTES / 1e9:.3g} GB are read."
                )
            tensors = {str(one.name): _tensor(gguf, one) for one in listed}
        except InputError:
            raise
        except Exception as problem:  # noqa: BLE001 - the reader indexes into a memory map as the file says
            raise InputError(f"{path.name} is damaged or cut short: {why_unreadable(problem)}.") from None
        if not tensors:
            raise InputError(f"{path.name} holds no tensors.")
        return State(tensors, _layout(reader))


def _require_places(first: int, listed: Sequence[Any]) -> None:
    """Raises ValueError where a tensor lies outside the numbers of a file, or on another one."""
    stop = int(first)
    for one in sorted(listed, key=lambda one: int(one.data_offset)):
        if int(one.data_offset) < stop:
            raise ValueError(f"the numbers of {shortened(str(one.name), 80)} lie on others")
        stop = int(one.data_offset) + int(one.n_bytes)


def _tensor(gguf: Any, one: Any) -> Tensor:
    kind = one.tensor_type.name
    data = one.data if kind in PLAIN else gguf.quants.dequantize(one.data, one.tensor_type)
    shape = tuple(int(size) for size in reversed(one.shape))
    found = as_tensor(np.asarray(data).reshape(shape))
    if found is None:
        raise ValueError(f"{one.name} is of the type {kind}")
    return found


def _layout(reader: Any) -> str:
    field = reader.fields.get("general.architecture")
    try:
        named = bytes(field.parts[field.data[0]]).decode() if field is not None else ""
    except (ValueError, IndexError, TypeError):
        named = ""
    return f"GGUF, {shortened(named, 40)}" if named else "GGUF"


LOADERS.register("gguf")(GgufFile())
