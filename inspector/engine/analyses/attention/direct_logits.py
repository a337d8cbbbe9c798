"""What each head adds to a score on the direct path: through the residual stream, the final norm and the head alone.

The stream is a sum of what every head and every other part adds, so that a score is a sum as well once the scales of
the norms and gates on the way are held at their values (Elhage et al. 2021 for the final norm). Which tensor of the run
is what the heads add is found by its numbers; how the stream goes on from there is read off autograd's graph.

Letters: t steps, e width, a heads, d head width.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.engine.analyses.attention.direct_path import pulled
from inspector.engine.analyses.attention.residual_stream import Readout, Stream
from inspector.engine.analyses.module_calls import ModuleCall, first_tensor, same_numbers
from inspector.engine.errors import Unsupported

ROUNDING = 1e-3
"""By how much sums may differ from what the model has, relative to the largest number: their order is another one."""
NOT_ADDED = (
    "What the heads of {} give was not found in what {} returns, as it is or scaled by norms, vectors or gates, so it "
    "has no direct path that could be confirmed."
)
ENDS = (
    "{} does not return what it is given plus something, nor that scaled by norms, vectors or gates, so nothing that "
    "is added before it has a direct path."
)
NO_GRAPH = "{} ran without autograd's graph (no_grad or detach inside the model?), which the direct path is read off."
NOT_JOINED = "{} is not given what {} returned, so there is no one stream."
OTHER_NORM = "{} is neither a layer norm nor a root-mean-square norm, and only of these is the scale held."


@dataclass(frozen=True, slots=True)
class FinalNorm:
    """The norm before the head with its scale held: x → (x − mean?) ⊙ γ / σ_t, without its bias.

    gamma: (e,); sigma: (t, 1); centred: whether the mean is subtracted. None of it for a model without a norm.
    """

    gamma: Tensor | None = None
    sigma: Tensor | None = None
    centred: bool = False


def check_joined(stream: Stream) -> None:
    """Whether each layer is given what the one before it returned. Raises Unsupported."""
    for before, after in zip(stream.layers, stream.layers[1:], strict=False):
        if not same_numbers(before.result, after.given):
            raise Unsupported(NOT_JOINED.format(after.name, before.name))


def behind_layers(stream: Stream, direction: Tensor) -> list[Tensor | str]:
    """(t, e) the direction behind each layer, of the one behind the last; the reason where a later layer ends it."""
    found: list[Tensor | str] = [direction]
    for layer in reversed(stream.layers[1:]):
        behind = found[0]
        found.insert(0, behind if isinstance(behind, str) else _through(stream, layer, behind))
    return found


def _through(stream: Stream, layer: ModuleCall, direction: Tensor) -> Tensor | str:
    assert layer.given is not None and layer.result is not None
    if not layer.result.requires_grad:
        return NO_GRAPH.format(layer.name)
    try:
        passed = pulled(stream, layer.name, layer.result, direction, [layer.given])[0]
    except Unsupported as reason:
        return str(reason)
    return ENDS.format(layer.name) if passed is None else passed


def at_heads(stream: Stream, layer: ModuleCall, place: str, added: Tensor, direction: Tensor) -> Tensor:
    """(t, e) the direction at what the heads add together, `added` (t, e), of the one behind the layer.

    That tensor is found by its numbers: what a module returned, or x + added where the next module is given that; both
    but for a bias. One step decides nothing. Raises Unsupported.
    """
    assert layer.result is not None
    if not layer.result.requires_grad:
        raise Unsupported(NO_GRAPH.format(layer.name))
    for candidates in (_parts(stream, layer, added), _sums(stream, layer, added)):
        for found in pulled(stream, layer.name, layer.result, direction, candidates):
            if found is not None:
                return found
    raise Unsupported(NOT_ADDED.format(place, layer.name))


def _parts(stream: Stream, layer: ModuleCall, added: Tensor) -> list[Tensor]:
    """What modules of a layer returned that is what the heads add."""
    size = _near(added) * float(added.abs().max())
    shown = [call.result for call in _inside(stream, layer) if call.result is not None]
    return [one for one in shown if _is(stream, one, added, size)]


def _sums(stream: Stream, layer: ModuleCall, added: Tensor) -> list[Tensor]:
    """What modules of a layer were given, or the layer returned, that is x + what the heads add."""
    assert layer.given is not None
    total = stream.of_sample(layer.given.detach()).double() + added
    size = _near(added) * float(added.abs().max()) + _rounding(layer.given) * float(layer.given.detach().abs().max())
    given = [first_tensor((call.args, call.kwargs)) for call in _inside(stream, layer)]
    shown = [one for one in (*given, layer.result) if one is not None and not same_numbers(one, layer.given)]
    return [one for one in shown if _is(stream, one, total, size)]


def _is(stream: Stream, shown: Tensor, rows: Tensor, size: float) -> bool:
    """Whether a tensor of the run is some rows (t, e) plus a bias, within `size`."""
    if shown.shape != stream.values[0].shape:
        return False
    rest = stream.of_sample(shown.detach()).double() - rows
    return len(rest) > 1 and float((rest - rest[0]).abs().max()) <= size


def _rounding(tensor: Tensor) -> float:
    return 16 * torch.finfo(tensor.dtype).eps


def _near(tensor: Tensor) -> float:
    return max(ROUNDING, _rounding(tensor))


def _inside(stream: Stream, layer: ModuleCall) -> list[ModuleCall]:
    return [call for call in stream.calls if call.name.startswith(f"{layer.name}.")]


def final_norm(stream: Stream, read: Readout) -> FinalNorm:
    """The norm between the last layer and the head. Raises Unsupported for anything else there."""
    if len(read.modules) == 1:
        return FinalNorm()
    if len(read.modules) > 2:
        raise Unsupported(f"Between the last layer and the head are several modules: {', '.join(read.names[:-1])}.")
    norm, x = read.modules[0], stream.of_sample(stream.values[-1].detach()).double()
    with torch.no_grad():
        given = stream.of_sample(norm(stream.values[-1].detach())).double()
    gamma = _of(norm, "weight", x, 1.0)
    beta = _of(norm, "bias", x, 0.0)
    near = max(ROUNDING, 16 * torch.finfo(stream.values[-1].dtype).eps)
    eps = next((float(getattr(norm, name)) for name in ("eps", "variance_epsilon") if getattr(norm, name, None)), 0.0)
    for centred, scale in itertools.product((True, False), (gamma, gamma + 1.0)):  # the weight of Gemma's is γ − 1
        moved = x - x.mean(-1, keepdim=True) if centred else x
        sigma = (moved.square().mean(-1, keepdim=True) + eps).sqrt()
        if torch.allclose(moved / sigma * scale + beta, given, rtol=near, atol=near * float(given.abs().max())):
            # what the norm divided by itself: its ε may stand nowhere
            exact = (moved * scale).square().sum(-1, True) / (moved * scale * (given - beta)).sum(-1, True)
            return FinalNorm(scale, exact.where(exact.isfinite() & (exact > 0), sigma), centred)
    raise Unsupported(OTHER_NORM.format(read.names[0]))


def _of(norm: nn.Module, name: str, x: Tensor, otherwise: float) -> Tensor:
    value = getattr(norm, name, None)
    return value.detach().double() if isinstance(value, Tensor) else torch.full((x.shape[-1],), otherwise).to(x)
