"""Checkpoints that nobody should load, each made by a function of its own: (path, chance) to a file or a folder.

`CANARY` is a file that comes to be where one of them is executed.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save, save_file
from torch import nn

CANARY = "canary"
Make = Callable[[Path, random.Random], None]


def model() -> nn.Module:
    """What all of them would be loaded into."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def weights() -> dict[str, torch.Tensor]:
    """Weights for it."""
    torch.manual_seed(1)
    return {name: torch.randn_like(value) for name, value in model().state_dict().items()}


class Runs:
    """A pickle that calls something."""

    def __init__(self, what: Any, *arguments: Any) -> None:
        self.what, self.arguments = what, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.what, self.arguments


def _calls(path: Path) -> list[Any]:
    touch = f"open({str(path.parent / CANARY)!r}, 'w')"
    return [
        Runs(os.system, f"touch {path.parent / CANARY}"), Runs(eval, touch), Runs(exec, touch),
        Runs(os.mkdir, str(path.parent / CANARY)), Runs(__import__("subprocess").getoutput, f"touch {path.parent / CANARY}"),
        Runs(torch.load, str(path)), Runs(__import__, "antigravity"), Runs(Path, "/etc/passwd"),
    ]  # fmt: skip


def code(path: Path, chance: random.Random) -> None:
    """Something that is called, at several places of a torch file."""
    one = chance.choice(_calls(path))
    state: dict[Any, Any] = dict(weights())
    places: list[Any] = [
        one,
        {**state, "x": one},
        {"model": state, "x": [one]},
        {"state_dict": {**state, "1.bias": one}},
        [state, (one,)],
    ]
    torch.save(chance.choice(places), path, _use_new_zipfile_serialization=chance.random() < 0.6)


def bare_pickle(path: Path, chance: random.Random) -> None:
    """The same without torch's frame, at any protocol."""
    path.write_bytes(pickle.dumps({"w": chance.choice(_calls(path))}, protocol=chance.randrange(6)))


def opcodes(path: Path, chance: random.Random) -> None:
    """Pickles that were written by hand."""
    touch = f"touch {path.parent / CANARY}".encode()
    canary = b"X" + struct.pack("<I", len(touch)) + touch
    programs = (
        b"cos\nsystem\n(" + canary + b"tR.", b"(" + canary + b"ios\nsystem\n.", b"\x80\x04\x8c\x02os\x8c\x06system\x93" + canary + b"\x85R.",
        b"\x80\x02cbuiltins\ngetattr\ncos\nsystem\n" + canary + b"\x86R.", b"\x80\x02c__builtin__\neval\n" + canary + b"\x85R.",
        b"(" * 200_000 + b".", b"]" * 200_000 + b".", b"\x80\x02}" + b"q\x00h\x00" * 1000 + b".", b"\x80\xff.", b".", b"\x80\x05\x95" + b"\xff" * 8 + b".",
        b"B\xff\xff\xff\x7f.", b"\x8e" + b"\xff" * 7 + b"\x7f.", b"\x8b\xff\xff\xff\x7f.", b"L" + b"9" * 100_000 + b"L\n.", b"r\xff\xff\xff\x7f.",
        b"N" + b"r\xff\xff\xff\xff" + b".", b"P1\n.", b"\x80\x02Q.", b"\x82\x01.", b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    )  # fmt: skip
    _in_a_frame(path, chance.choice(programs), chance)


def _in_a_frame(path: Path, program: bytes, chance: random.Random) -> None:
    if chance.random() < 0.3:
        path.write_bytes(program)
        return
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("c/data.pkl", program)
        archive.writestr("c/version", b"3\n")
        archive.writestr("c/data/0", bytes(64))


def rebuilt(path: Path, chance: random.Random) -> None:
    """Tensors with sizes, strides and offsets that their numbers do not have."""
    from torch._utils import _rebuild_parameter, _rebuild_tensor_v2  # type: ignore[attr-defined]

    storage = torch.zeros(4).untyped_storage()
    typed = torch.storage.TypedStorage(wrap_storage=storage, dtype=torch.float32, _internal=True)
    size, stride, offset = chance.choice((
        ((2**40,), (0,), 0), ((2**62, 4), (4, 1), 0), ((4,), (-1,), 3), ((4,), (1,), -5), ((4,), (1,), 2**62), ((-1,), (1,), 0),
        ((4, 4), (1, 1), 0), ((2**31, 2**31), (0, 0), 0), ((1,) * 64, (1,) * 64, 0), ((4,), (1, 1), 0), ((10,), (1,), 0),
    ))  # fmt: skip
    how: Any = Runs(_rebuild_tensor_v2, typed, offset, size, stride, False, OrderedDict())
    if chance.random() < 0.3:
        how = Runs(_rebuild_parameter, how, True, OrderedDict())
    torch.save({"0.weight": how, "0.bias": torch.zeros(4)}, path)


