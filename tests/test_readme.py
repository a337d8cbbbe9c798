"""The Python in README runs as it stands there."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import inspector

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"(?:<!-- runs: (?P<name>[^>]+) -->\n)?```python\n(?P<code>.*?)```", re.DOTALL)
BLOCKS = {match["name"]: match["code"] for match in BLOCK.finditer(README.read_text(encoding="utf-8"))}
PICTURE = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")
QUANTITIES = ("input", "states", "gates", "output/loss", "output/probabilities", "gradients", "attention/maps")
EXPECTED = {
    "own model": {"input:token", "rnn.l0:gate/forget", "output:loss", "rnn.l0:gradient/state_norm"},
}  # fmt: skip


class CharLSTM(nn.Module):
    """What README imports from a module of the user's."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = (
            nn.Embedding(9, 8),
            nn.LSTM(8, hidden, batch_first=True),
            nn.Linear(hidden, 9),
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.rnn(self.embedding(ids))[0])
        return scores


def run_block(name: str, **given: Any) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "readme", **given}
    exec(compile(BLOCKS[name], f"README: {name}", "exec", dont_inherit=True), namespace)
    return namespace


def test_every_block_is_known_and_run() -> None:
    assert None not in BLOCKS, "a block of Python in README that no test runs"
    assert set(BLOCKS) == {*EXPECTED, "loop", "training"}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_subject_of_readme_runs_and_shows_what_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ModuleType("mine")
    mine.CharLSTM = CharLSTM  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mine", mine)
    torch.manual_seed(0)
    subject = run_block(name)["make"]()
    with inspector.run(subject, only=QUANTITIES) as capture:
        assert set(capture.channels) >= EXPECTED[name], sorted(capture.channels)
        assert not [refusal.reason for refusal in capture.refusals if "failed" in refusal.reason]


def test_the_loop_of_readme_is_a_recurrence() -> None:
    layers = {name: nn.Linear(3, 3) for name in ("wr", "ur", "wz", "uz", "wn", "un")}

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleDict(layers)

        def forward(self, x: torch.Tensor) -> Any:
            names = {"x": x, "h": torch.zeros(1, 3), "torch": torch, "self": SimpleNamespace(**layers)}
            return run_block("loop", **names)["h"]

    with inspector.run(Model(), torch.randn(6, 3), only=("states", "gates")) as capture:
        assert [name for name in capture.channels if name.endswith(":h")], sorted(capture.channels)


def test_the_training_of_readme_is_watched_and_does_not_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shorter = (
        BLOCKS["training"].replace("range(600)", "range(12)").replace("inspector.watch(", "watcher = inspector.watch(")
    )
    monkeypatch.setitem(BLOCKS, "training", shorter)
    run_block("training")["watcher"].close()
    with inspector.open_capture(tmp_path / "rnn.inspect") as capture:
        norms = capture.array("rnn.l0:gradient/state_norm", 0)
        assert norms[0] < 1e-9 * norms[-1] and abs(capture.array("training:loss")[0] - 2.08) < 0.1


def test_every_picture_of_the_documentation_is_linked_and_made_by_the_script() -> None:
    from readme_pictures import OVERVIEW, PICTURES, RUNS, SIZE

    docs = README.parent / "docs"
    pages = [README, *docs.glob("*.md")]
    shown = {Path(path).stem for page in pages for path in PICTURE.findall(page.read_text(encoding="utf-8"))}
    assert shown == {path.stem for path in docs.glob("*.png")}
    made = {*PICTURES, OVERVIEW, *RUNS}
    assert {name for name in shown if not name.startswith("beside-")} == made - {"beside-ours"}
    for name in made:
        width, height = struct.unpack(">II", (docs / f"{name}.png").read_bytes()[16:24])
        assert (width, height) == SIZE


def test_what_readme_counts_is_so_many() -> None:
    from inspector.diagnosis import RULES
    from inspector.workspace.samples import own_samples

    text = README.read_text(encoding="utf-8")
    told = re.search(r"^(\d+) sample models go", text, re.MULTILINE)
    assert told and int(told[1]) == len(own_samples())
    assert "more than eighty [rules]" in text and 80 < sum(rule.id.startswith("IN") for _, rule in RULES.items()) <= 90
