"""Steps of which a part is computed where no operation is recorded, or outside of torch.

The state is h' = h / 2 + a · tanh(2 h) + U x, whose Jacobian is known in closed form: I / 2 + 2 a diag(1 − tanh²(2 h)).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.func import grad, vmap

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

STEPS, UNITS = 9, 3
Squash = Callable[[Tensor], Tensor]
Read = Callable[[Tensor, int], Tensor]
OPTIONS = RunOptions(only=("states", "jacobian/frobenius_norm"))


def plain(h: Tensor) -> Tensor:
    return torch.tanh(2.0 * h)


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    scripted = torch.jit.script(plain)


@torch.library.custom_op("inspector_tests::squash", mutates_args=())
def squash(h: Tensor) -> Tensor:
    return torch.tanh(2.0 * h)


def keep(ctx: object, inputs: object, output: Tensor) -> None:
    ctx.save_for_backward(output)  # type: ignore[attr-defined]


def back(ctx: object, arriving: Tensor) -> Tensor:
    (y,) = ctx.saved_tensors  # type: ignore[attr-defined]
    found: Tensor = 2 * arriving * (1 - y * y)
    return found


squash.register_autograd(back, setup_context=keep)


def mapped(h: Tensor) -> Tensor:
    found: Tensor = vmap(lambda row: torch.tanh(2.0 * row))(h)
    return found


def slope(h: Tensor) -> Tensor:
    found: Tensor = vmap(grad(lambda row: torch.log(torch.cosh(2 * row)).sum() / 2))(h)
    return found


def by_numpy(h: Tensor) -> Tensor:
    return torch.from_numpy(np.tanh(2 * h.detach().numpy()))


def by_array(h: Tensor) -> Tensor:
    return torch.as_tensor(np.tanh(2 * np.asarray(h.detach())))


def by_list(h: Tensor) -> Tensor:
    return torch.tensor([[math.tanh(2 * one) for one in row] for row in h.detach().tolist()])


class Model(nn.Module):
    def __init__(self, squash: Squash, read: Read = lambda x, t: x[:, t]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.squash, self.read, self.a, self.u = squash, read, nn.Parameter(torch.tensor(0.3)), nn.Linear(2, UNITS)

    def forward(self, x: Tensor) -> Tensor:
        h, found = torch.zeros(len(x), UNITS), []
        for t in range(x.shape[1]):
            h = 0.5 * h + self.a * self.squash(h) + self.u(self.read(x, t))
            found.append(h)
        return torch.stack(found, 1)


def run(model: Model, *, loss: bool) -> Kept:
    torch.manual_seed(1)
    sink = Kept()
    subject = Subject(model=model, loss=(lambda y, batch: y.square().sum(-1)) if loss else None)
    perform(subject, Batch(torch.randn(1, STEPS, 2), torch.tensor([STEPS])), sink, OPTIONS)
    return sink


def expected(model: Model, states: Tensor) -> Tensor:
    h = torch.cat((torch.zeros(1, UNITS), states.reshape(STEPS, UNITS)[:-1]))
    found: Tensor = (0.5 + 2 * model.a.detach() * (1 - torch.tanh(2 * h) ** 2)).norm(dim=1)
    return found


@pytest.mark.parametrize("form", [scripted, squash, mapped, slope])
def test_a_part_that_is_not_recorded_is_differentiated_by_autograd(form: Squash) -> None:
    model = Model(form)
    sink = run(model, loss=True)
    norms, states = sink.array("model:jacobian/frobenius_norm"), sink.array("model:h")
    assert "autograd's graph" in sink.channel("model:jacobian/frobenius_norm").method
    wanted = expected(model, torch.as_tensor(states)).numpy()
    np.testing.assert_allclose(norms[1:], wanted[1:], rtol=1e-5)


@pytest.mark.parametrize("form", [scripted, mapped, slope])
def test_without_a_graph_it_is_refused(form: Squash) -> None:
    sink = run(Model(form), loss=False)
    assert "model:h" not in sink.names()
    assert any("where no operation is recorded" in reason for reason in sink.reasons())


@pytest.mark.parametrize("loss", [False, True])
@pytest.mark.parametrize("form", [by_numpy, by_array, by_list])
def test_a_state_whose_numbers_leave_torch_is_refused(form: Squash, loss: bool) -> None:
    sink = run(Model(form), loss=loss)
    assert "model:h" not in sink.names()
    assert any("leave torch" in reason for reason in sink.reasons())


INPUTS: list[Read] = [
    lambda x, t: torch.from_numpy(np.asarray(x)[:, t]),
    lambda x, t: torch.as_tensor(np.asarray(x)[:, t]),
    lambda x, t: torch.tensor(np.asarray(x)[:, t]),
    lambda x, t: torch.tensor([x[0, t].tolist()]),
]


@pytest.mark.parametrize("loss", [False, True])
@pytest.mark.parametrize("read", INPUTS)
def test_inputs_that_come_from_arrays_leave_the_steps_as_they_are(read: Read, loss: bool) -> None:
    model = Model(lambda h: torch.tanh(2 * h), read)
    sink = run(model, loss=loss)
    norms, states = sink.array("model:jacobian/frobenius_norm"), sink.array("model:h")
    assert "run again" in sink.channel("model:jacobian/frobenius_norm").method
    np.testing.assert_allclose(norms, expected(model, torch.as_tensor(states)).numpy(), rtol=1e-5)


def test_states_that_are_only_noted_leave_the_steps_as_they_are() -> None:
    noted: list[object] = []

    def note(h: Tensor) -> Tensor:
        noted.append(h.detach().numpy())
        return torch.tanh(2 * h)

    model = Model(note)
    sink = run(model, loss=True)
    norms, states = sink.array("model:jacobian/frobenius_norm"), sink.array("model:h")
    np.testing.assert_allclose(norms, expected(model, torch.as_tensor(states)).numpy(), rtol=1e-5)


@pytest.mark.parametrize("form", [mapped, slope])
def test_what_a_transform_runs_is_named_and_not_the_code_that_calls_it(form: Squash) -> None:
    reasons = run(Model(form), loss=True).reasons()
    (said,) = [reason for reason in reasons if "inside a transform of torch.func" in reason]
    assert said.startswith("<lambda>(), line ") and "no loop in it is shown" in said
