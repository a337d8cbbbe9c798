"""What bracket_reader.py computes, once more in float64 by plain loops over numpy arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from bracket_reader import LETTERS

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Numbers:
    """States and gates (step, unit), attention (query, key), norms of products of step Jacobians (start, lag)."""

    states: Floats
    gates: Floats
    attention: Floats
    reach: Floats


def compute(path: Any, text: str, held: int | None = None) -> Numbers:
    """Of a checkpoint and a text; `held`: a unit that is 0 after every step."""
    kept = torch.load(path, weights_only=True)["state_dict"]
    w = {name: tensor.double().numpy() for name, tensor in kept.items()}
    state, units = np.zeros(len(w["wz.bias"])), len(w["wz.bias"])
    states, gates, jacobians = [], [], []
    for letter in text:
        x = w["embed.weight"][LETTERS.index(letter)]
        z = 1 / (1 + np.exp(-(w["wz.weight"] @ x + w["wz.bias"])))
        n = np.tanh(w["wn.weight"] @ x + w["wn.bias"] + w["un.weight"] @ state)
        jacobians.append(np.diag(1 - z) + (z * (1 - n**2))[:, None] * w["un.weight"])
        state = (1 - z) * state + z * n
        if held is not None:
            state[held] = 0.0
        states.append(state)
        gates.append(z)
    h = np.array(states)
    scores = (h @ w["query.weight"].T) @ (h @ w["key.weight"].T).T / units**0.5
    scores[np.triu(np.ones(scores.shape, bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    reach = np.full((len(text), len(text)), np.nan)
    for start in range(len(text)):
        product = np.eye(units)
        for lag in range(1, len(text) - start):
            product = jacobians[start + lag] @ product
            reach[start, lag] = np.linalg.norm(product) / units**0.5
    return Numbers(h, np.array(gates), weights / weights.sum(1, keepdims=True), reach)


def gradient(path: Any, text: str) -> Floats:
    """(step,) norms of the gradient of the sum of all losses in the states, by autograd in float64 over a loop."""
    kept = torch.load(path, weights_only=True)["state_dict"]
    w = {name: tensor.double() for name, tensor in kept.items()}
    ids = [LETTERS.index(letter) for letter in text]
    state, states = torch.zeros(len(w["wz.bias"]), dtype=torch.float64), []
    for one in ids:
        x = w["embed.weight"][one]
        z = torch.sigmoid(w["wz.weight"] @ x + w["wz.bias"])
        state = (1 - z) * state + z * torch.tanh(w["wn.weight"] @ x + w["wn.bias"] + w["un.weight"] @ state)
        state.requires_grad_(True) if not states else None
        state.retain_grad()
        states.append(state)
    h = torch.stack(states)
    scores = (h @ w["query.weight"].T) @ (h @ w["key.weight"].T).T / h.shape[1] ** 0.5
    later = torch.ones_like(scores, dtype=torch.bool).triu(1)
    both = torch.cat((h, scores.masked_fill(later, -torch.inf).softmax(1) @ h), 1)
    logits = both @ w["read.weight"].T + w["read.bias"]
    torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="sum").backward()
    return np.array([one.grad.norm().item() for one in states if one.grad is not None])
