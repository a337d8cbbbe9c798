"""States kept in one preallocated tensor: the same recurrence as with a variable, or a sentence that says why not."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from watched import seen

from inspector.engine.recurrent.traced.record.buffers import _clear, _overlap

D = torch.float64


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(7, 4)

    def advance(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.w(torch.cat((x, h), -1)))


class Variable(Base):
    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(x.shape[0], 4), []
        for row in x.unbind(1):
            h = self.advance(row, h)
            out.append(h)
        return torch.stack(out, 1)


class BatchFirst(Base):
    def forward(self, x: Tensor) -> Tensor:
        states = x.new_zeros(x.shape[0], x.shape[1] + 1, 4)
        for t in range(x.shape[1]):
            states[:, t + 1] = self.advance(x[:, t], states[:, t].clone())
        return states[:, 1:]


class TimeFirst(Base):
    def forward(self, x: Tensor) -> Tensor:
        states = x.new_zeros(x.shape[1] + 1, x.shape[0], 4)
        for t in range(x.shape[1]):
            states[t + 1] = self.advance(x[:, t], states[t].clone())
        return states[1:].transpose(0, 1)


class LastOne(Base):
    """Reads what it wrote with a negative number, from outside the buffer at first."""

    def forward(self, x: Tensor) -> Tensor:
        out = x.new_empty(x.shape[1], x.shape[0], 4)
        for t in range(x.shape[1]):
            before = out[t - 1].clone() if t else x.new_zeros(x.shape[0], 4)
            out[t] = self.advance(x[:, t], before)
        return out.transpose(0, 1)


class Copied(Base):
    def forward(self, x: Tensor) -> Tensor:
        states = x.new_zeros(x.shape[0], x.shape[1] + 1, 4)
        for t in range(x.shape[1]):
            states[:, t + 1].copy_(self.advance(x[:, t], states.select(1, t).clone()))
        return states[:, 1:]


def places(steps: int) -> list[int]:
    """Places in uneven distances: 0, 1, 3, 5, 6, 8, …"""
    return list(itertools.accumulate((1 + n * n % 3 for n in range(steps)), initial=0))


class UnevenNumbers(Base):
    def forward(self, x: Tensor) -> Tensor:
        at = places(x.shape[1])
        states = x.new_zeros(x.shape[0], at[-1] + 1, 4)
        for t in range(x.shape[1]):
            states[:, at[t + 1]] = self.advance(x[:, t], states[:, at[t]].clone())
        return torch.stack([states[:, n] for n in at[1:]], 1)


class UnevenCopies(Base):
    """The same places, reached by views: that they are apart is not told by a key."""

    def forward(self, x: Tensor) -> Tensor:
        at = places(x.shape[1])
        states = x.new_zeros(x.shape[0], at[-1] + 1, 4)
        for t in range(x.shape[1]):
            states.select(1, at[t + 1]).copy_(self.advance(x[:, t], states[:, at[t]].clone()))
        return torch.stack([states[:, n] for n in at[1:]], 1)


class Rolled(Base):
    """Two places in turns, written again and again."""

    def forward(self, x: Tensor) -> Tensor:
        ring, out = x.new_zeros(2, x.shape[0], 4), []
        for t in range(x.shape[1]):
            out.append(self.advance(x[:, t], ring[t % 2].clone()))
            ring[(t + 1) % 2] = out[-1]
        return torch.stack(out, 1)


class Flat(Base):
    """Slices of one long row, for one sequence."""

    def forward(self, x: Tensor) -> Tensor:
        width = 4 * x.shape[0]
        row = x.new_zeros((x.shape[1] + 1) * width)
        for t in range(x.shape[1]):
            before = row[t * width : (t + 1) * width].clone().view(-1, 4)
            row[(t + 1) * width : (t + 2) * width] = self.advance(x[:, t], before).flatten()
        return row[width:].view(x.shape[1], -1, 4).transpose(0, 1)


class Turned(Base):
    """Places of a view of the buffer, in which the axes are the other way round."""

    def forward(self, x: Tensor) -> Tensor:
        states = x.new_zeros(x.shape[0], x.shape[1] + 1, 4)
        for t in range(x.shape[1]):
            states.transpose(0, 1)[t + 1] = self.advance(x[:, t], states.transpose(0, 1)[t].clone())
        return states[:, 1:]


class InPieces(Base):
    """The place is read in two halves."""

    def forward(self, x: Tensor) -> Tensor:
        states = x.new_zeros(x.shape[1] + 1, x.shape[0], 4)
        for t in range(x.shape[1]):
            halves = states[t][:, :2].clone(), states[t][:, 2:].clone()
            states[t + 1] = self.advance(x[:, t], torch.cat(halves, -1))
        return states[1:].transpose(0, 1)


class Collected(Base):
    """Only written to: the state is a variable."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(x.shape[0], 4), x.new_zeros(x.shape[0], x.shape[1], 4)
        for t in range(x.shape[1]):
            h = self.advance(x[:, t], h)
            out[:, t] = h
        return out