def special(path: Path, chance: random.Random) -> None:
    """Sparse, quantised, meta, complex, huge and shared tensors, and objects that refer to themselves."""
    loop: dict[str, Any] = {"w": torch.zeros(2)}
    loop["loop"] = loop
    laughs: list[Any] = ["ha"]
    for _ in range(40):
        laughs = [laughs, laughs]
    deep: Any = torch.zeros(1)
    for _ in range(900):
        deep = {"a": deep}
    sparse = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(2), (3,))
    choices: tuple[Any, ...] = (
        {"0.weight": sparse}, {"0.weight": torch.zeros(4, 3, device="meta")}, {"0.weight": torch.zeros(1).expand(10**9)}, loop,
        {"w": torch.zeros(2), "laughs": laughs}, deep, {i: torch.zeros(1) for i in range(20_000)}, {"0.weight": torch.zeros(4, 3, dtype=torch.complex64)},
        {"0.weight": torch.full((4, 3), float("nan"))}, {"0.weight": torch.zeros(0, 3)}, {"x" * 200_000: torch.zeros(4)}, {"": torch.zeros(4)},
        {("a", 1): torch.zeros(1)}, {"0.weight": torch.zeros(4, 3, dtype=torch.bool)}, [], None, 7, "text", torch.zeros(3), {"step": 10**400, **weights()},
        {"step": "\x1b[2J", **weights()}, {"epoch": float("inf"), **weights()}, {"state_dict": {"state_dict": {"state_dict": weights()}}},
    )  # fmt: skip
    torch.save(chance.choice(choices), path)


HOSTILE = (
    "\x1b]0;owned\x07",
    "<img src=file:///dev/zero>",
    "\u202eexe.pt",
    "a\nb",
    "a\x00b",
    "../../x",
    "日" * 3000,
    "%s%n",
    "{0.__class__}",
    "\udc80",
)


def names(path: Path, chance: random.Random) -> None:
    """Names that terminals, windows and file systems interpret."""
    hostile = {chance.choice(HOSTILE) + str(i): value for i, value in enumerate(weights().values())}
    try:
        if chance.random() < 0.5:
            save_file(
                hostile,
                path.with_suffix(".safetensors"),
                {"step": chance.choice(HOSTILE).encode("utf-8", "replace").decode()},
            )
        else:
            torch.save({**weights(), **hostile}, path)
    except UnicodeEncodeError:
        torch.save({**weights(), "\x1b[2J": torch.zeros(1)}, path)


