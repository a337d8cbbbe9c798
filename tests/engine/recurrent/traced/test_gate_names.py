"""What gates and candidates of hand-written steps are called, against the variables of the code as it ran.

Every cell is run a second time without inspector, under `sys.settrace`, which keeps the local variables of every call
of `cell`: a channel that has the name of a variable has its values, and the text of every channel, evaluated among the
variables, gives its values.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from watched import seen

from inspector.engine.quantities.gates.gates import describe

H, X, T = 4, 3, 6
State = tuple[Tensor, Tensor]


class Cell(nn.Module):
    """A loop over `cell`, with four pre-activations."""

    def __init__(self) -> None:
        super().__init__()
        self.map, self.squash = nn.Linear(X + H, 4 * H), nn.Sigmoid()

    def four(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        return self.map(torch.cat((x, h), -1)).chunk(4, -1)  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(len(x), H)
        out = []
        for row in x.unbind(1):
            h, c = self.cell(row, h, c)
            out.append(h)
        return torch.stack(out, 1)

    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        raise NotImplementedError


class Zoneout(Cell):
    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        zi, zf, zg, zo = self.four(x, h)
        i, f, g = torch.sigmoid(zi), torch.sigmoid(zf), torch.tanh(zg)
        cn = f * c + i * g
        o = torch.sigmoid(zo)
        hn = o * torch.tanh(cn)
        return 0.05 * h + 0.95 * hn, 0.1 * c + 0.9 * cn


class NothingAssigned(Cell):
    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        zi, zf, zg, zo = self.four(x, h)
        c = torch.sigmoid(zf + 1) * c + zi.sigmoid() * torch.tanh(input=zg / 2)
        h = self.squash(zo) * torch.tanh(c)
        return h, c


class SigmoidOfAVariable(Cell):
    """n is a value of its own, so that the gate of it is not n."""

    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        _, zf, n, zo = self.four(x, h)
        f = torch.sigmoid(zf)
        c = f * c + torch.sigmoid(n) * n
        return torch.sigmoid(zo) * torch.tanh(c), c


class Softplus(Cell):
    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        _, zf, dt, zo = self.four(x, h)
        c = torch.exp(-functional.softplus(dt)) * c + functional.softplus(dt) * torch.relu(zf)
        return torch.sigmoid(zo) * torch.tanh(c), c


class Complement(Cell):
    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        zi, zf, zg, zo = self.four(x, h)
        z = torch.sigmoid(zf)
        keep = 1 - z
        a = 1 - torch.sigmoid(zi)
        c = keep * c + z * a * torch.tanh(zg)
        return torch.sigmoid(zo) * torch.tanh(2 * c), c


class Augmented(Cell):
    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        zi, zf, zg, zo = self.four(x, h)
        g = zi * 0.5
        g += torch.tanh(zg)
        f = torch.sigmoid(zf)
        c = f * c + (1 - f) * g
        return torch.sigmoid(zo) * torch.tanh(c), c


class Twice(Cell):
    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        zi, zf, zg, zo = self.four(x, h)
        f = torch.sigmoid(zf)
        c = f * c
        f = torch.sigmoid(zi)
        g = torch.tanh(zg)
        g = g * 0.5
        c = c + f * g
        return torch.sigmoid(zo) * torch.tanh(c), c


class Helpers(Cell):
    def act(self, f: Tensor) -> Tensor:
        return torch.sigmoid(f)

    def candidate(self, f: Tensor) -> Tensor:
        g = torch.tanh(f)
        return g

    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        zi, zf, zg, zo = self.four(x, h)
        g = zi * 3
        c = self.act(zf) * c + self.act(zi) * self.candidate(zg) * g
        h = self.act(zo) * torch.tanh(c)
        return h, c


class Unpacked(Cell):
    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        zi, zf, zg, zo = self.four(x, h)
        *rest, o = torch.sigmoid(zi), torch.sigmoid(zf), torch.sigmoid(zo)
        i, f = rest
        c = f * c + i * torch.tanh(zg)
        return o * torch.tanh(c), c


class PiecesOfOne(Cell):
    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        zi, zf, zg, zo = self.four(x, h)
        i, f = torch.sigmoid(torch.cat((zi, zf), -1)).chunk(2, -1)
        g, o = torch.tanh(zg), torch.sigmoid(zo)
        c = f * c + i * g
        return o * torch.tanh(c), c


class Walrus(Cell):
    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        _, zf, zg, zo = self.four(x, h)
        c = (f := torch.sigmoid(zf)) * c + (1 - f) * torch.tanh(zg)
        return (o := torch.sigmoid(zo)) * torch.tanh(c), c  # noqa: F841 - it is a name


class Containers(Cell):
    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        zi, zf, zg, zo = self.four(x, h)
        G, L = {}, [x, x]
        G["f"] = torch.sigmoid(zf)
        L[0], L[1] = torch.sigmoid(zi), torch.tanh(zg)
        c = G["f"] * c + L[0] * L[1]
        return torch.sigmoid(zo) * torch.tanh(c), c


class InPlace(Cell):
    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        _, zf, zg, zo = self.four(x, h)
        f = zf + 1
        f.sigmoid_()
        o = torch.sigmoid(zo).detach()
        c = f * c + (1 - f) * torch.tanh(zg)
        return o * torch.tanh(c), c


class Dropped(Cell):
    """g is not the tanh: half of it is 0, another half in another run, on which the gates do not depend."""

    def cell(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        zi, zf, zg, zo = self.four(x, torch.zeros_like(h))
        f = torch.sigmoid(zf)
        g = functional.dropout(torch.tanh(zg), 0.5, True)
        c = f * c + torch.sigmoid(zi) * g
        return torch.sigmoid(zo) * torch.tanh(c), c


CELLS = {
    Zoneout: ("gate/i", "gate/f", "g", "gate/o", "tanh(cn)"),
    NothingAssigned: ("gate/zf", "gate/zi", "tanh(zg÷2)", "gate/zo"),
    SigmoidOfAVariable: ("gate/f", "gate/sigmoid(n)", "gate/zo"),
    Softplus: ("activation/softplus(dt)", "activation/softplus(dt)#2", "activation/relu(zf)", "gate/zo"),
    Complement: ("gate/z", "gate/zi", "tanh(zg)", "gate/zo", "tanh(2*c)"),
    Augmented: ("tanh(zg)", "gate/f", "gate/zo"),
    Twice: ("gate/f", "gate/f#2", "g", "gate/zo"),
    Helpers: ("gate/zf", "gate/act(zi)", "candidate.g", "gate/zo"),
    Unpacked: ("gate/zi", "gate/zf", "gate/o", "tanh(zg)"),
    PiecesOfOne: ("gate/i", "gate/f", "g", "gate/o"),
    Walrus: ("gate/f", "tanh(zg)", "gate/o"),
    Containers: ("gate/G.f", "gate/L.0", "L.1", "gate/zo"),
    InPlace: ("gate/f", "gate/o", "tanh(zg)"),
    Dropped: ("gate/f", "tanh(zg)", "gate/zi"),
}


def as_it_ran(model: Cell, x: Tensor) -> list[dict[str, Any]]:
    """The local variables of every call of `cell`, as it returns."""
    found: list[dict[str, Any]] = []

    def inside(frame: FrameType, event: str, _: Any) -> Any:
        if event == "return":
            found.append(dict(frame.f_locals))
        return inside

    def entered(frame: FrameType, event: str, _: Any) -> Any:
        return inside if frame.f_code.co_name == "cell" else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        with torch.no_grad():
            model(x)
    finally:
        sys.settrace(before)
    return found


def evaluated(text: str, model: Cell, variables: list[dict[str, Any]]) -> np.ndarray[Any, Any]:
    """The text of a gate in every step, (t, unit)."""
    known = {name: getattr(torch, name) for name in ("sigmoid", "tanh", "relu")}
    known |= {"softplus": functional.softplus, "squash": model.squash, "act": torch.sigmoid}
    with torch.no_grad():
        return torch.stack([eval(text, {**known, **step})[0] for step in variables]).numpy()


@pytest.mark.parametrize("kind", CELLS, ids=lambda one: one.__name__)
def test_a_channel_has_the_values_that_its_name_and_text_say(kind: type[Cell]) -> None:
    torch.manual_seed(0)
    model, x = kind().double(), torch.randn(1, T, X, dtype=torch.float64)
    (found,), _, _ = seen(model, x)
    assert found.cell.gate_names == CELLS[kind]
    variables = as_it_ran(model, x)
    for _, block in found.blocks(0, T):
        for signal, values in block.gates.items():
            about, name = describe(found.cell, signal), signal.rpartition("/")[2]
            text = about.formula.partition(", as the model's own code")[0]
            assert about.title.removeprefix("output ").removeprefix("gate ").partition(" #")[0] == text
            if " of " in text:  # of an earlier line, or of a helper: said, and not the variable's last value
                continue
            np.testing.assert_allclose(values[:, 0].numpy(), evaluated(text, model, variables), rtol=1e-12)
            if name in variables[0] and not signal.startswith("gate/"):
                np.testing.assert_allclose(values[:, 0].numpy(), evaluated(name, model, variables), rtol=1e-12)


def test_what_is_set_again_and_what_is_of_a_helper_says_so() -> None:
    (twice,), _, _ = seen(Twice(), torch.randn(1, T, X))
    first, second, g, _ = (describe(twice.cell, one).formula for one in twice.cell.gate_names)
    line = Twice.cell.__code__.co_firstlineno
    assert first.startswith(f"f of line {line + 2} (set again in line {line + 4}), as the")
    assert second.startswith("f, as the") and g.startswith(f"g of line {line + 5} (set again in line {line + 6}), as")
    (helped,), _, _ = seen(Helpers(), torch.randn(1, T, X))
    assert describe(helped.cell, "candidate.g").formula.startswith("g of candidate, as the")


def test_the_direct_path_of_zoneout_is_described_as_it_is_computed() -> None:
    torch.manual_seed(0)
    model, x = Zoneout().double(), torch.randn(1, T, X, dtype=torch.float64)
    _, kept, _ = seen(model, x, quantities=("states", "paths", "paths/lag"))
    f = evaluated("f", model, as_it_ran(model, x))
    factors = np.concatenate([np.full((T, H), 0.05), 0.9 * f + 0.1], 1)  # h, then c
    place = next(name.partition(":")[0] for name in kept.names() if name.endswith("path/direct_norm"))
    np.testing.assert_allclose(
        kept.array(f"{place}:path/direct_norm"), np.linalg.norm(factors, axis=1) / np.sqrt(2 * H), rtol=1e-12
    )
    np.testing.assert_allclose(kept.array(f"{place}:path/retention")[1], (0.9 * f + 0.1)[1:].mean(0), rtol=1e-10)
    for signal in ("direct_norm", "lag_direct", "retention"):
        formula = kept.channel(f"{place}:path/{signal}").formula
        assert "zoneout" in formula and "diag(f_t)" not in formula and "d = f" not in formula
