"""A project's settings: what is muted, which limits are changed, and what is said of a file that cannot be used."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from commands import call

from inspector.capture import Writer, open_capture
from inspector.cli.fault import Fault
from inspector.cli.whole_file import write_whole
from inspector.diagnosis import RULES, Settings, SettingsError, diagnose, project_file, read_settings
from inspector.diagnosis.settings import Mute
from inspector.records import Axis, Channel, Labels, Page, RunStart, RunStop
from tests.support.limits_table import PAGE, with_table
from tests.support.training_series import judged, ones


def written(folder: Path, text: str) -> Path:
    path = folder / "inspector.toml"
    path.write_text(text)
    return path


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    outer = written(tmp_path, "")
    assert project_file(tmp_path / "a" / "b") == outer
    inner = written(tmp_path / "a", "")
    assert project_file(tmp_path / "a" / "b") == inner


def test_mutes_and_limits(tmp_path: Path) -> None:
    settings = read_settings(
        written(
            tmp_path,
            '[diagnosis]\nmute = ["IN403", {rule = "no-gradient", place = "extra.*", reason = "frozen"}]\n'
            '[diagnosis.limits]\n"updates-lost.share" = 1\n',
        )
    )
    assert settings.limits == {"updates-lost.share": 1.0}
    assert [(mute.rule, mute.place) for mute in settings.muted] == [("IN403", "*"), ("no-gradient", "extra.*")]


def test_lower_limits_are_below_upper_ones_and_both_may_move(tmp_path: Path) -> None:
    pairs = [(rule, one) for _, rule in RULES.items() for one in rule.limits if one.below]
    assert len(pairs) >= 7
    for rule, one in pairs:
        assert one.value < next(other.value for other in rule.limits if other.name == one.below), rule.id
    moved = "[diagnosis.limits]\n'step-size.small' = 0.2\n'step-size.large' = 0.2\n"
    assert read_settings(written(tmp_path, moved)).limits == {"step-size.small": 0.2, "step-size.large": 0.2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[diagnosis", "is not TOML"),
        ("diagnosis = 3", "expected a table"),
        ("[diagnosis]\nmute = 'IN101'", "expected a list"),
        ("[diagnosis]\nmute = [3]", 'expected "RULE" or a table'),
        ("[diagnosis]\nmute = [{rule = 'IN101', when = 'never'}]", 'expected "RULE" or a table'),
        ("[diagnosis]\nmute = [{rule = 4}]", "expected texts"),
        ("[diagnosis]\nmute = ['IN999']", "there is no rule 'IN999'"),
        ("[diagnosis.limits]\n'updates-lost.chare' = 1", "close to it are updates-lost.share"),
        ("[diagnosis.limits]\n'updates-lost.share' = 'much'", "expected a number"),
        ("[diagnosis.limits]\n'updates-lost.share' = nan", "expected a number"),
        ("[diagnosis.limits]\n'diverged.p' = 2", "diverged.p is 2; expected 0 to 1 (it is 0.05 unless changed)."),
        ("[diagnosis.limits]\n'diverged.p' = -0.01", "expected 0 to 1"),
        (
            "[diagnosis.limits]\n'step-size.small' = 0.2",
            "step-size.small is 0.2 and step-size.large is 0.1 (unchanged); expected the first not to be larger",
        ),
        (
            "[diagnosis.limits]\n'mask-leaks.rounding' = 2\n'mask-leaks.margin' = 3",
            "mask-leaks.margin is 3 and mask-leaks.rounding is 2; expected",
        ),
        ("[diagnosis.limits]\n'loss-spike.recovery' = -3", "expected 0 or more (it is 20 points unless changed)."),
        ("[diagnosis.limits]\n'dead-units.steps' = 0", "expected 1 or more"),
        ("[diagnosis.limits]\n'redundant-heads.divergence' = 0.7", "expected 0 to 0.6931"),
        ("#" * (1 << 16) + "\n", "more than 65,536 bytes"),
        pytest.param("a" + ".a" * 2000 + " = 1", "2,000 dots", id="dots"),
        pytest.param("[diagnosis]\nmute" + ".a" * 900 + " = 1", "expected a list of rules", id="deep mute"),
        pytest.param(f"[diagnosis.limits]\n'updates-lost.share' = {'9' * 400}", "a number up to 1.8e+308", id="large"),
        pytest.param(f"a = {'9' * 5000}", "is not TOML", id="digits"),
        pytest.param("a = " + "[" * 2000, "too deep", id="deep"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=r"inspector\.toml") as problem:
        read_settings(written(tmp_path, text))
    assert said in str(problem.value) and len(str(problem.value).splitlines()) == 1


def test_every_limit_has_a_range_that_its_own_value_is_in_and_both_ends_are_taken(tmp_path: Path) -> None:
    for key, rule in RULES.items():
        for one in rule.limits:
            low, high = one.within
            assert low <= one.value <= high and low < high, (key, one)
            beside = [other.name for other in rule.limits if other.name == one.below or other.below == one.name]
            for value in (low, min(high, 1e300)):
                wanted = {f"{key}.{name}": min(value, 1.0) if name == "small" else value for name in beside}
                wanted[f"{key}.{one.name}"] = value
                text = "[diagnosis.limits]\n" + "".join(f"'{name}' = {number}\n" for name, number in wanted.items())
                assert read_settings(written(tmp_path, text)).limits == wanted
            for value in (low - 1e-6, high + 1e-6):
                with pytest.raises(SettingsError, match="expected"):
                    read_settings(written(tmp_path, f"[diagnosis.limits]\n'{key}.{one.name}' = {value}\n"))


def test_the_page_has_every_limit_with_its_range_and_source() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "python -m tests.support.limits_table writes it anew"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_in_its_place_is_not_waited_for(lost: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "inspector.toml")
    done = call("diagnose", lost.name, "--project", str(tmp_path / "inspector.toml"), cwd=lost.parent, expect=2)
    assert done.stderr.endswith("inspector.toml cannot be read: it is a named pipe, not an ordinary file.\n")


def test_numbers_are_never_given_twice_and_tell_the_trust() -> None:
    assert len({rule.id for _, rule in RULES.items()}) == len(RULES)
    hundreds = {"exact": "IN1", "counterfactual": "IN2", "statistical": "IN3", "descriptive": "IN4"}
    for key, rule in RULES.items():
        assert rule.id.startswith(hundreds[rule.trust]) and len(rule.id) == 5, key
        assert rule.title and rule.summary.endswith(".") and rule.reference
        assert all(limit.source.endswith(".") for limit in rule.limits)
        assert rule.trust != "descriptive" or rule.limits, "a description has a limit with a source"


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """A capture in which updates of two parameters are lost to rounding."""
    name = "parameters:update/lost"
    with Writer(tmp_path / "t.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(
            Channel(name=name, kind="series", dims=("iteration", "parameter"), shape=(None, None), dtype="float64")
        )
        writer.write(Page(name, 0, (0, 0), np.full((30, 2), 0.9)))
        writer.write(Labels("parameter", ("a", "b\x1b[31m")))
        writer.write(RunStop("done"))
    return tmp_path


def test_on_the_command_line(lost: Path) -> None:
    told = call("diagnose", "t.inspect", cwd=lost).stdout
    assert "[IN113 updates-lost]" in told and "\x1b" not in told
    for word in (
        "evidence: parameters:update/lost",
        "sure: exact",
        "unless: ",
        "remedy: ",
        "code: with torch",
        "reference: ",
    ):
        assert f"  {word}" in told
    written(lost, '[diagnosis]\nmute = ["updates-lost"]\n')
    told = call("diagnose", "t.inspect", "--fail-on", "warning", cwd=lost).stdout
    assert "IN113" not in told and "1 finding muted by the project's settings" in told
    assert "IN113" in call("diagnose", "t.inspect", "--muted", "--fail-on", "warning", cwd=lost, expect=1).stdout
    (lost / "other.toml").write_text('[diagnosis.limits]\n"updates-lost.share" = 0.95\n')
    assert "IN113" not in call("diagnose", "t.inspect", "--project", "other.toml", cwd=lost).stdout
    (lost / "other.toml").write_text("[diagnosis]\nmute = 1\n")
    assert "expected a list" in call("diagnose", "t.inspect", "--project", "other.toml", cwd=lost, expect=2).stderr


def test_sarif_has_every_finding_and_says_which_are_suppressed(lost: Path) -> None:
    call("diagnose", "t.inspect", "--sarif", "t.sarif", cwd=lost)
    (run,) = json.loads((lost / "t.sarif").read_text())["runs"]
    known = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    (result,) = run["results"]
    assert result["ruleId"] == "IN113" and result["level"] == "warning" and known["IN113"]["name"] == "updates-lost"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "t.inspect"
    assert list(known) == sorted(rule.id for _, rule in RULES.items())
    written(lost, '[diagnosis]\nmute = ["IN113"]\n')
    call("diagnose", "t.inspect", "--sarif", "t.sarif", cwd=lost)
    (run,) = json.loads((lost / "t.sarif").read_text())["runs"]
    assert [one["suppressions"] for one in run["results"]] == [[{"kind": "external"}]]
    refused = call("diagnose", "t.inspect", "--sarif", f"no{os.sep}t.sarif", cwd=lost, expect=2).stderr
    assert f"no{os.sep}t.sarif cannot be written (No such file or directory); it is as it was." in refused
    before = (lost / "t.sarif").read_bytes()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "replace", _full)
        with pytest.raises(Fault, match="No space left"):
            write_whole(lost / "t.sarif", "half")
    assert (lost / "t.sarif").read_bytes() == before and not list(lost.glob(".*.part"))
    (lost / "link.sarif").symlink_to("t.sarif")
    write_whole(lost / "link.sarif", "{}")
    assert (lost / "link.sarif").is_symlink() and (lost / "t.sarif").read_text() == "{}"


def _full(self: Path, target: Path) -> Path:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_the_rules_are_listed_with_their_limits(tmp_path: Path) -> None:
    told = call("rules", cwd=tmp_path).stdout
    assert (
        "IN113  updates-lost (exact): " in told and "  updates-lost.share = 0.5 (0 to 1): Half of the entries" in told
    )
    listed = json.loads(call("rules", "--json", cwd=tmp_path).stdout)
    assert [one["id"] for one in listed] == sorted(rule.id for _, rule in RULES.items())
    within = {(one["key"], limit["name"]): limit["within"] for one in listed for limit in one["limits"]}
    assert within["updates-lost", "share"] == [0, 1] and within["loss-spike", "distance"] == [0, None]


def test_a_log_of_another_tool_is_judged_by_what_it_has(tmp_path: Path) -> None:
    lines = [json.dumps({"step": n, "loss": 2.0 if n < 300 else float("nan")}) for n in range(400)]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    told = call("diagnose", "log.jsonl", "--fail-on", "error", cwd=tmp_path, expect=1).stdout
    assert (
        "the loss is not finite first at iteration 300 in 100 of 400 points" in told
        and "[IN102 nonfinite-training]" in told
    )
    assert "Nothing to look at was captured for" in told and "no-gradient" in told


def test_the_documents_name_every_rule_with_its_limits() -> None:
    rows = (Path(__file__).parents[2] / "docs" / "diagnosis.md").read_text().splitlines()
    told = {row.split()[1]: row for row in rows if row.startswith("| IN")}
    assert list(told) == sorted(rule.id for _, rule in RULES.items())
    for key, rule in RULES.items():
        limits = ", ".join(f"`{limit.name}` {limit.value:g}" for limit in rule.limits)
        assert told[rule.id].startswith(f"| {rule.id} {key} |") and told[rule.id].endswith(
            f"| {limits} |".replace("|  |", "| |")
        )


@pytest.mark.parametrize(
    ("names", "muted"), [(("extra.weight", "extra.bias"), True), (("extra.bias", "head.bias"), False)]
)
def test_a_pattern_of_places_covers_a_finding_about_several_where_all_match(
    tmp_path: Path, names: tuple[str, str], muted: bool
) -> None:
    """As the page on diagnosis has it, of a watched training whose gradients are missing."""
    values = np.ones((40, 3), np.float32)
    values[:, 1:] = np.nan
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Axis(name="iteration", title="iteration", unit="iteration"))
        writer.write(Labels("parameter", ("e.weight", *names)))
        for name in ("gradient/norm", "update/norm"):
            writer.write(Channel(name=f"parameters:{name}", kind="series", dims=("iteration", "parameter"),
                                 shape=(None, None), title=name))  # fmt: skip
            writer.write(Page(f"parameters:{name}", 0, (0, 0), values))
        writer.write(RunStop("done"))
    settings = Settings(muted=(Mute("no-gradient", "extra.*"),))
    with open_capture(tmp_path / "a.inspect") as capture:
        found = diagnose(capture, capture.frames, settings)
    told, hidden = ({one.rule: one.places for one in some} for some in (found.findings, found.muted))
    left = names if muted else names[1:]  # where some are muted, it goes on about the others
    assert (hidden if muted else told)["no-gradient"] == left and "no-gradient" not in (told if muted else hidden)


@pytest.mark.parametrize(("pattern", "muted"), [("*.weight", False), ("[ab].*", True), ("a.weight", False)])
def test_a_finding_that_names_its_worst_place_is_muted_by_what_covers_all(
    tmp_path: Path, pattern: str, muted: bool
) -> None:
    """Gradients are far above Adam's estimate in a.weight, b.weight and b.bias."""
    settings = Settings(muted=(Mute("stale-second-moment", pattern),))
    found = judged(tmp_path / "a.inspect", tables={"parameters:adam/rms": ones(9.0, 8.0, 7.0)}, settings=settings)
    (one,) = [one for one in (*found.findings, *found.muted) if one.rule == "stale-second-moment"]
    every = ("a.weight", "b.weight", "b.bias")
    left = every if muted else tuple(name for name in every if not Mute("IN304", pattern).at(name))
    assert one.place == left[0] and set(one.places) == set(left)
    assert (one in found.muted) is muted
