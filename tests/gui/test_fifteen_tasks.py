"""The fifteen tasks of a person who diagnoses a training, in real windows on a virtual screen: by mouse and keys.

What is done is in tests/support/tasks_of_a_person.py, in one window for each sitting (sitting.py); here what the windows
showed is compared with the same numbers computed once more (bracket_numbers.py). Nothing here is about time.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import bracket_numbers
import bracket_reader
import numpy as np
import pytest
import torch
from tasks_of_a_person import LETTERS, LONG, PATTERN, TEXT
from virtual_screen import display

from inspector.capture import notes, open_capture

UNIT = bracket_reader.UNIT
HERE = Path(__file__).parents[1]
ALL = "INSPECTOR_ALL_TASKS"
LIMIT = 900
"""Seconds of a sitting after which it hangs, on a machine that is busy with others."""
pytestmark = [pytest.mark.xvfb, pytest.mark.timeout(2 * LIMIT)]
TRAINING = """
import sys, time
from pathlib import Path
import torch
from torch import nn
import inspector
from sample_models.trainings import recall
folder = Path(sys.argv[1])
torch.manual_seed(0)
random = torch.Generator().manual_seed(0)
model = recall.reader(nn.RNN(8, 16, batch_first=True))
optimizer = torch.optim.Adam(model.parameters(), 2e-3)
probe = recall.draw(random).inputs[:1]
inspector.watch(model, optimizer, str(folder / "training.inspect"), probe=probe,
                probe_loss=recall.first_symbol_loss, every=2, probe_every=2)
while not (folder / "enough").exists():
    batch = recall.draw(random)
    loss = recall.first_symbol_loss(model(batch.inputs), batch)[:, -1].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.2)
