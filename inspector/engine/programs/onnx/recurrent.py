"""A node LSTM, GRU or RNN as a module: torch's layer where it computes the same, else its steps in a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.programs.fused_layers import Options, layer_of
from inspector.engine.programs.onnx.cells import (
    ALPHAS,
    BETAS,
    GATES,
    Form,
    OnnxCell,
    OnnxRecurrent,
    activation,
)
from inspector.engine.programs.onnx.operands import Operand, Operator, Untranslated
from inspector.records.plain_text import shortened

DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
DIRECTIONS = {"forward": ("forward",), "reverse": ("reverse",), "bidirectional": ("forward", "reverse")}
OF_TORCH = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
"""The gates of torch's layers in their order, by their numbers in ONNX: i f g o of i o f c; r z n of z r h."""


def module_of(op: Operator, inputs: Sequence[Operand | None]) -> OnnxRecurrent:
    """The module of a node. Raises Untranslated, with the reason, where there is none."""
    names = (1, 2, 3, 7) if op.kind == "LSTM" else (1, 2, 3)
    weights = [_known(inputs, n) for n in names]
    w, r = weights[:2]
    if w is None or r is None or w.dim() != 3 or r.dim() != 3:
        raise Untranslated("its weights are computed")
    hidden, directions = int(r.shape[2]), DIRECTIONS.get(str(op.attributes.get("direction", "forward")))
    if directions is None or len(directions) != len(w) or r.shape[1] != GATES[op.kind] * hidden:
        raise Untranslated("its weights do not fit its direction")
    form = Form(
        op.kind, hidden, op.attributes.get("clip"), bool(op.attributes.get("input_forget", 0)),
        bool(op.attributes.get("linear_before_reset", 0)),
    )  # fmt: skip
    told = _activations(op, len(directions))
    fused = _fused(form, directions, weights, told) if _lengths(inputs) is None else None
    cells = [] if fused is not None else [
        OnnxCell(form, [None if one is None else one[n].clone() for one in weights], [activation(*a) for a in told[n]])
        for n in range(len(directions))
    ]  # fmt: skip
    return OnnxRecurrent(hidden, directions, fused, cells)


def _lengths(inputs: Sequence[Operand | None]) -> Operand | None:
    return inputs[4] if len(inputs) > 4 else None


def _known(inputs: Sequence[Operand | None], number: int) -> Tensor | None:
    one = inputs[number] if number < len(inputs) else None
    if one is None:
        return None
    if one.known is None:
        raise Untranslated("its weights are computed")
    return one.known


def _activations(op: Operator, directions: int) -> list[list[tuple[str, float, float]]]:
    """(name, alpha, beta) of each activation of each direction; numbers go to those that take some, in order."""
    names = [one.decode() if isinstance(one, bytes) else str(one) for one in op.attributes.get("activations", ())]
    own = DEFAULTS[op.kind]
    names = names or [*own] * directions
    if len(names) != len(own) * directions:
        raise Untranslated(f"it names {len(names)} activations")
    known = {one.lower(): one for one in ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus", *ALPHAS)}
    unknown = next((one for one in names if one.lower() not in known), None)
    if unknown is not None:
        raise Untranslated(f"its activation {shortened(unknown, 40)!r} is not known")
    alphas, betas = (list(op.attributes.get(f"activation_{word}", ())) for word in ("alpha", "beta"))
    found = []
    for name in (known[one.lower()] for one in names):
        alpha = alphas.pop(0) if name in ALPHAS and alphas else ALPHAS.get(name, 0.0)
        beta = betas.pop(0) if name in BETAS and betas else BETAS.get(name, 0.0)
        found.append((name, float(alpha), float(beta)))
    return [found[n * len(own) : (n + 1) * len(own)] for n in range(directions)]


def _fused(
    form: Form, directions: Sequence[str], weights: Sequence[Tensor | None], told: list[list[tuple[str, float, float]]]
) -> nn.RNNBase | None:
    """torch's layer, where it computes the same."""
    names = {tuple(name for name, _, _ in one) for one in told}
    peepholes = form.kind == "LSTM" and weights[3] is not None
    if form.clip is not None or form.input_forget or peepholes or (form.kind == "GRU" and not form.reset_after):
        return None
    plain = names == {DEFAULTS[form.kind]}
    if not plain and not (form.kind == "RNN" and names == {("Relu",)}):
        return None
    kind = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn_tanh" if plain else "rnn_relu"}[form.kind]
    bias = weights[2]
    rows: list[Any] = []
    for n in range(len(directions)):
        rows += [_turned(form, one[n]) for one in weights[:2] if one is not None]
        if bias is not None:
            rows += [_turned(form, half) for half in bias[n].chunk(2)]
    parameters = [nn.Parameter(one) for one in rows]
    return layer_of(kind, parameters, Options(bias is not None, 1, 0.0, False, len(directions) == 2, False))


def _turned(form: Form, weight: Tensor) -> Tensor:
    """Rows of the gates in torch's order."""
    parts = weight.reshape(GATES[form.kind], form.hidden, *weight.shape[1:])
    return torch.cat([parts[n] for n in OF_TORCH[form.kind]]).clone()
