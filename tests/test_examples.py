"""The files in docs/examples run as their docstrings say, and show what they say."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from commands import call

import inspector

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "examples"
QUANTITIES = ("input", "states", "gates", "output/loss", "output/probabilities", "gradients", "attention/maps")
EXPECTED = {
    "own_model": {"input:token", "rnn.l0:gate/forget", "output:loss", "rnn.l0:gradient/state_norm"},
    "hand_written_cell": {
        "input:value", "model:gate/forget", "model:candidate", "output:loss", "model:gradient/state_norm/state",
    },
    "translator": {
        "input:token", "input.tgt:token", "input.src_padding:mask", "output:loss", "output:surprise",
        "transformer.decoder.layers.0.multihead_attn:attention",
    },
    "tagger": {"input:value", "input.speaker:value", "rnn.l0:gate/forget", "output:probability"},
    "captioner": {"input:token", "input.image:image", "rnn.l0:gate/update", "output:surprise"},
    "language_model": {"input:token", "input.labels:token", "output:entropy", "rnn.l0:gradient/state_norm"},
}  # fmt: skip


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands(name: str) -> list[list[str]]:
    """The `inspector …` lines of an example's docstring."""
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    found = re.findall(r"^inspector (.+)$", text.split('"""')[1], re.MULTILINE)
    return [shlex.split(line) for line in found]


def test_every_example_is_known() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {*EXPECTED, *SCRIPTS}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_subject_runs_and_shows_what_it_says(name: str) -> None:
    torch.manual_seed(0)
    subject = load(name).make()
    with inspector.run(subject, only=QUANTITIES) as capture:
        assert set(capture.channels) >= EXPECTED[name], sorted(capture.channels)
        assert not [refusal.reason for refusal in capture.refusals if "failed" in refusal.reason]


@pytest.mark.parametrize("name", EXPECTED)
def test_every_subject_says_how_it_is_run(name: str) -> None:
    assert commands(name)


@pytest.mark.parametrize("name", ["own_model", "captioner"])
def test_the_first_command_of_a_docstring_works(name: str, tmp_path: Path) -> None:
    call(*commands(name)[0], "--out", str(tmp_path / "a.inspect"), cwd=ROOT)
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        assert capture.channels and capture.extent("input:token") != ()


def test_two_sequences_in_python_as_the_docs_say() -> None:
    subject = load("translator").make()
    with inspector.run(subject, {"src": "water", "tgt": "<eau>"}, only=QUANTITIES) as capture:
        assert capture.labels("step") == tuple("water") and capture.labels("answer step") == tuple("eau>")


def in_python(module: Any) -> None:
    """The numbers that it prints, once more by autograd."""
    norms, update = module.main()
    torch.manual_seed(0)
    model, x = torch.nn.GRU(8, 32, batch_first=True), torch.randn(60, 8)
    h = torch.zeros(1, 1, 32)
    for t in range(60):
        before = h

        def step(state: torch.Tensor, now: torch.Tensor = x[t]) -> torch.Tensor:
            found: torch.Tensor = model(now[None, None], state[None, None])[1][0, 0]
            return found

        jacobian: Any = torch.autograd.functional.jacobian(step, before[0, 0])
        assert t == 0 or np.isclose(norms[t], torch.linalg.matrix_norm(jacobian, 2).item(), rtol=1e-4)
        h = model(x[t][None, None], before)[1].detach()
    assert update.shape == (60, 32) and update.min() > 0.0 and update.max() < 1.0


SCRIPTS = {"in_python": in_python}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_and_says_what_is_so(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCRIPTS[name](load(name))
    assert capsys.readouterr().out
    assert sys.modules.get(f"example_{name}") is None
