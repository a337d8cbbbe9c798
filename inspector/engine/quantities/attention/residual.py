"""The residual stream: norms by layer and position, rank collapse, massive activations, scales of layer norms."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from inspector.engine.analyses.attention.residual_stream import Stream, no_stack, streams
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace
from inspector.records.catalogue import ATTENTION

NAME = "residual"
METHOD = "exact; one more call of the model"
NORM = Describe(
    kind="residual", title="norm of the residual stream", formula="‖x_lt‖₂ before the first layer and behind each",
    source="Elhage et al. 2021, A mathematical framework for transformer circuits", scale="log", compare="ratio",
    method=METHOD,
)  # fmt: skip
RANK = Describe(
    kind="residual", title="rank collapse", limits=(-1.0, 1.0),
    formula="‖X − 1 x̄ᵀ‖_F / ‖X‖_F, x̄ the mean over positions: 0 where all positions are alike; cosine: mean over pairs "
    "of positions", source="Dong, Cordonnier & Loukas 2021, who take the norm √(‖·‖₁ ‖·‖_∞)", method=METHOD,
)  # fmt: skip
MASSIVE = Describe(
    kind="residual", title="massive activations",
    formula="largest |x_td| of a layer, the median of all, their ratio, position and channel of the largest; massive: "
    "how many are above 100 and above 1000 × the median", source="Sun et al. 2024, Massive activations", method=METHOD,
    compare="separate",
)  # fmt: skip
SCALE = Describe(
    kind="residual", title="scales of the layer norms", formula="γ of each norm: mean of |γ|, least, largest, spread",
    source="Ba, Kiros & Hinton 2016", method="exact",
)  # fmt: skip
LARGE, TIMES = 100.0, 1000.0
MASSIVE_STATISTICS = ("largest", "median", "ratio", "position", "channel", "massive")
RANK_STATISTICS = ("distance from rank one", "mean cosine")
SCALE_STATISTICS = ("mean", "least", "largest", "spread")


@QUANTITIES.register(NAME)
@per_run(
    summary="the residual stream: norms, rank collapse, massive activations, scales of layer norms", order=60,
    default=False, needs=(ATTENTION,), cost="one more call of the model", work=lambda run: run.call * 3, limit=no_stack,
)  # fmt: skip
def residual(trace: Trace, emit: Emitter) -> None:
    """Write, of each stack of layers, `STACK:residual/norm` (layer, step), `…/rank` and `…/massive` (statistic,
    layer), and of the model `layers:residual/norm_scale` (statistic, module)."""
    if not trace.attentions:
        return
    try:
        _, found = streams(trace)
    except Unsupported as reason:
        emit.refuse(f"layers:{NAME}/norm", str(reason))
        return
    for stream in found:
        _write(emit, stream)
    _write_scales(trace, emit)


def _write(emit: Emitter, stream: Stream) -> None:
    values = [stream.of_sample(one).detach().double().cpu() for one in stream.values]
    labels = {"layer": stream.names}
    norms = torch.stack([one.norm(dim=1) for one in values])
    channel = NORM.channel(
        f"{stream.name}:{NAME}/norm", ("layer", "step"), tuple(norms.shape), "float64", labels=labels,
        domains={"step": stream.domain},
    )  # fmt: skip
    emit.array(channel, norms)
    ranks = torch.tensor([rank_collapse(one) for one in values], dtype=torch.float64).T
    tops = torch.tensor([massive(one) for one in values], dtype=torch.float64).T
    for signal, about, rows, names in (
        ("rank", RANK, ranks, RANK_STATISTICS), ("massive", MASSIVE, tops, MASSIVE_STATISTICS),
    ):  # fmt: skip
        own = about.channel(
            f"{stream.name}:{NAME}/{signal}", ("statistic", "layer"), tuple(rows.shape), "float64",
            labels={**labels, "statistic": names},
        )  # fmt: skip
        emit.array(own, rows)


def rank_collapse(x: Tensor) -> tuple[float, float]:
    """(distance of (t, e) from equal rows, relative to its norm; mean cosine of pairs of rows). NaN for one row."""
    if len(x) < 2:
        return float("nan"), float("nan")
    unit = x / x.norm(dim=1, keepdim=True)
    cosines = unit @ unit.T
    mean = (cosines.sum() - cosines.diagonal().sum()) / (len(x) * (len(x) - 1))
    return float((x - x.mean(0)).norm() / x.norm()), float(mean)


def massive(x: Tensor) -> tuple[float, ...]:
    """The statistics of one layer's stream (t, e)."""
    size = x.abs()
    largest, median = float(size.max()), float(size.quantile(0.5)) if size.numel() < 1 << 24 else float(size.median())
    position, channel = divmod(int(size.argmax()), x.shape[1])
    count = int(((size > LARGE) & (size > TIMES * median)).sum())
    return largest, median, largest / median if median else float("inf"), position, channel, count


def _write_scales(trace: Trace, emit: Emitter) -> None:
    """γ of every norm that has one."""
    found: dict[str, Tensor] = {}
    for name, module in trace.subject.model.named_modules():
        weight = getattr(module, "weight", None)
        if isinstance(weight, Tensor) and weight.dim() == 1 and is_norm(module):
            found[name] = weight.detach().double().cpu()
    if found:
        rows = [(one.abs().mean(), one.min(), one.max(), one.std(unbiased=False)) for one in found.values()]
        values = torch.tensor([[float(number) for number in row] for row in rows], dtype=torch.float64).T
        labels = {"statistic": SCALE_STATISTICS, "module": tuple(found)}
        emit.array(
            SCALE.channel(
                f"layers:{NAME}/norm_scale", ("statistic", "module"), tuple(values.shape), "float64", labels=labels
            ),
            values,
        )


def is_norm(module: nn.Module) -> bool:
    """Whether a module normalises over features: torch's own, or of a class that is called so."""
    return isinstance(module, (nn.LayerNorm, nn.RMSNorm)) or "norm" in type(module).__name__.lower()
