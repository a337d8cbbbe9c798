"""A gradient that vanishes or explodes from the top layer of a recurrent stack to the lowest one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inspector.diagnosis.rule import PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.units import of_how_many
from inspector.records import Finding

ONE_ALONE = "exact for the sequence that is shown, one alone"
NAME, STACK = "layers:gradient/depth", "layers:gradient/state_norm"


class DepthGradient:
    """Reads ‖∂L/∂h‖ of every layer: the mean over the steps of a recurrent stack, or of a plain stack of layers.

    Counter-example: layers whose states differ in scale (a norm in between) may have any ratio; and parallel layers are
    no stack. So a ratio is a warning only where the gradient of the lowest layer is tiny itself.
    """

    id = "IN418"
    title = "Gradients that vanish or explode through depth"
    summary = (
        "The gradient of the lowest layer of a stack is a small part, or a large multiple, of that of the top one."
    )
    trust: Trust = "descriptive"
    scope: Scope = "frame"
    reads = ("depth", "gradient")
    needs = ("depth", "gradients")
    limits = (
        Limit("ratio", 1e-3, "Lowest layer over top layer (AUTOTRAINER, ICSE 2021).", within=PART),
        Limit("gradient", 1e-4, "Mean gradient of the lowest layer below which that is a warning (AUTOTRAINER)."),
        Limit("large", 1e3, "Lowest over top; AUTOTRAINER has 70, which states of unlike scale reach."),
    )
    reference = "Schoenholz et al. 2017, arXiv 1611.01232; Zhang et al. 2021 (AUTOTRAINER), arXiv 2103.02911"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """One for each stack."""
        for name in (NAME, STACK):
            if name in run.channels and run.revision(name, frame):
                yield from self._of(run, name, frame)

    def _of(self, run: Run, name: str, frame: int) -> Iterable[Finding]:
        channel, values = run.channel(name, frame), np.ma.filled(run.array(name, frame), np.nan)
        layers = channel.domain("step") != "step" if name == STACK else True  # else a loop that is called "layers"
        if not layers or tuple(values.shape) != tuple(channel.shape):
            return
        mean = values if name == STACK else values[channel.labels["statistic"].index("mean")]
        if not mean.size or not np.isfinite(mean).all():
            return
        lowest, top = float(mean[0]), float(mean[-1])
        if not top > 0:
            return
        ratio, names = lowest / top, channel.labels.get("layer", ())
        small = ratio < run.limit("ratio")
        if not small and ratio <= run.limit("large"):
            return
        where = f"{names[0]} against {names[-1]}" if names else "the lowest layer against the top one"
        yield Finding(
            rule="depth-gradient", severity="warning" if small and lowest < run.limit("gradient") else "info",
            place=names[0] if names else "layers", evidence=(name,),
            message=f"through {len(mean)} layers the gradient {'shrinks' if small else 'grows'} to {ratio:.2g} of "
            "that at the "
            f"top ({where}: {lowest:.2g}, {top:.2g})",
            sure=f"the mean over {of_how_many(channel)}" if name == NAME else ONE_ALONE,
            unless="the layers do not follow one another, or their states differ in scale by design",
            remedy="Skip connections or a norm between the layers, fewer of them, an orthogonal initialisation."
            if small else "Clip the gradient, a norm between the layers, or a smaller initialisation.",
            code="x = x + layer(x)" if small else "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        )  # fmt: skip


RULES.register("depth-gradient")(DepthGradient())
