"""The fault suite: `python tests/faults/run.py [SECTION …] [--full] [--seed N] [--times X] [--part K/N]`.

Prints a table of survived, refused and lost, and every lost case as it can be tried again; ends with 1 where one was
lost. Without --full each section tries the short form, which the tests run in parts that share the cores; --times
multiplies the number of cases.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parent.parent)]

from campaign import Outcome, Section, Tally, campaign, sections  # noqa: E402

MODULES = (
    "harmed_captures", "killed_writers", "failing_writes", "hostile_checkpoints", "hostile_texts", "faulty_models",
    "closed_windows", "failing_savings", "failing_exports", "soaks", "flooded_windows", "worker_faults",
    "stopped_processes",
)  # fmt: skip


def every() -> dict[str, tuple[str, Section]]:
    """Each section with the file that it stands in."""
    return {name: (module, one) for module in MODULES for name, one in sections(module).items()}


def table(tallies: list[Tally]) -> str:
    """The outcomes as Markdown."""
    lines = ["| faults | tried | survived | refused | lost |", "|---|---:|---:|---:|---:|"]
    for one in tallies:
        counts = one.counts
        lines.append(
            f"| {one.faults} | {counts.total()} | {counts['survived']} | {counts['refused']} | {counts['lost']} |"
        )
    return "\n".join(lines)


def listing() -> str:
    """What there is to try, as Markdown: what docs/faults.md says of it is this."""
    lines = ["| section | faults | kinds | in short | in long form |", "|---|---|---:|---:|---:|"]
    for name, (_, one) in every().items():
        lines.append(f"| `{name}` | {one.faults} | {one.kinds or 'made'} | {one.short:,} | {one.full:,} |")
    return "\n".join(lines)


def told(case: Any, outcome: Outcome | None, seconds: float) -> None:
    """A line as a case begins and as it ends: where one hangs, its beginning is the last."""
    sys.stderr.write(f"  {json.dumps(case)} … " if outcome is None else f"{outcome.kind} in {seconds:.1f} s\n")
    sys.stderr.flush()


def _part(text: str) -> tuple[int, int]:
    """(K, N) of "K/N". Raises ValueError, which the parser tells."""
    part, parts = map(int, text.split("/"))
    if not 1 <= part <= parts:
        raise ValueError(text)
    return part, parts


def again(section: Section, case: Any) -> int:
    """Try one case where a debugger and a traceback reach it."""
    with tempfile.TemporaryDirectory() as folder:
        prepared = section.prepare(Path(folder))
        scratch = Path(folder, "case")
        scratch.mkdir()
        outcome = section.attempt(case, prepared, scratch)
    sys.stdout.write(f"{outcome.kind}: {outcome.said}\n")
    return int(outcome.kind == "lost")


def asked_for(known: dict[str, tuple[str, Section]]) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Tries faults and counts what became of them.")
    parser.add_argument("names", nargs="*", metavar="SECTION", help=f"one of: {', '.join(known)} (default: all)")
    parser.add_argument("--full", action="store_true", help="the long form")
    parser.add_argument("--times", type=float, default=1.0, help="so many times as many cases")
    parser.add_argument("--cases", type=int, default=0, help="so many of each section")
    parser.add_argument(
        "--part", type=_part, default=(1, 1), metavar="K/N", help="of these every N-th, from the K-th on"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", help="one case, as it was printed, in this process")
    parser.add_argument("--list", action="store_true", help="what there is to try")
    parser.add_argument("--show", action="store_true", help="the cases, a line of JSON each, without trying them")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in known]:
        parser.error(f"no section {unknown[0]}; there are {', '.join(known)}")
    return asked


def main() -> int:
    """Try what was asked for."""
    known = every()
    asked = asked_for(known)
    if asked.list:
        sys.stdout.write(listing() + "\n")
        return 0
    if asked.case:
        code = again(known[asked.names[0]][1], json.loads(asked.case))
        sys.stdout.flush()
        os._exit(code)  # a window of the case still stands, and Python would take it apart after Qt
    part, parts = asked.part
    tallies = []
    for name in asked.names or list(known):
        module, one = known[name]
        began = time.monotonic()
        count = asked.cases or max(1, round((one.full if asked.full else one.short) * asked.times))
        cases = islice(one.cases(count, asked.seed), part - 1, None, parts)
        if asked.show:
            sys.stdout.writelines(json.dumps({"section": name, "case": case}) + "\n" for case in cases)
            continue
        tally = campaign(one, module, cases, tell=told)
        tallies.append(tally)
        sys.stderr.write(f"{name}: {dict(tally.counts)} in {time.monotonic() - began:.0f} s\n")
        for case, said in tally.lost:
            sys.stderr.write(f"  lost {json.dumps(case)}: {said}\n")
    if tallies:
        sys.stdout.write(table(tallies) + "\n")
    return int(any(one.lost for one in tallies))


if __name__ == "__main__":
    sys.exit(main())
