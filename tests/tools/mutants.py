"""How many small faults do the tests see? Plants some in chosen modules, one at a time, in a copy of this checkout.

    python tests/tools/mutants.py --modules inspector/engine/attention [more …] [--count 20] [--seed 1]
        [--tests tests/engine/probes …] [--covering .coverage] [--list]

The faults are those of cosmic-ray (`pip install -c constraints.txt '.[test,mutants]'`): a sign, a comparison, a number by
one, a condition. The same seed picks the same faults, spread over the files. Tests are those of TESTS below unless
they are named, or found in a coverage file that says which test ran which line (see covering.py). Tests that fail
without any fault are left out and named; a fault that equivalent_mutants.toml explains is replaced by another. The table says how many faults were caught, and for each survivor the lines
that differ. The checkout is read and never written to.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from covering import Covering

ROOT = Path(__file__).resolve().parents[2]

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
QUANTITIES = "tests/engine/quantities"
TESTS: dict[str, tuple[str, ...]] = {
    "inspector/analysis": ("tests/analysis", "tests/gui"),
    "inspector/capture": ("tests/capture",),
    "inspector/cli": ("tests/test_cli.py", "tests/test_run_command.py", "tests/test_replacing_command.py"),
    "inspector/diagnosis": ("tests/diagnosis",),
    "inspector/engine": ("tests/engine",),
    "inspector/engine/analyses": ("tests/engine/analyses", QUANTITIES),
    "inspector/engine/attention": ("tests/engine/probes", f"{QUANTITIES}/test_attention_quantities.py"),
    "inspector/engine/cells": ("tests/engine/cells", QUANTITIES),
    "inspector/engine/inputs": ("tests/engine/inputs",),
    "inspector/engine/interventions": ("tests/engine/interventions",),
    "inspector/engine/loaders": ("tests/engine/loaders",),
    "inspector/engine/opening": ("tests/engine/opening", "tests/engine/loaders"),
    "inspector/engine/probes": ("tests/engine/probes", "tests/engine/recurrent"),
    "inspector/engine/quantities": (QUANTITIES, "tests/engine/analyses"),
    **{
        f"inspector/engine/quantities/{folder}": (*(f"{QUANTITIES}/test_{name}.py" for name in first), QUANTITIES)
        for folder, first in {
            "dynamics": ("dynamics", "fixed_points"),
            "gates": ("gate_openers", "recurrent", "dynamics"),
            "gradient": ("influence", "bptt", "truncation", "clipping", "depth"),
            "jacobian": ("paths", "recurrent", "bound"),
            "values": ("outputs", "training", "recurrent"),
        }.items()
    },
    "inspector/engine/quantities/attention": (f"{QUANTITIES}/test_attention_quantities.py", "tests/engine/probes"),
    "inspector/engine/recurrent": ("tests/engine/recurrent", "tests/engine/probes"),
    "inspector/gui": ("tests/gui",),
    "inspector/integrations": ("tests/oracles",),
    "inspector/records": ("tests/records", "tests/capture"),
    "inspector/registry.py": ("tests/test_registry.py", "tests/contracts"),
    "inspector/transport": ("tests/transport",),
    "inspector/workspace": ("tests/workspace",),
}
"""Module → the tests that are to catch its faults, the likeliest first; the longest beginning of a path counts."""

PAIRS = (
    "Add_Sub",
    "Sub_Add",
    "Mul_Div",
    "Div_Mul",
    "FloorDiv_Div",
    "Mod_FloorDiv",
    "Pow_Mul",
    "BitAnd_BitOr",
    "BitOr_BitAnd",
)
COMPARISONS = (
    "Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_Gt", "Gt_Lt", "LtE_GtE", "GtE_LtE", "Is_IsNot", "IsNot_Is",
)  # fmt: skip
OPERATORS = {
    *(f"core/ReplaceBinaryOperator_{pair}" for pair in PAIRS),
    *(f"core/ReplaceComparisonOperator_{pair}" for pair in COMPARISONS),
    *(f"core/ReplaceUnaryOperator_Delete_{what}" for what in ("USub", "Invert", "Not")),
    *(f"core/Replace{pair}" for pair in ("TrueWithFalse", "FalseWithTrue", "AndWithOr", "OrWithAnd")),
    "core/ReplaceBreakWithContinue", "core/ReplaceContinueWithBreak", "core/AddNot", "core/NumberReplacer",
    "core/ZeroIterationForLoop",
}  # fmt: skip
"""Faults that a person makes. Left out: those that hardly run at all (a shift of floats), which any test would catch."""

LARGE = 100
"""Constants of a module from here on are limits of time and memory, where one more or less is nothing to be seen."""


WITHOUT_RESULT = ("order", "frozen", "slots")
"""The place of a panel, and what a data class forbids: faults in them change nothing that is computed."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what cosmic-ray is to do, and where."""

    module: str
    operator: str
    occurrence: int
    start: tuple[int, int]
    end: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a fault; `caught` is None where it is equivalent, and where no test passes without it."""

    fault: Fault
    caught: bool | None
    diff: str
    equivalent: str = ""
    """Why nobody could see it, where that is known."""

    @property
    def word(self) -> str:
        """For the line of a fault."""
        none = "equivalent" if self.equivalent else "NOT TRIED"
        return {True: "caught", False: "SURVIVED", None: none}[self.caught]


def main(arguments: list[str] | None = None) -> int:
    """Plant, run, print. Returns 1 where a fault was not tried because all of its tests fail without any, else 0."""
    options = _options(arguments)
    modules = [path for name in options.modules for path in files_below(ROOT / name)]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        copy(ROOT, tree)
        every = candidates(tree, modules)
        equivalent = known_equivalents(EQUIVALENT)
        picked = pick(every, options.count + len(equivalent), options.seed)
        say(f"{min(options.count, len(picked))} of {len(every)} faults in {len(modules)} files, seed {options.seed}")
        if options.list:
            say("\n".join(f"{f.module}:{f.start[0]} {f.operator}" for f in picked[: options.count]))
            return 0
        trial = Trial(tree, Path(folder), options.timeout, equivalent)
        outcomes = _tried(trial, by_tests(picked, options.tests, options.covering), options.count)
    say(table(outcomes))
    return 0 if all(outcome.caught is not None or outcome.equivalent for outcome in outcomes) else 1


def _tried(trial: Trial, faults: Iterable[tuple[tuple[str, ...], Fault]], count: int) -> list[Outcome]:
    """So many faults that could be seen, a line to each; an equivalent one is followed by one more."""
    outcomes: list[Outcome] = []
    for tests, fault in faults:
        done = sum(not outcome.equivalent for outcome in outcomes)
        if done == count:
            break
        outcomes.append(trial.of(fault, tests))
        say(f"  {done + 1}/{count} {outcomes[-1].word} {fault.module}:{fault.start[0]} {outcomes[-1].diff}")
    return outcomes


def known_equivalents(file: Path) -> dict[tuple[str, str], str]:
    """Faults after which the program does the same, judged by hand: module and changed lines → the reason."""
    entries = tomllib.loads(file.read_text())["mutant"]
    return {(entry["module"], entry["change"]): entry["why"] for entry in entries}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Plant small faults in a copy of the checkout and count those caught.")
    parser.add_argument("--modules", nargs="+", required=True, help="files or folders, from the root of the checkout")
    parser.add_argument("--tests", nargs="+", help="tests to run instead of those of the table")
    parser.add_argument("--covering", type=Path, help="a coverage file with a context a test: run those of the line")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--timeout", type=float, default=600.0, help="seconds of tests after which a fault counts as seen"
    )
    parser.add_argument("--list", action="store_true", help="only say which faults would be planted")
    return parser.parse_args(arguments)


def say(text: str) -> None:
    """A line for the person who waits."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def files_below(path: Path) -> list[str]:
    """Python files of a file or folder, as paths from the root. Raises SystemExit where there are none."""
    found = [path] if path.is_file() else sorted(path.rglob("*.py"))
    if not found:
        raise SystemExit(f"{path} is no Python file and holds none; give a path from {ROOT}.")
    return [str(file.relative_to(ROOT)) for file in found]


