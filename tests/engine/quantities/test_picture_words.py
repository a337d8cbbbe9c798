"""Words said of a picture: attention, gradients and blanked patches against the same model written out in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.named_batches import of_values
from inspector.engine.model.subject import Batch, Subject, adopt
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import ANSWER_DOMAIN, Channel, Labels

pytestmark = pytest.mark.usefixtures("one_thread")
ROWS, COLUMNS, PATCH, UNITS, WORDS, COLOURS = 2, 3, 2, 4, 5, 2
SAID = [3, 1, 4]
Numbers = npt.NDArray[np.float64]


class Captioner(nn.Module):
    """Patches of 2 × 2 pixels as linear features; an Elman decoder that attends to them with its state before."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Linear(COLOURS * PATCH * PATCH, UNITS)
        self.words = nn.Embedding(WORDS, UNITS)
        self.step = nn.Linear(3 * UNITS, UNITS)
        self.head = nn.Linear(UNITS, WORDS)

    def forward(self, picture: Tensor, said: Tensor) -> Tensor:
        cut = picture.unfold(2, PATCH, PATCH).unfold(3, PATCH, PATCH).permute(0, 2, 3, 1, 4, 5)
        grid = torch.tanh(self.look(cut.flatten(3).flatten(1, 2)))
        state, found = grid.mean(1), []
        before = nn.functional.pad(said[:, :-1], (1, 0))
        for word in self.words(before).unbind(1):
            weights = torch.softmax((grid @ state[:, :, None])[..., 0], -1)
            context = (weights[:, :, None] * grid).sum(1)
            state = torch.tanh(self.step(torch.cat((word, context, state), -1)))
            found.append(self.head(state))
        return torch.stack(found, 1)


def made(**more: Any) -> Subject:
    torch.manual_seed(3)
    model = Captioner().double().eval()
    for weight in model.parameters():
        weight.data.normal_()
    subject = {
        "model": model, "inputs": {
            "picture": {"kind": "image", "shape": (COLOURS, 4, 6), "grid": (ROWS, COLUMNS), "primary": True},
            "said": {"kind": "tokens", "size": WORDS},
        },
        "forward": lambda net, batch: net(batch["picture"], batch["said"]),
        "answer": lambda _output, batch: batch["said"], "labels": tuple("abcde"), "decoder": "",
        **more,
    }  # fmt: skip
    return adopt(Subject(**subject))


