"""Keys of which hashing never ends, links that lead out of a folder, and memory that a pickle's places ask for."""

from __future__ import annotations

import json
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from inspector.engine.errors import InputError
from inspector.engine.model import pickle_parts
from inspector.engine.model.pickle_opcodes import takes_room
from inspector.engine.model.pickle_parts import never_ends
from inspector.engine.opening.read_checkpoint import read_checkpoint

WEIGHTS = {"0.weight": torch.ones(2, 3), "0.bias": torch.zeros(2)}


def doubled(levels: int) -> bytes:
    """{t: None} with t a pair of twice the same pair, so many levels deep."""
    return b"\x80\x02)q\x00" + b"h\x00h\x00\x86q\x00" * levels + b"}h\x00Ns."


def test_a_key_of_millions_of_parts_is_refused(tmp_path: Path) -> None:
    assert hash(next(iter(pickle.loads(doubled(10)))))  # what it is: 1,024 pairs
    assert not never_ends(doubled(10)) and never_ends(doubled(19)) and never_ends(doubled(60))
    path = tmp_path / "w.pt"
    for packed in (True, False):
        if packed:
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("w/data.pkl", doubled(60))
                archive.writestr("w/version", b"3\n")
        else:
            path.write_bytes(doubled(60))
        with pytest.raises(InputError, match=r"w\.pt has a name made of millions of parts"):
            read_checkpoint(path)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_what_is_written_in_earnest_ends(protocol: int) -> None:
    shared = ("a", "b")
    held = {"x": [shared] * 1000, "y": {shared: frozenset((shared, 1))}, "z": ((shared, shared), (shared, shared))}
    written = pickle.dumps(held, protocol)
    assert not never_ends(written) and not takes_room(written)


@pytest.mark.parametrize("seed", range(3))
def test_parts_are_counted_as_python_counts_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random values, in each protocol, two pickles in a row: the tuple with the most parts decides."""
    monkeypatch.setattr(pickle_parts, "MOST_PARTS", 40)
    drawn = random.Random(seed)
    plain = (0, 2**40, 2**3000, 1.5, None, True, "é" * 300, b"x" * 300, "name")

    def value(depth: int, most: list[int]) -> tuple[Any, int]:
        """(a value, its parts); what a tuple has is noted."""
        kind = drawn.randrange(4) if depth < 6 else 0
        if kind == 0:
            return drawn.choice(plain), 1
        made = [value(depth + 1, most) for _ in range(drawn.randrange(4))]
        if kind == 1:
            return [one for one, _ in made], 1
        if kind == 2:
            return {n: one for n, (one, _) in enumerate(made)}, 1
        made += made[:1] * drawn.randrange(4)  # the same one again, which a pickle has once
        most.append(1 + sum(parts for _, parts in made))
        return tuple(one for one, _ in made), most[-1]

    found = []
    for _ in range(300):
        most = [1]
        written = b"".join(pickle.dumps(value(0, most)[0], drawn.randrange(6)) for _ in range(2))
        found.append(max(most) > 40)
        assert never_ends(written) == found[-1]
    assert 3 < sum(found) < 290


def test_a_place_far_beyond_the_file_takes_room() -> None:
    assert takes_room(b"\x80\x02}r\xff\xff\xff\x7f.") and takes_room(b"\x80\x05\x96" + b"\x00" * 7 + b"\x10.")
    assert takes_room(b"\x80\x02cno")  # cut short
    assert not takes_room(pickle.dumps({str(n): n for n in range(3000)}))


def folder(path: Path) -> Path:
    """Weights behind an index."""
    path.mkdir(parents=True)
    index = {"weight_map": dict.fromkeys(WEIGHTS, "one.safetensors")}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    return path


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    save_file(WEIGHTS, tmp_path / "secret.safetensors")
    sharded, whole = folder(tmp_path / "sharded"), tmp_path / "whole"
    whole.mkdir()
    for link in (sharded / "one.safetensors", whole / "model.safetensors"):
        link.symlink_to(tmp_path / "secret.safetensors")
        with pytest.raises(InputError, match=rf"{link.name} is a link out of its folder"):
            read_checkpoint(link.parent)
    with pytest.raises(InputError, match="is a link out of its folder"):
        read_checkpoint(sharded / "model.safetensors.index.json")
    assert set(read_checkpoint(whole / "model.safetensors").tensors) == set(WEIGHTS), "named by its user"


def test_links_within_the_folder_and_of_the_cache_are_followed(tmp_path: Path) -> None:
    within = folder(tmp_path / "within")
    save_file(WEIGHTS, within / "real.safetensors")
    (within / "one.safetensors").symlink_to("real.safetensors")
    cached = folder(tmp_path / "models--a--b" / "snapshots" / ("0" * 40))
    blob = tmp_path / "models--a--b" / "blobs" / ("a" * 64)
    blob.parent.mkdir()
    save_file(WEIGHTS, blob)
    (cached / "one.safetensors").symlink_to(f"../../blobs/{blob.name}")
    (tmp_path / "linked").symlink_to(cached)
    for path in (within, cached, tmp_path / "linked"):
        assert torch.equal(read_checkpoint(path).tensors["0.weight"], WEIGHTS["0.weight"])
    (blob.parent / "other").write_bytes(blob.read_bytes())
    (cached / "one.safetensors").unlink()
    (cached / "one.safetensors").symlink_to("../../blobs/other")
    with pytest.raises(InputError, match="is a link out of its folder"):
        read_checkpoint(cached)
