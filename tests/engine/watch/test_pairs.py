"""Parameters that are one, begin equal or are declared to be one: how far apart they are in a watched training, and
what is told of it; against the weights themselves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import inspector
from inspector.diagnosis.series import table_of
from inspector.engine.watch.measures.pairs import APART, pairs_of
from inspector.records import Finding

V, D = 12, 8


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.rnn = nn.Embedding(V, D), nn.GRU(D, D, batch_first=True)
        self.head = nn.Linear(D, V, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.rnn(self.embedding(ids))[0])  # type: ignore[no-any-return]


class Turned(Reader):
    """The last layer is a raw matrix (d, v): the embedding, turned."""

    def __init__(self) -> None:
        super().__init__()
        del self.head
        self.out = nn.Parameter(self.embedding.weight.detach().t().clone())

    def forward(self, ids: Tensor) -> Tensor:
        found: Tensor = self.rnn(self.embedding(ids))[0] @ self.out
        return found


def tied() -> Reader:
    model = Reader()
    model.head.weight = model.embedding.weight
    return model


def equal() -> Reader:
    model = Reader()
    model.head.weight = nn.Parameter(model.embedding.weight.detach().clone())
    return model


def declared() -> Reader:
    model: Any = Reader()
    model.config = SimpleNamespace(tie_word_embeddings=True)
    model.get_input_embeddings = lambda: model.embedding
    model.get_output_embeddings = lambda: model.head
    return model  # type: ignore[no-any-return]


def trained(model: nn.Module, path: Path, between: Callable[[int], None] = lambda n: None) -> list[Finding]:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with inspector.watch(model, optimizer, path, every=1):
        for n in range(24):
            between(n)
            ids = torch.randint(0, V, (4, 6))
            loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    found = inspector.diagnose(path)
    assert not found.broken
    return [one for one in found.findings if one.id == "IN138"]


def distances(path: Path) -> Any:
    with inspector.open_capture(path) as capture:
        table = table_of(capture, APART)
        assert table is not None
        return table


@pytest.mark.parametrize("make", [equal, declared, Turned])
def test_two_that_ought_to_be_one_are_told_with_their_distance(make: Callable[[], nn.Module], tmp_path: Path) -> None:
    model, seen = make(), list[float]()

    def apart() -> float:
        one = dict(model.named_parameters())
        other = one["head.weight"] if "head.weight" in one else one["out"].t()
        first = one["embedding.weight"].detach().double()
        return float((first - other.detach().double()).norm() / first.norm())

    (finding,) = trained(model, tmp_path / "a.inspect", lambda n: seen.append(apart()))
    seen = [*seen[1:], apart()]  # after each step
    table = distances(tmp_path / "a.inspect")
    assert table.values[::4, 0] == pytest.approx(seen[::4], rel=1e-5, abs=1e-7)
    assert finding.severity == "warning" and finding.evidence[0] == APART
    assert finding.iterations == (1,) and finding.places[0] == "embedding.weight"


def test_one_parameter_that_becomes_two_is_told_from_there(tmp_path: Path) -> None:
    model = tied()

    def between(n: int) -> None:
        if n == 10:
            model.head.weight = nn.Parameter(model.head.weight.detach().clone())

    (finding,) = trained(model, tmp_path / "a.inspect", between)
    assert "were one parameter when watching began" in finding.message and finding.severity == "warning"
    assert finding.iterations == (13,)  # the first of every fourth after it


def loaded(model: Reader, assign: bool) -> Reader:
    kept = {name: one.clone() for name, one in model.state_dict().items()}
    model.load_state_dict(kept, assign=assign)
    return model


@pytest.mark.parametrize("make", [tied, Reader, lambda: loaded(tied(), assign=False)])
def test_what_is_one_or_was_never_equal_has_no_such_series(make: Callable[[], nn.Module], tmp_path: Path) -> None:
    assert not trained(make(), tmp_path / "a.inspect")
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        table = table_of(capture, APART)
        assert (table is None) == (make is Reader)
        assert table is None or (table.values[::4] == 0).all()


def test_copies_of_modules_identities_and_parts_that_do_not_learn_are_no_pairs() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 3, enable_nested_tensor=False)
    assert not pairs_of(encoder)
    online = Reader()
    assert not pairs_of(nn.ModuleDict({"online": online, "target": copy.deepcopy(online)}))
    same: Any = nn.RNN(8, 8)
    for one in (same.weight_hh_l0, same.weight_ih_l0):
        nn.init.eye_(one)
    assert not pairs_of(same)
    still = equal()
    still.head.weight.requires_grad_(False)
    assert not pairs_of(still)


def test_other_matrices_that_begin_equal_are_information(tmp_path: Path) -> None:
    model: Any = Reader()
    model.key, model.query = nn.Linear(D, D, bias=False), nn.Linear(D, D, bias=False)
    model.query.weight = nn.Parameter(model.key.weight.detach().clone())
    plain = model.forward
    model.forward = lambda ids: plain(ids) + model.query(model.key(model.embedding(ids))).sum()
    (finding,) = trained(model, tmp_path / "a.inspect")
    assert finding.severity == "info" and set(finding.places) == {"key.weight", "query.weight"}