def a_batch(subject: Subject) -> Batch:
    pictures = torch.rand(2, COLOURS, 4, 6, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    batch = of_values(subject, {"picture": list(pictures), "said": [[1, 2, 0], SAID]})
    batch.look_at = 1
    return batch


def run(subject: Subject, batch: Batch, *only: str) -> Listed:
    sink = Listed()
    perform(subject, batch, sink, RunOptions(only=only))
    return sink


def written(subject: Subject, picture: Tensor) -> tuple[Tensor, Tensor]:
    """(ln p of the words (t,), weights (t, cells)) by loops, with a graph."""
    net: Any = subject.model
    cells = []
    for row in range(ROWS):
        for column in range(COLUMNS):
            pixels = [
                picture[c, PATCH * row + i, PATCH * column + j]
                for c in range(COLOURS) for i in range(PATCH) for j in range(PATCH)
            ]  # fmt: skip
            cells.append(torch.tanh(net.look.weight @ torch.stack(pixels) + net.look.bias))
    state = sum(cells) / len(cells)
    found, maps, before = [], [], 0
    for word in SAID:
        scores = [torch.exp((cell * state).sum()) for cell in cells]
        weights = [score / sum(scores) for score in scores]
        context = sum(weight * cell for weight, cell in zip(weights, cells, strict=True))
        read = torch.cat((net.words.weight[before], context, state))
        state = torch.tanh(net.step.weight @ read + net.step.bias)
        out = net.head.weight @ state + net.head.bias
        found.append(out[word] - torch.log(sum(torch.exp(one) for one in out)))
        maps.append(torch.stack(weights))
        before = word
    return torch.stack(found), torch.stack(maps)


def test_attention_lies_over_the_patches_of_the_picture() -> None:
    subject = made()
    batch = a_batch(subject)
    found = run(subject, batch, "attention/maps")
    (channel,) = [one for one in found.of(Channel) if one.name.endswith(":attention")]
    assert channel.domain("key") == "picture patch"
    _, weights = written(subject, batch["picture"][1])
    np.testing.assert_allclose(found.array(channel.name)[0], weights.detach(), rtol=1e-3)  # half precision


def continued(net: nn.Module, batch: Batch, prefixes: Tensor) -> Tensor:
    """Scores after each beginning, of every step."""
    said = nn.functional.pad(prefixes, (0, 1))
    scores: Tensor = net(batch["picture"].expand(len(said), -1, -1, -1), said)
    return scores


def last_of(net: nn.Module, batch: Batch, prefixes: Tensor) -> Tensor:
    """Of the last step alone."""
    return continued(net, batch, prefixes)[:, -1]


@pytest.mark.parametrize("way", [None, continued, last_of])
def test_words_against_loops(way: Callable[..., Tensor] | None) -> None:
    subject = made(next_logits=way)
    batch = a_batch(subject)
    found = run(subject, batch, "picture/words")
    assert not found.refusals()
    picture = batch["picture"][1].clone().requires_grad_()
    log_p, _ = written(subject, picture)
    np.testing.assert_allclose(found.array("input:words/log_p"), log_p.detach(), rtol=1e-9)
    gradients = found.array("input:words/gradient")
    for word, number in enumerate(log_p):
        (slope,) = torch.autograd.grad(number, picture, retain_graph=True)
        norms = [[sum(float(slope[c, i, j]) ** 2 for c in range(COLOURS)) ** 0.5 for j in range(6)] for i in range(4)]
        np.testing.assert_allclose(gradients[word], norms, rtol=1e-5)
    blanked, plain = found.array("input:words/blanked"), batch["picture"][1]
    for row in range(ROWS):
        for column in range(COLUMNS):
            changed = plain.clone()
            for c in range(COLOURS):
                mean = float(sum(plain[c].flatten())) / plain[c].numel()
                for i, j in np.ndindex(PATCH, PATCH):
                    changed[c, PATCH * row + i, PATCH * column + j] = mean
            difference = log_p.detach() - written(subject, changed)[0].detach()
            np.testing.assert_allclose(blanked[:, row, column], difference, rtol=1e-9, atol=1e-12)
    assert found.channel("input:words/blanked").domain("step") == ANSWER_DOMAIN
    method = found.channel("input:words/gradient").method
    assert ("may say others" in method) is (way is None)


def test_the_model_is_left_as_it_was() -> None:
    subject = made()
    before = {name: value.clone() for name, value in subject.model.state_dict().items()}
    state = torch.get_rng_state()
    run(subject, a_batch(subject), "picture/words")
    assert all(torch.equal(value, before[name]) for name, value in subject.model.state_dict().items())
    assert all(weight.grad is None for weight in subject.model.parameters())
    assert torch.equal(torch.get_rng_state(), state)


def test_what_is_refused_says_why() -> None:
    one_class = lambda net, batch: net(batch["picture"], batch["said"])[:, -1]  # noqa: E731
    classified = run(made(forward=one_class, answer=None), a_batch(made()), "picture/words")
    assert "step by step" in classified.refusals()["input:words"]

    def cut(net: Any, batch: Any) -> Tensor:
        scores: Tensor = net(batch["picture"].detach(), batch["said"])
        return scores

    found = run(made(forward=cut), a_batch(made()), "picture/words")
    assert not np.any(found.array("input:words/gradient"))  # the picture is read, but not by autograd

    def without(net: Any, batch: Any) -> Tensor:
        with torch.no_grad():
            return cut(net, batch)

    refused = run(made(forward=without), a_batch(made()), "picture/words").refusals()
    assert "not connected to the picture" in refused["input:words/gradient"]


def test_the_words_are_named() -> None:
    found = run(made(), a_batch(made()), "picture/words")
    assert [list(one.names) for one in found.of(Labels) if one.domain == ANSWER_DOMAIN] == [["d", "b", "e"]]
