"""What each head adds to a score on the direct path: through the residual stream, the final norm and the head alone.

The stream is a sum, x_L = x_0 + Σ of what every head and every other part adds, so that a score is a sum as well once
the scale of the final norm is held at its value (Elhage et al. 2021). That the heads' outputs are added to the stream
as they are, and that the norm is one of the known forms, is checked with the numbers of the run.

Letters: t steps, e width, a heads, d head width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.engine.analyses.attention.residual_stream import Readout, Stream
from inspector.engine.analyses.module_calls import ModuleCall, first_tensor, same_numbers
from inspector.engine.errors import Unsupported

ROUNDING = 1e-3
"""By how much sums may differ from what the model has, relative to the largest number: their order is another one."""
NORMED = "{} ends in a norm ({}), so what an attention adds is scaled again in every later layer: no direct path."
NOT_ADDED = "That what the heads of {} give is added to the stream as it is could not be confirmed."
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


def check_sum(stream: Stream) -> None:
    """Whether the layers are joined by nothing, and none ends in a norm. Raises Unsupported."""
    for before, after in zip(stream.layers, stream.layers[1:], strict=False):
        if not same_numbers(before.result, after.given):
            raise Unsupported(NOT_JOINED.format(after.name, before.name))
    for layer in stream.layers:
        for call in _inside(stream, layer):
            if same_numbers(call.result, layer.result) and "norm" in type(call.module).__name__.lower():
                raise Unsupported(NORMED.format(layer.name, call.name))


def check_added(stream: Stream, layer: ModuleCall, place: str, added: Tensor) -> None:
    """Whether x + what the heads add (t, e) is what a later part of the layer is given, but for a bias.

    Raises Unsupported. One step decides nothing.
    """
    assert layer.given is not None
    x = stream.of_sample(layer.given.detach()).double()
    near = max(ROUNDING, 16 * torch.finfo(layer.given.dtype).eps)
    total, size = x + added.double(), near * (float(x.abs().max()) + float(added.abs().max()))
    candidates = [first_tensor((call.args, call.kwargs)) for call in _inside(stream, layer)] + [layer.result]
    for one in candidates:
        if one is None or one.shape != layer.given.shape or same_numbers(one, layer.given):
            continue
        rest = stream.of_sample(one.detach()).double() - total
        if len(rest) > 1 and float((rest - rest[0]).abs().max()) <= size:
            return
    raise Unsupported(NOT_ADDED.format(place))


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
    for centred in (True, False):
        moved = x - x.mean(-1, keepdim=True) if centred else x
        sigma = (moved.square().mean(-1, keepdim=True) + eps).sqrt()
        if torch.allclose(moved / sigma * gamma + beta, given, rtol=near, atol=near * float(given.abs().max())):
            return FinalNorm(gamma, sigma, centred)
    raise Unsupported(OTHER_NORM.format(read.names[0]))


def _of(norm: nn.Module, name: str, x: Tensor, otherwise: float) -> Tensor:
    value = getattr(norm, name, None)
    return value.detach().double() if isinstance(value, Tensor) else torch.full((x.shape[-1],), otherwise).to(x)
