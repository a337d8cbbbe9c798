"""Of which sequence keys are, where there are as many as queries: what the data say, whatever modules are called."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn

from inspector.engine.attention.key_source import KeySource
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH, STEPS = 8, 5


class Parts(nn.Module):
    """What two sequences are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.at = nn.Embedding(9, WIDTH), nn.Embedding(STEPS, WIDTH)
        self.q, self.k, self.one = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
        self.n, self.m = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.both, self.slots = nn.Linear(WIDTH, 3 * WIDTH), nn.Parameter(torch.randn(STEPS, WIDTH))
        self.convolution = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.rnn = nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def weights(self, q: Tensor, k: Tensor) -> Tensor:
        return torch.softmax(q @ k.mT / 3, -1)

    def layer(self, x: Tensor) -> Tensor:
        return x + self.weights(self.q(x), self.k(x)) @ x


@pytest.fixture(scope="module")
def parts() -> Parts:
    torch.manual_seed(3)
    return Parts()


def turned(x: Tensor) -> Tensor:
    """Rotary positions."""
    angle = torch.arange(STEPS, dtype=x.dtype)[:, None] * torch.ones(WIDTH // 2)
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def squared(x: Tensor) -> Tensor:
    """A written root-mean-square norm."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def fused(p: Parts, x: Tensor, y: Tensor) -> Tensor:
    q, k, _ = p.both(x).view(2, STEPS, 3, 2, WIDTH // 2).permute(2, 0, 3, 1, 4)
    return p.weights(q, k)


def additive(p: Parts, x: Tensor, y: Tensor) -> Tensor:
    return p.one(torch.tanh(p.q(x)[:, :, None] + p.k(y)[:, None]))[..., 0].softmax(-1)


def summed(p: Parts, x: Tensor, y: Tensor) -> Tensor:
    return (p.q(x)[:, :, None] * p.k(y)[:, None]).sum(-1).softmax(-1)


def relative(p: Parts, x: Tensor, y: Tensor) -> Tensor:
    far = torch.randn(2, STEPS, WIDTH)
    return torch.softmax(p.q(x) @ p.k(y).mT + p.q(x) @ far.mT, -1)


def mixed_heads(p: Parts, x: Tensor, y: Tensor) -> Tensor:
    scores = torch.stack([p.q(x) @ p.k(y).mT, p.k(x) @ p.q(y).mT], 1)
    return torch.softmax(torch.einsum("bhqk,hg->bgqk", scores, p.slots[:2, :2]), -1)


def plain(p: Parts, x: Tensor) -> Tensor:
    return p.weights(p.q(x), p.k(x))


Way = Callable[[Parts, Tensor, Tensor], Tensor]
OWN: dict[str, Way] = {
    "plain": lambda p, x, y: p.weights(p.q(x), p.k(x)),
    "two norms": lambda p, x, y: p.weights(p.q(p.n(x)), p.k(p.m(x))),
    "written norm": lambda p, x, y: p.weights(p.q(squared(x)), p.k(squared(x))),
    "positions added twice": lambda p, x, y: p.weights(p.q(x + p.slots), p.k(x + p.slots)),
    "positions to the queries": lambda p, x, y: p.weights(p.q(x + p.slots), p.k(x)),
    "cast": lambda p, x, y: p.weights(p.q(x).double(), p.k(x).float().double()),
    "rotary": lambda p, x, y: p.weights(turned(p.q(x)), turned(p.k(x))),
    "one projection": fused,
    "convolutions": lambda p, x, y: p.weights(p.convolution(x.mT).mT, p.k(x)),
    "no projection": lambda p, x, y: p.weights(x, x),
    "second layer": lambda p, x, y: plain(p, p.layer(x)),
    "additive": lambda p, x, y: additive(p, x, x),
    "multiplied and summed": lambda p, x, y: summed(p, x, x),
    "relative": lambda p, x, y: relative(p, x, x),
    "talking heads": lambda p, x, y: mixed_heads(p, x, x),
    "slots among themselves": lambda p, x, y: p.weights(p.q(p.slots), p.k(p.slots)),
    "of a recurrent layer": lambda p, x, y: plain(p, p.rnn(x)[0]),
}
OTHER: dict[str, Way] = {
    "plain": lambda p, x, y: p.weights(p.q(x), p.k(y)),
    "behind an encoder": lambda p, x, y: p.weights(p.q(p.layer(x)), p.k(p.n(p.layer(y)))),
    "the states of an encoder that reads the same": lambda p, x, y: p.weights(
        p.q(p.layer(x)), p.k(p.layer(p.layer(x)))
    ),
    "the same positions": lambda p, x, y: p.weights(p.q(x + p.at.weight), p.k(y + p.at.weight)),
    "rotary": lambda p, x, y: p.weights(turned(p.q(x)), turned(p.k(y))),
    "slots that read": lambda p, x, y: p.weights(p.q(p.slots).expand(2, -1, -1), p.k(x)),
    "a memory of parameters": lambda p, x, y: p.weights(p.q(x), p.k(p.slots).expand(2, -1, -1)),
    "additive": additive,
    "multiplied and summed": summed,
    "einsum": lambda p, x, y: torch.einsum("bqd,bkd->bqk", p.q(x), p.k(y)).softmax(-1),
    "relative": relative,
    "talking heads": mixed_heads,
    "two recurrent layers": lambda p, x, y: p.weights(p.rnn(x)[0], p.rnn(y)[0]),
}


@pytest.mark.parametrize("floats", [False, True], ids=["tokens", "numbers"])
@pytest.mark.parametrize(("ways", "expected"), [(OWN, "self"), (OTHER, "cross")], ids=["own", "other"])
def test_the_graph_says_whose_the_keys_are(parts: Parts, ways: dict[str, Way], expected: str, floats: bool) -> None:
    torch.manual_seed(1)
    ids = torch.randint(0, 9, (2, 2, STEPS))
    made = torch.randn(2, 2, STEPS, WIDTH)
    x, y = (made[n] if floats else parts.embedding(ids[n]) + parts.at(torch.arange(STEPS)) for n in range(2))
    found = {name: KeySource().of_weights(way(parts, x, y)) for name, way in ways.items()}
    # A sum keeps neither of its parts: of numbers without a gradient that a parameter is added to nothing is known.
    unknown = {"positions added twice", "positions to the queries", "the same positions"} if floats else set()
    unknown |= {"no projection"} if floats else set()
    assert found == {name: "" if name in unknown else expected for name in ways}


class Pair(nn.Module):
    """ids (b, t) → (b, t, 9): a decoder reads the other half of the ids, which is as long, in a module named `mix`."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.parts, self.way, self.mix = Parts(), way, nn.Identity()
        self.out = nn.Linear(WIDTH, 9)

    def forward(self, ids: Tensor) -> Tensor:
        p = self.parts
        x, y = p.embedding(ids), p.layer(p.embedding(ids.flip(0)))
        q, k = p.q(x), p.k(y)
        if self.way == "kernel":
            z = F.scaled_dot_product_attention(q[:, None], k[:, None], k[:, None])[:, 0]
        elif self.way == "multiplied and summed":
            z = (p.weights(q, k)[..., None] * y[:, None]).sum(2)
        else:
            z = p.weights(q, k) @ y
        return self.out(self.mix(x + z))


ASKED = ("attention/maps", "attention/distance", "attention/head_types", "attention/rollout", "attention/entropy")


@pytest.mark.parametrize("way", ["written", "multiplied and summed", "kernel"])
def test_attention_to_an_equally_long_sequence_has_no_distance(way: str) -> None:
    found, refused = seen(Pair(way))
    assert found.channel("model:attention").domains == {"query": "step", "key": "step"}  # of the encoder
    assert found.channel("model.1:attention").domains["key"] == "source step"
    assert {"model:attention/distance", "model.1:attention/entropy"} <= found.names()
    assert not any(name.startswith(("model.1:attention/distance", "model.1:attention/head")) for name in found.names())
    assert "attends to another sequence" in refused["model.1:attention/distance"]
    assert found.channel("layers:attention/rollout").labels["layer"] == ("model",)


class Shifted(nn.Module):
    """Each query attends to the vectors of its sequence from the last one to the first."""

    def __init__(self) -> None:
        super().__init__()
        self.parts, self.out = Parts(), nn.Linear(WIDTH, 9)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.parts.embedding(ids)
        return self.out(x + self.parts.weights(self.parts.q(x), self.parts.k(x.flip(1))) @ x.flip(1))


def test_a_source_that_is_not_known_is_told() -> None:
    found, refused = seen(Shifted())
    assert "model:attention/entropy" in found.names()
    assert found.channel("model:attention").domains["key"] == "key of unknown source"
    assert "source of the keys not known" in found.channel("model:attention").method
    assert "source of the keys" in refused["model:attention/distance"]
    assert "source of the keys" in refused["model:attention/head_types"]
    assert "layers:attention/rollout" in refused


def seen(model: nn.Module) -> tuple[Listed, dict[str, str]]:
    sink = Listed()
    ids = torch.randint(0, 9, (2, STEPS), generator=torch.Generator().manual_seed(4))
    subject = Subject(model=model.eval(), kind="tokens", vocabulary="abcdefghi")
    perform(subject, Batch(ids, torch.tensor([STEPS, STEPS])), sink, RunOptions(only=ASKED))
    return sink, sink.refusals()


@pytest.mark.parametrize(
    "way",
    [
        lambda p, x: (p.q(x[:, 1:]), p.k(x[:, :-1])),
        lambda p, x: (p.q(x), p.k(x.flip(1))),
        lambda p, x: (p.q(x), p.k(torch.utils.checkpoint.checkpoint(p.layer, x, use_reentrant=False).detach())),
    ],
    ids=["a step later", "backwards", "cut"],
)
def test_what_the_graph_does_not_say_is_not_guessed(parts: Parts, way: Callable[..., tuple[Tensor, Tensor]]) -> None:
    x = parts.embedding(torch.randint(0, 9, (2, STEPS), generator=torch.Generator().manual_seed(1)))
    assert KeySource().of(*way(parts, x)) != "self"


class Unfollowed(nn.Module):
    """Attention inside the model's own `torch.no_grad`, or inference mode, to its own sequence or to another one."""

    def __init__(self, way: str, *, cross: bool, kernel: bool) -> None:
        super().__init__()
        self.parts, self.way, self.cross, self.kernel = Parts(), way, cross, kernel
        self.out, self.other = nn.Linear(WIDTH, 9), nn.Embedding(9, WIDTH)

    def forward(self, ids: Tensor) -> Tensor:
        if self.way == "decorated":
            return self.decorated(ids)
        with torch.no_grad() if self.way == "no_grad" else torch.inference_mode():
            return self.attended(ids)

    @torch.no_grad()
    def decorated(self, ids: Tensor) -> Tensor:
        return self.attended(ids)

    def attended(self, ids: Tensor) -> Tensor:
        x = self.parts.embedding(ids) + self.parts.at.weight
        y = self.other(ids.flip(1)) if self.cross else x
        q, k = self.parts.q(x), self.parts.k(y)
        if self.kernel:
            return self.out(F.scaled_dot_product_attention(q[:, None], k[:, None], k[:, None])[:, 0])
        return self.out(self.parts.weights(q, k) @ k)


@pytest.mark.parametrize("kernel", [False, True], ids=["written", "kernel"])
@pytest.mark.parametrize("way", ["no_grad", "decorated"])
def test_a_model_that_wants_no_gradients_is_followed_once_more(way: str, kernel: bool) -> None:
    assert "model:attention/distance" in seen(Unfollowed(way, cross=False, kernel=kernel))[0].names()
    found, refused = seen(Unfollowed(way, cross=True, kernel=kernel))
    assert found.channel("model:attention").domains["key"] == "source step"
    assert "attends to another sequence" in refused["model:attention/distance"]
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("kernel", [False, True], ids=["written", "kernel"])
def test_keys_of_which_nothing_is_known_have_no_distance(kernel: bool) -> None:
    """In inference mode nothing can be followed: numbers that depend on the source are refused, the others are there."""
    found, refused = seen(Unfollowed("inference", cross=True, kernel=kernel))
    assert {"model:attention", "model:attention/entropy"} <= found.names()
    assert not {"model:attention/distance", "model:attention/head_types"} & found.names()
    assert "source of the keys" in refused["model:attention/distance"]


def test_heads_that_are_chosen_by_a_list_move_no_step(parts: Parts) -> None:
    """Falcon takes keys out of one projection with `fused[..., [-2], :]`; an index of the steps does move them."""
    x = parts.embedding(torch.randint(0, 9, (2, STEPS), generator=torch.Generator().manual_seed(1)))
    fused = parts.both(x).view(2, STEPS, 3, WIDTH)
    q, k = fused[:, :, :-2].transpose(1, 2), fused[:, :, [-2]].transpose(1, 2)
    assert KeySource().of(q, k) == "self"
    assert KeySource().of(q, k[:, :, torch.arange(STEPS).flip(0)]) == ""
    assert KeySource().of(q, k.index_select(2, torch.arange(STEPS).flip(0))) == ""


class Checkpointed(nn.Module):
    """Attention to its own sequence or to another one as long, computed in a checkpoint."""

    def __init__(self, *, reentrant: bool, cross: bool, kernel: bool) -> None:
        super().__init__()
        self.parts, self.other, self.out = Parts(), nn.Embedding(9, WIDTH), nn.Linear(WIDTH, 9)
        self.reentrant, self.cross, self.kernel = reentrant, cross, kernel

    def forward(self, ids: Tensor) -> Tensor:
        x = self.parts.embedding(ids) + self.parts.at.weight
        y = self.other(ids.flip(1)) if self.cross else x
        return self.out(torch.utils.checkpoint.checkpoint(self.attended, x, y, use_reentrant=self.reentrant))

    def attended(self, x: Tensor, y: Tensor) -> Tensor:
        q, k = self.parts.q(x), self.parts.k(y)
        if self.kernel:
            return F.scaled_dot_product_attention(q[:, None], k[:, None], k[:, None])[:, 0]
        return (q @ k.mT).softmax(-1) @ k


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True")
@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("cross", [True, False])
@pytest.mark.parametrize("reentrant", [True, False])
def test_keys_inside_a_checkpoint_are_known(reentrant: bool, cross: bool, kernel: bool) -> None:
    sink, refused = seen(Checkpointed(reentrant=reentrant, cross=cross, kernel=kernel))
    (name,) = (one for one in sink.names() if one.endswith(":attention"))
    assert sink.channel(name).domain("key") == ("source step" if cross else "step"), refused
