"""Every tensor of a checkpoint, or of two side by side, without a model; run as a process of its own by the command
`inspector weights`.

It writes one JSON object to its standard output. Files are read by the loaders: nothing in them is executed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from inspector.engine.analyses.tensor_statistics import difference, summary
from inspector.engine.errors import InputError
from inspector.engine.opening.open_subject import checkpoint_at, read_checkpoint
from inspector.engine.opening.weights_alone.gate_blocks import gate_blocks


def listed(path: Path) -> dict[str, Any]:
    """The tensors of one checkpoint with their statistics, those of gates apart. Raises InputError."""
    state = read_checkpoint(checkpoint_at(path))
    return {"layout": state.layout, "step": state.step, "tensors": _entries(state.tensors)}


def compared(first: Path, second: Path) -> dict[str, Any]:
    """Two checkpoints, tensor by tensor, in the order of the first. Raises InputError."""
    one, other = read_checkpoint(checkpoint_at(first)).tensors, read_checkpoint(checkpoint_at(second)).tensors
    pairs = []
    for name, tensor in one.items():
        if name in other:
            pairs.append({"name": name, **_pair(tensor, other[name])})
    return {
        "pairs": pairs,
        "only_first": [name for name in one if name not in other],
        "only_second": [name for name in other if name not in one],
    }


def _pair(one: Tensor, other: Tensor) -> dict[str, Any]:
    about = {"shapes": [list(one.shape), list(other.shape)], "dtypes": [_dtype(one), _dtype(other)]}
    return about | {"difference": difference(one, other) if one.shape == other.shape else None}


def _entries(tensors: Mapping[str, Tensor]) -> list[dict[str, Any]]:
    gates = gate_blocks(tensors)
    seen: dict[tuple[Any, ...], str] = {}
    entries = []
    for name, tensor in tensors.items():
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        same = seen.setdefault(key, name) if tensor.numel() else name
        parts = [(one.gate, tensor.narrow(one.axis, one.start, one.stop - one.start)) for one in gates.get(name, ())]
        entries.append({
            "name": name, "shape": list(tensor.shape), "dtype": _dtype(tensor), "same_memory_as": same * (same != name),
            **summary(tensor), "gates": [{"gate": gate, **summary(part)} for gate, part in parts],
        })  # fmt: skip
    return entries


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def main(paths: list[str]) -> int:
    """Write JSON for one path or two; 2 with a one-line message where a file cannot be read."""
    try:
        found = listed(Path(paths[0])) if len(paths) == 1 else compared(Path(paths[0]), Path(paths[1]))
    except InputError as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    sys.stdout.write(json.dumps(found, allow_nan=False))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
