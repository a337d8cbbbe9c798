"""Models that import flex_attention, or compile for the first time, inside their forward: in a process of its own each,
since what was imported stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WAYS = {
    "from inside": "from torch.nn.attention.flex_attention import flex_attention as attend",
    "by its module": "import torch.nn.attention.flex_attention as flex; attend = flex.flex_attention",
    "compiled then": "attend = torch.compile(lambda q, k, v, score_mod: (score_mod(q @ k.mT / 2, 0, 0, *WHERE))"
    ".softmax(-1) @ v, backend='eager')",
}
CODE = """
import sys, torch, inspector
from torch import nn
WHERE = torch.arange(5)[:, None], torch.arange(5)
def near(score, b, h, q, k):
    return score - 0.3 * (q - k).abs()
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(4, 4) for _ in range(3))
    def forward(self, x):
        {way}
        q, k, v = (part(x)[:, None] for part in (self.q, self.k, self.v))
        return attend(q, k, v, score_mod=near)[:, 0]
torch.manual_seed(0)
model, x = Model().eval(), torch.randn(1, 5, 4)
assert not any(name in sys.modules for name in ("torch.nn.attention.flex_attention", "torch._dynamo"))
with inspector.run(model, x, out=sys.argv[1], seed=0) as capture:
    given = torch.as_tensor(capture.array("model:attention")).double()
with torch.no_grad():
    scores = model.double().q(x.double()) @ model.k(x.double()).mT / 2
print(float((given - near(scores, 0, 0, *WHERE).softmax(-1)).abs().max()))
"""


@pytest.mark.parametrize("way", WAYS)
def test_what_is_imported_in_the_forward_is_watched(tmp_path: Path, way: str) -> None:
    """Maps against a softmax in float64, to half precision."""
    file = tmp_path / "late.py"
    file.write_text(CODE.format(way=WAYS[way]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(file), str(tmp_path / "a.inspect")], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout.splitlines()[-1]) < 5e-4
