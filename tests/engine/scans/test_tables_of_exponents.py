"""What counts steps, whatever the model was given, is no state: tables of powers that a convolution's kernel is made of."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import inspector


class Powers(nn.Module):
    """The kernel of a diagonal state-space model, from a table of exponents n · Δ a, laid over the sequence."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.a = nn.Parameter(torch.complex(-torch.rand(6, 2) - 0.1, torch.randn(6, 2)))
        self.step = nn.Parameter(torch.rand(6, 1) + 0.5)
        self.mix = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        exponents = (self.a * self.step)[..., None] * torch.arange(length)
        kernel = 2 * torch.exp(exponents).sum(1).real
        y = torch.fft.irfft(torch.fft.rfft(x.mT, 2 * length) * torch.fft.rfft(kernel, 2 * length))[..., :length].mT
        return self.mix(torch.tanh(y))


def states_of(model: nn.Module | str, given: object) -> set[str]:
    with inspector.run(model, given, only=("states",)) as capture:
        return {name.partition(":")[0] for name in capture.channels}


def test_the_layers_of_a_state_space_model_have_one_state_each() -> None:
    assert states_of("char_s4d", "no table of exponents") == {"layers.0.space", "layers.1.space"}
    assert states_of(nn.Sequential(Powers(), Powers(), Powers()), torch.randn(17, 6)) == {"0", "1", "2"}


def test_a_constant_input_is_one() -> None:
    """A cumulative sum with decays over the same input at each step is the response to a step."""

    class Sums(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            log = torch.full_like(x, -0.1).cumsum(1)
            return torch.exp(log) * (x * torch.exp(-log)).cumsum(1)

    with inspector.run(Sums(), torch.ones(12, 3), only=("states",)) as capture:
        (name,) = [one for one in capture.channels if one.endswith(":h")]
        h, known = capture.array(name), torch.zeros(3)
    for t in range(12):
        known = known * torch.tensor(-0.1).exp() + 1
        torch.testing.assert_close(torch.from_numpy(h[t].copy()), known, rtol=1e-5, atol=1e-5)
