"""Inputs that are cut, damaged or say two things: their numbers are right, or they are refused."""

from __future__ import annotations

import io
import os
import warnings
import wave
import zipfile
from pathlib import Path

import numpy as np
import pytest
import soundfile

from inspector.engine.errors import InputError
from inspector.engine.inputs.audio import read_sound
from inspector.engine.inputs.numbers import read_numbers
from inspector.engine.inputs.picture import read_picture
from inspector.engine.inputs.vectors import parse_vectors
from inspector.engine.model.batching import tensor_of

SOUND = np.random.default_rng(0).uniform(-0.5, 0.5, 48_000)


def wav(path: Path) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes((SOUND[:16_000] * 30_000).astype("<i2").tobytes())
    return path


def test_a_sound_that_is_cut_is_refused(tmp_path: Path) -> None:
    path = wav(tmp_path / "s.wav")
    assert len(read_sound(path)[0]) == 16_000
    os.truncate(path, 8_044)
    with pytest.raises(InputError) as told:
        read_sound(path)
    assert str(told.value) == "s.wav is not read: it is cut short, with 8,000 of 32,000 bytes."


def test_a_sound_whose_program_did_not_know_its_length_is_read(tmp_path: Path) -> None:
    path = wav(tmp_path / "s.wav")
    content = bytearray(path.read_bytes())
    content[4:8] = content[40:44] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    assert len(read_sound(path)[0]) == 16_000


@pytest.mark.parametrize("form", ["ogg", "flac"])
def test_a_packed_sound_that_is_damaged_anywhere_is_refused(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"s.{form}"
    soundfile.write(path, SOUND, 16_000)
    content, whole = path.read_bytes(), read_sound(path)[0]
    for share in (0.3, 0.5, 0.9):
        at = int(len(content) * share)
        path.write_bytes(content[:at])
        with pytest.raises(InputError):
            read_sound(path)
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        with pytest.raises(InputError):
            read_sound(path)
    path.write_bytes(content)
    assert read_sound(path)[0].equal(whole)


def test_an_ogg_file_without_its_last_page_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.ogg"
    soundfile.write(path, SOUND, 16_000)
    content = path.read_bytes()
    path.write_bytes(content[: content.rfind(b"OggS")])
    with pytest.raises(InputError, match=r"^s\.ogg is not read: it is cut short: its last page is missing\.$"):
        read_sound(path)


def test_a_picture_of_16_bits_keeps_its_grey_values(tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    grey = np.arange(0, 65_536, 13, dtype=np.uint16)[:5_000].reshape(50, 100)
    images.fromarray(grey).save(tmp_path / "p.png")
    found = read_picture(tmp_path / "p.png")
    assert found.shape == (50, 100, 3) and found.dtype == np.uint8
    np.testing.assert_allclose(found[..., 0], grey.astype(np.float64) * 255 / 65_535, atol=0.5)
    assert (found[..., 0] == found[..., 2]).all()


def test_whole_numbers_that_no_tensor_has_are_refused() -> None:
    assert tensor_of(np.array([2**63 - 1], np.uint64)).tolist() == [2**63 - 1]
    with pytest.raises(InputError, match="whole numbers of 2⁶³ and more"):
        tensor_of(np.array([1, 2**64 - 1], np.uint64))


@pytest.mark.parametrize("key", ["", "w"])
def test_an_archive_with_two_arrays_of_one_name_is_refused(tmp_path: Path, key: str) -> None:
    path = tmp_path / "v.npz"
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (0.0, 1.0):
            buffer = io.BytesIO()
            np.save(buffer, np.full((4, 2), value))
            archive.writestr("w.npy", buffer.getvalue())
    with pytest.raises(InputError, match=r"^v\.npz cannot be read as numbers: it holds two arrays named 'w'\.$"):
        read_numbers(path, key)


def test_pythons_own_way_of_writing_numbers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("1_0,2\n3,4\n")
    with pytest.raises(InputError, match="'1_0' in row 1 is not a number"):
        read_numbers(tmp_path / "v.csv", "")
    with pytest.raises(InputError, match="'1_0' is not a number"):
        parse_vectors("1_0 2; 3 4", 2)
