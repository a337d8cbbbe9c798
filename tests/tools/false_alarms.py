"""What the rules warn of in the samples: `python tests/tools/false_alarms.py [NAME …] [--quick] [--json F]`.

Every sample is run at every of its checkpoints on its first example, and all rules are asked about each run: with
structure tests at the first and the last checkpoint (`--quick`: nowhere), with influence, spectra and redundancy at
all. One line for each finding at warning or above, which docs/diagnosis.md lists with what is true of it. Takes some
seconds a checkpoint.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

import torch

import inspector
from inspector.engine.registries import QUANTITIES
from inspector.workspace.samples import Sample, own_samples

ALSO = ("influence", "weight/spectrum", "attention/redundancy")
Told = dict[tuple[str, str, str, str], list[str]]
"""(sample, rule, severity, place) → "checkpoint: message" of each."""


def asked(sample: Sample, checkpoint: Path | None, *, structure: bool) -> list[tuple[str, str, str, str]]:
    """(rule, severity, place, message) of one run. A model that cannot be run is told as such."""
    also = [key for key in ALSO if key in QUANTITIES]
    also += [key for key in QUANTITIES if structure and key.startswith("structure/")]
    try:
        given = {} if checkpoint is None else {"checkpoint": str(checkpoint)}
        with inspector.run(sample.name, also=also, **given) as capture:
            found = inspector.diagnose(capture.path)
    except Exception as fault:  # noqa: BLE001 - the others are still run
        return [("not run", "error", "", " ".join(str(fault).split())[:200])]
    broken = [("a rule failed", "error", "", line) for line in found.broken]
    return broken + [(one.id, one.severity, one.place, one.message) for one in found.findings]


def gather(names: list[str], *, quick: bool) -> tuple[Told, int]:
    """What was told at warning or above, and how many runs there were."""
    told: Told = defaultdict(list)
    runs = 0
    for sample in own_samples():
        if names and sample.name not in names:
            continue
        checkpoints: list[Path | None] = [Path(one) for one in sample.checkpoints] or [None]
        for checkpoint in checkpoints:
            runs += 1
            ends = checkpoint in (checkpoints[0], checkpoints[-1])
            at = checkpoint.stem if checkpoint is not None else "as built"
            for rule, severity, place, message in asked(sample, checkpoint, structure=ends and not quick):
                if severity != "info":
                    told[sample.name, rule, severity, place].append(f"{at}: {message}")
                    sys.stdout.write(f"{sample.name} {at}: {severity} {rule} {place}: {message}\n")
                    sys.stdout.flush()
    return told, runs


def main() -> int:
    parser = argparse.ArgumentParser(description="What the rules warn of in the samples.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="without structure tests")
    parser.add_argument("--json", type=Path, help="also write them to this file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    told, runs = gather(given.names, quick=given.quick)
    sys.stdout.write(f"\n{runs} runs\n")
    for (sample, rule, severity, place), lines in told.items():
        sys.stdout.write(f"{sample}: {severity} {rule} at {place or 'the model'} in {len(lines)} checkpoints\n")
    if given.json is not None:
        given.json.write_text(json.dumps([[*key, lines] for key, lines in told.items()], indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
