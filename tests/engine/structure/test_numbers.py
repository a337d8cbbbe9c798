"""The numbers of structure tests against what is written out here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from structures import Attending, Query, Recurrent
from torch import Tensor, nn

import inspector
from inspector.capture import Capture

IDS = [1, 2, 3, 4, 5, 6, 7, 8, 9]


def run(model: nn.Module, test: str, ids: object = IDS, **options: object) -> Capture:
    return inspector.run(model, ids, only=[f"structure/{test}"], **options)


@pytest.mark.parametrize("model", [Attending(-3.0), Attending(), Recurrent(), Recurrent(both=True)])
def test_what_moves_is_what_autograd_says_depends(model: nn.Module) -> None:
    """Zero and not zero, by step and input, as the Jacobian in float64."""
    with run(model, "causal") as capture:
        table = np.asarray(capture.array("model:structure/causal"))
    model = model.double()
    x = model.embed(torch.tensor([IDS])).detach().requires_grad_()
    handle = model.embed.register_forward_hook(lambda *_: x)
    out = model(torch.tensor([IDS]))
    handle.remove()
    out = out[0] if isinstance(out, tuple) else out
    rows = [torch.autograd.grad(out[0, t].sum(), x, retain_graph=True)[0][0].norm(dim=-1) for t in range(len(IDS))]
    depends = torch.stack(rows, 1).numpy() > 1e-9
    assert (table > 0).tolist() == depends.tolist()


def test_the_change_is_that_of_the_replaced_input(tmp_path: Path) -> None:
    """Relative to the largest output, recomputed with the input that the largest entry belongs to."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    x = np.linspace(-1, 1, 10).reshape(5, 2).astype(np.float32)
    with run(model, "causal", x) as capture:
        table = np.asarray(capture.array("model:structure/causal"))
    assert (np.diag(table) > 0).all()
    off = table[~np.eye(5, dtype=bool)]
    assert (off == 0).all()
    scale = float(np.abs(np.tanh(x @ model[0].weight.detach().numpy().T + model[0].bias.detach().numpy())).max())
    assert np.diag(table).max() <= 2 / scale  # outputs of tanh move by 2 at most


@pytest.mark.parametrize("tanh", [True, False])
def test_dependence_on_the_query_is_the_mean_distance_of_rows(tanh: bool) -> None:
    torch.manual_seed(0)
    model = Query(tanh)
    with run(model, "query") as capture:
        (name,) = [one for one in capture.channels if one.endswith("structure/query")]
        value = float(np.asarray(capture.array(name))[0])
    rows = maps_of(model.double())
    pairs = [(i, i + 1) for i in range(len(rows) - 1)] + [(0, i) for i in range(2, len(rows))]
    expected = np.mean([0.5 * np.abs(rows[i] - rows[j]).sum() for i, j in pairs])
    assert value == pytest.approx(expected, abs=1e-6)
    assert (value < 1e-6) != tanh


@pytest.mark.parametrize("lost", [True, False])
def test_rows_of_a_causal_map_are_compared_over_the_keys_that_both_may_attend_to(lost: bool) -> None:
    """Of a score of the key alone, rows have the same proportions and other numbers, since later ones have more keys."""
    torch.manual_seed(0)
    model = Attending()
    if lost:
        nn.init.zeros_(model.q.weight)
    with run(model, "query") as capture:
        (name,) = [one for one in capture.channels if one.endswith("structure/query")]
        value = float(np.asarray(capture.array(name))[0])
    model = model.double()
    x = model.embed(torch.tensor(IDS)) + model.places(torch.arange(len(IDS)))
    powers = torch.exp(model.q(x) @ model.k(x).T / x.shape[1] ** 0.5).detach().numpy()
    distances = []
    for i, j in ((i, i + 1) for i in range(1, len(IDS) - 1)):  # the first row has one key, so it is in no pair
        one, other = (powers[row, : i + 1] / powers[row, : i + 1].sum() for row in (i, j))
        distances.append(0.5 * np.abs(one - other).sum())
    assert value == pytest.approx(np.mean(distances), abs=1e-6)
    assert (value < 1e-6) == lost


def maps_of(model: Query) -> list[np.ndarray]:
    """The decoder's weights, written out."""
    keys, _ = model.rnn(model.embed(torch.tensor([IDS])))
    s, rows = keys[:, -1], []
    for _ in IDS:
        both = model.of_query(s)[:, None] + model.of_key(keys)
        scores = (torch.tanh(both) if model.tanh else both) @ model.score.weight[0]
        weights = torch.exp(scores - scores.max()) / torch.exp(scores - scores.max()).sum()
        rows.append(weights[0].detach().numpy())
        s = model.cell((weights[..., None] * keys).sum(1), s)
    return rows


class Packed(nn.Module):
    """Both directions over sequences of different lengths, packed or not."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.rnn = nn.Embedding(11, 4), nn.GRU(4, 5, batch_first=True, bidirectional=True)

    def forward(self, ids: Tensor, lengths: Tensor | None = None) -> Tensor:
        x = self.embed(ids)
        if lengths is None:
            return self.rnn(x)[0]  # type: ignore[no-any-return]
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]


@pytest.mark.parametrize(("packs", "told"), [(True, True), (False, True), (False, False)])
def test_padding_moves_outputs_of_a_model_that_reads_it(packs: bool, told: bool) -> None:
    from inspector.engine.model.subject import Subject

    torch.manual_seed(0)
    model = Packed()
    forward = (lambda m, ids, lengths: m(ids, lengths if packs else None)) if told else None
    verdicts = {one.test: one for one in inspector.preflight(Subject(model=model, forward=forward), IDS)}
    assert verdicts["padding"].word == ("holds" if packs else "fault" if told else "fact")
    if not packs:
        whole, longer = torch.tensor([IDS]), torch.tensor([[*IDS, *[0] * len(IDS)]])
        y, other = model(whole).detach(), model(longer)[:, : len(IDS)].detach()
        expected = float((y - other).abs().max() / y.abs().max())
        assert verdicts["padding"].number >= expected - 1e-6


def test_weights_and_random_state_are_as_before() -> None:
    model = Attending(-1e4)
    known = {name: one.detach().clone() for name, one in model.named_parameters()}
    held = {name: one.data_ptr() for name, one in model.named_parameters()}
    state = torch.get_rng_state()
    with run(model, "causal"):
        pass
    assert torch.equal(torch.get_rng_state(), state)
    for name, one in model.named_parameters():
        assert torch.equal(one, known[name])
        assert one.data_ptr() == held[name]


def test_what_cannot_be_compared_is_refused_with_the_reason() -> None:
    class Growing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.memory = nn.Embedding(11, 4), [torch.zeros(4)]

        def forward(self, ids: Tensor) -> Tensor:
            self.memory.append(self.memory[-1] + 1)
            return self.embed(ids) + self.memory[-1]  # type: ignore[no-any-return]

    told = {one.test: one for one in inspector.preflight(Growing(), IDS)}
    assert told["causal"].word == "not tested"
    assert "kept in a list" in told["causal"].sentence
    assert told["repeat"].word == "fault"


def test_a_single_step_has_no_structure_to_test() -> None:
    assert [one for one in inspector.preflight(Attending(), [3]) if one.word == "fault"] == []
