"""The derivatives of some steps of an LSTM in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor

from inspector.engine.cells.base import Cell
from inspector.engine.cells.gated_algebra import gate_rows, linear_factors, quadratic, row_gram, scaled_matrix
from inspector.engine.cells.linear import linear
from inspector.engine.cells.linear_maps import LinearMaps
from inspector.engine.cells.spread_block import Spread, SpreadBlock


def exposed(o: Tensor, c: Tensor) -> Tensor:
    """o ⊙ tanh(c'), the hidden state before any projection: (…, h)."""
    return o * torch.tanh(c)


class LstmWeights(Cell):
    """The weights of an LSTM as its derivatives need them."""

    w_ih: Tensor
    w_hh: Tensor
    w_hr: Tensor | None
    bias: Tensor | None
    hidden: int
    exposed: int

    @cached_property
    def w_back(self) -> Tensor:
        """U as the backward pass multiplies with it: (r, 4h)."""
        return self.w_hh.T.contiguous()

    @cached_property
    def gram(self) -> Tensor:
        """Row inner products of U_i, U_f, U_g, U_o: (h, 4, 4)."""
        return row_gram(self.w_hh, 4)


class LstmBlock(SpreadBlock):
    """The four blocks of the 2H × 2H step Jacobian:

    ∂c'/∂c = diag(f); ∂c'/∂h = diag(c f(1−f)) U_f + diag(g i(1−i)) U_i + diag(i(1−g²)) U_g;
    ∂h'/∂c = diag(o(1−tanh²c') f); ∂h'/∂h = diag(tanh(c') o(1−o)) U_o + diag(o(1−tanh²c')) ∂c'/∂h.
    """

    cell: LstmWeights
    recurrent = "activations"

    def __init__(self, cell: LstmWeights, x: Tensor, previous: Tensor, following: Tensor) -> None:
        self.cell, self.x, self.previous, self.following = cell, x, previous, following

    @cached_property
    def gates(self) -> Mapping[str, Tensor]:  # type: ignore[override]
        """Input, forget, candidate, output, (t, b, h) each."""
        return self.cell.gates(self.x, self.previous)

    @cached_property
    def to_cell(self) -> Tensor:
        """Row factors of U_i, U_f, U_g in ∂c'/∂h: (t, b, 3, h)."""
        i, f, g, _ = (self.gates[name] for name in self.cell.gate_names)
        before = self.part("c", self.previous)
        return torch.stack((g * i * (1 - i), before * f * (1 - f), i * (1 - g * g)), dim=2)

    @cached_property
    def squashed(self) -> Tensor:
        """tanh c', (t, b, h)."""
        return torch.tanh(self.part("c", self.following))

    @cached_property
    def to_output(self) -> Tensor:
        """Row factor of U_o in ∂(o tanh c')/∂h, c' held fixed: (t, b, h)."""
        o = self.gates["gate/output"]
        return self.squashed * o * (1 - o)

    @cached_property
    def leak(self) -> Tensor:
        """k = o (1 − tanh² c'), how a change of c' reaches o tanh(c'): (t, b, h)."""
        return self.gates["gate/output"] * (1 - self.squashed * self.squashed)

    @property
    def forget(self) -> Tensor:
        """The forget gate, the whole of ∂c'/∂c: (t, b, h)."""
        return self.gates["gate/forget"]

    def jvp(self, v: Tensor) -> Tensor:
        """J v for v (t, b, s, p)."""
        given = v.transpose(2, 3)
        rows = gate_rows(self.cell.w_hh, v[:, :, self.cell.parts["h"]], 4)
        inner = rows[..., :3, :].mul_(self.to_cell[:, :, None]).sum(3)
        dc = inner.addcmul_(self.forget[:, :, None], given[..., self.cell.parts["c"]])
        dh = rows[..., 3, :].mul_(self.to_output[:, :, None]).addcmul_(self.leak[:, :, None], dc)
        return torch.cat((dh if self.cell.w_hr is None else dh @ self.cell.w_hr.T, dc), dim=3).transpose(2, 3)

    def _back(self, u: Tensor, at: slice) -> tuple[Tensor, Tensor]:
        """(gradient at the pre-activations (t, b, p, 4·h), gradient at c' (t, b, p, h)) from u (t, b, s, p)."""
        given = u.transpose(2, 3)
        uh = given[..., self.cell.parts["h"]]
        uh = uh if self.cell.w_hr is None else uh @ self.cell.w_hr
        uc = torch.addcmul(given[..., self.cell.parts["c"]], self.leak[at][:, :, None], uh)
        gates = u.new_empty(*uc.shape[:3], 4, self.cell.hidden)
        torch.mul(uc.unsqueeze(3), self.to_cell[at][:, :, None], out=gates[..., :3, :])
        torch.mul(uh, self.to_output[at][:, :, None], out=gates[..., 3, :])
        return gates.flatten(3), uc

    def vjp(self, u: Tensor, at: slice = slice(None)) -> Tensor:
        """Jᵀ u for u (t, b, s, p)."""
        gates, uc = self._back(u, at)
        before = linear(gates.flatten(0, 2), self.w_back).view(*gates.shape[:3], -1)
        return torch.cat((before, self.forget[at][:, :, None] * uc), dim=3).transpose(2, 3)

    def add_vjp_(self, before: Tensor, u: Tensor, at: int) -> None:
        """The same products as `vjp`, without putting the parts side by side."""
        if self.cell.w_hr is not None:
            super().add_vjp_(before, u, at)
            return
        h, c = self.cell.parts["h"], self.cell.parts["c"]
        uh, uc = u[:, h], torch.addcmul(u[:, c], self.leak[at], u[:, h])
        gates = u.new_empty(len(u), 4, self.cell.hidden)
        torch.mul(uc[:, None], self.to_cell[at], out=gates[:, :3])
        torch.mul(uh, self.to_output[at], out=gates[:, 3])
        before[:, h] += linear(gates.flatten(1), self.w_back)
        before[:, c] += uc.mul_(self.forget[at])

    def input_vjp(self, u: Tensor) -> Tensor:
        """W_ihᵀ times the gradient at the pre-activations."""
        return (self._back(u, slice(None))[0] @ self.cell.w_ih).transpose(2, 3)

    def jacobian(self) -> Tensor:
        """J, (t, b, s, s), the four blocks side by side."""
        t, b, s = self.shape
        h, c = self.cell.parts["h"], self.cell.parts["c"]
        matrix = self.cell.w_hh.new_empty(t, b, s, s)
        matrix[..., c].zero_()
        self._fill_from_h(matrix[..., h])
        matrix[:, :, c, c].diagonal(dim1=2, dim2=3).copy_(self.forget)
        if self.cell.w_hr is not None:
            matrix[:, :, h, c] = self.cell.w_hr @ torch.diag_embed(self.leak * self.forget)
        else:
            matrix[:, :, h, c].diagonal(dim1=2, dim2=3).copy_(self.leak * self.forget)
        return matrix

    def _fill_from_h(self, out: Tensor) -> None:
        """∂(h', c')/∂h, (t, b, s, r)."""
        w, n, h, c = self.cell.w_hh, self.cell.hidden, self.cell.parts["h"], self.cell.parts["c"]
        out[:, :, c] = scaled_matrix(w[: 3 * n], self.to_cell)
        to_h = scaled_matrix(w, self.through_output)
        out[:, :, h] = to_h if self.cell.w_hr is None else self.cell.w_hr @ to_h

    def maps(self) -> LinearMaps:
        """c enters unit by unit: by f ⊙ c into c', by k ⊙ f ⊙ c into h'."""
        if self.cell.w_hr is not None:
            return super().maps()
        t, _, s = self.shape
        h, c = self.cell.parts["h"], self.cell.parts["c"]
        dense = self.cell.w_hh.new_empty(t, 1, s, self.cell.exposed)
        self._fill_from_h(dense)
        diagonals = ((h, c, (self.leak * self.forget)[:, 0]), (c, c, self.forget[:, 0]))
        return LinearMaps(s, h, dense[:, 0], diagonals)

    def direct(self) -> Tensor:
        """The carousel: f on c, nothing on h."""
        on_h = self.following.new_zeros((*self.shape[:2], self.cell.exposed))
        return torch.cat((on_h, self.forget), dim=2)

    @property
    def through_output(self) -> Tensor:
        """Row factors of U_i, U_f, U_g, U_o in ∂(o tanh c')/∂h: (t, b, 4, h)."""
        return torch.cat((self.to_cell * self.leak[:, :, None], self.to_output[:, :, None]), dim=2)

    def frobenius(self) -> Tensor:
        """Block by block from row Gram matrices; with a projection the blocks of h' are mixed, so J is built."""
        if self.cell.w_hr is not None:
            built: Tensor = self.jacobian().flatten(2).norm(dim=2)
            return built
        return (self._through_squared() + self.forget.square().sum(-1)).sqrt()

    def through_frobenius(self) -> Tensor:
        """All blocks but the diagonal c → c: they do not overlap with it, so nothing cancels."""
        if self.cell.w_hr is not None:
            return super().through_frobenius()
        return self._through_squared().sqrt()

    def _through_squared(self) -> Tensor:
        below = quadratic(self.cell.gram[:, :3, :3], self.to_cell)
        above = quadratic(self.cell.gram, self.through_output)
        return below + above + (self.leak * self.forget).square().sum(-1)

    @property
    def w_back(self) -> Tensor:
        """U of all gates."""
        return self.cell.w_back

    @cached_property
    def spreads(self) -> Mapping[str, Spread]:
        """δ of i, f, g from the gradient at c', of o from that at o ⊙ tanh c'; with a projection there is none."""
        if self.cell.w_hr is not None:
            return {}
        h, c = self.cell.parts["h"], self.cell.parts["c"]
        return {"activations": Spread((c, self.to_cell[:, 0]), (h, self.to_output[:, :1]))}

    def hold_fixed_(self, delta: Tensor) -> None:
        """∂L/∂c' without k ⊙ ∂L/∂h', the path through h' = o ⊙ tanh(c')."""
        delta[..., self.cell.parts["c"]] -= self.leak * delta[..., self.cell.parts["h"]]

    def pushed(self, rows: Tensor, at: int) -> Tensor | None:
        """J of rows (n, s): one product with U of all gates; with a projection by no closed form."""
        if self.cell.w_hr is not None:
            return None
        h, c = self.cell.parts["h"], self.cell.parts["c"]
        gates = linear(rows[:, h], self.cell.w_hh).unflatten(1, (4, -1))
        out = torch.empty_like(rows)
        inner = torch.mul(gates[:, 0], self.to_cell[at, 0, 0], out=out[:, c])
        inner.addcmul_(gates[:, 1], self.to_cell[at, 0, 1]).addcmul_(gates[:, 2], self.to_cell[at, 0, 2])
        inner.addcmul_(rows[:, c], self.forget[at, 0])
        torch.mul(gates[:, 3], self.to_output[at, 0], out=out[:, h]).addcmul_(inner, self.leak[at, 0])
        return out

    def open_(self, rows: Tensor, at: int) -> None:
        """The gradient at c' plus the gradient that reaches it through o ⊙ tanh c'."""
        rows[:, self.cell.parts["c"]].addcmul_(rows[:, self.cell.parts["h"]], self.leak[at, 0])

    def close_(self, rows: Tensor, moved: Tensor, at: int) -> None:
        """h from the weights, c through the forget gate."""
        rows[:, self.cell.parts["h"]].copy_(moved)
        rows[:, self.cell.parts["c"]].mul_(self.forget[at, 0])

    def pull_(self, rows: Tensor, at: int) -> dict[str, Tensor]:
        """δ of i, f, g, o (n, 4·h), and the gradient at the exposed h' where it is projected (n, r)."""
        if self.cell.w_hr is None:
            return super().pull_(rows, at)
        at_h, at_c = rows[:, self.cell.parts["h"]], rows[:, self.cell.parts["c"]]
        exposed = at_h.clone()
        inner = exposed @ self.cell.w_hr
        at_c.addcmul_(inner, self.leak[at, 0])
        gates = torch.cat((at_c[:, None] * self.to_cell[at, 0], (inner * self.to_output[at, 0])[:, None]), dim=1)
        self.close_(rows, linear(gates.flatten(1), self.w_back), at)
        return {"activations": gates.flatten(1), "exposed": exposed}

    def factors(self) -> dict[str, tuple[str, Tensor]]:
        """x for W_ih, h before for W_hh, 1 for the bias, o ⊙ tanh c' for the projection."""
        found = linear_factors(self.cell.bias, self.x, self.part("h", self.previous))
        if self.cell.w_hr is not None:
            found["weight_hr"] = ("exposed", exposed(self.gates["gate/output"], self.part("c", self.following)))
        return found
