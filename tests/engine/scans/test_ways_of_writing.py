"""A linear recurrence is found however it was written: its states, decays and gradients are those of a plain loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
import written_scans as w
from listed import Listed
from torch import Tensor

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline.options import RunOptions
from inspector.engine.pipeline.own_run import perform
from inspector.engine.trace.trace import Trace

pytestmark = pytest.mark.usefixtures("one_thread")
EXACT = {"rtol": 1e-9, "atol": 1e-11}
SHOWN = (
    "states", "gates", "timescale", "gradients", "jacobian/spectral_norm", "jacobian/spectral_radius",
    "jacobian/singular_values", "jacobian/eigenvalues", "jacobian/frobenius_norm", "jacobian/lag",
)  # fmt: skip
WEIGHT = w.constants(w.D, seed=20)


@cache
def ran(name: str, function: Callable[[Tensor], Tensor]) -> tuple[Trace, Listed]:
    """A run of a model that is this function, with a loss on its output."""
    sink = Listed()
    subject = Subject(
        model=w.Scanned(function), kind="vectors", width=w.D, loss=lambda out, _: (out.square() * WEIGHT).sum(-1)
    )
    x = w.given()
    batch = Batch(x, torch.full((w.B,), w.T), look_at=w.SAMPLE)
    return perform(subject, batch, sink, RunOptions(only=SHOWN)), sink


def loop(a: Tensor, b: Tensor, first: Tensor) -> Tensor:
    """(t, k) states of one sequence, one step after the other."""
    states = [first]
    for decay, given in zip(a, b, strict=True):
        states.append(decay * states[-1] + given)
    return torch.stack(states[1:])


@pytest.mark.parametrize("way", w.WAYS, ids=lambda way: way.replace(" ", "_"))
def test_states_and_decays_are_those_of_the_loop(way: str) -> None:
    trace, sink = ran(way, w.WAYS[way])
    (found,) = trace.recurrences
    a, b = (one[w.SAMPLE] for one in w.gated(w.given()))
    first = torch.full((w.D,), 0.5 if way == "logcumsumexp" else 0.0, dtype=torch.float64)
    states = loop(a, b, first)
    assert found.check is not None and found.check.passed
    torch.testing.assert_close(torch.from_numpy(sink.array("inner:h")), states, **EXACT)
    torch.testing.assert_close(found.states[0, w.SAMPLE], first, **EXACT)
    torch.testing.assert_close(torch.from_numpy(sink.array("inner:gate/decay")), a, **EXACT)
    tau = -1 / w.gated(w.given())[0].log().mean((0, 1))
    torch.testing.assert_close(torch.from_numpy(sink.array("inner:gate/decay/timescale")), tau, **EXACT)


@pytest.mark.parametrize("way", w.WAYS, ids=lambda way: way.replace(" ", "_"))
def test_gradients_are_those_of_the_loop(way: str) -> None:
    _, sink = ran(way, w.WAYS[way])
    a, b = (one[w.SAMPLE].detach() for one in w.gated(w.given()))
    first = torch.full((w.D,), 0.5 if way == "logcumsumexp" else 0.0, dtype=torch.float64)
    zeros = torch.zeros_like(b, requires_grad=True)
    loss = (loop(a, b + zeros, first).square() * WEIGHT).sum()
    (delta,) = torch.autograd.grad(loss, zeros)
    torch.testing.assert_close(torch.from_numpy(sink.array("inner:gradient/state_norm")), delta.norm(dim=1), **EXACT)


def test_a_loop_with_a_linear_step_has_the_same_decays() -> None:
    trace, sink = ran("step by step", w.step_by_step)
    (found,) = trace.recurrences
    a, _ = w.gated(w.given())
    torch.testing.assert_close(torch.from_numpy(sink.array("inner:gate/decay")), a[w.SAMPLE], **EXACT)
    torch.testing.assert_close(found.block(0, w.T).jacobian(), torch.diag_embed(a.movedim(1, 0)), **EXACT)
    assert "closed form" in sink.channel("inner:jacobian/lag").method


def test_a_step_with_a_nonlinearity_is_not_taken_for_a_linear_one() -> None:
    def bent(x: Tensor) -> Tensor:
        a, b = w.gated(x)
        h, out = torch.zeros_like(b[:, 0]), []
        for t in range(w.T):
            h = a[:, t] * h + b[:, t] * h.cos()
            out.append(h)
        return torch.stack(out, 1)

    trace, sink = ran("bent", bent)
    (found,) = trace.recurrences
    assert not found.cell.diagonal and not trace.attentions
    assert "inner:gate/decay" not in sink.names()


def test_rounds_of_a_scan_are_no_recurrence() -> None:
    for way in ("doubling", "doubling in place"):
        trace, _ = ran(way, w.WAYS[way])
        assert [one.place for one in trace.recurrences] == ["inner"]


def jacobians(decay: Tensor) -> Tensor:
    """(t, s, s) by autograd: of [Re h, Im h] where decays (t, k) are complex."""

    def moved(state: Tensor, a: Tensor) -> Tensor:
        if not a.is_complex():
            return a * state
        k = len(a)
        made = a * torch.complex(state[:k], state[k:])
        return torch.cat([made.real, made.imag])

    size = decay.shape[1] * (2 if decay.is_complex() else 1)
    zero = torch.zeros(size, dtype=torch.float64)
    return torch.stack([torch.autograd.functional.jacobian(lambda s, a=a: moved(s, a), zero) for a in decay])


REAL, COMPLEX = (w.mamba_by_sums, w.mamba_step_by_step), (w.lru_by_doubling, w.lru_step_by_step)


@pytest.mark.parametrize("way", [*REAL, *COMPLEX], ids=lambda way: way.__name__)
def test_derivatives_in_closed_form_are_those_of_the_matrices(way: Callable[[Tensor], Tensor]) -> None:
    trace, sink = ran(way.__name__, way)
    if way in REAL:
        delta, matrix, _, _ = w.selective(w.given()[w.SAMPLE])
        decay = torch.exp(delta[..., None] * matrix).flatten(1)
    else:
        decay = w.eigenvalues(w.N).expand(w.T, w.N)
    (found,) = trace.recurrences
    whole = jacobians(decay)
    torch.testing.assert_close(found.block(0, w.T).jacobian()[:, w.SAMPLE], whole, **EXACT)
    values = torch.linalg.svdvals(whole)
    torch.testing.assert_close(torch.from_numpy(sink.array("inner:jacobian/singular_values")), values, **EXACT)
    torch.testing.assert_close(torch.from_numpy(sink.array("inner:jacobian/spectral_norm")), values[:, 0], **EXACT)
    radius = torch.linalg.eigvals(whole).abs().amax(-1)
    torch.testing.assert_close(torch.from_numpy(sink.array("inner:jacobian/spectral_radius")), radius, **EXACT)
    _same_eigenvalues(torch.from_numpy(sink.array("inner:jacobian/eigenvalues")), torch.linalg.eigvals(whole))
    lags = torch.from_numpy(sink.array("inner:jacobian/lag_map"))
    for start in (0, 4, w.T - 2):
        product = torch.eye(whole.shape[1], dtype=torch.float64)
        for lag in range(1, w.T - start):
            product = whole[start + lag] @ product
            expected = product.norm() / whole.shape[1] ** 0.5
            torch.testing.assert_close(lags[start, lag], expected, **EXACT)
    assert "closed form" in sink.channel("inner:jacobian/lag").method


def _same_eigenvalues(shown: Tensor, expected: Tensor) -> None:
    """As sets, step by step: those of one modulus come in any order."""
    found = torch.view_as_complex(shown.contiguous())
    nearest = (found[:, :, None] - expected[:, None]).abs().amin(2)
    assert float(nearest.max()) < 1e-10
    assert torch.equal(found.abs(), found.abs().sort(dim=1, descending=True).values)


@pytest.mark.parametrize("way", COMPLEX, ids=lambda way: way.__name__)
def test_complex_states_are_real_and_imaginary_entries(way: Callable[[Tensor], Tensor]) -> None:
    _, sink = ran(way.__name__, way)
    assert not sink.refusals()
    decay, b, _ = w.lru_matrices()
    own = w.given()[w.SAMPLE].to(b.dtype) @ b.T
    states = loop(decay.expand(w.T, w.N), own, torch.zeros(w.N, dtype=b.dtype))
    torch.testing.assert_close(torch.from_numpy(sink.array("inner:h.real")), states.real, **EXACT)
    torch.testing.assert_close(torch.from_numpy(sink.array("inner:h.imaginary")), states.imag, **EXACT)
    torch.testing.assert_close(torch.from_numpy(sink.array("inner:gate/decay")), decay.abs().expand(w.T, w.N), **EXACT)


@pytest.mark.parametrize("way", COMPLEX, ids=lambda way: way.__name__)
def test_the_gradient_of_a_complex_state_is_that_of_its_two_real_entries(way: Callable[[Tensor], Tensor]) -> None:
    trace, _ = ran(way.__name__, way)
    decay, b, c = w.lru_matrices()
    x = w.given()[w.SAMPLE]
    own = x.to(b.dtype) @ b.T
    zeros = torch.zeros(w.T, 2 * w.N, dtype=torch.float64, requires_grad=True)
    states = loop(decay.expand(w.T, w.N), own + torch.complex(zeros[:, : w.N], zeros[:, w.N :]), own[0] * 0)
    y = (states @ c.T).real + x * w.constants(w.D, seed=8)
    (delta,) = torch.autograd.grad((y.square() * WEIGHT).sum(), zeros)
    (found,) = trace.recurrences
    assert found.delta is not None
    torch.testing.assert_close(found.delta[:, w.SAMPLE], delta, **EXACT)


def test_a_scan_that_lost_its_digits_is_refused_with_its_error() -> None:
    """Running sums of b / Π a: in float32 the product of strong decays is 0 long before the sequence ends."""

    def broken(x: Tensor) -> Tensor:
        a = torch.sigmoid(x.float()) * 0.02 + 0.3
        b = x.float()
        decay = torch.exp(torch.cumsum(a.log(), 1))
        noise = 1e-3 * torch.sin(1e3 * torch.arange(w.T))[:, None]  # as lost digits are
        return (decay * torch.cumsum(b / decay, 1)) * (1 + noise)

    trace, sink = ran("broken", broken)
    assert not trace.recurrences or not trace.recurrences[0].check.passed
    assert any("differ" in reason for reason in sink.refusals().values())
