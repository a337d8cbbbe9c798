"""Each rule on a training with its fault, one without, and one with the remedy: `python tests/bench/bench_cures.py`.

The same as `python -m sample_models.illnesses.record --check`: trains all cases with three seeds, prints the table of
docs/cures.md, changes nothing, ends with 1 where a case is not as it has to be. `python tests/bench/run.py cures`
says how long one training takes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import torch
from harness import Row

from sample_models.illnesses import Case, load, names, record


def rows() -> list[Row]:
    """Seconds of processor time of the longest training of each case, beside the most that one may take."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        return [_row(load(name), Path(folder)) for name in names()]


def _row(case: Case, folder: Path) -> Row:
    taken = []
    for version in record.VERSIONS:
        began = time.process_time()
        record.trained(case, version, 0, folder / case.name / version, lambda _text: None)
        taken.append(time.process_time() - began)
    most = record.MOST_SECONDS
    return Row(f"{case.rule} {case.key}, longest of three", max(taken), most, max(taken) / most, "< 1")


if __name__ == "__main__":
    sys.argv.append("--check")
    sys.exit(record.main())
