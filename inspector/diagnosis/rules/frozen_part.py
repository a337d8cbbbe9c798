"""A part of the net that requires no gradient: whether it was ever trained, as far as its weights tell."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.diagnosis.rule import RULES, Run, Scope, Trust
from inspector.diagnosis.series import listed, the_only
from inspector.records import Finding, counted

NORMS = "parameters:weight/norm"


class FrozenPart:
    """Reads which parameters require no gradient, and which of these are as PyTorch draws them.

    A part that was loaded and is kept is usual, so it is information; one that nobody ever trained is not. Counter-
    example: random features that are meant to stay, as of an echo-state network.
    """

    id = "IN126"
    title = "A part of the net is frozen"
    summary = "Parameters require no gradient; a warning where their weights are as they were drawn, untrained."
    trust: Trust = "exact"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = ()
    reference = (
        "He et al. 2015; Glorot & Bengio 2010 (the bounds of PyTorch's initial weights); Smirnov 1948 (the test)"
    )

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one, for all of them."""
        said = run.training()
        frozen = [str(one) for one in said.get("frozen", ())]
        drawn = [str(one) for one in said.get("frozen_as_drawn", ())]
        if frozen:
            yield _finding(run, frozen, drawn)


def _finding(run: Run, frozen: list[str], drawn: list[str]) -> Finding:
    what = f"{counted(len(frozen), 'parameter')} require{'s' if len(frozen) == 1 else ''} no gradient and "
    what += f"stay{'s' if len(frozen) == 1 else ''} as {'it is' if len(frozen) == 1 else 'they are'}: {listed(frozen)}"
    which = f"; {listed(drawn)} {'is' if len(drawn) == 1 else 'are'} as PyTorch draws them, so nobody has trained them"
    return Finding(
        rule="frozen-part", severity="warning" if drawn else "info", place=the_only(frozen), places=tuple(frozen),
        message=what + (which if drawn else "; whether that is meant, the numbers do not tell"),
        evidence=(NORMS,) if NORMS in run.channels else (),
        sure="exact that they require no gradient, when watching began" + (
            "; that they were never trained, by a test that a hundred steps of training do not pass" if drawn else ""
        ),
        unless="random features are meant, as of an echo-state network" if drawn
        else "they were loaded, and are to stay",
        remedy="Call requires_grad_(True) before the optimizer is made, or load the weights that were to be kept."
        if drawn else "See that their weights were loaded (compare with the checkpoint: inspector compare), and try "
        "training them too.",
        code="model.encoder.requires_grad_(True)",
    )  # fmt: skip


RULES.register("frozen-part")(FrozenPart())