def copy(root: Path, target: Path) -> None:
    """Everything of a checkout that git does not ignore, changes that are not committed included."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, copied = root / name, target / name
        if source.is_file():
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copied)


def candidates(tree: Path, modules: list[str]) -> list[Fault]:
    """Every fault that could be planted in the modules of a tree."""
    return [fault for module in modules for fault in _possible(module, (tree / module).read_text())]


def _possible(module: str, text: str) -> Iterator[Fault]:
    """The occurrences of an operator are numbered over all places of a file, those that are spared included."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    nodes, left_out = list(ast_nodes(get_ast(text))), spared(ast.parse(text))
    for name in sorted(OPERATORS):
        operator = get_operator(name)()
        places = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, end) in enumerate(places):
            if not any(first <= tuple(start) <= last for first, last in left_out):
                yield Fault(module, name, occurrence, tuple(start), tuple(end))


Span = tuple[tuple[int, int], tuple[int, int]]


def spared(tree: ast.Module) -> list[Span]:
    """Where no fault is planted: annotations, which never run; large constants; keywords that change no result."""
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            found.append(node.returns)
        elif isinstance(node, ast.keyword) and node.arg in WITHOUT_RESULT:
            found.append(node.value)
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            numbers = [
                n.value
                for n in ast.walk(statement.value)
                if isinstance(n, ast.Constant) and type(n.value) in (int, float)
            ]
            if any(abs(number) >= LARGE for number in numbers) or "<<" in ast.unparse(statement.value):
                found.append(statement.value)
    return [((n.lineno, n.col_offset), (n.end_lineno or n.lineno, n.end_col_offset or n.col_offset)) for n in found]


