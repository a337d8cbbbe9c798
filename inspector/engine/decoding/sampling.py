"""Tokens drawn by chance: temperature, the k likeliest, the nucleus."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.decoding.growth import Ask, Growth
from inspector.records.decoding import BEGINNING, Decode


def sample(ask: Ask, growth: Growth, end: int | None, seed: int) -> None:
    """Draw `width` answers, each token from the probabilities that `drawn_from` gives; the same seed, the same answers.

    Samples with the same beginning share its tokens, which count them.
    """
    decode = growth.decode
    generator = torch.Generator().manual_seed(seed)
    ongoing = [BEGINNING] * decode.width
    for step in range(decode.longest):
        values = ask([growth.ids_of(last) for last in ongoing])
        drawn = torch.multinomial(drawn_from(values, decode), 1, generator=generator)[:, 0].tolist()
        following = []
        growth.end_alive(ongoing, "continued")
        for last, token, row in zip(ongoing, drawn, values, strict=True):
            at = growth.add(last, token, float(row[token]))
            ended = token == end
            growth.end(at, "finished" if ended else "unfinished" if step == decode.longest - 1 else "alive")
            if not ended:
                following.append(at)
        ongoing = following
        if not ongoing:
            return


def drawn_from(log_probabilities: Tensor, decode: Decode) -> Tensor:
    """(n, v) probabilities to draw from, of (n, v) ln p: temperature first, then the k likeliest, then the nucleus.

    The nucleus is the fewest of the likeliest tokens whose probabilities, after temperature and k, sum to at least p
    (Holtzman et al. 2020); of equally likely ones those with the lowest ids.
    """
    scaled = torch.softmax(log_probabilities / decode.temperature, dim=-1)
    order = scaled.sort(dim=-1, descending=True, stable=True)
    kept = order.values.clone()
    if decode.top_k:
        kept[:, decode.top_k :] = 0
        kept /= kept.sum(-1, keepdim=True)
    before = kept.cumsum(-1) - kept
    if decode.top_p < 1:
        kept = kept.masked_fill(before >= decode.top_p, 0.0)  # nothing stands before the likeliest
    return torch.zeros_like(kept).scatter(-1, order.indices, kept / kept.sum(-1, keepdim=True))
