"""The likeliest token at each step."""

from __future__ import annotations

import torch

from inspector.engine.decoding.growth import Ask, Growth
from inspector.records.decoding import BEGINNING


def greedy(ask: Ask, growth: Growth, end: int | None) -> None:
    """Take the likeliest token until it is the end token; the next likeliest ones of each step are noted as pruned.

    Of equally likely tokens the one with the lowest id.
    """
    decode, last = growth.decode, BEGINNING
    for step in range(decode.longest):
        values = ask([growth.ids_of(last)])[0]
        order = values.sort(descending=True, stable=True)
        noted = [
            growth.add(last, int(token), float(value))
            for value, token in zip(order.values[: decode.width], order.indices[: decode.width], strict=True)
            if value > -torch.inf  # what cannot be said was not tried
        ]
        growth.end_alive([last], "continued")
        last = noted[0]
        if growth.tokens[last].token == end:
            growth.end(last, "finished")
            return
        growth.end(last, "unfinished" if step == decode.longest - 1 else "alive")
