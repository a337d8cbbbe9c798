"""Every step axis of a run is described: its word, its length, its layout, the names of layers."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from listed import Listed
from several_inputs import SOURCE, TARGET, GruTranslator, made, numbers, run, translation
from torch import Tensor, nn

from inspector.engine.errors import InputError
from inspector.engine.model.batch import Batch
from inspector.engine.model.declared_inputs import declare
from inspector.engine.model.subject import Subject
from inspector.engine.pipeline import perform
from inspector.records import ANSWER_DOMAIN, Axis, Channel


class ThreeSequences(nn.Module):
    """Two encoders and a decoder: ids (b, s), numbers (b, m, 2) → scores (b, 4, 6) of what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.encoder = nn.Embedding(8, 5), nn.GRU(5, 7, batch_first=True)
        self.listener, self.decoder = nn.GRU(2, 7, batch_first=True), nn.GRU(7, 7, batch_first=True)
        self.head = nn.Linear(7, 6)

    def forward(self, src: Tensor, sound: Tensor) -> Tensor:
        context = self.encoder(self.source(src))[1] + self.listener(sound)[1]
        scores: Tensor = self.head(self.decoder(context.transpose(0, 1).expand(-1, 4, -1).contiguous())[0])
        return scores


def three(**more: Any) -> SimpleNamespace:
    inputs = {
        "src": {"kind": "tokens", "vocabulary": SOURCE},
        "sound": {"kind": "vectors", "width": 2, "modules": "listener", **more},
    }
    return SimpleNamespace(
        model=made(ThreeSequences), inputs=inputs, decoder="decoder", labels=TARGET,
        answer=lambda scores, _batch: scores.argmax(-1),
    )  # fmt: skip


def axes(sink: Listed) -> dict[str, Axis]:
    found = sink.of(Axis)
    assert len({axis.name for axis in found}) == len(found), "each is described once"
    return {axis.name: axis for axis in found}


@pytest.mark.parametrize("steps", [6, 5, 4], ids=["other lengths", "as long as the source", "as long as the answer"])
def test_two_inputs_and_an_answer_have_three_axes(steps: int) -> None:
    _, sink = run(three(), {"src": "abcde", "sound": numbers(steps, 2)})
    found = axes(sink)
    assert [(a.name, a.title, a.length, a.layout, a.frame) for a in found.values()] == [
        ("step", "step", 5, "line", 0),
        (ANSWER_DOMAIN, "answer step", 4, "line", 0),
        ("sound", "sound step", steps, "line", 0),
    ]
    domains = {c.place: c.step_domain for c in sink.of(Channel) if c.step_domain}
    assert domains == {
        "input": "step", "input.sound": "sound", "encoder.l0": "step", "listener.l0": "sound",
        "decoder.l0": ANSWER_DOMAIN, "output": ANSWER_DOMAIN,
    }  # fmt: skip
    for channel in sink.of(Channel):
        for dim, size in zip(channel.dims, channel.shape, strict=True):
            if channel.domain(dim) in found:
                assert size == found[channel.domain(dim)].length, channel.name


def test_one_input_has_one_axis_and_the_length_is_that_of_the_sequence_looked_at() -> None:
    _, sink = run(translation(), {"src": ["abcde", "fg"], "tgt": ["ABC", "ABCDEAB"]}, look_at=1)
    assert {name: axis.length for name, axis in axes(sink).items()} == {"step": 2, ANSWER_DOMAIN: 7}
    model = made(GruTranslator).encoder
    assert isinstance(model, nn.Module)
    sink = Listed()
    batch = Batch(numbers(4, 5)[None], torch.tensor([4]))
    perform(Subject(model, kind="vectors", width=5), batch, sink)
    assert axes(sink) == {"step": Axis(name="step", length=4, frame=0)}