@pytest.mark.parametrize("kind", [
    BatchFirst, TimeFirst, LastOne, Copied, Collected, UnevenNumbers, UnevenCopies, Rolled, Flat, Turned, InPieces,
])  # fmt: skip
@pytest.mark.parametrize("batch", [1, 3])
def test_a_buffer_is_as_good_as_a_variable(kind: Any, batch: int) -> None:
    if kind is Flat and batch > 1:
        pytest.skip("a flat row has no axis of the batch")
    torch.manual_seed(0)
    model, plain = kind().to(D), Variable().to(D)
    plain.load_state_dict(model.state_dict())
    x = torch.randn(batch, 11, 3, dtype=D)
    (ours,), kept, _ = seen(model, x)
    (theirs,), _, _ = seen(plain, x)
    assert not kept.refusals() and ours.check is not None and ours.check.passed
    torch.testing.assert_close(ours.states, theirs.states)
    torch.testing.assert_close(ours.delta, theirs.delta)
    torch.testing.assert_close(ours.arriving, theirs.arriving)
    eye = torch.eye(4, dtype=D).expand(11, batch, -1, -1)
    torch.testing.assert_close(ours.block(0, 11).vjp(eye), theirs.block(0, 11).vjp(eye))


def test_older_places_are_lags() -> None:
    class Skipping(Base):
        def forward(self, x: Tensor) -> Tensor:
            states = x.new_zeros(x.shape[0], x.shape[1] + 2, 4)
            for t in range(x.shape[1]):
                states[:, t + 2] = self.advance(x[:, t], states[:, t + 1].clone()) + 0.5 * states[:, t].clone()
            return states[:, 2:]

    model = Skipping().to(D)
    x = torch.randn(2, 9, 3, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.refusals() and list(found.cell.parts) == ["h", "h[t-1]"]
    older = found.states[5, :, found.cell.parts["h[t-1]"]]
    torch.testing.assert_close(older, found.states[4, :, found.cell.parts["h"]])
    back = found.block(5, 6).vjp(torch.eye(8, dtype=D)[:, :4].expand(1, 2, -1, -1))[0, 0]
    torch.testing.assert_close(back[4:], 0.5 * torch.eye(4, dtype=D))


class Overlapping(Base):
    """Places that share elements with one another, in uneven distances: what one holds is overwritten by another."""

    starts = (0, 4, 6, 11, 15, 19, 23, 27, 31, 35)

    def forward(self, x: Tensor) -> Tensor:
        row, out = x.new_zeros(40), []
        with torch.no_grad():
            for t in range(x.shape[1]):
                old, new = (row.narrow(0, self.starts[t + n], 4) for n in (0, 1))
                out.append(self.advance(x[:, t], old.clone()[None]))
                new.copy_(out[-1][0])
        return torch.stack(out, 1)


def test_uneven_places_that_overlap_are_not_taken_for_a_state() -> None:
    found, kept, _ = seen(Overlapping().to(D), torch.randn(1, 9, 3, dtype=D))
    assert not found and any("writes into a tensor" in reason for reason in kept.reasons())


class Overwritten(Rolled):
    """What the ring begins with is read itself, not a copy, and is overwritten: it is gone."""

    def forward(self, x: Tensor) -> Tensor:
        ring, out = x.new_zeros(2, x.shape[0], 4), []
        with torch.no_grad():
            for t in range(x.shape[1]):
                out.append(self.advance(x[:, t], ring[t % 2]))
                ring[(t + 1) % 2] = out[-1]
        return torch.stack(out, 1)


def test_a_first_value_that_is_overwritten_is_told() -> None:
    found, kept, _ = seen(Overwritten().to(D), torch.randn(1, 9, 3, dtype=D))
    assert not found and any("writes into a tensor and reads it" in reason for reason in kept.reasons())


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=5), st.permutations([0, 1, 2]), st.integers(1, 3))
def test_places_are_clear_of_each_other_where_their_elements_are(
    starts: list[int], order: list[int], size: int
) -> None:
    """Against the sets of all addresses; also where addresses are too many to be compared, where nothing is claimed."""
    shape, stride, step = [size, 2, 2], [0] * 3, 1
    for n in order:
        stride[n] = step
        step *= shape[n] + 1
    own = [
        {at + a * stride[0] + b * stride[1] + c * stride[2] for a in range(size) for b in range(2) for c in range(2)}
        for at in sorted(set(starts))
    ]
    apart = len(set().union(*own)) == sum(map(len, own))
    assert _clear(sorted(set(starts)), shape, stride) == apart


