"""Cases of rules: the recordings say what they said when they were made, and what they have to say."""

from __future__ import annotations

import ast
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import inspector
from inspector.diagnosis import RULES
from sample_models.illnesses import FOLDER, VERSIONS, Case, load, names
from sample_models.illnesses.not_yet import NOT_YET
from sample_models.illnesses.record import PAGE, trained
from sample_models.illnesses.results import RECORDED, Result, faults, judged, read, write
from sample_models.illnesses.table import BEGIN, END, markdown, replaced

ANEW = (("no_gradient", "ill"), ("reach_through_time", "ill"), ("dead_activations", "cured"))
"""An exact rule, a statistical one, a descriptive one: trained here, the others are judged by their recordings."""
MOST_LINES = 80
"""Models that are written out, as attention with a cache, do not fit into fewer."""


@pytest.fixture(scope="module")
def results() -> Mapping[str, list[Result]]:
    return read()


def test_every_rule_has_a_case_or_a_reason_why_not() -> None:
    cases = {load(name).rule for name in names()}
    assert not cases & NOT_YET.keys()
    assert cases | NOT_YET.keys() == {rule.id for _key, rule in RULES.items()}
    assert all(NOT_YET.values())


@pytest.mark.parametrize("name", names())
def test_a_case_is_a_short_script_named_as_its_rule(name: str) -> None:
    case, text = load(name), (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert RULES[case.key].id == case.rule and name.startswith(case.key.replace("-", "_"))
    assert len(text.splitlines()) <= MOST_LINES
    imported = {
        (getattr(node, "module", None) or alias.name).split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert imported - set(sys.stdlib_module_names) <= {"torch", "inspector"}
    assert 'if __name__ == "__main__":' in text


@pytest.mark.parametrize("name", names())
def test_the_results_are_as_they_have_to_be(name: str, results: Mapping[str, list[Result]]) -> None:
    rows = results[name]
    assert {(one.version, one.seed) for one in rows} == {(version, seed) for version in VERSIONS for seed in range(3)}
    assert not faults(load(name), rows)


@pytest.mark.parametrize("name", names())
def test_the_rules_say_of_the_recordings_what_the_results_say(name: str, results: Mapping[str, list[Result]]) -> None:
    for one in results[name]:
        if one.seed == 0:
            said = judged(load(name), one.version, 0, 0.0, RECORDED / name / one.version)
            assert said == replace(one, loss=0.0)


def test_there_are_no_recordings_of_what_is_no_case_and_all_are_small(results: Mapping[str, list[Result]]) -> None:
    assert set(results) == set(names())
    assert {path.name for path in RECORDED.iterdir() if path.is_dir()} == set(names())
    assert sum(path.stat().st_size for path in RECORDED.rglob("*") if path.is_file()) < 390_000 * len(names())


def test_the_page_has_the_table_of_the_results(results: Mapping[str, list[Result]]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == replaced(page, markdown([load(name) for name in names()], results))


@pytest.mark.parametrize(("name", "version"), ANEW)
def test_a_case_trained_anew_is_as_it_was_recorded(
    name: str, version: str, results: Mapping[str, list[Result]], tmp_path: Path
) -> None:
    case, threads = load(name), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = trained(case, version, 0, tmp_path / version, lambda _text: None)
    finally:
        torch.set_num_threads(threads)
    (recorded,) = (one for one in results[name] if (one.version, one.seed) == (version, 0))
    assert (found.fired, found.others) == (recorded.fired, recorded.others)
    assert found.loss == pytest.approx(recorded.loss, rel=0.2)  # other kernels, other roundings


def test_a_script_runs_by_itself_and_each_version_tells_of_its_own_capture(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "no_gradient.py"), "healthy", "ill"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    ill, healthy = done.stdout.split("\nhealthy ")
    assert ill.startswith("ill loss") and "[IN111]" in ill and "[IN111]" not in healthy
    (path,) = tmp_path.glob("ill-*/run.inspect")
    assert str(path.parent) in ill and "IN111" in {finding.id for finding in inspector.diagnose(path).findings}


@pytest.mark.parametrize("name", names())
def test_a_script_diagnoses_what_it_has_just_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    (main,) = (one for one in tree.body if isinstance(one, ast.If))
    frame = compile(ast.Module(main.body, []), name, "exec")
    wrote, asked = list[Path](), list[Path]()
    inspector_ = SimpleNamespace(diagnose=lambda path: asked.append(path) or SimpleNamespace(findings=[]))

    def train(version: str, seed: int, folder: Path) -> float:
        assert seed == 0 and not any(folder.iterdir()), version
        wrote.append(folder)
        return 1.5

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for arguments in (["ill"], ["ill"], ["healthy", "cured"]):
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
        exec(
            frame,
            {"sys": sys, "tempfile": tempfile, "Path": Path, "train": train, "inspector": inspector_, "EVIDENCE": ""},
        )
    assert len(set(wrote)) == 4 and asked == [folder / "run.inspect" for folder in wrote]
    told = capsys.readouterr().out.splitlines()
    assert [line.endswith(f"1.5 in {folder}") for line, folder in zip(told, wrote, strict=True)] == [True] * 4
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "helthy"])
    with pytest.raises(SystemExit, match="ill, healthy, cured"):
        exec(frame, {"sys": sys})


def case(level: str = "warning", evidence: str = "", also: tuple[str, ...] = ()) -> Case:
    return Case("some_rule", "IN999", "It is ill.", "It is cured.", evidence, level, also, lambda *_of: 0.0)  # type: ignore[arg-type]


def rows(
    ill: str = "warning", cured: str = "", losses: tuple[float, float] = (2.0, 1.0), others: tuple[str, ...] = ()
) -> list[Result]:
    return [
        Result("ill", 0, losses[0], ill, ("IN303 plateau",)),
        Result("healthy", 0, 0.5, "", ()),
        Result("cured", 0, losses[1], cured, others),
    ]


def test_what_has_to_be_true_of_a_case() -> None:
    assert not faults(case(), rows())
    assert not faults(case(), rows(ill="error"))
    assert not faults(case("info"), rows(ill="info"))
    assert not faults(case(), rows(cured="info"))
    assert not faults(case(), rows(losses=(math.nan, 5.0)))
    assert not faults(case(evidence="none: as good"), rows(losses=(1.0, 1.0)))
    assert not faults(case(also=("IN303",)), rows(others=("IN303 plateau",)))
    for bad in (rows(ill="info"), rows(ill=""), rows(cured="warning"), rows(losses=(1.0, 1.0)), rows(losses=(1.0, math.nan)),
                rows(losses=(math.nan, math.nan)), rows(others=("IN303 plateau",))):  # fmt: skip
        assert len(faults(case(), bad)) == 1
    assert len(faults(case("info"), rows(ill="info", cured="info"))) == 1
    assert len(faults(case(evidence="another number"), rows(losses=(1.0, 2.0)))) == 1


def test_results_are_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    assert read(path) == {}
    write({"b": rows(), "a": rows(losses=(math.inf, 1.25))}, path)
    assert read(path) == {"a": rows(losses=(math.inf, 1.25)), "b": rows()}
    write({"a": rows(losses=(math.nan, 1.0))}, path)
    assert math.isnan(read(path)["a"][0].loss)


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    assert replaced(f"a {BEGIN} old {END} b", "new") == f"a {BEGIN}\nnew\n{END} b"
    with pytest.raises(ValueError, match="no place"):
        replaced("a page", "new")


def test_a_case_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="no_gradient"):
        load("nothing")
