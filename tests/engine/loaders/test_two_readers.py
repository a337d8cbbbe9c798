"""What is checked in an archive is what torch reads of it: archives that show each of two readers something else, and
members that torch's reader takes for folders or for empty."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp

from inspector.engine.errors import InputError
from inspector.engine.loaders.distributed import METADATA
from inspector.engine.model.distributed_metadata import read_metadata
from inspector.engine.model.one_directory import END, require_one_directory
from inspector.engine.opening.read_checkpoint import read_checkpoint

ALLOCATES = b"\x80\x02c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R."
"""A pickle of two gigabytes."""
Members = list[tuple[str, bytes]]


def state(value: float = 1.0) -> dict[str, torch.Tensor]:
    return {"weight": torch.full((2, 3), value), "bias": torch.full((2,), value)}


def members(of: dict[str, torch.Tensor]) -> Members:
    buffer = io.BytesIO()
    torch.save(of, buffer)
    with zipfile.ZipFile(buffer) as archive:
        return [(one.filename, archive.read(one)) for one in archive.infolist()]


def packed(held: Iterable[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of one name are what is tried
        for name, content in held:
            archive.writestr(name, content)
    return buffer.getvalue()


def with_two_directories(first: bytes, second: bytes) -> bytes:
    """The directory before the end is the second's; the place that the end tells is that of the first's."""
    bare = first[: first.rfind(END)]
    _, offset = directory_of(first)
    whole = bytearray(bare + second)
    end = bytes(whole).rfind(END)
    length, _ = directory_of(second)
    whole[end + 16 : end + 20] = struct.pack("<I", offset)
    shift = end - length - offset  # what zipfile adds to the places of members
    at = end - length
    while at < end:
        name, extra, comment = struct.unpack("<HHH", whole[at + 28 : at + 34])
        (place,) = struct.unpack("<I", whole[at + 42 : at + 46])
        whole[at + 42 : at + 46] = struct.pack("<I", place + len(bare) - shift)
        at += 46 + name + extra + comment
    return bytes(whole)


def directory_of(archive: bytes) -> tuple[int, int]:
    """(its length, its place)."""
    end = archive.rfind(END)
    length, place = struct.unpack("<II", archive[end + 12 : end + 20])
    return int(length), int(place)


def test_the_two_directories_show_other_numbers(tmp_path: Path) -> None:
    """Else the next test would show nothing."""
    path = tmp_path / "c.pt"
    first, second = members(state(7.0)), members(state())
    path.write_bytes(with_two_directories(packed([*first, ("archive/more", bytes(2_000))]), packed(second)))
    with zipfile.ZipFile(path) as archive:
        assert np.frombuffer(archive.read("archive/data/0"), np.float32)[0] == 1
    assert torch.load(path, weights_only=True)["weight"][0, 0] == 7


@pytest.mark.parametrize("evil", [False, True])
def test_an_archive_with_two_directories_is_refused(tmp_path: Path, evil: bool) -> None:
    first = members(state(7.0))
    if evil:
        first = [(name, ALLOCATES if name.endswith("data.pkl") else content) for name, content in first]
    path = tmp_path / "c.pt"
    path.write_bytes(with_two_directories(packed([*first, ("archive/more", bytes(3_000))]), packed(members(state()))))
    with pytest.raises(InputError, match=r"^c\.pt is damaged or cut short: the directory of the archive is not where"):
        read_checkpoint(path)


def test_what_torch_and_python_write_has_one_directory(tmp_path: Path) -> None:
    torch.save(state(), tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive, archive.open("x", "w", force_zip64=True) as file:
        file.write(b"x")
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.comment = b"a comment"
        for number in range(70_000):  # more than 16 bits count: the end of 64 bits
            archive.writestr(f"{number}", b"")
    for path in sorted(tmp_path.iterdir()):
        with path.open("rb") as file:
            require_one_directory(file)


def test_an_end_of_64_bits_that_tells_another_place_is_refused() -> None:
    content = bytearray(packed([(f"{number}", b"") for number in range(70_000)]))
    require_one_directory(io.BytesIO(content))
    locator = content.rfind(b"PK\x06\x07")
    content[locator + 8] ^= 1
    with pytest.raises(zipfile.BadZipFile, match="not where its end says"):
        require_one_directory(io.BytesIO(content))


@pytest.mark.parametrize("name", ["ARCHIVE/DATA.PKL", "archive/Data/0"])
def test_names_that_torch_cannot_tell_apart_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "c.pt").write_bytes(packed([(name, ALLOCATES), *members(state())]))
    with pytest.raises(InputError, match=rf"^c\.pt has two archive members named {name.lower()}; it is not read\.$"):
        read_checkpoint(tmp_path / "c.pt")


def test_every_pickle_that_torch_might_read_is_looked_at(tmp_path: Path) -> None:
    held = members(state())
    good = next(content for name, content in held if name.endswith("data.pkl"))
    evil = [(name, ALLOCATES if name.endswith("data.pkl") else content) for name, content in held]
    (tmp_path / "c.pt").write_bytes(packed([("archive/x/data.pkl", good), *evil]))
    with pytest.raises(InputError, match=r"^c\.pt asks for far more memory than its "):
        read_checkpoint(tmp_path / "c.pt")


def changed(path: Path, name: str, at: int, value: bytes) -> None:
    """Overwrite a field of a member in the directory."""
    content = bytearray(path.read_bytes())
    place = content.rfind(name.encode()) - 46
    content[place + at : place + at + len(value)] = value
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("at", "value"),
    [(38, b"\x10"), (16, bytes(8)), (20, b"\x08")],
    ids=["a folder", "nothing, no checksum", "shorter"],
)
def test_a_member_that_torch_would_not_read_is_refused(tmp_path: Path, at: int, value: bytes) -> None:
    """torch gave what its memory held before as the numbers of such a one."""
    path = tmp_path / "c.pt"
    path.write_bytes(packed(members(state())))
    assert read_checkpoint(path).tensors
    changed(path, "archive/data/0", at, value)
    with pytest.raises(InputError, match=r"^c\.pt is damaged: archive member archive/data/0 is no file of its length"):
        read_checkpoint(path)


def test_two_keys_that_read_alike_are_refused(tmp_path: Path) -> None:
    torch.save({1: torch.zeros(2), "1": torch.ones(2)}, tmp_path / "c.pt")
    with pytest.raises(InputError, match=r"^Two tensors are named '1': one by a text, one by another key\.$"):
        read_checkpoint(tmp_path / "c.pt")


def test_weights_are_found_however_deep_and_behind_however_many(tmp_path: Path) -> None:
    nested: dict[str, object] = dict(state())
    for _ in range(12):
        nested = {"a": nested}
    torch.save({"x": torch.zeros(1), **nested}, tmp_path / "c.pt")
    assert set(read_checkpoint(tmp_path / "c.pt").tensors) == {"weight", "bias"}
    many = {"optimizer": {"state": {n: {"step": n} for n in range(30_000)}}, "model": state()}
    torch.save(many, tmp_path / "d.pt")
    assert set(read_checkpoint(tmp_path / "d.pt").tensors) == {"weight", "bias"}


@pytest.mark.parametrize("name", ["archive/data/0", "archive/DATA/0"])
def test_a_part_of_a_distributed_checkpoint_with_two_members_of_one_name_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "c"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(state(), checkpoint_id=folder)
    assert read_checkpoint(folder).tensors
    part = read_metadata(folder)["bias"].parts[0]
    file = folder / part.file
    whole = file.read_bytes()
    held = zipfile.ZipFile(io.BytesIO(whole[part.offset : part.offset + part.length]))
    twice = packed([*((one.filename, held.read(one)) for one in held.infolist()), (name, bytes(8))])
    assert len(twice) < part.length, "it takes the place of the other"
    filled = twice[:-2] + struct.pack("<H", part.length - len(twice)) + bytes(part.length - len(twice))
    file.write_bytes(whole[: part.offset] + filled + whole[part.offset + part.length :])
    assert (folder / METADATA).exists()
    with pytest.raises(InputError, match=r"a part of bias cannot be read \(two of its members have one name\)\.$"):
        read_checkpoint(folder)
