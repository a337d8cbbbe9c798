"""What is said of gradients that are shown is a remark: it is neither counted nor listed as refused."""

from __future__ import annotations

import json
from pathlib import Path

from commands import call

MODEL = """
from types import SimpleNamespace
from torch import nn, stack
class M(nn.Module):
    def __init__(self):
        super().__init__(); self.cell = nn.RNNCell(2, 4)
    def forward(self, x):
        h, out = x.new_zeros(len(x), 4), []
        for t in range(x.shape[1]):
            if t == 3: h = h.detach()
            h = self.cell(x[:, t], h); out.append(h)
        return stack(out, 1)
def make():
    return SimpleNamespace(model=M(), kind="vectors", width=2, loss=lambda out, batch: out.square().sum(-1))
"""


def test_a_cut_is_a_remark_in_run_and_list(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(MODEL)
    told = call(
        "run", "m.py:make", "--generate", "noise", "--option", "steps=6", "--only", "states,gradients", "--out",
        "a.inspect", cwd=tmp_path,
    ).stderr.splitlines()  # fmt: skip
    assert [line for line in told if line.startswith("  remark (cell): The model cuts the gradient of cell before")]
    assert ", 1 remark, done in" in told[-1] and "refused" not in told[-1]
    listed = call("list", "a.inspect", cwd=tmp_path).stdout
    assert "  remark: cell: The model cuts the gradient of cell before step 3" in listed and "refused" not in listed
    found = json.loads(call("list", "a.inspect", "--json", cwd=tmp_path).stdout)
    assert found["refused"] == [] and [one["place"] for one in found["remarks"]] == ["cell"]
