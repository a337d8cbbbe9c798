"""Two runs of the same code: where they begin to differ by more than rounding explains.

In: two views with recorded operations, or with series over training. Out: a verdict for each, and the numbers.

    recorded     operations as they were recorded, and fingerprints of two values compared
    alignment    two sequences of operations side by side: which belong together, which only one run has
    rounding     how much of a difference rounding explains
    operations   the first operation that differs though its inputs agree
    training     the first iteration and parameter
    report       both, as text and as data

Begin reading with `operations.py`.
"""

from inspector.analysis.divergence.report import Divergence, first_divergence

__all__ = ["Divergence", "first_divergence"]
