"""The command that plants small faults: what it picks, spares and says, and one run of it on a tree of two files."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import mutants
import pytest
from covering import Covering, spread
from mutants import Fault, Outcome, catching, changed, copy, pick, spared, table

ROOT = Path(__file__).resolve().parents[2]


def fault(module: str, line: int, operator: str = "core/AddNot", occurrence: int = 0) -> Fault:
    return Fault(module, operator, occurrence, (line, 0), (line, 4))


def test_every_module_has_tests_and_every_test_of_the_table_is_there() -> None:
    named = {path for paths in mutants.TESTS.values() for path in paths}
    assert not [path for path in named if not (ROOT / path).exists()]
    assert not [path for path in mutants.TESTS if not (ROOT / path).exists()]
    modules = [str(path.relative_to(ROOT)) for path in (ROOT / "inspector").rglob("*.py")]
    whole = {m for m in modules if catching(m) == ("tests",)}
    assert whole <= {"inspector/__init__.py", "inspector/__main__.py", "inspector/version.py"}
    assert catching("inspector/engine/quantities/attention/attention_maps.py")[0].endswith(
        "test_attention_quantities.py"
    )
    assert catching("inspector/engineering.py") == ("tests",), "a folder's name is whole"


def test_a_seed_picks_the_same_faults_spread_over_files_and_places() -> None:
    many = [fault("big.py", line, occurrence=n) for line in range(30) for n in range(3)]
    faults = [*many, *(fault("small.py", line) for line in range(2)), fault("tiny.py", 1)]
    picked = pick(faults, 9, seed=4)
    assert picked == pick(reversed(faults), 9, seed=4) != pick(faults, 9, seed=5)
    assert [sum(one.module == name for one in picked) for name in ("big.py", "small.py", "tiny.py")] == [6, 2, 1]
    assert len({(one.module, one.start) for one in picked}) == 9, "one fault a place"
    assert len(pick(faults, 1000, seed=4)) == 33 and pick([], 5, seed=4) == []


def test_what_no_test_could_see_is_spared() -> None:
    source = """
LIMIT = 2 << 20
SECONDS, STARTS = 120.0, 8
SHARE = 0.5
def f(x: int | None, y: int = 1 | 2) -> int | None:
    z: int | str = 3 | 4
    return g(order=31, size=5, frozen=True)
"""
    lines = source.splitlines()
    found = {lines[a - 1][b:d] for (a, b), (_, d) in spared(ast.parse(source))}
    assert found == {"2 << 20", "120.0, 8", "int", "int | None", "int | str", "31", "True"}


def test_a_copy_holds_what_git_does_not_ignore(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "package").mkdir(parents=True)
    for name in (".gitignore", "package/one.py", "new.py", "out.log", "gone.py"):
        (root / name).write_text("*.log\n" if name == ".gitignore" else name)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "package", ".gitignore", "gone.py"], check=True)
    (root / "package/one.py").write_text("changed")
    (root / "gone.py").unlink()
    copy(root, tmp_path / "copy")
    found = {str(p.relative_to(tmp_path / "copy")) for p in (tmp_path / "copy").rglob("*") if p.is_file()}
    assert found == {".gitignore", "package/one.py", "new.py"}
    assert (tmp_path / "copy/package/one.py").read_text() == "changed"


def test_the_table_counts_and_names_the_survivors() -> None:
    assert changed("a\n    b = 1\n", "a\n    b = 2\n") == "b = 1 → b = 2"
    text = table([Outcome(fault("x.py", 3), False, "b = 1 → b = 2"), Outcome(fault("x.py", 4), True, "")])
    assert "| x.py | 2 | 1 |" in text and "| **all** | 2 | 1 (50%) |" in text
    assert text.endswith("Survivors:\n- x.py:3: `b = 1 → b = 2`")
    same = Outcome(fault("x.py", 5), None, "c[0] → c[-1]", equivalent="there is one")
    told = table([Outcome(fault("x.py", 4), True, ""), same])
    assert "| **all** | 1 | 1 (100%) |" in told and told.endswith(":\n- x.py:5: `c[0] → c[-1]`: there is one")
    assert table([Outcome(fault("x.py", 3), True, "")]).endswith("No survivor.") and "| 0 | 0 |" in table([])


def test_a_path_without_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no Python file"):
        mutants.files_below(tmp_path)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Makes a checkout of one module, small.py, and its tests, test_small.py."""
    pytest.importorskip("cosmic_ray", reason="cosmic-ray is in the extra 'mutants'")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the small tests need none, and pytest is started often

    def write(source: str, tests: str) -> None:
        (tmp_path / "small.py").write_text(source)
        (tmp_path / "test_small.py").write_text(f"from small import f\n\n\n{tests}")
        subprocess.run(["git", "-C", str(tmp_path), "init", "-q"], check=True)

    return write


