"""Weight decay on biases and normalisation: exact, by the names of the optimizer's groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.diagnosis.series import listed, the_only
from inspector.records import Finding

NORMS = ("norm", "ln", "bn", "layernorm", "rmsnorm", "batchnorm", "groupnorm")


class DecayOnBiases:
    """Reads the groups. A bias is known by the end of its name ("bias", "bias_hh_l0"), a norm by a part of it.

    Counter-example: a model whose norms have other names is not found; small models rarely suffer.
    """

    id = "IN114"
    title = "Weight decay on biases and norms"
    summary = "The optimizer pulls biases and the scales of normalisation towards 0."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = ()
    reference = "Loshchilov & Hutter 2019; OLMo 2 (arXiv 2501.00656) takes decay off embeddings too"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one."""
        groups = [group for one in run.training().get("optimizers", ()) for group in one.get("groups", ())]
        names = [
            name for group in groups if _decays(group) for name in group.get("parameters", ()) if _is_one(str(name))
        ]
        if names:
            yield Finding(
                rule="decay-on-biases", severity="info", place=the_only(names), places=tuple(names),
                message=f"weight decay acts on {len(names)} biases and norms: {listed(names)}",
                sure="exact, by the names of parameters",
                unless="they are decayed on purpose, or a part is named like a norm and is none",
                remedy="Two groups: decay for matrices, none for vectors.",
                code="[{'params': matrices}, {'params': vectors, 'weight_decay': 0.0}]",
            )  # fmt: skip


def _decays(group: Mapping[str, Any]) -> bool:
    decay = group.get("settings", {}).get("weight_decay", 0)
    return isinstance(decay, (int, float)) and decay > 0


def _is_one(name: str) -> bool:
    parts = name.lower().split(".")
    own = parts[-1].startswith("bias") or parts[-1].endswith("bias")
    return own or any(part.rstrip("0123456789_") in NORMS or part.endswith("norm") for part in parts[:-1])


RULES.register("decay-on-biases")(DecayOnBiases())
