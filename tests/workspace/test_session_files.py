"""Sessions as text files: what is written is read, paths move with the file, and nothing hostile gets further than a
sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector.records import Edit, InputSpec, Load, Note, Noted, ViewAt
from inspector.records.saved_session import SavedSession
from inspector.workspace.session_files import (
    LARGEST,
    SessionError,
    agree_to,
    is_session,
    read_session,
    what_runs,
    with_suffix,
    write_session,
)

WHOLE = SavedSession(
    load=Load(subject="char-lstm", device="cpu", seed=3, trusted=True, agreed={"/x": "0" * 64}, generation=7),
    input=InputSpec(kind="text", value="a\nb é \udc80"),
    edits=(Edit(place="rnn.l0", signal="gate/forget", unit=3, value=0.5, start=1, stop=4),),
    also=("gradient/vectors@0:5",), at=ViewAt(panel="lags", place="rnn.l0", step=4, steps=(0, 9), unit=2),
    notes=(Note(Noted(step=3), "here", 5.0),), choices={"lags": {"Scale": "log", "All": True}},
)  # fmt: skip


def test_what_is_written_is_read_and_never_says_that_code_may_run(tmp_path: Path) -> None:
    path = tmp_path / "a.session.json"
    write_session(WHOLE, path)
    read, content = read_session(path)
    assert WHOLE.load is not None and read.load is not None
    assert not read.load.trusted and not read.load.agreed and read.load.generation == 0
    assert (read.load.subject, read.load.seed) == ("char-lstm", 3)
    for name in ("input", "edits", "also", "at", "notes", "choices", "decode", "opened"):
        assert getattr(read, name) == getattr(WHOLE, name), name
    assert is_session(str(path)) and json.loads(content)["version"] == 1


def test_a_session_moves_with_what_lies_beside_it(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "run.inspect").mkdir(parents=True)
    for name in ("model.py", "w.pt", "x.csv"):
        (old / name).touch()
    load = Load(subject=f"{old}/model.py:make", checkpoint=str(old / "w.pt"))
    spec = InputSpec(kind="file", value=str(old / "x.csv"), parts={"tgt": InputSpec(kind="text", value="x.csv")})
    write_session(SavedSession(load=load, input=spec, opened=str(old / "run.inspect")), old / "s.session.json")
    assert str(tmp_path) not in (old / "s.session.json").read_text(encoding="utf-8")
    old.rename(new)
    read, _ = read_session(new / "s.session.json")
    assert read.load is not None and read.input is not None
    assert (read.load.subject, read.load.checkpoint) == (f"{new}/model.py:make", str(new / "w.pt"))
    assert read.input.value == str(new / "x.csv") and read.opened == str(new / "run.inspect")
    assert read.input.parts["tgt"].value == "x.csv", "a text that is called as a file is still a text"


def test_code_that_a_session_names_is_asked_about_until_it_is_agreed_to(tmp_path: Path) -> None:
    """Also a callable of an installed package, which the worker calls without asking."""
    path = tmp_path / "a.session.json"
    body = {
        "record": "SavedSession",
        "load": {"record": "Load", "subject": "os:system", "arguments": {"command": "id"}},
    }
    path.write_text(json.dumps(body), encoding="utf-8")
    session, content = read_session(path)
    assert "os:system" in what_runs(session, path, content) and '"command": "id"' in what_runs(session, path, content)
    agree_to(path, content)
    assert what_runs(session, path, content) == ""
    assert what_runs(session, path, content + b" ") != "", "another content is asked about again"
    write_session(session, tmp_path / "b.session.json")
    again, own = read_session(tmp_path / "b.session.json")
    assert what_runs(again, tmp_path / "b.session.json", own) == "", "this user has saved it"
    sample = SavedSession(load=Load(subject="char-lstm"))
    assert what_runs(sample, path, content) == what_runs(SavedSession(opened="x"), path, b"") == ""


def record(**fields: Any) -> str:
    return json.dumps({"record": "SavedSession", **fields})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is no JSON text (line 1, column 1)"),
        ("[1, 2]", "Not a record"),
        (record(load={"record": "Run", "path": "/"}), "Load"),
        (record(load={"record": "Load"}), "a.session.json is no session: Load has no subject."),
        (record(load={"record": "Load", "subject": 5}), "subject"),
        (record(also="x"), "should be a list"),
        (record(at={"record": "ViewAt", "step": "1"}), "step"),
        (record(at={"record": "ViewAt", "step": 10**400}), "a number beyond"),
        (record(version=2), "version 2; this program reads version 1"),
        (json.dumps({"record": "Quit"}), "it holds a Quit"),
        ('{"record": "SavedSession", "layout": {"a": ' + "[" * 60 + "]" * 60 + "}}", "nested"),
        ("[" * 100_000, "is no session"),
        ('{"record": "SavedSession", "at": NaN}', "is no session"),
        ("9" * 5_000, "is no session"),
        ("\udc80", "is no session"),
    ],
)
def test_a_hostile_session_gets_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "a.session.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(SessionError) as refused:
        read_session(path)
    sentence = str(refused.value)
    assert said in sentence and "\n" not in sentence and len(sentence) < 400


def test_what_is_no_small_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.session.json").write_bytes(b" " * (LARGEST + 1))
    (tmp_path / "b.session.json").mkdir()
    for name in ("a", "b", "c"):
        with pytest.raises(SessionError, match="cannot be opened as a session"):
            read_session(tmp_path / f"{name}.session.json")
    with pytest.raises(SessionError, match="Cannot write"):
        write_session(SavedSession(), tmp_path / "no" / "a.session.json")


@pytest.mark.parametrize("typed", ["my", "my.session", "my.json", "my.session.json"])
def test_a_name_gets_the_end_that_sessions_have_once(typed: str) -> None:
    assert with_suffix(f"/a.b/{typed}") == "/a.b/my.session.json"
