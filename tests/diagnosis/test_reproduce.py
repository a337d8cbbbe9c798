"""The script of a rule: complete, and harmless whatever the finding's sentence contains."""

from __future__ import annotations

import ast
import tokenize
from io import BytesIO
from pathlib import Path

import pytest
from commands import call

import inspector
import sample_models.illnesses
from inspector.diagnosis import RULES, NoCaseError, default_name, has_case, reproduce
from inspector.records import Finding

KEY = "contracting-weight"
CASE = Path(sample_models.illnesses.__file__).with_name("contracting_weight.py")


def finding(message: str, place: str = "rnn") -> Finding:
    return Finding(rule=KEY, id="IN205", severity="warning", place=place, message=message)


def test_the_script_is_the_case_with_what_was_found_at_its_head() -> None:
    text = reproduce("IN205", [finding("γσ₁ is 0.5")])
    head, case = text[: -len(CASE.read_text("utf-8"))], text[-len(CASE.read_text("utf-8")) :]
    assert case == CASE.read_text("utf-8")
    assert all(line.startswith("# ") for line in head.splitlines())
    assert "IN205 contracting-weight" in head and "Found at rnn: γσ₁ is 0.5" in head
    assert ast.get_docstring(ast.parse(text)) == ast.get_docstring(ast.parse(case))
    assert reproduce(KEY) == inspector.reproduce("in205") and "Found" not in reproduce(KEY)


@pytest.mark.parametrize(
    "nasty",
    [
        "a\nimport os", "a\rimport os", "a\r\nimport os", "a\x0cimport os", "a\x85import os", "a\u2028import os",
        "a\x00b", "-*- coding: utf-7 -*- +AAo-import os", "\u202eos tropmi", "\ud800", '"""', "\\\nimport os", "x" * 5000,
        "\x1b]0;title\x07",
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["message", "place"])
def test_no_sentence_leaves_the_comment(nasty: str, where: str) -> None:
    found = finding(nasty, "rnn") if where == "message" else finding("said", nasty)
    data = reproduce(KEY, [found]).encode("utf-8")
    assert tokenize.detect_encoding(BytesIO(data).readline)[0] == "utf-8"
    assert ast.dump(ast.parse(data)) == ast.dump(ast.parse(CASE.read_bytes()))
    assert not set("\x00\x0c\x1b\x85\u2028\u202e") & set(data.decode("utf-8"))


def test_many_findings_are_counted() -> None:
    text = reproduce(KEY, [finding(f"number {n}") for n in range(8)])
    assert "number 4" in text and "number 5" not in text and "Found 3 times more." in text


def test_every_case_is_a_rule_s_and_every_rule_s_is_found() -> None:
    files = {path.stem for path in CASE.parent.glob("*.py") if "\nRULE = " in path.read_text("utf-8")}
    rules = {key.replace("-", "_"): rule for key, rule in RULES.items()}
    assert files <= set(rules)
    for name, rule in rules.items():
        assert has_case(rule.id) == (name in files), name
        if name in files:
            assert f'RULE = "{rule.id}"' in reproduce(rule.id)


def test_no_other_file_of_the_folder_is_given() -> None:
    from inspector.workspace.cases import case_text

    assert case_text("record") is None and case_text("__init__") is None and case_text("../base") is None


def test_what_cannot_be_reproduced_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NoCaseError, match=r"There is no rule 'IN999'; "):
        reproduce("IN999")
    monkeypatch.setattr("inspector.diagnosis.case_script.case_text", lambda _name: None)
    assert not has_case("IN205") and not has_case("IN999")
    with pytest.raises(NoCaseError, match=r"There is no script yet that shows what IN205 \(contracting-weight\) finds"):
        reproduce("IN205")


def test_the_command_writes_a_file_once(tmp_path: Path) -> None:
    call("reproduce", "IN205", "--to", "case.py", cwd=tmp_path)
    target = tmp_path / "case.py"
    assert target.read_text("utf-8") == reproduce("IN205")
    target.write_text("mine")
    again = call("reproduce", "IN205", "--to", "case.py", cwd=tmp_path, expect=2)
    assert again.stderr == "case.py exists; --overwrite replaces it.\n" and target.read_text() == "mine"
    call("reproduce", "IN205", "--to", "case.py", "--overwrite", cwd=tmp_path)
    assert target.read_text("utf-8") == call("reproduce", KEY, cwd=tmp_path).stdout
    none = call("reproduce", "IN999", cwd=tmp_path, expect=2)
    assert none.stderr.startswith("There is no rule 'IN999'; ")
    assert default_name("IN205") == Path("IN205-contracting-weight.py")


def test_the_command_says_what_was_found_in_a_capture(tmp_path: Path) -> None:
    recorded = CASE.parent / "recorded" / "no_gradient" / "ill" / "run.inspect"
    told = call("reproduce", "no-gradient", "--of", str(recorded), cwd=tmp_path).stdout
    assert "# Found: " in told and "no gradient" in told and "\nRULE = " in told
    none = call("reproduce", "IN205", "--of", str(recorded), cwd=tmp_path, expect=2)
    assert none.stderr.startswith("The rule contracting-weight finds nothing in ")
