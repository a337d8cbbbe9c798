"""The examples of docs/recording.md run as they stand, and training comes out of them as it would without."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from inspector.capture import open_capture

PAGE = Path(__file__).parents[3] / "docs" / "recording.md"
BLOCK = re.compile(r"(?:<!-- runs: (?P<name>[^>]+) -->\n)?```python\n(?P<code>.*?)```", re.DOTALL)
BLOCKS = {match["name"]: match["code"] for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}


def run_block(name: str, steps: int = 300) -> dict[str, Any]:
    torch.manual_seed(5)
    namespace: dict[str, Any] = {"__name__": "docs"}
    code = BLOCKS[name].replace("range(300)", f"range({steps})")
    exec(compile(code, f"recording.md: {name}", "exec", dont_inherit=True), namespace)
    return namespace


def test_every_block_is_known_and_run() -> None:
    assert set(BLOCKS) == {"run", "loop"}


def test_a_run_in_ones_own_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_block("run")["forget"].shape == (50, 8)
    with open_capture("first.inspect") as capture:
        assert capture.status == "done"


def test_a_loop_records_a_frame_every_hundred_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_block("loop")
    with open_capture("training.inspect") as capture:
        assert [frame.step for frame in capture.frames] == [0, 100, 200] and capture.status == "done"
        for n in range(3):
            assert capture.array("rnn.l0:h", n).shape == (20, 16) and capture.array("output:loss", n).shape == (20,)
            assert (capture.array("rnn.l0:gradient/state_norm", n) > 0).all()


def plain_loop(model: nn.Module, steps: int) -> None:
    """The loop of the page without a word of recording."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        x, y = torch.randn(4, 20, 3), torch.randint(0, 2, (4, 20))
        losses: Tensor = nn.functional.cross_entropy(model(x).transpose(1, 2), y, reduction="none")
        losses.mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def test_the_loop_of_the_page_trains_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = run_block("loop", steps=20)
    torch.manual_seed(5)
    plain: nn.Module = found["Model"]()
    plain_loop(plain, 20)
    for (name, a), b in zip(found["model"].named_parameters(), plain.parameters(), strict=True):
        assert torch.equal(a, b), name
