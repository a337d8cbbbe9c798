"""What a program is, in a sentence or two: what was rebuilt, how far it was checked, and what cannot be seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from inspector.engine.programs.graphs import Rewritten
from inspector.engine.programs.signature import Given

SHOWN = 4


def told(path: Path, what: str, inputs: Sequence[Given], found: Rewritten, why: str) -> str:
    """The first line of the log of every run of a program."""
    parts = [f"This model is {what}, {path.name}."]
    if why:
        parts.append(f"It is run as it is: {why}, so gates and steps inside it are not seen.")
    else:
        parts.append("Its graph is run with torch's functions and computes the program's own numbers on its example.")
    if found.layers:
        layers = "; ".join(f"{place}: {_layer(layer)}" for place, layer in found.layers[:SHOWN])
        parts.append(f"Recurrent layers made of its operations: {layers}{' …' if len(found.layers) > SHOWN else ''}.")
    written = [place for place, count in found.loops if not count]
    if written:
        parts.append(f"torch has no layer like {', '.join(written[:SHOWN])}, which is run step by step.")
    for place, count in [one for one in found.loops if one[1]][:SHOWN]:
        parts.append(f"{place or 'Its own graph'} repeats the same operations {count} times, which is run as a loop.")
    parts += found.left[:SHOWN]
    fixed = [one for one in inputs if any(size.fixed for size in one.sizes)]
    for one in fixed[:SHOWN]:
        sizes = " × ".join(str(size.low) if size.fixed else "any" for size in one.sizes)
        parts.append(f"Its input {one.name} is {sizes}: these sizes were fixed when it was exported.")
    return " ".join(parts)


def _layer(layer: nn.RNNBase) -> str:
    out = (layer.proj_size or layer.hidden_size) * (2 if layer.bidirectional else 1)
    ways = ", both directions" if layer.bidirectional else ""
    many = "1 layer" if layer.num_layers == 1 else f"{layer.num_layers} layers"
    return f"{type(layer).__name__} {layer.input_size} → {out}, {many}{ways}"
