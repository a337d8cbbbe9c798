"""The gradient at steps of padding: against autograd by hand, and silent where the loss leaves them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.engine.watch.measures.padding import at_ends, padding_ids

PAD = 0


class Net(nn.Module):
    """ids (b, t) → (b, t, 5), or time first, or {"logits": …}."""

    def __init__(self, form: str = "", padding: int | None = PAD) -> None:
        super().__init__()
        self.embed, self.read, self.form = nn.Embedding(5, 6, padding_idx=padding), nn.Linear(6, 5), form

    def forward(self, ids: Tensor) -> Any:
        y = self.read(self.embed(ids))
        return {"loss": y.mean(), "logits": y} if self.form == "mapping" else y.transpose(0, 1) if self.form else y


IDS = torch.tensor([[1, 2, 3, 4, 1, 0, 0], [2, 0, 3, 0, 0, 0, 0], [0, 0, 1, 2, 3, 4, 1], [0, 0, 0, 0, 0, 0, 0]])
AT_ENDS = [[5, 6], [3, 4, 5, 6], [0, 1], []]
"""Padding within a sequence is none, nor is a sequence of it alone."""


def test_padding_is_what_stands_at_the_ends() -> None:
    found = at_ends(IDS, {PAD})
    assert [row.nonzero().flatten().tolist() for row in found] == AT_ENDS
    assert not at_ends(IDS, {9}).any()


def test_ids_that_mean_something_else_too_are_no_padding() -> None:
    model = Net(padding=None)
    assert padding_ids(model) == set()
    model.config = type("Config", (), {"pad_token_id": 3, "eos_token_id": 4})()
    assert padding_ids(model) == {3}
    model.config.eos_token_id = 3
    assert padding_ids(model) == set()


def trained(path: Path, model: Net, ignored: int, count: int = 40) -> tuple[list[float], Any]:
    """The shares by hand at each iteration, and the findings."""
    torch.manual_seed(0)
    optimizer, wanted = torch.optim.SGD(model.parameters(), 0.1), list[float]()
    targets, padding = (IDS * 2) % 5, at_ends(IDS, {PAD})
    with inspector.watch(model, optimizer, path, every=1):
        for _ in range(count):
            output = model(IDS)
            y = output["logits"] if isinstance(output, dict) else output.transpose(0, 1) if model.form else output
            by_step = nn.functional.cross_entropy(y.transpose(1, 2), targets, ignore_index=ignored)
            (gradient,) = torch.autograd.grad(by_step, y, retain_graph=True)
            sizes = gradient.double().norm(dim=-1)
            wanted.append(float(sizes[padding].sum() / sizes.sum()))
            optimizer.zero_grad()
            by_step.backward()
            optimizer.step()
    return wanted, [one for one in inspector.diagnose(path).findings if one.id == "IN127"]


@pytest.mark.parametrize("form", ["", "mapping", "time first"])
def test_a_loss_that_counts_padding_is_named_with_its_share(form: str, tmp_path: Path) -> None:
    wanted, found = trained(tmp_path / "a.inspect", Net(form), -100)
    assert [one.severity for one in found] == ["warning"] and "28.6 % of the steps" in found[0].message  # 8 of 28
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        shares = np.ma.filled(capture.array("training:padding/gradient"), np.nan)
        iterations = np.asarray(capture.array("training:iteration"))[: len(shares)]
    known = np.isfinite(shares)
    assert known.sum() == 8
    np.testing.assert_allclose(shares[known], [wanted[int(n) - 1] for n in iterations[known]], rtol=1e-4)


def test_a_loss_that_leaves_padding_out_and_a_model_that_declares_none(tmp_path: Path) -> None:
    wanted, found = trained(tmp_path / "a.inspect", Net(), PAD, 6)
    assert wanted == [0.0] * 6 and not found
    assert not trained(tmp_path / "b.inspect", Net(padding=None), -100, 6)[1]
    with inspector.open_capture(tmp_path / "b.inspect") as capture:
        assert "training:padding/gradient" not in capture.channels


class Decoder(nn.Module):
    """(source, answer) → scores for each step of the answer; a mask and positions may come between."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.read = nn.Embedding(5, 6, padding_idx=PAD), nn.Linear(6, 5)

    def forward(self, source: Tensor, *more: Tensor) -> Tensor:
        scores: Tensor = self.read(self.embed(more[-1]) + self.embed(source).mean(1, keepdim=True))
        return scores


SOURCE = torch.tensor([[1, 2, 3], [2, 0, 0], [3, 1, 0], [4, 0, 0]])
SAME = torch.tensor([[1, 2, 3, 4, 1, 2, 3], [2, 3, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0], [1, 2, 3, 4, 1, 2, 0]])


@pytest.mark.parametrize("ignored", [-100, PAD])
@pytest.mark.parametrize("between", [(), (torch.ones(4, 7, dtype=torch.long), torch.arange(7).expand(4, 7))])
@pytest.mark.parametrize("source", [SOURCE, SAME])
def test_padding_of_a_decoder_is_that_of_its_own_input(
    tmp_path: Path, source: Tensor, between: tuple[Tensor, ...], ignored: int
) -> None:
    torch.manual_seed(0)
    model, answer = Decoder(), IDS[:, :7]
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    padding = at_ends(answer, {PAD}) & (
        at_ends(source, {PAD}) if source is SAME else torch.ones(4, 7, dtype=torch.bool)
    )
    with inspector.watch(model, optimizer, tmp_path / "a.inspect", every=1):
        scores = model(source, *between, answer)
        loss = nn.functional.cross_entropy(scores.transpose(1, 2), answer, ignore_index=ignored)
        (gradient,) = torch.autograd.grad(loss, scores, retain_graph=True)
        loss.backward()
        optimizer.step()
    sizes = gradient.double().norm(dim=-1)
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        shares = np.ma.filled(capture.array("training:padding/gradient"), np.nan)
        steps = np.ma.filled(capture.array("training:padding/steps"), np.nan)
    assert steps[0] == pytest.approx(padding.float().mean().item())
    assert shares[0] == pytest.approx(float(sizes[padding].sum() / sizes.sum()), rel=1e-4)
    found = [one for one in inspector.diagnose(tmp_path / "a.inspect").findings if one.id == "IN127"]
    assert bool(found) == (ignored != PAD)
