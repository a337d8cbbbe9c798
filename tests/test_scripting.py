"""What docs/scripting.md promises to scripts: schemas, panels, parts of channels, figures at a position."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from commands import call
from PySide6.QtGui import QImage

from inspector.capture import open_any
from inspector.workspace.trainings import path_or_training

PAGE = Path(__file__).parents[1] / "docs" / "scripting.md"
TRAINING = "training-vanishing"


def test_the_session_of_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    block = re.search(r"```\n(inspector .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    lines = [shlex.split(line, comments=True) for line in block[1].splitlines()]
    assert len(lines) == 5
    printed = [call(*words[1:], cwd=tmp_path).stdout for words in lines]
    found, contents, panels = (json.loads(text) for text in printed[:3])
    assert [one["schema"] for one in (found, contents, panels)] == [
        "inspector-findings-2", "inspector-contents-1", "inspector-panels-1",
    ]  # fmt: skip
    names = {channel["name"] for channel in contents["channels"]}
    assert all(set(panel["channels"]) <= names for panel in panels["panels"])
    views = [view for finding in found["findings"] for view in finding["views"]]
    assert {view["panel"] for view in views} <= {panel["key"] for panel in panels["panels"]}
    lag = json.loads((tmp_path / "lag.json").read_text(encoding="utf-8"))
    with open_any(path_or_training(TRAINING)) as capture:
        np.testing.assert_array_equal(np.array(lag["values"]), capture.array("rnn.l0:jacobian/lag")[:, :12])
    assert not QImage(str(tmp_path / "lags.png")).isNull()


def test_what_the_page_says_of_a_finding_is_what_is_printed(tmp_path: Path) -> None:
    told = json.loads(call("diagnose", TRAINING, "--json", cwd=tmp_path).stdout)
    page = PAGE.read_text(encoding="utf-8")
    for name in (*told, *told["findings"][0], *told["findings"][0]["views"][0]):
        assert f"`{name}`" in page, name
    text = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert text is not None
    shown = json.loads(f"{{{text[1]}}}")
    (own,) = [one for one in told["findings"] if one["rule"] == "reach-through-time"]
    assert shown["views"][0] in own["views"] and shown["export"][0] in own["export"]


def test_commands_for_the_evidence_of_several_runs_name_one(tmp_path: Path) -> None:
    for run in ("a", "b"):
        (tmp_path / "logs" / run).mkdir(parents=True)
        rows = [f"{n},{2 + 0.01 * (n % 3)},{n}" for n in range(200)]
        (tmp_path / "logs" / run / "metrics.csv").write_text("\n".join(["step,loss,other", *rows]), encoding="utf-8")
    found = json.loads(call("diagnose", "logs", "--json", cwd=tmp_path).stdout)["findings"]
    assert [one["evidence"] for one in found] == [["a:loss"], ["b:loss"]]
    for finding in found:
        (view,), (line,) = finding["views"], finding["export"]
        for words in (shlex.split(view["draw"]), shlex.split(line)):
            call(*words[1:], cwd=tmp_path)
        assert view["curves"] == finding["evidence"] and "--curve" in view["open"]
    told = json.loads((tmp_path / "a-loss.json").read_text(encoding="utf-8"))
    assert told["values"][:3] == pytest.approx([2.0, 2.01, 2.02])


def test_a_log_has_panels_figures_and_parts_too(tmp_path: Path) -> None:
    rows = [f"{n},{2 - 0.01 * n}" for n in range(20)]
    (tmp_path / "log.csv").write_text("\n".join(["step,loss", *rows]), encoding="utf-8")
    (panel,) = json.loads(call("list", "log.csv", "--panels", "--json", cwd=tmp_path).stdout)["panels"]
    assert panel["key"] == "training"
    assert "training  Training: 1 channel" in call("list", "log.csv", "--panels", cwd=tmp_path).stdout
    call("export", "log.csv", "--panel", "training", "--to", "t.svg", cwd=tmp_path)
    assert "<svg" in (tmp_path / "t.svg").read_text(encoding="utf-8")
    call("export", "log.csv", "--channel", "loss", "--slice", "iteration=3:5", "--to", "l.json", cwd=tmp_path)
    told = json.loads((tmp_path / "l.json").read_text(encoding="utf-8"))
    assert told["values"] == pytest.approx([1.97, 1.96]) and told["first"] == [3]
    assert json.loads(call("list", "log.csv", "--json", cwd=tmp_path).stdout)["schema"] == "inspector-log-1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--panel", "states", "--step", "400", "--to", "x.png"],
            "There is no step 400 of the input: they are numbered",
        ),
        (["--panel", "states", "--steps", "7", "--to", "x.png"], "'7' is no range: A:B is expected"),
        (["--channel", "rnn.l0:h", "--slice", "step", "--to", "x.json"], "'step' is no slice: DIM=A:B is expected"),
        (["--channel", "rnn.l0:h", "--slice", "lag=0:1", "--to", "x.json"], "rnn.l0:h has no dim 'lag'; its dims are"),
        (["--panel", "states", "--slice", "step=0:1", "--to", "x.png"], "--slice is of a channel's numbers"),
    ],
)
def test_what_does_not_exist_is_said_in_a_sentence(words: list[str], said: str, tmp_path: Path) -> None:
    done = call("export", TRAINING, *words, cwd=tmp_path, expect=2)
    assert done.stderr.startswith(said) and not list(tmp_path.iterdir())


def test_the_position_and_the_colours_of_a_figure_are_those_asked_for(tmp_path: Path) -> None:
    pictures = []
    for number, words in enumerate(([], ["--step", "7"], ["--steps", "5:20"], ["--dark"], ["--unit", "3"])):
        call("export", TRAINING, "--panel", "states", *words, "--to", f"{number}.png", cwd=tmp_path)
        pictures.append((tmp_path / f"{number}.png").read_bytes())
    assert len(set(pictures)) == len(pictures)
    dark = QImage(str(tmp_path / "3.png")).pixelColor(1, 1).lightnessF()
    assert dark < 0.3 < 0.9 < QImage(str(tmp_path / "0.png")).pixelColor(1, 1).lightnessF()
