"""torch.save files (.pt .pth .bin .ckpt), zip and old format, always with weights_only=True.

A file that weights_only rejects is never read in a less safe way. Layouts: Lightning, Ignite, plain training dicts.
"""

from __future__ import annotations

import io
import pickle
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from inspector.capture.regular import open_regular
from inspector.engine.contracts import MAX_STEP, State
from inspector.engine.errors import InputError
from inspector.engine.model.one_directory import left_unread, named_twice, require_one_directory, require_plain
from inspector.engine.model.pickle_opcodes import could_allocate, opcodes
from inspector.engine.model.pickle_parts import never_ends
from inspector.engine.model.safe_torch import require_safe_torch
from inspector.engine.registries import LOADERS
from inspector.engine.wording import a_class
from inspector.records.plain_text import shortened
from inspector.records.unreadable import why_unreadable

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
MAX_NODES, MAX_DEPTH = 20_000, 30
PROGRAMS = frozenset({"constants.pkl", "archive_format", "model_weights_config.json", "extern_modules"})
"""Files in an archive that is a program (TorchScript, torch.export, torch.package), not a checkpoint."""
MAX_WHOLE = 64 << 20
"""Bytes up to which a file of the old format is read to learn its step alone."""
MAX_PICKLE = 16 << 20
PIECE = 1 << 20
BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, OSError, ValueError, IndexError, RuntimeError)
"""What reading the directory of a damaged zip archive raises."""
HARMLESS = ("torch._utils ", "torch._tensor ", "torch.storage ", "collections OrderedDict")


class TorchFile:
    """Checkpoints written by torch.save."""

    title = "PyTorch"
    summary = "Files of torch.save; weights only, nothing is executed."
    suffixes = (".pt", ".pth", ".bin", ".ckpt", ".tar")
    magic = (b"PK", OLD_MAGIC, b"\x80\x02", b"\x80\x03", b"\x80\x04")

    def sniff(self, path: Path, head: bytes) -> bool:
        """A zip archive that is not a program, the old magic number, or a bare pickle."""
        return head.startswith(self.magic) and not (head.startswith(b"PK") and _is_program(path))

    def load(self, path: Path) -> State:
        """All tensors of the state dict that was found, wherever it is nested."""
        with open_regular(path) as file:
            archive = file.read(2) == b"PK"
        if archive:
            _check_archive(path)
        else:
            _check_pickle(path)
        raw = _load(path)
        return choose(raw, path)

    def step(self, path: Path) -> tuple[int, str] | None:
        """The step beside the weights; the numbers of the tensors stay on the disk. Raises InputError."""
        with open_regular(path) as file:
            archive = file.read(2) == b"PK"
        if archive:
            _check_archive(path, whole=False)
        elif path.stat().st_size > MAX_WHOLE:
            return None  # the old format can only be read as a whole
        else:
            _check_pickle(path)
        return _step(_load(path, mapped=archive))

    def found_in(self, raw: Any, path: Path) -> State:
        """The state dict inside what another loader has read as nested dicts of tensors. Raises InputError."""
        return choose(raw, path)


def _is_program(path: Path) -> bool:
    """Whether a zip archive is a program. False for a damaged one: reading it will report what is wrong."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return any(name.rpartition("/")[2] in PROGRAMS for name in archive.namelist())
    except BAD_ARCHIVE:
        return False


def _check_archive(path: Path, *, whole: bool = True) -> None:
    """Reject compression bombs, other archives and (with `whole`, which reads all) changed members, before torch reads
    any of it."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            require_one_directory(file)
            _check_members(path, archive.infolist())
            looked_at = archive.infolist() if whole else ()
            changed = next((one.filename for one in looked_at if _has_changed(archive, one)), None)
            for pickled in () if changed is not None else _pickles_in(archive):
                _check_allocation(path, pickled)
    except InputError:
        raise
    except BAD_ARCHIVE as problem:
        raise InputError(f"{path.name} is damaged or cut short: {why_unreadable(problem)}.") from None
    if changed is not None:
        name = " ".join(changed.split())[:120]
        raise InputError(f"{path.name} is damaged: archive member {name} has changed since it was written.")


def _pickles_in(archive: zipfile.ZipFile) -> Iterator[bytes]:
    """Everything that might be the one that torch reads: it looks into the folder of the first member."""
    for member in archive.infolist():
        if member.filename.lower().endswith("data.pkl"):
            member.CRC = member.CRC or None  # type: ignore[assignment]
            yield archive.read(member)