def pick(faults: Iterable[Fault], count: int, seed: int) -> list[Fault]:
    """So many faults, of every file in turn one, at a place drawn first and then one of the faults possible there."""
    places: dict[str, dict[tuple[int, int], list[Fault]]] = {}
    for fault in sorted(faults, key=lambda f: (f.module, f.start, f.operator, f.occurrence)):
        places.setdefault(fault.module, {}).setdefault(fault.start, []).append(fault)
    drawn = random.Random(seed)
    files = sorted(places)
    drawn.shuffle(files)
    picked: list[Fault] = []
    while len(picked) < count and any(places.values()):
        for file in files:
            if len(picked) < count and places[file]:
                place = drawn.choice(sorted(places[file]))
                picked.append(drawn.choice(places[file].pop(place)))
    return picked


def catching(module: str) -> tuple[str, ...]:
    """The tests that are to catch faults of a module."""
    beginnings = [key for key in TESTS if module == key or module.startswith(f"{key}/")]
    return TESTS[max(beginnings, key=len)] if beginnings else ("tests",)


def by_tests(
    faults: Iterable[Fault], given: list[str] | None, file: Path | None = None
) -> list[tuple[tuple[str, ...], Fault]]:
    """Each fault with the tests that are to catch it."""
    covering = None if file is None else Covering(file, ROOT)
    found = []
    for fault in faults:
        tests = tuple(given or ())
        if covering is not None and not tests:
            tests = covering.tests(fault.module, fault.start[0], fault.end[0])
        found.append((tests or catching(fault.module), fault))
    return found


