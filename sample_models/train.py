"""Rewrite the checkpoints: `python -m sample_models.train NAME|all [--steps N] [--seed N]`."""

from __future__ import annotations

import argparse
import ast
import importlib
import shutil
import sys

import torch

from sample_models.base import FOLDER, train


def cards() -> dict[str, str]:
    """Name on the card → file stem, for every sample in this folder."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "SAMPLE":
                found[ast.literal_eval(node.value)["name"]] = path.stem
    return found


def say(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(text + "\n")


def main() -> int:
    """Train one sample or all of them."""
    known = cards()
    parser = argparse.ArgumentParser(description="Train sample models and rewrite their checkpoints.")
    parser.add_argument("name", choices=["all", *known])
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)  # sums in the same order: the same bits on every machine with the same kernels
    for name in known if given.name == "all" else [given.name]:
        sample = importlib.import_module(f"sample_models.{known[name]}").build()
        folder = FOLDER / "checkpoints" / known[name]
        fresh = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        train(sample, fresh, seed=given.seed, steps=given.steps, tell=say)
        shutil.rmtree(folder, ignore_errors=True)  # only now: an interrupted run leaves the old checkpoints
        fresh.rename(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