def _check_pickle(path: Path) -> None:
    """Refuse a file of the old format that would allocate far more than it holds."""
    with open_regular(path) as file:
        _check_allocation(path, file.read(min(path.stat().st_size, MAX_WHOLE)))


def _check_allocation(path: Path, pickled: bytes) -> None:
    if could_allocate(pickled) > _most_bytes(path):
        raise InputError(f"{path.name} asks for far more memory than its {path.stat().st_size} bytes; it is not read.")
    if never_ends(pickled):
        raise InputError(f"{path.name} has a name made of millions of parts, and reading it would not end.")


def _most_bytes(path: Path) -> int:
    """What a checkpoint may take in memory: four times the file, and 64 MiB in any case."""
    return max(4 * path.stat().st_size, 64 << 20)


def _check_members(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Refuse by the zip directory, before anything is unpacked."""
    names = {member.filename.rpartition("/")[2] for member in members}
    if "data.pkl" not in names:
        held = ", ".join(sorted(names)[:4]) or "nothing"
        raise InputError(f"{path.name} is a zip archive of {held}, not a checkpoint that torch.save wrote.")
    require_plain(path, members)
    twice = named_twice(one.filename for one in members)
    if twice is not None:  # programs differ in which of the two they read
        raise InputError(
            f"{path.name} has two archive members named {shortened(' '.join(twice.split()), 120)}; it is not read."
        )
    unread = left_unread(members)
    if unread is not None:
        raise InputError(
            f"{path.name} is damaged: archive member {shortened(' '.join(unread.split()), 120)} is no file of "
            "its length."
        )
    size = path.stat().st_size
    if sum(member.file_size for member in members) > _most_bytes(path):  # members may also overlap
        raise InputError(f"{path.name} unpacks to far more than its {size} bytes; such a checkpoint is not read.")
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(
                f"{path.name} is packed with zip method {member.compress_type}; torch reads 0 (plain) and 8 (deflate)."
            )


def _has_changed(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    """Whether a member's bytes are others than its checksum says, which torch's own reader does not look at.

    It is read once, piece by piece. A checksum of 0 is none: torch writes it where it was told to compute none
    (`torch.serialization.set_crc32_options`) or to leave the numbers out for another program (`skip_data`).
    """
    member.CRC = member.CRC or None  # type: ignore[assignment]  # None checks none
    length = 0
    try:
        with archive.open(member) as file:
            while piece := file.read(PIECE):
                length += len(piece)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError):  # RuntimeError: a flipped bit says "encrypted"
        return True
    return length != member.file_size


def _load(path: Path, *, mapped: bool = False) -> Any:
    """What torch.load reads without running anything; its warnings and its advice are not shown.

    `mapped`: tensors stay in the file. Nothing touches their numbers then, so a file that is cut ends no process.
    """
    require_safe_torch(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except (RecursionError, MemoryError) as problem:
        raise InputError(f"{path.name} needs too much memory to be read ({type(problem).__name__}).") from None
    except Exception as problem:  # noqa: BLE001 - a damaged file may raise anything on its way
        text = " ".join(str(problem).split())
        named = _unsafe_names(path) if isinstance(problem, pickle.UnpicklingError) else []
        if named or "unsupported global" in text.lower() or "unsupported class" in text.lower():
            raise InputError(_refused(path, named)) from None
        raise InputError(
            f"{path.name} cannot be read as a checkpoint; it is damaged or cut short ({_reason(text, problem)})."
        ) from None


def _reason(text: str, problem: Exception) -> str:
    """torch's own message without its advice to read the file in an unsafe way."""
    if "weights_only" in text:
        return "its pickle is broken"
    return why_unreadable(problem)


def _unsafe_names(path: Path) -> list[str]:
    """The globals in a file that are rejected; [] if there are none, or if they cannot be determined."""
    try:
        names = sorted(torch.serialization.get_unsafe_globals_in_checkpoint(path))
    except Exception:  # noqa: BLE001 - it reads the new format only; the file is then rejected without a list
        names = _named_in_pickles(path)
    return [" ".join(name.split())[:60] for name in names]


def _refused(path: Path, names: list[str]) -> str:
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return (
        f"{path.name} holds more than tensors ({listed or 'objects of unknown classes'}), and loading those would run "
        "code, so it is refused. Save only the weights, torch.save(model.state_dict(), path), and open that."
    )


def _named_in_pickles(path: Path) -> list[str]:
    """The globals that an old-format file or a bare pickle names, read from its opcodes without running them."""
    with open_regular(path) as file:
        stream = io.BytesIO(file.read(MAX_PICKLE))
    found: set[str] = set()
    words = ["", ""]
    for name, argument in opcodes(stream):
        if name in ("GLOBAL", "INST"):
            found.add(str(argument))
        elif name == "STACK_GLOBAL":
            found.add(" ".join(words))
        elif isinstance(argument, str) and "UNICODE" in name:
            words = [words[1], argument]
    kept = [name for name in found if not name.startswith(HARMLESS) and not name.endswith("Storage")]
    return sorted(name.replace(" ", ".")[:60] for name in kept)


def choose(raw: Any, path: Path) -> State:
    """The state dict inside what was loaded: the nested dict with the most tensor elements."""
    found = _collect(raw)
    if not found:
        raise InputError(f"{path.name} holds {a_class(raw)} without named tensors; expected a state dict.")
    preferred = [key for key in found if key.rpartition(".")[2] in NESTED and "optimizer" not in key]
    pool = preferred or [key for key in found if "optim" not in key] or list(found)
    chosen = max(pool, key=lambda key: (sum(t.numel() for t in found[key].values()), -_rank(key)))
    for name, tensor in found[chosen].items():
        _check_tensor(name, tensor, path)
    _check_held(found[chosen], path)
    layout = f"torch, nested under {chosen!r}" if chosen else "torch, plain state dict"
    if isinstance(raw, Mapping) and "pytorch-lightning_version" in raw:
        layout = "Lightning checkpoint"
    others = tuple(key or "(top level)" for key in pool if key != chosen)
    told = _step(raw)
    return State(found[chosen], layout, told[0] if told is not None else None, others=others)


def _rank(key: str) -> int:
    """Of two of equal size (a model and its moving average), the one that is usually wanted: the order of NESTED."""
    last = key.rpartition(".")[2]
    return NESTED.index(last) if last in NESTED else len(NESTED)


def _collect(raw: Any) -> dict[str, dict[str, Tensor]]:
    """Every dict of named tensors by its place, those at the top first, within a budget of dicts and depth; nothing is
    printed or compared."""
    found: dict[str, dict[str, Tensor]] = {}
    waiting = [("", raw, 0)] if isinstance(raw, Mapping) else []
    for where, held, depth in waiting:
        tensors = _tensors_in(held)
        if tensors:
            found[where] = tensors
        inner = ((f"{where}.{key}".lstrip("."), one) for key, one in held.items() if isinstance(one, Mapping))
        if depth < MAX_DEPTH:
            waiting += [(place, one, depth + 1) for place, one in islice(inner, max(0, MAX_NODES - len(waiting)))]
    return found


def _tensors_in(held: Mapping[Any, Any]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for key, one in held.items():
        if isinstance(one, Tensor):
            if str(key) in tensors:
                raise InputError(
                    f"Two tensors are named {shortened(str(key), 80)!r}: one by a text, one by another key."
                )
            tensors[str(key)] = one
    return tensors


def _check_tensor(name: str, tensor: Tensor, path: Path) -> None:
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise InputError(f"{path.name}: tensor {name} is {tensor.layout}; only dense tensors are read.")
    if tensor.numel() * tensor.element_size() > 2 * max(1, tensor.untyped_storage().nbytes()):
        raise InputError(f"{path.name}: tensor {name} claims {tensor.numel()} numbers that the file does not hold.")


def _check_held(tensors: Mapping[str, Tensor], path: Path) -> None:
    """A pickle may also make tensors without numbers in the file: `torch.Tensor(n)`, which holds what memory held."""
    held = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in tensors.values()}
    if path.is_file() and sum(held.values()) > _most_bytes(path):
        raise InputError(f"{path.name} claims {sum(held.values())} bytes of numbers; the file has far fewer.")


def _step(raw: Any) -> tuple[int, str] | None:
    """The training step beside the weights, and the key under which it stands."""
    if isinstance(raw, Mapping):
        for key in STEPS:
            value = raw.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_STEP:
                return value, f"the key {key!r}"
    return None


LOADERS.register("torch")(TorchFile())
