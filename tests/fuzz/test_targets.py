"""Every target reads its corpus, holds what was found once, and 20,000 mutants in all; a fault that is planted is found."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from mutate import CHANGES, NUMBERS, mutant
from target import CORPUS, FINDINGS, FoundError, Target, findings, load, seeds, targets, tried

AIM = 20_000
"""Mutants that every change is tried with (docs/faults-covered.md)."""
MUTANTS, QUICK, COSTLY, BY_A_PROCESS = 500, 1_250, 60, 3
"""Of a target of which one takes some 2 ms of the processor; 0.3 to 1 ms; 10 ms; a process of its own."""
EACH = {
    **dict.fromkeys(
        ("gguf", "log_history", "log_trackio", "log_trainer_state", "messages", "numpy_archive", "numpy_array", "picture",
         "project_file", "records", "sequences", "session", "sound"), QUICK),
    **dict.fromkeys(("capture_cells", "capture_files", "safetensors"), COSTLY),
    **dict.fromkeys(("keras", "matlab"), BY_A_PROCESS),
}  # fmt: skip
CUTS = 6
"""Parts of a seed at whose ends it is cut short."""
RUN = Path(__file__).with_name("run.py")
READABLE = {"hugging_face", "sequences"}
"""Targets of which some seeds are refused on purpose."""


@pytest.mark.parametrize("name", targets())
def test_a_target_holds(name: str, tmp_path: Path) -> None:
    target = load(name)
    known = [path.read_bytes() for path in seeds(name)]
    outcomes = [tried(target, data, tmp_path / "x") for data in known]
    assert "read" in outcomes
    assert name in READABLE or set(outcomes) == {"read"}
    for path in findings(name):
        tried(target, path.read_bytes(), tmp_path / "x")
    for data in known if not target.slow else ():
        for part in range(1, CUTS):
            tried(target, data[: len(data) * part // CUTS], tmp_path / "x")
    chance = random.Random(name)
    for number in range(mutants_of(name)):
        data = mutant(chance.choice(known), chance, known, target.most)
        try:
            tried(target, data, tmp_path / "x")
        except Exception as fault:
            kept = tmp_path / f"mutant-{number}"
            kept.write_bytes(data)
            told = f"{name}, mutant {number}, kept as {kept} (to be put into {FINDINGS / name}): {fault!r}"
            raise AssertionError(told) from fault


def mutants_of(name: str) -> int:
    """How many mutants of a target's corpus are tried."""
    return EACH.get(name, MUTANTS)


def test_so_many_mutants_are_tried_as_are_aimed_at() -> None:
    assert EACH.keys() <= set(targets())
    assert sum(map(mutants_of, targets())) >= AIM
    assert {name for name in targets() if load(name).slow} == {n for n, many in EACH.items() if many == BY_A_PROCESS}


def test_each_folder_belongs_to_a_target() -> None:
    for folder in (CORPUS, FINDINGS):
        assert {path.name for path in folder.iterdir()} <= set(targets())
    assert all(seeds(name) for name in targets())


def test_mutants_are_the_same_for_the_same_seed_and_other_ones_for_others() -> None:
    def some(seed: int) -> list[bytes]:
        chance = random.Random(seed)
        return [mutant(b'{"a": 12.5, "b": "text"}', chance, [b"other"], 9000) for _ in range(50)]

    assert some(1) == some(1) != some(2)
    assert any(number in one for one in some(1) for number in NUMBERS[:2])
    assert len(CHANGES) == len({*CHANGES}) + 1  # numbers are twice as likely


PLANTED = """
import runpy, sys
import inspector.records.codec as codec
own = codec._tuple
def broken(raw, arguments, where):
    if raw == []:
        raise IndexError("planted")
    return own(raw, arguments, where)
codec._tuple = broken
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_a_fault_that_is_planted_is_found_and_kept(tmp_path: Path) -> None:
    options = [
        "--found",
        str(tmp_path),
        "--scratch",
        str(tmp_path),
        "--seconds",
        "60",
        "--executions",
        "1500",
        "--plain",
    ]
    command = [sys.executable, "-c", PLANTED, str(RUN.with_name("drive.py")), "records", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=RUN.parents[2])
    assert "IndexError" in done.stderr, done.stderr[-2000:]
    assert list((tmp_path / "records").iterdir())


@pytest.mark.parametrize("guided", [False, True])
def test_the_command_counts_what_it_tried(guided: bool, tmp_path: Path) -> None:
    if guided:
        pytest.importorskip("atheris")
    options = ["--seconds", "3", "--found", str(tmp_path), "--note", str(tmp_path / "note.json")]
    command = [sys.executable, str(RUN), "project_file", *options, *([] if guided else ["--plain"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "note.json").read_text())["project_file"]
    assert told["executions"] > 20 and told["read"] and (told["guided"] == told["executions"]) is guided
    assert f"{told['executions']:,}" in done.stdout


def test_what_is_not_one_sentence_is_a_finding(tmp_path: Path) -> None:
    def refused(said: str, data: bytes = b"") -> str:
        def attempt(_data: bytes, _scratch: Path) -> None:
            raise ValueError(said)

        return tried(Target("", (), attempt, (ValueError,)), data, tmp_path / "x")

    assert refused("It is damaged.") == "refused"
    assert refused("It has no column of steps; it has b'step'.", b"loss,b'step'") == "refused"  # a word of the file's
    programs = ("KeyError: 'a'", "list index out of range", "'NoneType' object is not iterable", "got b'x'")
    for said in ("", "two\nlines", "x" * 301, "\x1b[31m", "Traceback (most recent call last)", *programs):
        with pytest.raises(FoundError):
            refused(said)


def test_memory_and_time_are_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("target.MOST_SECONDS", 0.05)
    monkeypatch.setattr("target.MOST_MEMORY", 64 << 20)
    slow = Target("", (), lambda _data, _scratch: list(range(20_000_000))[:0], ())
    with pytest.raises(FoundError):
        tried(slow, b"", tmp_path / "x")