"""


class Sittings:
    """What each sitting saw; a sitting is held once, when it is asked for, after those before it."""

    def __init__(self, folder: Path, screen: str) -> None:
        self.folder, self.screen = folder, screen
        self._seen: dict[str, Any] = {}

    def environment(self, screen: str, **more: str) -> dict[str, str]:
        """Settings, runs and caches of this person alone."""
        own = {f"XDG_{name}_HOME": str(self.folder / name.lower()) for name in ("CONFIG", "DATA", "CACHE", "STATE")}
        paths = os.pathsep.join((str(HERE.parent), str(HERE / "support")))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("QT_", "INSPECTOR"))}
        return {**kept, **own, "HOME": str(self.folder), "DISPLAY": screen, "QT_QPA_PLATFORM": "xcb",
                "PYTHONPATH": paths, **more}  # fmt: skip

    def hold(self, name: str, *words: str, screen: str = "", **more: str) -> dict[str, Any]:
        """What a sitting saw; those but the first only where all are asked for, since each takes a minute."""
        if name != "first" and not os.environ.get(ALL):
            pytest.skip(f"{ALL}=1 holds all sittings")
        if name in ("second", "large", "dense"):
            self.hold("first")
        if name not in self._seen:
            script = [sys.executable, str(HERE / "support" / "sitting.py"), name, str(self.folder), *words]
            done = subprocess.run(
                script, env=self.environment(screen or self.screen, **more), capture_output=True, text=True,
                timeout=LIMIT, cwd=self.folder,
            )  # fmt: skip
            told = self.folder / f"{name}.json"
            self._seen[name] = json.loads(told.read_text()) if told.exists() else {}
            self._seen[name]["ended"] = {"code": done.returncode, "said": done.stdout + done.stderr}
        return self._seen[name]

    def held(self, name: str) -> bool:
        """Whether a sitting is over."""
        return name in self._seen

    def did(self, task: str, name: str, *words: str, **more: str) -> dict[str, Any]:
        """What a task of a sitting saw, which has not failed."""
        seen = self.hold(name, *words, **more)
        facts: dict[str, Any] = seen.get(task, {"failed": f"it did not come to it: {list(seen)}, {seen['ended']}"})
        assert "failed" not in facts, facts["failed"]
        return facts


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sittings]:
    for program in ("xdotool", "openbox"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = tmp_path_factory.mktemp("person")
    shutil.copy(bracket_reader.__file__, folder / "reader.py")
    subject = bracket_reader.make()
    bracket_reader.teach(subject.model)
    torch.save({"state_dict": subject.model.state_dict(), "step": 7}, folder / "reader.pt")
    with display("1280x800", "openbox") as screen:
        yield Sittings(folder, screen)


@pytest.fixture(scope="module")
def known(person: Sittings) -> bracket_numbers.Numbers:
    return bracket_numbers.compute(person.folder / "reader.pt", TEXT)


def close(shown: str, value: float) -> bool:
    """Whether what is shown is a number in the digits that it has, up to the rounding of float32."""
    digits = Decimal(shown.split()[0])
    last = 10.0 ** int(digits.as_tuple().exponent)
    return abs(float(digits) - value) <= 0.51 * last + 2e-5 * abs(value) + 1e-7


def spans(pattern: str) -> list[list[int]]:
    return [[found.start(), found.end() - 1] for found in re.finditer(pattern, TEXT)]


def test_01_an_own_model_is_opened_by_the_dialog_and_reads_an_own_text(person: Sittings) -> None:
    seen = person.did("open_own_model", "first")
    assert [each.split("(")[0] for each in seen["listed"]] == ["make", "Reader", "teach", "losses"]
    assert seen["named"] == [str(person.folder / "reader.py"), str(person.folder / "reader.pt")]
    assert "reader.pt (step 7)" in seen["status"] and TEXT[:20] in seen["status"]
    with open_capture(Path(seen["path"])) as capture:
        assert "".join(capture.labels("step")) == TEXT


def test_02_the_unit_that_tracks_brackets_is_ranked_first(person: Sittings, known: bracket_numbers.Numbers) -> None:
    seen = person.did("find_the_unit", "first")
    mark = np.zeros(len(TEXT))
    for first, last in spans(PATTERN):
        mark[first : last + 1] = 1
    expected = np.corrcoef(mark, known.states[:, UNIT])[0, 1]
    assert (seen["best"], seen["unit"], seen["delay"]) == (f"h {UNIT}", UNIT, 0)
    assert seen["matches"] == spans(PATTERN) and abs(seen["r"] - expected) < 1e-4


def test_03_the_lag_at_which_gradients_vanish_and_the_gradient_of_a_step(
    person: Sittings, known: bracket_numbers.Numbers
) -> None:
    seen = person.did("find_where_gradients_vanish", "first")
    median = np.nanmedian(known.reach[:, 1:], axis=0)
    vanished = 1 + int(np.argmax(median < 1e-3))
    assert f"after {vanished} steps vanished" in seen["said"]
    norms = bracket_numbers.gradient(person.folder / "reader.pt", TEXT)
    assert 35 <= seen["step"] <= 45 and close(seen["norm"], norms[seen["step"]])


def test_04_one_attention_weight_is_read_by_the_mouse(person: Sittings, known: bracket_numbers.Numbers) -> None:
    seen = person.did("read_a_weight", "first")
    assert abs(seen["step"] - 80) <= 1 and abs(seen["key"] - 40) <= 1
    assert close(seen["weight"], known.attention[seen["step"], seen["key"]])


def test_05_the_numbers_of_two_pins_stand_beside_each_other(person: Sittings, known: bracket_numbers.Numbers) -> None:
    seen = person.did("compare_two_pins", "first")
    places = [(seen["cursor"]["step"], seen["cursor"]["unit"]), *map(tuple, seen["pins"])]
    assert [abs(step - wanted) <= 1 for (step, _), wanted in zip(places, (60, 5, 60), strict=True)] == [True] * 3
    assert all(close(text, known.states[place]) for text, place in zip(seen["row"][1:], places, strict=True)), seen


def test_06_two_tokens_are_looked_through(person: Sittings, known: bracket_numbers.Numbers) -> None:
    pins = person.did("compare_two_pins", "first")["pins"]
    seen = person.did("look_through_a_token", "first")
    assert {"attention", "gates", "gradient by step"} <= set(seen["sees"])
    step = seen["cursor"]["step"]
    names = TEXT.replace(" ", "␣")
    assert f"of {step} '{names[step]}' and, dashed, {pins[0][0]} '{names[pins[0][0]]}'" in seen["title"]
    places = [(step, seen["cursor"]["unit"]), *map(tuple, pins)]
    assert all(close(text, known.gates[place]) for text, place in zip(seen["gate"][1:], places, strict=True)), seen


def test_07_a_unit_is_held_and_compared_with_the_run_before(person: Sittings, known: bracket_numbers.Numbers) -> None:
    seen = person.did("ablate", "first")
    held = bracket_numbers.compute(person.folder / "reader.pt", TEXT, UNIT)
    assert seen["unit"] == UNIT and not seen["timeline"], "two frames of an edit are no training"
    pins = person.did("compare_two_pins", "first")["pins"]
    places = [(seen["cursor"]["step"], UNIT), *map(tuple, pins)]
    change = held.states - known.states
    assert all(close(text, change[place]) for text, place in zip(seen["row"][1:], places, strict=True)), seen
    with open_capture(Path(seen["path"])) as capture:
        np.testing.assert_allclose(capture.array("model:h", 1), held.states, atol=1e-5)


def test_08_the_range_of_colours_is_dragged(person: Sittings) -> None:
    seen = person.did("choose_colours", "first")
    (_, high), (now_low, now_high) = seen["before"], seen["after"]
    assert 0 < now_high < 0.6 * high and now_low == -now_high, "about 0, both ends move"


def test_09_tokens_are_found_by_a_regular_expression(person: Sittings) -> None:
    seen = person.did("search", "first")
    inside = [step for first, last in spans(LETTERS) for step in range(first, last + 1)]
    assert seen["strip"] == inside and seen["said"].startswith(f"{len(spans(LETTERS))} matches, {len(inside)} of")


def test_10_figures_are_exported_with_their_numbers(person: Sittings, known: bracket_numbers.Numbers) -> None:
    seen = person.did("export", "first")
    assert len(seen["one"]) == 2 and {Path(name).suffix for name in seen["one"]} == {".png", ".csv"}
    with (person.folder / "one" / next(n for n in seen["one"] if n.endswith(".csv"))).open() as file:
        states = [row for row in csv.DictReader(file) if row["channel"] == "model:h"]
    assert len(states) == known.states.size
    for row in states:
        assert abs(float(row["value"]) - known.states[int(row["step"]), int(row["unit"])]) < 1e-4
    attention = [name for name in seen["all"] if name.startswith("attention") and name.endswith(".csv")]
    assert len(attention) == 2, "a file for each frame"
    with (person.folder / "all" / attention[0]).open() as file:
        weights = [row for row in csv.DictReader(file) if row["channel"].endswith("attention head 0")]
    assert len(weights) == known.attention.size, list(weights[:1])
    for row in weights[:: len(TEXT) + 7]:
        value = known.attention[int(row["query"]), int(row["key"])]
        assert abs(float(row["value"]) - value) < 1e-4
    for key in ("states", "gates", "attention", "lags", "gradients"):
        frames = [name for name in seen["all"] if name.startswith(key) and name.endswith(".png")]
        assert len(frames) == 2, (key, seen["all"])
        assert all((person.folder / "all" / name).stat().st_size > 5000 for name in frames)


def test_11_after_a_restart_it_goes_on_where_it_was(person: Sittings) -> None:
    noted = person.did("take_notes", "first")
    seen = person.did("go_on", "second")
    assert person.hold("first")["ended"]["code"] == 0, person.hold("first")["ended"]
    assert (seen["path"], seen["step"], seen["notes"]) == (noted["path"], 7, 2) and seen["title"] == "States"
    assert seen["line"] == TEXT


def third(person: Sittings, task: str) -> dict[str, Any]:
    """What a task of the third sitting saw, during which a training runs."""
    person.did("save_session", "second")
    words = ("third", str(person.folder / "mine.session.json"))
    if person.held("third"):
        return person.did(task, *words)
    watched = subprocess.Popen(
        [sys.executable, "-c", TRAINING, str(person.folder)], env=person.environment(person.screen),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        return person.did(task, *words)
    finally:
        (person.folder / "enough").touch()
        _, said = watched.communicate(timeout=LIMIT)
        assert watched.returncode == 0, said


def test_12_a_session_opens_in_another_process_and_without_a_window(person: Sittings) -> None:
    saved = person.did("save_session", "second")
    seen = third(person, "session_opened")
    kept = person.folder / "mine.session.json"
    assert saved["step"] == seen["step"] == 7 and seen["text"] == TEXT and seen["notes"] == 2
    out = person.folder / "again.inspect"
    command = [sys.executable, "-m", "inspector", "run", "--session", str(kept), "--trust", "--out", str(out)]
    done = subprocess.run(command, env=person.environment(person.screen), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    with open_capture(out) as again, open_capture(Path(seen["path"])) as window:
        np.testing.assert_array_equal(again.array("model:h"), window.array("model:h"))
        assert {note.text for note in notes(window)} == {"Bookmark", "closes here"}


def test_13_a_training_that_runs_is_followed_to_its_end(person: Sittings) -> None:
    seen = third(person, "follow")
    assert seen["status"] == "done" and len(seen["seen"]) >= 3 and seen["frames"] >= seen["seen"][-1]
    assert person.hold("third")["ended"]["code"] == 0, person.hold("third")["ended"]


def test_14_a_whole_diagnosis_by_keys_alone(person: Sittings, known: bracket_numbers.Numbers) -> None:
    seen = person.did("without_a_mouse", "keyboard")
    median = np.nanmedian(known.reach[:, 1:], axis=0)
    assert f"after {1 + int(np.argmax(median < 1e-3))} steps vanished" in seen["said"]
    assert seen["unit"] == UNIT and close(seen["read"], known.states[5, UNIT])
    assert seen["files"] and seen["mouse"] == 0


@pytest.mark.parametrize(
    ("name", "size", "ratio"), [("large", "1920x1080", "1"), ("dense", "3840x2160", "2")]
)  # fmt: skip
def test_15_another_screen(person: Sittings, known: bracket_numbers.Numbers, name: str, size: str, ratio: str) -> None:
    kept = person.did("open_own_model", "first")["path"]
    with display(size, "openbox") as screen:
        seen = person.did("another_screen", name, kept, screen=screen, QT_SCALE_FACTOR=ratio)
    assert seen["inside"] and seen["ratio"] == float(ratio) and not seen["cut"]
    assert abs(seen["step"] - 80) <= 2 and abs(seen["key"] - 40) <= 2
    assert close(seen["weight"], known.attention[seen["step"], seen["key"]])


def test_15_a_long_text(person: Sittings) -> None:
    alice = "'That proves his guilt,' said the Queen. 'It proves nothing of the sort!' said Alice.\n"
    (person.folder / "long.txt").write_text((alice * (1 + LONG // len(alice)))[:LONG])
    seen = person.did("long_text", "long", "char-elman")
    assert seen["line"] == str(person.folder / "long.txt")
    with open_capture(Path(seen["path"])) as capture:
        states = capture.array(next(name for name in capture.channels if name.endswith(":h")))
    assert states.shape[0] == LONG and close(seen["value"], float(states[-1, seen["unit"]]))