class Patches(nn.Module):
    """Attention over the patches of a picture: (b, 1, 4, 6) → (b, 6, 2), patches of 2 × 2 row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.cut, self.attention = nn.Conv2d(1, 8, 2, 2), nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, image: Tensor) -> Tensor:
        patches = self.cut(image).flatten(2).transpose(1, 2)
        scores: Tensor = self.head(self.attention(patches, patches, patches)[0])
        return scores


def test_the_patches_of_a_picture_are_a_grid() -> None:
    subject = SimpleNamespace(model=made(Patches), inputs={"image": {"kind": "image", "grid": (2, 3)}})
    _, sink = run(subject, {"image": numbers(4, 6)[None]})
    assert axes(sink)["image patch"] == Axis(name="image patch", layout="grid", grid=(2, 3), frame=0)
    maps = sink.channel("attention:attention")
    assert [maps.domain(dim) for dim in ("query", "key")] == ["image patch"] * 2


@pytest.mark.parametrize(("steps", "layout"), [(6, "grid"), (5, "line")])
def test_a_sequence_of_patches_is_a_grid_where_it_fills_it(steps: int, layout: str) -> None:
    _, sink = run(three(grid=[2, 3]), {"src": "abcde", "sound": numbers(steps, 2)})
    assert axes(sink)["sound"].layout == layout and axes(sink)["sound"].length == steps


@pytest.mark.parametrize("grid", [4, (2,), (0, 3), (2.0, 3)])
def test_a_grid_is_rows_and_columns(grid: object) -> None:
    with pytest.raises(InputError, match=r"grid of the input 'image' of Eye.*expected \(rows, columns\)"):
        declare({"image": {"kind": "image", "grid": grid}}, "Eye")


class Deep(nn.Module):
    """Layers after the last step of a sequence, and more of another kind above them: (b, t, 3) → (b, 3)."""

    def __init__(self, layers: int, other: int = 0) -> None:
        super().__init__()
        self.read = nn.GRU(3, 3, batch_first=True)
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(layers))
        self.above = nn.ModuleList(nn.Linear(3, 3) for _ in range(other))

    def forward(self, x: Tensor) -> Tensor:
        x = self.read(x)[0][:, -1]
        for layer in self.layers:
            x = torch.tanh(layer(x))
        for layer in self.above:
            x = torch.sigmoid(layer(x))
        return x


def deep(make: Callable[[], nn.Module], steps: int) -> Listed:
    sink = Listed()
    torch.manual_seed(0)
    perform(Subject(make(), kind="vectors", width=3), Batch(torch.randn(1, steps, 3), torch.tensor([steps])), sink)
    return sink


@pytest.mark.parametrize("steps", [1, 5], ids=["without a sequence", "as many steps as layers"])
def test_layers_are_an_axis_of_their_own(steps: int) -> None:
    sink = deep(lambda: Deep(5), steps)
    assert axes(sink)["layer"] == Axis(name="layer", length=5, layout="layers", frame=0)
    assert axes(sink)["step"].length == steps
    assert sink.labels("layer") == tuple(f"layers.{i}" for i in range(5))
    over = {c.name: c.step_domain for c in sink.of(Channel) if c.place == "model" and c.step_domain}
    assert "model:x" in over and set(over.values()) == {"layer", "start"}
    assert sink.channel("input:value").step_domain == sink.channel("read.l0:h").step_domain == "step"


def test_two_stacks_have_an_axis_each() -> None:
    sink = deep(lambda: Deep(4, 4), 1)
    stacks = {name: axis for name, axis in axes(sink).items() if axis.layout == "layers"}
    assert list(stacks) == ["layer", "layer of model#2"] and {axis.title for axis in stacks.values()} == {"layer"}
    assert sink.channel("model#2:x").step_domain == "layer of model#2"
    assert sink.labels("layer of model#2") == tuple(f"above.{i}" for i in range(4))


def test_stacked_recurrent_layers_are_named_and_wear_no_tokens() -> None:
    model = nn.GRU(3, 4, num_layers=2, batch_first=True)
    sink = deep(lambda: nn.Sequential(model), 6)
    assert axes(sink)["layer"] == Axis(name="layer", length=2, layout="layers", frame=0)
    assert sink.labels("layer") == ("0.l0", "0.l1")
    assert sink.channel("layers:h/depth_rms").domain("layer") == "layer"


class Elsewhere(nn.Module):
    """Attention over the sequence written so many times, and from the sequence to that: (b, t, 4) → (b, t, 4)."""

    def __init__(self, *times: int) -> None:
        super().__init__()
        self.times = times
        self.own = nn.ModuleList(nn.MultiheadAttention(4, 1, batch_first=True) for _ in times)
        self.cross = nn.MultiheadAttention(4, 1, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        for times, own in zip(self.times, self.own, strict=True):
            longer = torch.cat([x] * times, 1)
            memory = own(longer, longer, longer)[0]
        found: Tensor = self.cross(x, memory, memory)[0]
        return found


@pytest.mark.parametrize(("times", "positions"), [((2,), 6), ((2, 3), None), ((3, 3), 9)])
def test_steps_of_which_it_is_not_known_whose_they_are_have_an_axis_where_they_agree(
    times: tuple[int, ...], positions: int | None
) -> None:
    sink = Listed()
    batch = Batch(numbers(3, 4)[None], torch.tensor([3]))
    perform(Subject(made(Elsewhere, *times), kind="vectors", width=4), batch, sink)
    found = axes(sink)
    assert found["step"].length == 3 and found["source step"].length == 3 * times[-1]
    assert (found["position"].length if "position" in found else None) == positions
    assert {sink.channel(f"own.{i}:attention").step_domain for i in range(len(times))} == {"position"}
    assert sink.channel("cross:attention").step_domain == "step"