def test_a_cache_that_is_filled_by_slices_and_read_as_a_whole_is_nothing_to_tell_of() -> None:
    class Cache(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            cache, out = x.new_zeros(x.shape[0], x.shape[1], 3), []
            for t in range(x.shape[1]):
                cache[:, t : t + 1] = torch.tanh(x[:, t : t + 1])
                out.append(cache[:, : t + 1].clone().mean(1))
            return torch.stack(out, 1)

    found, kept, _ = seen(Cache().to(D), torch.randn(2, 9, 3, dtype=D))
    assert not found and not kept.reasons()


def test_a_buffer_that_is_read_as_a_whole_is_refused_with_the_reason() -> None:
    class History(Base):
        def forward(self, x: Tensor) -> Tensor:
            states = x.new_zeros(x.shape[0], x.shape[1] + 1, 4)
            for t in range(x.shape[1]):
                states[:, t + 1] = self.advance(x[:, t], states[:, : t + 1].clone().mean(1))
            return states[:, 1:]

    found, kept, _ = seen(History().to(D), torch.randn(2, 9, 3, dtype=D))
    assert not found
    (reason,) = kept.reasons()
    assert "reads it in other ways than by the places it wrote to" in reason


def test_one_place_that_is_overwritten_is_refused() -> None:
    """Its earlier values are gone: nothing wrong may be shown instead."""

    class Same(Base):
        def forward(self, x: Tensor) -> Tensor:
            h, out = x.new_zeros(x.shape[0], 4), []
            for row in x.unbind(1):
                h.copy_(self.advance(row, h.clone()))
                out.append(h.clone())
            return torch.stack(out, 1)

    found, kept, _ = seen(Same().to(D), torch.randn(2, 9, 3, dtype=D))
    assert not found
    (reason,) = kept.reasons()
    assert "in place" in reason


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.permutations([0, 1, 2]), st.integers(-40, 40))
def test_overlaps_are_those_of_the_elements(shape: list[int], order: list[int], distance: int) -> None:
    """Against the sets of all addresses, for the strides of a buffer with room around, in any order of axes."""
    order = [n for n in order if n < len(shape)]
    stride, step = [0] * len(shape), 1
    for n in order:
        stride[n] = step
        step *= shape[n] + 1
    own = {sum(k * s for k, s in zip(index, stride, strict=True)) for index in torch.cartesian_prod(
        *(torch.arange(size) for size in shape)).reshape(-1, len(shape)).tolist()}  # fmt: skip
    assert _overlap(distance, shape, stride) == bool(own & {at + distance for at in own})


def test_an_output_that_is_only_filled_costs_no_look_at_every_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.engine.recurrent.traced.record.op_table import Table

    def refuse(self: Table) -> list[Any]:
        raise AssertionError("every operation is looked at")

    monkeypatch.setattr(Table, "ops", refuse)
    found, kept, _ = seen(Collected().to(D), torch.randn(2, 9, 3, dtype=D))
    assert len(found) == 1 and not kept.refusals()
    _, kept, _ = seen(BatchFirst().to(D), torch.randn(2, 9, 3, dtype=D))
    assert any("every operation is looked at" in reason for reason in kept.reasons())
