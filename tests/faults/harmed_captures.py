"""Captures that were harmed: random damage to their files, and forged rows whose checksums fit."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from campaign import Outcome, Section, refused
from captures import START, seal
from harm import FORGED, HARMS, forge

from inspector.capture import Capture, CaptureError, Writer, open_capture, pack
from inspector.records import Axis, Channel, Frame, Labels, Page, Refusal, RunStop, Scalar

TRAINING = Path(__file__).parents[2] / "sample_models" / "trainings" / "spike.inspect"
PATIENCE = 5.0
Numbers = dict[tuple[str, int], npt.NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Whole:
    """A capture before it is harmed: what it says, and its numbers."""

    path: Path
    words: tuple[object, ...]
    numbers: Numbers


def a_run(path: Path) -> Path:
    """Every dtype and several kinds of channel, in pages, over two frames."""
    random_numbers = np.random.default_rng(0)
    with Writer(path, START) as writer:
        for number, dtype in enumerate(("float32", "float64", "float16", "int64", "uint8", "bool")):
            writer.write(
                Channel(name=f"l{number}:h", kind="state", dims=("step", "unit"), shape=(None, 4), dtype=dtype)
            )
        writer.write(Channel(name="a:attention", kind="attention", dims=("head", "query", "key"), shape=(2, 24, 24)))
        writer.write(Labels("step", tuple("abcdefghijklmnopqrstuvwx")))
        for frame in (0, 1):
            writer.write(Frame(index=frame, label=f"frame {frame}"))
            for number, dtype in enumerate(("float32", "float64", "float16", "int64", "uint8", "bool")):
                for start in (0, 8, 16):
                    values = random_numbers.normal(size=(8, 4)) * 50
                    writer.write(Page(f"l{number}:h", frame, (start, 0), np.abs(values).astype(dtype)))
            for head in (0, 1):
                writer.write(Page("a:attention", frame, (head, 0, 0), random_numbers.random((1, 24, 24), np.float32)))
            writer.write(Scalar("loss", frame, 0.25 * frame))
        writer.write(Refusal("l0:c", "It has none."))
        writer.write(Axis(name="step", title="source step", length=24))
        writer.write(RunStop("done"))
    return path


def words(capture: Capture) -> tuple[object, ...]:
    """What a capture says in words."""
    labels = {domain: capture.labels(domain) for domain in capture.label_domains}
    return (
        dict(capture.channels), capture.frames, capture.scalars, capture.refusals, labels, dict(capture.axes),
        capture.start, capture.stop, capture.status,
    )  # fmt: skip


def numbers(capture: Capture) -> Numbers:
    """All numbers of a capture that has not too many frames."""
    frames = [frame.index for frame in capture.frames][:8]
    return {(name, frame): capture.array(name, frame) for name in capture.channels for frame in frames}


def prepare(folder: Path) -> list[Whole]:
    """A run and a recorded training."""
    shutil.copytree(TRAINING, folder / "training.inspect")
    found = []
    for path in (a_run(folder / "run.inspect"), folder / "training.inspect"):
        with open_capture(path) as capture:
            found.append(Whole(path, words(capture), numbers(capture)))
            assert not capture.verify()
    return found


def cases(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Each harm in turn, on each capture, at places that come from the seed."""
    kinds = [(harm, "") for harm in HARMS] + [("forge", value) for value in FORGED]
    for number in range(count):
        harm, value = kinds[number % len(kinds)]
        yield {"which": number // len(kinds) % 2, "harm": harm, "value": value, "seed": seed * 1_000_003 + number}


def attempt(case: dict[str, Any], prepared: list[Whole], scratch: Path) -> Outcome:
    """Harm a copy, then read all of it, export it and pack it."""
    whole, chance = prepared[case["which"]], random.Random(case["seed"])
    path = scratch / "a.inspect"
    shutil.copytree(whole.path, path)
    forged = case["harm"] == "forge"
    done = forge(path, case["value"], chance) if forged else HARMS[case["harm"]](path, chance)
    if forged and chance.random() < 0.7:
        with suppress(Exception):
            seal(path)  # as a program has them that made it on purpose
    began = time.monotonic()
    try:
        outcome = _read(path, None if forged else whole)
    except CaptureError as error:
        outcome = refused(error)
    if time.monotonic() - began > PATIENCE:
        return Outcome("lost", f"took {time.monotonic() - began:.1f} s after {done}")
    return Outcome(outcome.kind, f"{outcome.said} after {done}") if outcome.kind == "lost" else outcome


def _read(path: Path, whole: Whole | None) -> Outcome:
    with open_capture(path) as capture:
        found = numbers(capture)
        for name in list(capture.channels)[:4]:
            capture.overview(name)
        damaged = capture.verify()
        said = words(capture)
        with suppress(CaptureError):
            pack(path, path.with_suffix(".packed"))
        for sentence in damaged:
            if "\n" in sentence or len(sentence) > 800:
                return Outcome("lost", f"damage is not told in one sentence: {sentence[:200]!r}")
    if whole is None:
        return Outcome("survived")
    for key, array in found.items():
        if wrong := _differs(array, whole.numbers.get(key), bool(damaged)):
            return Outcome("lost", f"{key}: {wrong}")
    if not damaged and (found.keys() != whole.numbers.keys() or said != whole.words):
        return Outcome("lost", "says something else, and nothing about damage")
    return Outcome("survived", "marked" if damaged else "whole")


def _differs(array: npt.NDArray[np.generic], true: npt.NDArray[np.generic] | None, damaged: bool) -> str:
    if true is None:
        return "" if damaged else "was not there before"
    if not damaged:
        return "" if np.array_equal(array, true, equal_nan=true.dtype.kind == "f") else "other numbers"
    if array.ndim != true.ndim or any(a > b for a, b in zip(array.shape, true.shape, strict=True)):
        return f"shape {array.shape} of {true.shape}"
    part = true[tuple(slice(size) for size in array.shape)]
    known = ~np.ma.getmaskarray(array)
    if array.dtype.kind == "f":
        known &= ~np.isnan(np.asarray(array))
    return "" if np.array_equal(np.asarray(array)[known], part[known]) else "other numbers, not marked"


SECTIONS = [
    Section("captures", "harmed and forged captures", 500, 500, cases, prepare, attempt, seconds=60.0),
]
