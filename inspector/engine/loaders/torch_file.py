"""torch.save files (.pt .pth .bin .ckpt), zip and old format, always with weights_only=True.

What the loader refuses is never tried in a less safe way. Layouts: Lightning, Ignite, plain training dicts.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.loaders import State
from inspector.engine.shelves import LOADERS

OLD_MAGIC = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46"
NESTED = (
    "state_dict",
    "model_state_dict",
    "model_state",
    "model",
    "net",
    "network",
    "module",
    "weights",
    "ema",
    "params",
)
STEPS = ("global_step", "step", "iteration", "iter", "epoch")
MAX_NODES, MAX_DEPTH = 20_000, 6
FOREIGN = {
    "constants.pkl": "a TorchScript program",
    "archive_format": "a torch.export program",
    "extern_modules": "a torch.package program",
}


class TorchFile:
    """Checkpoints written by torch.save."""

    summary = "torch.save files: .pt .pth .bin .ckpt (weights only, nothing is executed)"
    suffixes = (".pt", ".pth", ".bin", ".ckpt", ".tar")

    def sniff(self, path: Path, head: bytes) -> bool:
        """A zip archive, the old magic number, or a bare pickle."""
        return head.startswith((b"PK", OLD_MAGIC)) or head[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04")

    def load(self, path: Path) -> State:
        """All tensors of the state dict that was found, wherever it is nested."""
        if zipfile.is_zipfile(path):
            _check_archive(path)
        raw = _load(path)
        return choose(raw, path)


def _check_archive(path: Path) -> None:
    """Refuse programs and compression bombs by the zip directory, before anything is read."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    names = {member.filename.rpartition("/")[2] for member in members}
    for mark, what in FOREIGN.items():
        if mark in names:
            raise InputError(
                f"{path.name} is {what}, not a checkpoint; opening it would run code. Save the state dict instead: "
                "torch.save(model.state_dict(), path)."
            )
    size = path.stat().st_size
    if any(m.compress_type != zipfile.ZIP_STORED for m in members) and sum(m.file_size for m in members) > max(
        4 * size, 64 << 20
    ):
        raise InputError(f"{path.name} unpacks to far more than its {size} bytes; such a checkpoint is not read.")


def _load(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise InputError(_refused(path)) from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, AttributeError, IndexError, TypeError) as problem:
        text = " ".join(str(problem).split())[:160] or type(problem).__name__
        raise InputError(f"{path.name} cannot be read as a checkpoint; it is damaged or cut short ({text}).") from None
    except (RecursionError, MemoryError) as problem:
        raise InputError(f"{path.name} asks for too much to be read ({type(problem).__name__}).") from None


def _refused(path: Path) -> str:
    try:
        names = sorted(torch.serialization.get_unsafe_globals_in_checkpoint(path))
    except Exception:  # noqa: BLE001 - the list is a courtesy; the refusal stands without it
        names = []
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return (
        f"{path.name} holds more than tensors ({listed or 'objects of unknown classes'}), and loading those would run "
        "code, so it is refused. Save only the weights, torch.save(model.state_dict(), path), and open that."
    )


def choose(raw: Any, path: Path) -> State:
    """The state dict inside what was loaded: the nested dict with the most tensor elements."""
    found: dict[str, dict[str, Tensor]] = {}
    _walk(raw, "", found, [0], 0)
    if not found:
        raise InputError(f"{path.name} holds a {type(raw).__name__} without named tensors; expected a state dict.")
    preferred = [key for key in found if key.rpartition(".")[2] in NESTED and "optimizer" not in key]
    pool = preferred or [key for key in found if "optim" not in key] or list(found)
    chosen = max(pool, key=lambda key: (sum(t.numel() for t in found[key].values()), -len(key)))
    for name, tensor in found[chosen].items():
        _check_tensor(name, tensor, path)
    layout = f"torch, nested under {chosen!r}" if chosen else "torch, plain state dict"
    if isinstance(raw, Mapping) and "pytorch-lightning_version" in raw:
        layout = "Lightning checkpoint"
    others = tuple(key or "(top level)" for key in pool if key != chosen)
    return State(found[chosen], layout, _step(raw), others=others)


def _walk(value: Any, where: str, found: dict[str, dict[str, Tensor]], nodes: list[int], depth: int) -> None:
    """Collect every dict of named tensors, within a budget of nodes and depth; nothing is printed or compared."""
    nodes[0] += 1
    if nodes[0] > MAX_NODES or depth > MAX_DEPTH or not isinstance(value, Mapping):
        return
    tensors = {str(key): item for key, item in value.items() if isinstance(item, Tensor)}
    if tensors:
        found[where] = tensors
    for key, item in value.items():
        if isinstance(item, Mapping):
            _walk(item, f"{where}.{key}".lstrip("."), found, nodes, depth + 1)


def _check_tensor(name: str, tensor: Tensor, path: Path) -> None:
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise InputError(f"{path.name}: tensor {name} is {tensor.layout}; only dense tensors are read.")
    if tensor.numel() * tensor.element_size() > 2 * max(1, tensor.untyped_storage().nbytes()):
        raise InputError(f"{path.name}: tensor {name} claims {tensor.numel()} numbers that the file does not hold.")


def _step(raw: Any) -> int | None:
    if isinstance(raw, Mapping):
        for key in STEPS:
            value = raw.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    return None


LOADERS.register("torch")(TorchFile())
