"""A model with an embedding reads tokens, unless vectors are given and a layer before the embedding reads them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.engine.errors import InputError


class Distances(nn.Module):
    """Attention with an embedding of distances (Shaw et al. 2018): a model of vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.values, self.distance = nn.Linear(3, 4), nn.Embedding(5, 1)

    def forward(self, x: Tensor) -> Tensor:
        at = torch.arange(x.shape[1])
        weights = torch.softmax(self.distance((at - at[:, None]).clamp(-2, 2) + 2)[..., 0] + x @ x.mT, -1)
        return torch.as_tensor(weights @ self.values(x))


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.layer = nn.Embedding(5, 3), nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.layer(self.table(x)))


def test_vectors_for_a_model_whose_embedding_is_of_distances() -> None:
    torch.manual_seed(0)
    model, x = Distances().eval().requires_grad_(False), torch.randn(6, 3)
    with inspector.run(model, x, only=("attention/maps",)) as capture:
        at = [[min(2, max(-2, k - q)) + 2 for k in range(6)] for q in range(6)]
        scores = [[float(model.distance.weight[at[q][k], 0] + x[q] @ x[k]) for k in range(6)] for q in range(6)]
        known = torch.softmax(torch.tensor(scores), -1)
        assert torch.allclose(torch.tensor(capture.array("model:attention")).float()[0], known, atol=1e-3)


def test_vectors_for_a_model_of_tokens_are_refused() -> None:
    with pytest.raises(InputError, match="Token ids are whole numbers; the sequence given holds fractions"):
        inspector.run(Tokens().eval(), torch.randn(6, 3))


def test_ids_after_vectors_are_ids_again() -> None:
    from inspector.engine.model.batching import of_value
    from inspector.engine.model.subject import Subject, adopt

    subject = adopt(Subject(model=Distances()))
    of_value(subject, torch.randn(6, 3))
    assert (subject.kind, subject.width) == ("vectors", 3)
    of_value(subject, torch.tensor([0, 1, 4]))
    assert subject.kind == "tokens"
