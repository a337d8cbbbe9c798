"""What attention did (gradient, relevance, value zeroing, direct logits, lens, …) in models as people write them, against
the definitions in float64: autograd and sums over the weights and values that the models themselves tell."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from small_transformers import CLASSES, EACH, HEADS, WIDTH, Seen, Style, Transformer
from torch import Tensor
from torch.nn import functional as F

import inspector

STEPS = 9
IDS = torch.randint(0, CLASSES, (STEPS,), generator=torch.Generator().manual_seed(0))
ALSO = (
    "attention/maps", "attention/gradient", "attention/direct_logit", "attention/relevance", "attention/rollout",
    "attention/value_zeroing", "attention/weighted_norm", "residual", "residual/gradient", "residual/lens",
)  # fmt: skip
STYLES = {
    "as Llama": Style(qkv="apart", keys=2, rms=True, rotary=True, fused=True),
    "by head, slopes": Style(qkv="by head", slopes=True),
    "post-norm, shared": Style(qkv="chunks", order="post", shared=True),
    "parallel, finite mask": Style(order="parallel", finite_mask=True),
    "sigmoid": Style(sigmoid=True),
    "both ways, one key head": Style(qkv="apart", keys=1, both_ways=True),
}


def loss(output: Tensor, batch: Any) -> Tensor:
    """Next-token cross entropy, none at the last step."""
    each = F.cross_entropy(output[:, :-1].transpose(1, 2), batch.inputs[:, 1:], reduction="none")
    return F.pad(each, (0, 1), value=float("nan"))


class Reference:
    """One forward and one backward pass in float64."""

    def __init__(self, style: Style) -> None:
        self.model = Transformer(style).double().eval()
        self.seen = Seen()
        self.normed: list[tuple[Any, Tensor]] = []
        for block in self.model.blocks:
            block.attention.seen = self.seen
        norms = {one for block in self.model.blocks for one in (block.n1, block.n2)} | {self.model.norm}
        hooks = [
            one.register_forward_hook(lambda norm, args, _: self.normed.append((norm, args[0][0].detach())))
            for one in norms
        ]
        self.stream = [self.model.into(IDS[None])]
        for block in self.model.blocks:
            self.stream.append(block(self.stream[-1]))
            self.stream[-1].retain_grad()
        self.scores = self.model.head(self.model.norm(self.stream[-1]))[0]
        for hook in hooks:
            hook.remove()
        F.cross_entropy(self.scores[:-1], IDS[1:], reduction="sum").backward()
        self.scores = self.scores.detach()
        self.predicted = self.scores.argmax(-1)

    def layer(self, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (h, q, k), their gradients, and v W_O of each head (h, k, WIDTH)."""
        weights = self.seen.weights[n]
        out = self.model.blocks[n].attention.o.weight.detach().reshape(WIDTH, HEADS, EACH)
        assert weights.grad is not None
        return weights[0].detach(), weights.grad[0], torch.einsum("hkd,ohd->hko", self.seen.values[n][0], out)

    def direct(self, n: int, added: Tensor) -> Tensor:
        """(h, q): what each head of block n adds to the score of the predicted class, the scales of norms held."""
        behind = self.normed[2 * n :] if self.model.style.order == "post" else self.normed[-1:]
        for norm, given in behind:
            if self.model.style.rms:
                added = added / (given.square().mean(-1) + norm.eps).sqrt()[:, None] * norm.weight.detach()
            else:
                added = added - added.mean(-1, keepdim=True)
                added = added / (given.var(-1, unbiased=False) + norm.eps).sqrt()[:, None] * norm.weight.detach()
        return (added * self.model.head.weight.detach()[self.predicted]).sum(-1)

    def zeroed(self, n: int) -> Tensor:
        """(q, k): 1 − cos of a block's output with and without the values of one step, rows scaled to 1."""
        block, given, whole = self.model.blocks[n], self.stream[n].detach(), self.stream[n + 1][0].detach()
        columns = []
        for step in range(STEPS):
            self.seen.without = step
            columns.append(1 - F.cosine_similarity(block(given)[0].detach(), whole, dim=-1))
        self.seen.without = None
        moved = torch.stack(columns, 1).clamp(min=0)
        return moved / moved.sum(1, keepdim=True)


def near(found: Any, expected: Tensor, *, within: float = 1e-4) -> None:
    """Equal but for the rounding of float32, of float16 in maps; cells that are masked count as 0."""
    true = expected.detach().numpy()
    np.testing.assert_allclose(np.nan_to_num(np.asarray(found, float)), true, rtol=0, atol=within * abs(true).max())


@pytest.mark.parametrize("named", STYLES)
def test_every_quantity(named: str) -> None:
    style = STYLES[named]
    subject = SimpleNamespace(
        model=Transformer(style).eval(), kind="tokens", next_token=True, loss=loss, vocabulary=[*map(str, range(CLASSES))]
    )  # fmt: skip
    with inspector.run(subject, IDS.tolist(), only=ALSO) as capture:
        true, read = Reference(style), capture.array
        maps = [name for name in capture.channels if name.endswith(":attention")]
        assert len(maps) == len(true.seen.weights) == 3
        relevance = rollout = torch.eye(STEPS).double()
        for n, name in enumerate(maps):
            a, gradient, moved = true.layer(n)
            added = torch.einsum("hqk,hko->hqo", a, moved)
            near(read(name), a, within=1e-3)
            near(read(f"{name}/times_gradient"), a * gradient)
            near(read(f"{name}/importance")[:, 0], (a * gradient).sum((1, 2)).abs())
            near(read(f"{name}/weighted_norm"), (a[..., None] * moved[:, None]).norm(dim=-1))
            near(read(f"{name}/head_output"), added.norm(dim=-1))
            near(read(f"{name}/value_zeroing"), true.zeroed(n))
            near(read(f"{name}/direct_logit"), true.direct(n, added))
            relevance = relevance + (-a * gradient).clamp(min=0).mean(0) @ relevance
            rollout = (a.mean(0) + torch.eye(STEPS)) @ rollout / 2
            near(read("layers:attention/relevance")[n], relevance - torch.eye(STEPS))
            near(read("layers:attention/rollout")[n], rollout)
        near(read("blocks:residual/norm"), torch.stack([one[0].norm(dim=-1) for one in true.stream]))
        near(
            read("blocks:residual/gradient")[1:],
            torch.stack([one.grad[0].norm(dim=-1) for one in true.stream[1:] if one.grad is not None]),
        )
        for n, one in enumerate(true.stream):
            lens = true.model.head(true.model.norm(one))[0].softmax(-1)[range(STEPS), true.predicted]
            near(read("blocks:residual/lens_probability")[n], lens)
