"""Are an embedding and a last layer that begin equal, or are declared to be tied, one parameter?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from inspector.engine.model.declared_ties import declared_tied
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_run
from inspector.engine.trace.trace import Trace

PLACE = "model"
DOMAIN = "structure tied weights"
ABOUT = Describe(
    kind="structure", compare="separate", title="embeddings and last layers that are equal, or declared to be tied",
    formula="one memory (1 or 0); equal in every entry (1 or 0); tied by the model's configuration (1 or 0)",
    source="Press & Wolf 2017, arXiv 1608.05859", labels={"statistic": ("shared", "equal", "declared")},
)  # fmt: skip


@QUANTITIES.register("structure/tied")
@per_run(
    summary="whether equal or tied embeddings and last layers are one parameter", order=90, default=False,
    cost="nearly nothing", work=lambda run: run.call * 1,
)  # fmt: skip
def tied(trace: Trace, emit: Emitter) -> None:
    """Write (statistic, pair); nothing where no embedding is like a linear layer."""
    rows, names = [], []
    for name, other, values in _pairs(trace.subject.model):
        rows.append(values)
        names.append(f"{name} and {other}")
    if not rows:
        return
    emit.labels(DOMAIN, names)
    shape = (3, len(rows))
    emit.array(
        ABOUT.channel(
            f"{PLACE}:structure/tied", ("statistic", "pair"), shape, "float64", domains={"pair": DOMAIN}
        ), np.array(rows, dtype=np.float64).T,
    )  # fmt: skip


def _pairs(model: nn.Module) -> Iterator[tuple[str, str, tuple[bool, bool, bool]]]:
    """Embeddings and linear layers of one shape that are equal or declared to be tied.

    Layers of other kinds may begin as copies of each other by design (those of nn.TransformerEncoder do), and weights
    that are all one number are equal without being meant to be one.
    """
    declared = declared_tied(model)
    modules = dict(model.named_modules())
    embeddings = [(name, one.weight) for name, one in modules.items() if isinstance(one, nn.Embedding)]
    lines = [(name, one.weight) for name, one in modules.items() if isinstance(one, nn.Linear)]
    for name, first in embeddings:
        for other, second in lines:
            if first.shape != second.shape or first.is_meta or second.is_meta:
                continue
            said = any(one is first for one in declared) and any(one is second for one in declared)
            equal = bool(torch.equal(first.detach().cpu(), second.detach().cpu())) and not _even(first)
            if said or equal:
                shared = first.data_ptr() == second.data_ptr()
                yield f"{name}.weight".lstrip("."), f"{other}.weight".lstrip("."), (shared, equal, said)


def _even(weight: Tensor) -> bool:
    return bool((weight == weight.flatten()[0]).all()) if weight.numel() else True
