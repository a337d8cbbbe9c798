"""Padding masks of the opposite meaning are told, with the share counted by hand; others of all sorts are not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import inspector
from inspector.capture import open_capture
from inspector.diagnosis.rules.padding_read import SHOWN

PAD, STEPS, COUNT = 0, 8, 6


class Net(nn.Module):
    """Ids (b, t) → scores (b, 2), by attention that is masked as `how` says."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.embed, self.read = how, nn.Embedding(6, 8, padding_idx=PAD), nn.Linear(8, 2)
        self.torchs = nn.MultiheadAttention(8, 2, batch_first=True)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 1, enable_nested_tensor=False
        )

    def forward(self, ids: Tensor, source: Tensor | None = None) -> Tensor:
        x, real = self.embed(ids), ids != PAD
        t = ids.shape[1]
        if self.how.startswith("module"):
            hidden = real if self.how == "module inverted" else ~real
            return self.pooled(self.torchs(x, x, x, key_padding_mask=hidden)[0], real)
        if self.how.startswith("encoder"):
            hidden = real if self.how == "encoder inverted" else ~real
            return self.pooled(self.encoder(x, src_key_padding_mask=hidden), real)
        later = torch.ones(t, t, dtype=torch.bool).tril()
        masks = {
            "inverted": ~real[:, None, None],
            "inverted numbers": (real * -1e4)[:, None, None].float(),
            "right": real[:, None, None],
            "right numbers": (~real * -1e4)[:, None, None].float(),
            "causal": real[:, None, None] & later,
            "right to left": real[:, None, None] & later.T,
            "prefix": real[:, None, None] & (later | (torch.arange(t) < 3)),
            "local": real[:, None, None] & (later & later.T.roll(1, 0)),
            "none": None,
            "causal alone": later,
        }
        if self.how == "across":  # the keys are another input's, and so is their padding
            assert source is not None
            keys, mask = self.embed(source)[:, None], (source != PAD)[:, None, None]
        else:
            keys, mask = x[:, None], masks[self.how]
        return self.pooled(F.scaled_dot_product_attention(x[:, None], keys, keys, mask)[:, 0], real)

    def pooled(self, made: Tensor, real: Tensor) -> Tensor:
        """Scores of the mean over real steps."""
        made = made.nan_to_num()
        return self.read((made * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1))


def batch(*, right: bool = True) -> Tensor:
    lengths = torch.tensor([3, 5, STEPS, 4, 2, 6])
    ids = torch.randint(1, 6, (COUNT, STEPS)) * (torch.arange(STEPS) < lengths[:, None])
    return ids if right else ids.flip(1)


def told(path: Path, how: str, *, right: bool = True) -> tuple[list[str], list[float]]:
    """(rules that fired, the shares)."""
    torch.manual_seed(0)
    model = Net(how)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with inspector.watch(model, optimizer, path, every=1):
        for _ in range(12):
            ids = batch(right=right)
            scores = model(ids, ids.flip(1).roll(1, 0)) if how == "across" else model(ids)
            F.cross_entropy(scores, torch.randint(0, 2, (COUNT,))).backward()
            optimizer.step()
            optimizer.zero_grad()
    with open_capture(path) as capture:
        shares = capture.array(SHOWN).reshape(-1).tolist() if SHOWN in capture.channels else []
    return [one.id for one in inspector.diagnose(path).findings], [one for one in shares if one == one]


@pytest.mark.parametrize("right", [True, False], ids=["behind", "in front"])
@pytest.mark.parametrize("how", ["module inverted", "encoder inverted", "inverted", "inverted numbers"])
def test_an_inverted_padding_mask_is_told(tmp_path: Path, how: str, right: bool) -> None:
    rules, shares = told(tmp_path / "a.inspect", how, right=right)
    assert "IN139" in rules
    assert shares and set(shares) == {1.0}


@pytest.mark.parametrize(
    "how",
    [
        "module", "encoder", "right", "right numbers", "causal", "right to left", "prefix", "local", "none",
        "causal alone", "across",
    ],
)  # fmt: skip
def test_other_masks_are_not(tmp_path: Path, how: str) -> None:
    rules, shares = told(tmp_path / "a.inspect", how)
    assert "IN139" not in rules
    assert not any(shares)


def test_a_causal_mask_that_is_turned_round_is_seen_to_read_ahead() -> None:
    """Its last row has no key: in evaluation torch's fast path makes NaN of it, and of all rows a layer later."""
    from inspector.engine.watch.measures.read_ahead import changes

    class Reads(nn.Module):
        def __init__(self, *, inverted: bool) -> None:
            super().__init__()
            self.inverted, self.embed = inverted, nn.Embedding(9, 8)
            layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

        def forward(self, ids: Tensor) -> Tensor:
            past = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
            found: Tensor = self.layers(self.embed(ids), mask=past if self.inverted else ~past)
            return found

    torch.manual_seed(0)
    ids = torch.randint(0, 9, (4, 10))
    inverted, right = (changes(Reads(inverted=one), (ids,), {}, ids) for one in (True, False))
    assert inverted is not None and inverted[0] > 1e-3
    assert right is not None and right[0] < 1e-5
    assert torch.backends.mha.get_fastpath_enabled()
