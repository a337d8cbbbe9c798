"""Do two source trees make the same captures? Every sample with every quantity, number by number.

    python tests/tools/compare_installations.py write TREE FOLDER [--samples a,b] [--jobs 1]
    python tests/tools/compare_installations.py compare FOLDER_BEFORE FOLDER_AFTER [--ulp 4]

`write` runs every sample model with the code of TREE (a checkout of any commit) and every quantity that it knows, into
FOLDER/NAME.inspect. `compare` reads both with the code of this checkout and lists channels that only one has, and those
whose numbers differ by more than `--ulp` units in the last place; it ends with 1 if there are any. NaN equals NaN.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture, open_capture

RUN = """
import sys, inspector
from inspector.{registries} import QUANTITIES
# `only` was called `quantities` once, which is still understood
inspector.run(sys.argv[1], quantities=tuple(QUANTITIES), seed=0, out=sys.argv[2]).close()
"""
Array = npt.NDArray[np.generic]


def registries_of(tree: Path) -> str:
    """The module with the registries, which had another name once."""
    return "engine.registries" if (tree / "inspector/engine/registries.py").exists() else "engine.shelves"


def write(tree: Path, folder: Path, samples: list[str]) -> int:
    """Captures of the samples made by the code of a tree; the number that failed."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(tree), "QT_QPA_PLATFORM": "offscreen"}
    code = RUN.format(registries=registries_of(tree))
    failed = 0
    for name in samples or names_in(tree, environment):
        target = folder / f"{name}.inspect"
        if target.exists():
            continue
        done = subprocess.run(
            [sys.executable, "-P", "-c", code, name, str(target)], env=environment, capture_output=True, text=True
        )
        failed += bool(done.returncode)
        told = (done.stderr.strip().splitlines() or ["?"])[-1]
        sys.stdout.write(f"{name}: {'written' if not done.returncode else f'FAILED: {told}'}\n")
        sys.stdout.flush()
    return failed


def names_in(tree: Path, environment: dict[str, str]) -> list[str]:
    """Names of the samples of a tree."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "inspector", "samples", "--json"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip

    return [sample["name"] for sample in json.loads(done.stdout)]


def distance(before: Array, after: Array) -> float:
    """Largest distance in units of the last place; infinite where shape, type, or NaN differ."""
    if before.shape != after.shape or before.dtype != after.dtype:
        return float("inf")
    if np.array_equal(before, after, equal_nan=before.dtype.kind == "f"):
        return 0.0
    if before.dtype.kind != "f":
        return float("inf")
    if not np.array_equal(np.isnan(before), np.isnan(after)):
        return float("inf")
    good = np.isfinite(before) & np.isfinite(after)
    if not np.array_equal(before[~good], after[~good], equal_nan=True):
        return float("inf")
    a, b = before[good], after[good]
    spacing = np.spacing(np.maximum(np.abs(a), np.abs(b)).astype(before.dtype))
    return float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)) / spacing.astype(np.float64)))


def differences(before: Capture, after: Capture, ulp: float) -> Iterator[str]:
    """One line for everything that is not the same in two captures of one sample."""
    for name in before.channels.keys() - after.channels.keys():
        yield f"{name}: only before"
    for name in after.channels.keys() - before.channels.keys():
        yield f"{name}: only after"
    for name in sorted(before.channels.keys() & after.channels.keys()):
        for frame in {f.index for f in before.frames} | {f.index for f in after.frames}:
            apart = distance(np.asarray(before.array(name, frame)), np.asarray(after.array(name, frame)))
            if apart > ulp:
                yield f"{name} (frame {frame}): {apart:.3g} units in the last place"
    for which in ("refusals", "scalars"):
        a, b = ({_key(item) for item in getattr(capture, which)} for capture in (before, after))
        for item in sorted(a ^ b):
            yield f"{which}: {item} only {'before' if item in a else 'after'}"
    for domain in set(before.label_domains) | set(after.label_domains):
        if before.labels(domain) != after.labels(domain):
            yield f"labels of {domain!r} differ"


def _key(item: object) -> str:
    """What must be equal of a refusal or scalar: seconds are never."""
    channel = getattr(item, "channel", "")
    return f"refused {channel}" if channel else f"scalar {getattr(item, 'name', '')}"


def compare(before: Path, after: Path, ulp: float) -> int:
    """List what differs between the captures of two folders; the number of samples that differ."""
    wrong = 0
    for path in sorted(before.glob("*.inspect")):
        other = after / path.name
        if not other.exists():
            sys.stdout.write(f"{path.stem}: not made after\n")
            wrong += 1
            continue
        with open_capture(path) as a, open_capture(other) as b:
            lines = list(differences(a, b, ulp))
            sys.stdout.write(f"{path.stem}: {len(a.channels)} channels, {len(lines)} differences\n")
            sys.stdout.writelines(f"    {line}\n" for line in lines)
            wrong += bool(lines)
    return wrong


def main() -> int:
    """Entry point; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("tree", type=Path)
    writing.add_argument("folder", type=Path)
    writing.add_argument("--samples", default="")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--ulp", type=float, default=4.0)
    given = parser.parse_args()
    if given.command == "write":
        return int(bool(write(given.tree.resolve(), given.folder, [n for n in given.samples.split(",") if n])))
    return int(bool(compare(given.before, given.after, given.ulp)))


if __name__ == "__main__":
    raise SystemExit(main())
