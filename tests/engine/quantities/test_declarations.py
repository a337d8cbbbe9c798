"""What every channel says of itself: kind, unit, scale, colour limits and axes, as a person reads them in the window."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
import torch
from every_quantity import every_quantity
from kept import Kept
from models import OnlyOutput
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.registries import QUANTITIES
from inspector.records import Channel

pytestmark = pytest.mark.usefixtures("one_thread")

MODELS: dict[str, Callable[[], nn.Module]] = {
    "relu": lambda: OnlyOutput(nn.RNN(3, 3, nonlinearity="relu", batch_first=True)),
    "gru": lambda: OnlyOutput(nn.GRU(3, 3, 2, batch_first=True)),
    "lstm": lambda: OnlyOutput(nn.LSTM(3, 3, batch_first=True)),
    "attention": lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0),
}
SHARE, SIGNED = (0, 1), (-1, 1)
GATE, ANGLE = r"gate/(forget|input|output|reset|update)", r"(candidate|forget|hidden|input|output|reset|update)"
PARAMETER = r"(weight|bias)(_[a-z0-9_]+)?"
TOLD = {
    r"attention": ("attention", "1", "sequential", SHARE, "head query key"),
    r"attention/allowed": ("attention", "1", "sequential", None, "statistic query"),
    r"attention/distance": ("attention_statistic", "step", "sequential", None, "head query"),
    r"attention/entropy": ("attention_statistic", "nat", "sequential", None, "head query"),
    r"attention/(entropy_normalised|largest_weight|sink_mass|sink_mass_4)": (
        "attention_statistic", "1", "sequential", SHARE, "head query",
    ),
    r"attention/largest_logit": ("attention_statistic", "1", "diverging", None, "head query"),
    r"attention/importance_by_query": ("attention_statistic", "nat", "diverging", None, "head query"),
    r"attention/head_output": ("attention_statistic", "1", "sequential", None, "head query"),
    r"attention/(gradient|times_gradient)": ("attention_map", "nat", "diverging", None, "head query key"),
    r"attention/weighted_norm": ("attention_map", "1", "sequential", None, "head query key"),
    r"attention/rollout": ("attention_map", "1", "sequential", SHARE, "layer query key"),
    r"attention/relevance": ("attention_map", "1", "sequential", None, "layer query key"),
    r"sensitivity": ("attention_map", "1", "log", None, "query key"),
    r"attention/clipped": ("attention_statistic", "1", "sequential", None, "head statistic"),
    r"attention/importance": ("attention_statistic", "nat", "sequential", None, "head statistic"),
    r"attention/head_types": ("attention_statistic", "1", "sequential", SHARE, "head statistic"),
    r"attention/head_type": ("attention_statistic", "1", "sequential", None, "head"),
    r"attention/queries": ("attention_pair", "1", "diverging", None, "head query component"),
    r"attention/keys": ("attention_pair", "1", "diverging", None, "group key component"),
    r"attention/pair_key": ("attention_head", "1", "sequential", None, "head"),
    r"attention/head_type_score": ("attention_statistic", "1", "sequential", SHARE, "head"),
    r"attention/against_gradient": ("attention_statistic", "1", "diverging", None, "head statistic"),
    r"attention/rollout_against_gradient": ("attention_head", "1", "diverging", None, "statistic"),
    r"attention/pair": ("attention_head", "1", "diverging", None, "head component"),
    r"positions/scores": ("positions", "1", "diverging", None, "head distance"),
    r"positions/scores_spread": ("positions", "1", "sequential", None, "head distance"),
    r"attention/redundancy": ("attention_statistic", "nat", "sequential", (0, math.log(2)), "head other"),
    r"attention/parameters": ("attention_cost", "1", "sequential", None, "part"),
    r"attention/flops": ("attention_cost", "1", "log", None, "part length"),
    r"attention/memory": ("attention_cost", "byte", "log", None, "part length"),
    r"attention/seconds": ("attention_cost", "s", "log", None, "statistic length"),
    rf"bptt/{PARAMETER}": ("bptt", "nat", "log", None, "step source"),
    rf"bptt/{PARAMETER}/lag": ("bptt", "nat", "log", None, "statistic lag"),
    r"[hc]": ("state", "1", "diverging", None, "step unit"),
    r"h/units": ("unit", "1", "sequential", None, "statistic unit"),
    r"h/depth_rms": ("depth", "1", "sequential", None, "layer"),
    r"candidate": ("gate", "1", "diverging", SIGNED, "step unit"),
    rf"{GATE}": ("gate", "1", "sequential", SHARE, "step unit"),
    rf"({GATE}|candidate)/by_feature": ("opener", "1", "diverging", SIGNED, "feature unit"),
    rf"({GATE}|candidate)/saturation": ("unit", "1", "sequential", SHARE, "statistic unit"),
    rf"{GATE}/timescale": ("unit", "step", "log", None, "unit"),
    r"gate/memory": ("memory", "1", "sequential", SHARE, "step unit"),
    r"gate/memory/runs": ("memory", "1", "sequential", None, "statistic unit"),
    r"clipping/by_value": ("clipping", "1", "log", None, "statistic bin"),
    r"clipping/norms": ("clipping", "nat", "log", None, "statistic parameter"),
    r"fixed_points": ("fixed_point", "1", "sequential", None, "point component"),
    r"fixed_points/eigenvalues": ("fixed_point", "1", "sequential", None, "point eigenvalue part"),
    r"fixed_points/inputs": ("fixed_point", "1", "sequential", None, "input"),
    r"fixed_points/states": ("fixed_point", "1", "sequential", None, "point unit"),
    r"fixed_points/statistics": ("fixed_point", "1", "sequential", None, "statistic point"),
    r"gradient/[hc]": ("gradient", "nat", "diverging", None, "step unit"),
    r"gradient/(cell|state)_norm": ("gradient", "nat", "log", None, "step"),
    r"gradient/depth": ("depth", "nat", "log", None, "statistic layer"),
    r"gradient/depth_map": ("depth", "nat", "log", None, "step layer"),
    r"gradient/depth_ratio": ("depth", "1", "log", None, "layer"),
    r"gradient/lag": ("influence", "nat", "log", None, "statistic lag"),
    r"gradient/lag_map": ("map", "nat", "log", None, "step source"),
    r"parameter/gradient": ("depth", "nat", "log", None, "statistic module"),
    r"health/.*": ("health", "1", "sequential", None, "count"),
    r"influence/(divergence|loss)": ("influence", "nat", "log", None, "statistic lag"),
    r"jacobian/(bound|carousel_norm|frobenius_norm|frobenius_norm_scaled|spectral_norm|spectral_radius)": (
        "jacobian", "1", "log", None, "step",
    ),
    r"jacobian/isometry": ("spectrum", "1", "log", None, "step"),
    r"jacobian/eigenvalues": ("spectrum", "1", "sequential", None, "step eigenvalue part"),
    r"jacobian/singular_values": ("spectrum", "1", "log", None, "step rank"),
    r"jacobian/lag": ("lag", "1", "log", None, "statistic lag"),
    r"jacobian/lag_dead": ("lag", "1", "sequential", SHARE, "lag"),
    r"jacobian/lag_map": ("map", "1", "log", None, "start lag"),
    r"lyapunov/exponents": ("lyapunov", "nat/step", "sequential", None, "exponent"),
    r"lyapunov/errors": ("lyapunov", "nat/step", "sequential", None, "statistic exponent"),
    r"lyapunov/running": ("lyapunov", "nat/step", "sequential", None, "step exponent"),
    r"mask": ("mask", "1", "sequential", SHARE, "step unit"),
    r"mask/open_share": ("mask", "1", "sequential", SHARE, "step"),
    r"mask/(masked_product|open_pairs|open_paths|open_product)": ("mask", "1", "log", None, "lag"),
    r"path/(direct|through)_norm": ("path", "1", "log", None, "step"),
    r"path/direct_share": ("path", "1", "sequential", SHARE, "step"),
    r"path/(lag_difference|lag_direct|lag_whole|retention_band)": ("path", "1", "log", None, "statistic lag"),
    r"path/retention": ("path", "1", "sequential", None, "lag unit"),
    rf"state_derivative/{PARAMETER}/\d+": ("state_derivative", "1", "log", None, "step"),
    r"loss": ("output", "nat", "sequential", None, "step"),
    r"entropy": ("output", "nat", "sequential", None, "step"),
    r"(arguments|line|module|name|node)": ("operations", "1", "sequential", None, "operation"),
    r"(inputs|outputs|random|sources)": ("operations", "1", "sequential", None, "operation slot"),
    r"(bits|dtype|shape)": ("operations", "1", "sequential", None, "value"),
    r"fingerprint": ("operations", "1", "sequential", None, "value number"),
    r"response": ("operations", "1", "log", None, "operation output"),
    r"probability": ("output", "1", "sequential", SHARE, "step rank"),
    r"token": ("output", "1", "sequential", None, "step rank"),
    r"trajectory": ("trajectory", "1", "diverging", None, "step component"),
    r"trajectory/share": ("trajectory", "1", "sequential", SHARE, "component"),
    r"trajectory/speed": ("trajectory", "1", "sequential", None, "step"),
    r"structure/loss_input": ("structure", "1", "sequential", (0.0, 5.0), "value"),
    r"structure/scores": ("structure", "1", "sequential", None, "statistic"),
    r"structure/accumulation": ("structure", "1", "log", None, "statistic part"),
    r"structure/batch|structure/order": ("structure", "1", "log", None, "step"),
    r"structure/causal": ("structure", "1", "log", None, "source step"),
    r"structure/causal/large": ("structure", "1", "log", None, "value"),
    r"structure/query": ("structure", "1", "sequential", SHARE, "head"),
    r"structure/(causal|order)/modules": ("structure", "1", "log", None, "module"),
    r"structure/(padding|repeat)": ("structure", "1", "log", None, "part step"),
    r"trial/first_step": ("trial", "1", "log", None, "statistic parameter"),
    r"trial/initial_loss": ("trial", "nat", "sequential", None, "statistic"),
    r"trial/learning_rate/(adam|own|sgd)": ("trial", "nat", "sequential", None, "statistic point"),
    r"trial/cure/[a-z0-9_]+": ("cure", "nat", "sequential", None, "version seed iteration"),
    r"trial/cure/[a-z0-9_]+/after": ("cure", "nat", "sequential", None, "version seed"),
    r"trial/other_lengths": ("trial", "1", "sequential", None, "statistic length"),
    r"trial/one_batch": ("trial", "nat", "sequential", None, "iteration"),
    r"truncation/adaptive": ("truncation", "step", "sequential", None, "statistic step"),
    rf"truncation/({PARAMETER}|all)": ("truncation", "1", "log", None, "statistic truncation"),
    r"value": ("input", "1", "diverging", None, "step feature"),
    rf"weight/{ANGLE}/eigenvalues": ("spectrum", "1", "sequential", None, "eigenvalue part"),
    rf"weight/{ANGLE}/singular_values": ("spectrum", "1", "log", None, "rank"),
}  # fmt: skip


def loss(out: Tensor, _batch: Batch) -> Tensor:
    return -out.log_softmax(-1)[..., 1]


def backward(model: nn.Module, batch: Batch, passes: int) -> None:
    for part in batch.inputs.chunk(passes):
        (model(part).square().mean() / passes).backward()


def channels() -> Kept:
    """Every quantity on one model of each family."""
    kept = Kept()
    for make in MODELS.values():
        model = make().eval()
        width = 4 if isinstance(model, nn.TransformerEncoderLayer) else 3
        labels = tuple("abcd"[:width])
        subject = Subject(model=model, kind="vectors", width=width, labels=labels, loss=loss, backward=backward)
        subject.optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        batch = Batch(torch.randn(2, 6, width), torch.tensor([6, 6]))
        perform(subject, batch, kept, RunOptions(only=every_quantity(), seed=0))
    return kept


def test_every_channel_says_what_it_is() -> None:
    found: dict[str, set[tuple[object, ...]]] = {}
    for channel in channels().of(Channel):
        signal = channel.name.partition(":")[2]
        said = (channel.kind, channel.unit, channel.scale, channel.limits, " ".join(channel.dims))
        found.setdefault(signal, set()).add(said)
        assert channel.title and channel.method, channel.name
    met = set()
    for signal, said in found.items():
        patterns = [pattern for pattern in TOLD if re.fullmatch(pattern, signal)]
        assert len(patterns) == 1, f"{signal} is named by {patterns}"
        assert said == {TOLD[patterns[0]]}, signal
        met.add(patterns[0])
    assert met == set(TOLD), "a row of the table that no channel meets"


def test_what_is_computed_without_being_asked_for() -> None:
    asked_for = {key for key, quantity in QUANTITIES.items() if not quantity.default}
    assert asked_for == {
        "attention/against_gradient", "attention/clipped", "attention/cost", "attention/direct_logit", "attention/gradient",
        "attention/head_types", "attention/pair", "attention/queries_and_keys", "attention/redundancy",
        "attention/relevance", "attention/rollout",
        "attention/value_zeroing", "attention/weighted_norm", "gradient/from_answer", "residual", "residual/gradient",
        "residual/lens", "residual/sensitivity", "structure/accumulation", "structure/batch", "structure/cache", "structure/causal", "structure/labels", "structure/loss_input", "structure/left_padding", "structure/scores",
        "structure/order", "structure/padding", "structure/query", "structure/repeat", "structure/tied", "trial/cure", "trial/first_step", "trial/initial_loss", "trial/input",
        "trial/learning_rate", "trial/one_batch", "trial/other_lengths", "trial/reach",
        "bptt", "depth/parameters", "fixed_points", "gradient/state_derivatives", "gradient/vectors", "influence", "latent/use", "operations",
        "picture/words", "positions", "truncation",
    }  # fmt: skip
    needing = {key for key, quantity in QUANTITIES.items() if quantity.parameter_gradients}
    assert needing == {"bptt", "clipping", "truncation"}