@dataclass(slots=True)
class Trial:
    """Plants faults in a tree, each by itself. A test that fails with one is run once more without it: only then it
    has seen the fault; one that fails by itself is named, and left out from then on."""

    tree: Path
    folder: Path
    timeout: float
    equivalent: dict[tuple[str, str], str]
    """Module and changed lines of faults that nobody could see → why."""
    failing: set[str] = field(default_factory=set)
    """Tests, or files that cannot be collected, that fail without any fault."""

    def of(self, fault: Fault, tests: tuple[str, ...]) -> Outcome:
        """Whether the tests see a fault; at once where it is known that nobody could."""
        module, after = self.tree / fault.module, planted(self.tree, fault)
        before = module.read_text()
        diff = changed(before, after)
        if why := self.equivalent.get((fault.module, diff)):
            return Outcome(fault, None, diff, equivalent=why)
        while left := tuple(test for test in tests if test not in self.failing):
            without = [f"--deselect={test}" for test in sorted(self.failing) if test.startswith(left)]
            module.write_text(after)
            try:
                failed = self._failed((*left, *without))
            except subprocess.TimeoutExpired:
                return Outcome(fault, True, diff)
            finally:
                module.write_text(before)
            broken = self._by_themselves(failed)
            if not broken:
                return Outcome(fault, bool(failed), diff)
            say(f"These fail without any fault, and are left out: {' '.join(broken)}")
            self.failing.update(broken)
        return Outcome(fault, None, diff)

    def _by_themselves(self, failed: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the failed tests that fail without the fault too, or of files that cannot be collected."""
        files = tuple(one for one in failed if "::" not in one)
        tests = tuple(one for one in failed if "::" in one)
        broken = self._failed(tests) if tests else ()
        return broken + (self._failed((*files, "--collect-only")) if files else ())

    def _failed(self, tests: tuple[str, ...]) -> tuple[str, ...]:
        """Node ids of the tests that fail in the tree as it is now; files that cannot be collected by their paths.

        Raises TimeoutExpired.
        """
        shutil.rmtree(cache := self.folder / "cache", ignore_errors=True)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-o", f"cache_dir={cache}", *tests]
        run = subprocess.Popen(
            command, cwd=self.tree, env=_environment(self.tree), start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            code = run.wait(self.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            raise
        listed = cache / "v" / "cache" / "lastfailed"
        failed = tuple(filter(None, json.loads(listed.read_text()))) if listed.is_file() else ()
        return () if code == 0 else failed or tuple(test for test in tests if not test.startswith("--"))


def planted(tree: Path, fault: Fault) -> str:
    """The module's text with the fault. Raises SystemExit where cosmic-ray finds no such place any more."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    text: str | None = mutate_code((tree / fault.module).read_text(), get_operator(fault.operator)(), fault.occurrence)
    if text is None:
        raise SystemExit(f"{fault.module}:{fault.start[0]} {fault.operator} could not be planted.")
    return text


def _environment(tree: Path) -> dict[str, str]:
    """Tests import the copy, and no compiled file of a mutant outlives it."""
    return {
        **os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "QT_QPA_PLATFORM": "offscreen",
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip


def changed(before: str, after: str) -> str:
    """The lines of two texts that differ, as "before → after"."""
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    lines = [line for line in diff if line[:1] in "+-" and not line.startswith(("+++", "---"))]
    one, other = ([line[1:].strip() for line in lines if line[0] == sign] for sign in "-+")
    return f"{' '.join(one)} → {' '.join(other)}"


def table(outcomes: list[Outcome]) -> str:
    """Markdown: files with their faults and those caught, the sum, the survivors, and those that nobody could see."""
    tried = [outcome for outcome in outcomes if outcome.caught is not None]
    rows = ["| module | mutants | caught |", "|---|---|---|"]
    for module in sorted({outcome.fault.module for outcome in tried}):
        own = [outcome for outcome in tried if outcome.fault.module == module]
        rows.append(f"| {module} | {len(own)} | {sum(outcome.caught is True for outcome in own)} |")
    caught = sum(outcome.caught is True for outcome in tried)
    share = f" ({caught / len(tried):.0%})" if tried else ""
    rows.append(f"| **all** | {len(tried)} | {caught}{share} |")
    survivors = [_line(outcome) for outcome in tried if not outcome.caught]
    equivalent = [f"{_line(outcome)}: {outcome.equivalent}" for outcome in outcomes if outcome.equivalent]
    return "\n".join(
        [*rows, "", "Survivors:" if survivors else "No survivor.", *survivors]
        + (["", "Equivalent, and replaced by others:", *equivalent] if equivalent else [])
    )


def _line(outcome: Outcome) -> str:
    return f"- {outcome.fault.module}:{outcome.fault.start[0]}: `{outcome.diff}`"


if __name__ == "__main__":
    raise SystemExit(main())