def archive(path: Path, chance: random.Random) -> None:
    """Archives with members that lie about themselves."""
    buffer = io.BytesIO()
    torch.save(weights(), buffer)
    source = zipfile.ZipFile(buffer)
    members = {info.filename: source.read(info) for info in source.infolist()}
    first = next(iter(members)).partition("/")[0]
    kind = chance.randrange(9)
    method = zipfile.ZIP_DEFLATED if kind == 0 else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as target:
        for name, content in members.items():
            if kind == 1 and name.endswith("/data/0"):
                continue
            cut = kind == 2 and "/data/" in name
            target.writestr(name, content[: len(content) // 2] if cut else content)
        if kind == 0:
            target.writestr(f"{first}/data/99", bytes(300 << 20))
        elif kind == 3:
            target.writestr(f"{first}/data.pkl", pickle.dumps(_calls(path)[0]))
        elif kind == 4:
            target.writestr("../../evil", b"x")
        elif kind == 5:
            target.writestr(f"{first}/byteorder2", b"x" * 100)
        elif kind == 6:
            for number in range(30_000):
                target.writestr(f"{first}/extra/{number}", b"")
        elif kind == 7:
            target.writestr(f"{first}/code/__torch__.py", b"def f(): pass")
            target.writestr(f"{first}/constants.pkl", b"\x80\x02).")
        else:
            target.comment = b"x" * 60_000


def harmed(path: Path, chance: random.Random) -> None:
    """A good file of either kind, with bits flipped, cut, or put together from two."""
    kind = chance.choice(("zip", "old", "safetensors"))
    if kind == "safetensors":
        path.with_suffix(".safetensors").write_bytes(save(weights()))
        path = path.with_suffix(".safetensors")
    else:
        torch.save(weights(), path, _use_new_zipfile_serialization=kind == "zip")
    data = bytearray(path.read_bytes())
    how = chance.randrange(4)
    if how == 0:
        for _ in range(chance.choice((1, 1, 8))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif how == 1:
        del data[chance.randrange(len(data)) :]
    elif how == 2:
        at = chance.randrange(len(data))
        data[at : at + 64] = chance.randbytes(64)
    else:
        data[:0] = chance.randbytes(chance.choice((1, 4, 1000)))
    path.write_bytes(data)


def header(path: Path, chance: random.Random) -> None:
    """Headers of safetensors that lie."""
    good = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    lies: tuple[Any, ...] = (
        {"a": {**good, "shape": [2**62, 4]}}, {"a": {**good, "shape": [-4]}}, {"a": {**good, "data_offsets": [16, 0]}}, {"a": {**good, "dtype": "X9"}},
        {"a": good, "b": good}, {"a": {**good, "data_offsets": [0, 2**60]}}, {"a": {**good, "shape": [4] * 5000}}, {"a": [1]}, [1, 2], "x", {"a": good, "__metadata__": {"step": 7}},
        {f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(60_000)}, {"a": {**good, "shape": [4.5]}}, {"a": {**good, "data_offsets": [1, 17]}},
        {"__metadata__": {"step": "9" * 5000}, "a": good},
    )  # fmt: skip
    text = json.dumps(chance.choice(lies)).encode()
    if chance.random() < 0.2:
        text = chance.choice((b"{" * 100_000, b"\xff\xfe" * 50, b'{"a":' * 50_000, b"{" + b" " * 100_000 + b"}"))
    length = chance.choice((len(text), len(text), len(text), 2**63, len(text) + 1000, 0))
    path.with_suffix(".safetensors").write_bytes(struct.pack("<Q", length) + text + bytes(16))


def folder(path: Path, chance: random.Random) -> None:
    """Folders whose index leads elsewhere."""
    path.mkdir()
    save_file(weights(), path / "part.safetensors")
    save_file(weights(), path.parent / "outside.safetensors")
    wanted = chance.choice((
        "../outside.safetensors", str(path.parent / "outside.safetensors"), "gone.safetensors", "link.safetensors", "fifo.safetensors", "part.safetensors\x00", "", "sub",
        "/dev/zero", "/etc/passwd",
    ))  # fmt: skip
    (path / "link.safetensors").symlink_to(path.parent / "outside.safetensors")
    os.mkfifo(path / "fifo.safetensors")
    (path / "sub").mkdir()
    names = list(weights())
    index: Any = {"metadata": {"total_size": 10**30}, "weight_map": dict.fromkeys(names, wanted)}
    if chance.random() < 0.2:
        index = chance.choice(
            (
                [],
                {"weight_map": []},
                {"weight_map": {"a": 7}},
                {"weight_map": dict.fromkeys("x" * 3, "part.safetensors")},
            )
        )
    (path / "model.safetensors.index.json").write_text(json.dumps(index))


def no_file(path: Path, chance: random.Random) -> None:
    """What is at the path is no ordinary file with content."""
    what = chance.choice(("fifo", "empty", "folder", "loop", "device", "sparse", "text", "zeros", "picture"))
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what in ("loop", "device"):
        path.symlink_to(path.name if what == "loop" else "/dev/zero")
    else:
        content = {
            "empty": b"",
            "text": b"weights" * 99,
            "zeros": bytes(4096),
            "picture": b"\x89PNG\r\n\x1a\n" + bytes(90),
            "sparse": b"PK\x03\x04",
        }
        path.write_bytes(content[what])
        if what == "sparse":
            os.truncate(path, 1 << 40)


MAKES: dict[str, Make] = {
    one.__name__: one
    for one in (code, bare_pickle, opcodes, rebuilt, special, names, archive, harmed, header, folder, no_file)
}  # fmt: skip