@pytest.mark.parametrize("sees", [True, False])
def test_faults_are_planted_in_a_copy_and_counted(
    tmp_path: Path, small: Callable[[str, str], None], capsys: pytest.CaptureFixture[str], sees: bool
) -> None:
    """Two faults are possible in `a + b if a < b else a`: a sign and a comparison."""
    source = "def f(a, b):\n    return a + b if a < b else a\n"
    seen = "assert f(1, 2) == 3 and f(2, 2) == 2 and f(3, 2) == 3" if sees else "f(1, 2)"
    small(source, f"def test_f():\n    {seen}\n")
    given = ["--modules", "small.py", "--tests", "test_small.py", "--count", "2"]
    assert mutants.main(given) == 0
    told = capsys.readouterr().out
    assert f"| small.py | 2 | {2 if sees else 0} |" in told and ("No survivor" in told) is sees
    assert sees or "`return a + b if a < b else a → return a - b if a < b else a`" in told
    assert (tmp_path / "small.py").read_text() == source


@pytest.mark.parametrize("which", ["file", "names"])
def test_tests_that_fail_by_themselves_are_named_and_left_out(
    tmp_path: Path, small: Callable[[str, str], None], capsys: pytest.CaptureFixture[str], which: str
) -> None:
    bad = "def test_bad():\n    assert f(1, 2) == 4\n\n\n"
    small("def f(a, b):\n    return a + b\n", f"{bad}def test_f():\n    assert f(1, 2) == 3\n")
    tests = ["test_small.py"] if which == "file" else ["test_small.py::test_bad", "test_small.py::test_f"]
    assert mutants.main(["--modules", "small.py", "--tests", *tests, "--count", "1"]) == 0
    told = capsys.readouterr().out
    assert "fail without any fault, and are left out: test_small.py::test_bad\n" in told
    assert "| small.py | 1 | 1 |" in told
    (tmp_path / "test_small.py").write_text("import missing\n")
    assert mutants.main(["--modules", "small.py", "--tests", "test_small.py", "--count", "1"]) == 1
    told = capsys.readouterr().out
    assert "left out: test_small.py\n" in told and "1/1 NOT TRIED small.py:2" in told
    assert "| **all** | 0 | 0 |" in told


def test_the_tests_of_a_line_are_spread_over_files_the_narrowest_first() -> None:
    weight = Counter({"a.py::wide": 900, "a.py::narrow": 3, "b.py::one": 40, "c.py::one": 5})
    assert spread(weight, weight) == ["a.py::narrow", "c.py::one", "b.py::one", "a.py::wide"]
    assert spread(weight, weight, most=2) == ["a.py::narrow", "c.py::one"]


def test_a_coverage_file_says_which_tests_run_a_line(tmp_path: Path) -> None:
    coverage = pytest.importorskip("coverage", reason="coverage is in the extra 'mutants'")
    data = coverage.CoverageData(str(tmp_path / ".coverage"))
    module = str(tmp_path / "inspector" / "one.py")
    for context, lines in (("t.py::a|run", [3, 4]), ("t.py::b|run", [4, 5, 6]), ("", [1])):
        data.set_context(context)
        data.add_lines({module: lines})
    data.write()
    covering = Covering(tmp_path / ".coverage", tmp_path)
    assert covering.tests("inspector/one.py", 3, 3) == ("t.py::a",)
    assert covering.tests("inspector/one.py", 4, 4) == ("t.py::a", "t.py::b"), "the narrower one first"
    assert covering.tests("inspector/one.py", 1, 1) == ("t.py::a",), "the next line that a test runs"
    assert set(covering.tests("inspector/one.py", 7, 7)) == {"t.py::a", "t.py::b"}, "no line follows"
    assert covering.tests("inspector/two.py", 1, 1) == ()


def test_a_fault_that_is_known_as_equivalent_is_replaced_by_another(
    tmp_path: Path,
    small: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small("def f(a, b):\n    return a + b if a < b else a\n", "def test_f():\n    assert f(1, 2) == 3\n")
    known = tmp_path / "known.toml"
    given = ["--modules", "small.py", "--tests", "test_small.py", "--count", "1", "--seed", "2"]
    known.write_text("mutant = []\n")
    monkeypatch.setattr(mutants, "EQUIVALENT", known)
    assert mutants.main(given) == 0
    first = capsys.readouterr().out.split("small.py:2 ")[1].splitlines()[0]
    known.write_text(f'[[mutant]]\nmodule = "small.py"\nchange = "{first}"\nwhy = "for a test"\n')
    assert mutants.main(given) == 0
    told = capsys.readouterr().out
    assert f"1/1 equivalent small.py:2 {first}" in told and f"`{first}`: for a test" in told
    assert told.count("1/1") == 2 and "| **all** | 1 |" in told


def test_every_equivalent_fault_still_has_its_line_and_a_reason() -> None:
    for (module, change), why in mutants.known_equivalents(mutants.EQUIVALENT).items():
        lines = " ".join(line.strip() for line in (ROOT / module).read_text().splitlines())
        assert change.partition(" → ")[0] in lines, f"{module} has no line {change.partition(' → ')[0]!r} any more"
        assert len(why) > 20
