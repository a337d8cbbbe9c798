"""float16 with too little room: outputs near its largest number, gradients below its smallest ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from inspector.analysis.clipping import percent
from inspector.diagnosis.rule import COUNT, PART, RULES, Limit, Run, Scope, Trust
from inspector.diagnosis.series import listed, table_of, the_only
from inspector.records import Finding, counted

USED, SUBNORMAL, ZERO = (
    "modules:activation/float16_used", "parameters:gradient/float16_subnormal", "parameters:gradient/float16_zero",
)  # fmt: skip
SCALE = "training:gradient_scale"


class PrecisionHeadroom:
    """Reads the largest outputs in float16 beside 65504, and which share of gradients is below its normal numbers.

    Zeros alone are no sign: rows of symbols that a batch has not, and units that are off, have them too. They count
    where nearly all of what is not 0 is in the last bits before 0. Counter-example: gradients that are small since the
    training has found its minimum; a module that rightly gives one large number.
    """

    id = "IN422"
    untried = "the precision, and the factor on the loss, are in your training loop"
    title = "float16 has too little room"
    summary = "Outputs come near the largest number of float16, or gradients fall below its smallest ones."
    trust: Trust = "descriptive"
    scope: Scope = "training"
    reads = ("series",)
    needs = ()
    limits = (
        Limit("near", 0.25, "Of 65504: two doublings are left; a judgement, as no source has a number.", within=PART),
        Limit(
            "subnormal",
            0.9,
            "Of entries that are not 0, below 2⁻¹⁴, where bits are lost one by one; a judgement.",
            within=PART,
        ),
        Limit("zero", 0.1, "Of all entries: from here on it is told; a warning from `lost` on.", within=PART),
        Limit("lost", 0.5, "Of all entries: more than half of a gradient is not there.", within=PART),
        Limit("looks", 3, "Of which the median is taken: one batch is none.", within=COUNT),
    )
    reference = "Micikevicius et al. 2018, arXiv 1710.03740 (mixed precision training, loss scaling)"

    def findings(self, run: Run, frame: int) -> Iterable[Finding]:
        """At most one for each end of the range."""
        yield from self._overflow(run)
        yield from self._underflow(run)

    def _overflow(self, run: Run) -> Iterator[Finding]:
        table = table_of(run, USED)
        if table is None:
            return
        beyond = table.values >= run.limit("near")  # NaN, not in float16, compares as false
        columns = np.flatnonzero(beyond.any(0))
        if not len(columns):
            return
        first = {int(n): int(np.argmax(beyond[:, n])) for n in columns}
        worst = min(first, key=lambda n: (first[n], -float(table.values[first[n], n])))
        own = table.values[:, worst][~np.isnan(table.values[:, worst])]
        names = [table.names[worst], *(table.names[n] for n in first if n != worst)]
        stays = any(table.values[:, n][~np.isnan(table.values[:, n])][-1] >= run.limit("near") for n in first)
        more = f"; {counted(len(names) - 1, 'module')} more so" if len(names) > 1 else ""
        yield Finding(
            rule="precision-headroom", severity="warning" if stays else "info", place=table.names[worst],
            message=f"the largest output of {table.names[worst]} came to {_share(float(own.max()))} of what float16 "
            f"can hold (65504): beyond {run.limit('near'):g} from iteration {table.iterations[first[worst]]:g} on, "
            f"{float(own[0]):.2g} at first{more}",
            evidence=(USED,), iterations=(int(table.iterations[first[worst]]),),
            sure="exact for the recorded iterations", unless="it does not grow on, and is not multiplied afterwards",
            remedy="bfloat16, which has the range of float32; else a norm before the layer, smaller weights, or this "
            "part in float32.",
            code="with torch.autocast('cuda', torch.bfloat16): ...",
        )  # fmt: skip

    def _underflow(self, run: Run) -> Iterator[Finding]:
        small, zero = table_of(run, SUBNORMAL), table_of(run, ZERO)
        if small is None or zero is None or small.names != zero.names:
            return
        looked = [n for n in range(len(small.names)) if np.isfinite(zero.values[:, n]).any()]
        if not looked or run.too_few(
            max(int(np.isfinite(zero.values[:, n]).sum()) for n in looked), run.limit("looks")
        ):
            return
        shares = {n: float(np.nanmedian(zero.values[:, n])) for n in looked}
        bits = {n: _median(small.values[:, n]) for n in looked}
        under = [n for n in looked if bits[n] >= run.limit("subnormal") and shares[n] >= run.limit("zero")]
        if not under:
            return
        gone = [n for n in looked if np.isnan(bits[n])]  # nothing but zeros, beside those that are nearly so
        worst = max(under, key=lambda n: shares[n])
        names = [small.names[n] for n in sorted(under, key=lambda n: -shares[n])]
        told = (
            f"; {counted(len(gone), 'parameter')} more {'has' if len(gone) == 1 else 'have'} only zeros" if gone else ""
        )
        yield Finding(
            rule="precision-headroom", severity="warning" if shares[worst] >= run.limit("lost") else "info",
            place=the_only(names), places=tuple(names),
            message=f"the gradient of {small.names[worst]} is computed in float16, where {percent(shares[worst])} of "
            f"its entries are 0 and {percent(bits[worst])} of the others below 6e-5, where bits are lost (medians): "
            f"{listed(names)} of {counted(len(looked), 'parameter')}{told}",
            evidence=(ZERO, SUBNORMAL, *((SCALE,) if SCALE in run.channels else ())),
            sure="exact for the entries that are looked at; that the zeros were numbers too small is likely, not shown",
            unless="the training has found its minimum, where gradients are small in any precision",
            remedy="Multiply the loss before the backward pass and divide gradients before the step (a GradScaler), or "
            "take bfloat16, which has the range of float32.",
            code="scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()",
        )  # fmt: skip


def _share(value: float) -> str:
    return "infinity: more than all" if np.isinf(value) else percent(value)


def _median(values: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else float("nan")


RULES.register("precision-headroom")(PrecisionHeadroom())
