"""Head types on heads that are made to be of one type each, and their scores against loops."""

from __future__ import annotations

import attended_models as models
import numpy as np
import pytest
import torch
from attended_models import HEADS, LAYERS, STEPS, WAYS, made, place, reference
from torch import Tensor, nn

from inspector.engine.model.subject import Batch

pytestmark = pytest.mark.usefixtures("one_thread")
NAMES = ("previous token", "duplicate token", "induction", "first token", "uniform", "local", "positional")
V = models.VOCABULARY
NEAR = {"rtol": 1e-6, "atol": 1e-9}


class Typed(nn.Module):
    """One causal head for each type, whose scores are made of positions and tokens by hand; the last is random. A
    product of the tokens' vectors, times 0, shows that the keys are the queries' own."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(V, 2, dtype=torch.float64)

    def forward(self, ids: Tensor) -> Tensor:
        t = ids.shape[1]
        q, k = torch.arange(t)[:, None].double(), torch.arange(t)[None].double()
        same = (ids[:, :, None] == ids[:, None]) & (k < q)
        behind = torch.nn.functional.pad(same[:, :, :-1], (1, 0))
        own = (k == q).double()
        fixed = [k == q - 1, None, None, k == 0, torch.zeros(t, t), -((q - k - 1.5) ** 2) * 0.1]
        near = (self_scores(ids, t)) * 3
        each = [
            30.0 * fixed[0], 30.0 * same + 15 * own, 30.0 * behind + 15 * own, 30.0 * fixed[3], fixed[4],
            torch.where((q - k).abs() <= 3, 30.0 * (1 + torch.sin(q * 7 + k)), 0.0), near,
        ]  # fmt: skip
        own_keys = 0.0 * (self.tokens(ids) @ self.tokens(ids).mT)
        scores = torch.stack([one.expand(len(ids), t, t).double() for one in each], dim=1) + own_keys[:, None]
        later = torch.ones(t, t, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, -torch.inf).softmax(-1)
        values = torch.nn.functional.one_hot(ids, V).double()[:, None].expand(-1, len(each), -1, -1)
        return (weights @ values).sum(1)


def self_scores(ids: Tensor, t: int) -> Tensor:
    """Scores that depend on the tokens and on nothing else."""
    table = torch.randn(V, V, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return table[ids[:, :, None].expand(-1, t, t), ids[:, None].expand(-1, t, t)]


def test_heads_of_one_type_each_get_their_name() -> None:
    ids = torch.randint(0, V, (1, 24), generator=torch.Generator().manual_seed(1))
    sink = models.run(Typed(), "attention/head_types", given=Batch(ids, torch.tensor([24])))
    (where,) = {name.partition(":")[0] for name in sink.names() if name.endswith("head_type")}
    names = sink.labels("head type")
    labelled = [names[int(n)] for n in sink.array(f"{where}:attention/head_type")]
    assert labelled[:6] == ["previous token", "duplicate token", "induction", "first token", "uniform", "local"]
    assert labelled[6] == "none"
    scores = sink.array(f"{where}:attention/head_type_score")
    assert (scores[:6] > 0.9).all() and np.isnan(scores[6])


def scores_by_loops(maps: Tensor, ids: list[int], first: int = 0) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for name in ("previous token", "duplicate token", "induction", "first token", "local", "uniform"):
        for weights in maps:
            each = []
            for q in range(max(1, first), len(ids)):
                allowed = range(q + 1)
                if name == "uniform":
                    each.append(1 - sum(abs(float(weights[q, k]) - 1 / (q + 1)) for k in allowed) / 2)
                    continue
                chosen = {
                    "previous token": [k for k in allowed if k == q - 1],
                    "duplicate token": [k for k in allowed if k < q and ids[k] == ids[q]],
                    "induction": [k for k in allowed if k > 0 and k - 1 < q and ids[k - 1] == ids[q]],
                    "first token": [0],
                    "local": [k for k in allowed if q - k <= 3],
                }[name]
                if chosen and len(chosen) < q + 1:
                    each.append(sum(float(weights[q, k]) for k in chosen))
            found.setdefault(name, []).append(sum(each) / len(each) if each else float("nan"))
    return found


@pytest.mark.parametrize("way", WAYS)
def test_scores_against_loops(way: str) -> None:
    model, ids = made(way), models.batch().inputs[1]
    sink, known = models.run(model, "attention/head_types"), reference(model, ids)
    for layer in range(LAYERS):
        found = dict(zip(NAMES, sink.array(f"{place(layer)}:attention/head_types").T, strict=True))
        for name, expected in scores_by_loops(known.maps[layer].detach(), ids.tolist()).items():
            np.testing.assert_allclose(found[name], expected, **NEAR, err_msg=name)
        assert ((found["positional"] >= 0) & (found["positional"] <= 1)).all()


def test_positional_is_one_for_a_head_that_ignores_its_input() -> None:
    ids = torch.randint(0, V, (1, 12), generator=torch.Generator().manual_seed(2))
    sink = models.run(Typed(), "attention/head_types", given=Batch(ids, torch.tensor([12])))
    (where,) = {name.partition(":")[0] for name in sink.names() if name.endswith("head_type")}
    found = dict(zip(NAMES, sink.array(f"{where}:attention/head_types").T, strict=True))
    np.testing.assert_allclose(found["positional"][[0, 3, 4, 5]], 1.0, rtol=1e-9)
    assert found["positional"][6] < 0.9
    assert "repeated random" in sink.channel(f"{where}:attention/head_types_repeated").title


@pytest.mark.parametrize("way", WAYS)
def test_other_inputs_are_a_repeated_sequence_and_a_random_one(way: str) -> None:
    """What the model is called with besides: tokens whose second half is the first again, and others to compare with;
    the scores are those of its maps on these."""
    model, ids, calls = made(way), models.batch().inputs[1].tolist(), list[list[int]]()
    model.register_forward_pre_hook(lambda _module, given: calls.append(given[0][-1].tolist()))
    sink = models.run(model, "attention/head_types")
    repeated, other = (one for one in calls if one != ids)
    half = STEPS // 2
    assert repeated[:half] == repeated[half:] and other[:half] != other[half:]
    known, again, apart = (reference(model, torch.tensor(one)) for one in (ids, repeated, other))
    for layer in range(LAYERS):
        own = dict(zip(NAMES, sink.array(f"{place(layer)}:attention/head_types").T, strict=True))
        found = dict(zip(NAMES, sink.array(f"{place(layer)}:attention/head_types_repeated").T, strict=True))
        for name, expected in scores_by_loops(again.maps[layer].detach(), repeated, half).items():
            np.testing.assert_allclose(found[name], expected, **NEAR, err_msg=name)
        for head in range(HEADS):
            pairs = [
                (known.maps[layer][head, q].tolist(), apart.maps[layer][head, q].tolist()) for q in range(1, STEPS)
            ]
            alike = [1 - sum(abs(a - b) for a, b in zip(one, two, strict=True)) / 2 for one, two in pairs]
            assert own["positional"][head] == pytest.approx(sum(alike) / len(alike), rel=1e-6)
            assert found["positional"][head] == own["positional"][head]


def test_numbers_have_no_tokens_to_repeat() -> None:
    """Without ids there is neither a duplicate nor an induction score, and no random sequence."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, HEADS, 16, 0.0, batch_first=True).eval()
    from listed import Listed

    from inspector.engine.model.subject import Subject
    from inspector.engine.pipeline import RunOptions, perform

    sink = Listed()
    given = Batch(torch.randn(1, STEPS, 8), torch.tensor([STEPS]))
    perform(Subject(model=layer, kind="vectors", width=8), given, sink, RunOptions(only=("attention/head_types",)))
    found = dict(zip(NAMES, sink.array("self_attn:attention/head_types").T, strict=True))
    assert np.isnan(found["duplicate token"]).all() and np.isnan(found["induction"]).all()
    assert np.isfinite(found["uniform"]).all() and "self_attn:attention/head_types_repeated" not in sink.names()
