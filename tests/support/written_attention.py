"""Models that write attention in one way each, and the whole chain from the run to what the capture holds of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline.options import RunOptions
from inspector.engine.pipeline.own_run import perform
from inspector.records import Log

B, T, D, SAMPLE = 3, 6, 4, 1
QUANTITIES = ("attention/maps", "attention/entropy", "attention/largest_weight")


class Written(nn.Module):
    """A model whose forward is a function, in a place named "inner"."""

    def __init__(self, forward: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.inner = Inner(forward)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner(x)
        return y


class Inner(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


@dataclass
class Seen:
    """What a run put into the capture of one place: the map (a, q, k) and what is said of it."""

    sink: Listed
    place: str

    @property
    def map(self) -> Tensor:
        return torch.from_numpy(self.sink.array(f"{self.place}:attention").astype(np.float64))

    @property
    def domains(self) -> tuple[str, str]:
        channel = self.sink.channel(f"{self.place}:attention")
        return channel.domain("query"), channel.domain("key")

    @property
    def method(self) -> str:
        return str(self.sink.channel(f"{self.place}:attention").method)

    def logged(self) -> list[str]:
        return [record.text for record in self.sink.of(Log)]


def inputs(b: int = B, t: int = T, d: int = D, dtype: torch.dtype = torch.float64) -> Tensor:
    torch.manual_seed(5)
    return torch.randn(b, t, d, dtype=dtype)


def ran(
    model: nn.Module,
    x: Tensor,
    place: str = "inner",
    quantities: Sequence[str] = QUANTITIES,
    lengths: Sequence[int] | None = None,
    sample: int = SAMPLE,
) -> Seen:
    """Run a model through the pipeline, with the quantities of attention; its output is as without it."""
    batch = Batch(x, torch.tensor(list(lengths or [x.shape[1]] * len(x))), look_at=min(sample, len(x) - 1))
    sink = Listed()
    torch.manual_seed(11)
    with torch.no_grad():
        plain = model(x)
    trace = perform(Subject(model), batch, sink, RunOptions(only=list(quantities), seed=11))
    if isinstance(plain, Tensor) and isinstance(trace.output, Tensor) and not model.training:
        torch.testing.assert_close(trace.output.detach(), plain, rtol=0, atol=0, equal_nan=True)
    return Seen(sink, place)


def chain(
    model: nn.Module | Callable[[Tensor], Tensor],
    expected: Tensor,
    x: Tensor | None = None,
    *,
    place: str = "inner",
    domains: tuple[str, str] = ("step", "step"),
    lengths: Sequence[int] | None = None,
    sample: int = SAMPLE,
    atol: float = 1e-9,
) -> Seen:
    """The map, entropy and largest weight against those of `expected` (a, q, k) in float64, the labels, no refusals."""
    model = model if isinstance(model, nn.Module) else Written(model).eval()
    seen = ran(model, inputs() if x is None else x, place, lengths=lengths, sample=sample)
    about = {name: reason for name, reason in seen.sink.refusals().items() if ":attention" in name}
    assert not about, about
    assert expected.dtype == torch.float64 and expected.dim() == 3
    assert seen.map.shape == expected.shape, seen.map.shape
    torch.testing.assert_close(seen.map, expected, atol=2**-25 + atol, rtol=2**-10, equal_nan=True)
    entropy = seen.sink.array(f"{place}:attention/entropy")
    np.testing.assert_allclose(entropy, entropy_of(expected).numpy(), atol=2e-6 + atol, rtol=1e-5)
    largest = seen.sink.array(f"{place}:attention/largest_weight")
    np.testing.assert_allclose(largest, expected.amax(-1).numpy(), atol=1e-6 + atol, rtol=1e-5)
    assert seen.domains == domains, seen.domains
    return seen


def entropy_of(weights: Tensor) -> Tensor:
    """(a, q) −Σ A ln A by loops over entries, with 0 ln 0 = 0."""
    out = torch.zeros(weights.shape[:2], dtype=torch.float64)
    for head in range(weights.shape[0]):
        for row in range(weights.shape[1]):
            entries = [float(w) for w in weights[head, row]]
            out[head, row] = -sum(w * math.log(w) for w in entries if w > 0)
    return out


def plain_softmax(scores: Tensor, may: Tensor | None = None) -> Tensor:
    """Softmax of (…, k) in float64 by its definition: e^s / Σ e^s over the allowed keys."""
    scores = scores.double()
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    powers = powers if may is None else powers * may
    return powers / powers.sum(-1, keepdim=True)


def not_taken(model: nn.Module | Callable[[Tensor], Tensor], x: Tensor | None = None, place: str = "inner") -> str:
    """The line that says why a softmax is not attention, where nothing is shown."""
    model = model if isinstance(model, nn.Module) else Written(model).eval()
    seen = ran(model, inputs() if x is None else x, place)
    assert not [name for name in seen.sink.names() if name.endswith(":attention")], seen.sink.names()
    said = [text for text in seen.logged() if "not taken for attention" in text]
    assert len(said) == 1, said
    return said[0]
