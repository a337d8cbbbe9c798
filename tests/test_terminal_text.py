"""Nothing from outside reaches the terminal as anything but plain text on lines of bounded length."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import called

from inspector.capture import Writer
from inspector.records import Channel, Frame, Labels, Page, Progress, Refusal, RunStart, RunStop
from inspector.records.plain_text import (
    LONGEST_LINE,
    LONGEST_SENTENCE,
    encodable,
    plain_line,
    plain_sentence,
    plain_text,
    printed_piece,
)
from inspector.workspace.samples import Sample

HOSTILE = "\x1b[2J\x1b]0;owned\x07 a\r\nb\x9b31m\x00\x7f\u202eevil\u2066\u2028\u200b\ufeff\ud800 é日"
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
LONG = HOSTILE + "x" * 1_000_000


def call(*arguments: str) -> tuple[int, str, str]:
    """A command in this process: its exit code, stdout and stderr."""
    done = called(*arguments, cwd=Path.cwd())
    return done.code, done.stdout, done.stderr


def apart(*arguments: str) -> tuple[int, str, str]:
    """The same as a shell starts it, its worker a process too."""
    command = [sys.executable, "-m", "inspector", *map(os.fsencode, (a.replace("\ud800", "") for a in arguments))]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"}, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def assert_plain(out: str, err: str, *, limit: int = LONGEST_LINE) -> None:
    for text in (out, err):
        assert not (found := UNSEEN.search(text)), repr(text[max(0, found.start() - 50) : found.end() + 50])
        assert max(map(len, text.split("\n"))) <= limit


def test_plain_text() -> None:
    assert plain_line("a\tb\r\nc\nd") == "a⇥b↵c↵d" and plain_text("a\tb\nc") == "a\tb\nc"
    assert plain_line("\x1b[31m\x9b\u202e\x7f") == "⟨001b⟩[31m⟨009b⟩⟨202e⟩⟨007f⟩"
    assert plain_line("é日本 <s>") == "é日本 <s>"
    for shorten in (plain_text, plain_line, plain_sentence):
        for text in (HOSTILE, LONG, "\x1b" * 5000, "", "x" * 3000):
            shown = shorten(text, 500)
            assert len(shown) <= 500 and not UNSEEN.search(shown.replace("\n", "").replace("\t", ""))
        assert "…" in shorten("y" * 501, 500) and shorten("y" * 500, 500) == "y" * 500
    assert plain_sentence("a" * 5000 + " Say --partial.").endswith(" Say --partial.")
    assert printed_piece("\x1b[1;31mred\x1b[0m\tand \x1b]8;;http://x\x1b\\link\x1b]8;;\x07 \x9b32mgreen\x1b7") == (
        "red\tand link green⟨001b⟩7"
    )


def test_what_is_found_plain_at_once_is_what_would_be_left_as_it_is() -> None:
    for code in range(0x100):
        for text in (chr(code), f"a{chr(code)}b\t\n", f"{chr(code)}\n" * 3):
            assert printed_piece(text) == printed_piece(f"é{text}")[1:]  # beside a character that is not ASCII none is


def test_encodings_that_lack_a_character() -> None:
    assert encodable("é日…", "ascii") == "\\xe9\\u65e5\\u2026" and encodable("é日", "latin-1") == "é\\u65e5"
    assert encodable("é日", "utf-8") == "é日" == encodable("é日", None) and encodable("é", "no-such") == "\\xe9"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture whose every text is hostile."""
    path = tmp_path_factory.mktemp("hostile") / "a.inspect"
    text = HOSTILE.replace("\ud800", "") + "x" * 9000
    with Writer(path, RunStart(run="r", title=text, subject=text, checkpoint=text)) as writer:
        writer.write(Frame(index=0, label=text))
        for name in ("rnn:h", f"{text[:900]}:h"):
            writer.write(Channel(name=name, kind="state", dims=("step",), shape=(3,), title=text, unit=text))
            writer.write(Page(name, 0, (0,), np.zeros(3, np.float32)))
        writer.write(Labels("step", (text, "b", "c"), 0))
        writer.write(Refusal(text, text))
        writer.write(RunStop("failed", text))
    return path


SHORT = HOSTILE.replace("\x00", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "{capture}"], ["list", "{capture}", "--json"],
        ["export", "{capture}", "--channel", "none", "--to", "{folder}/x.npy"],
        ["export", "{capture}", "--channel", SHORT, "--to", "{folder}/x.npy"],
        ["export", "{capture}", "--channel", "rnn:h", "--to", "{folder}/x" + SHORT],
        ["export", "{capture}", "--channel", "rnn:h", "--to", "{folder}/" + SHORT.replace("/", "") + ".npy"],
        ["export", "{capture}", "--panel", SHORT, "--to", "{folder}/x.png"],
        ["export", "{capture}", "--panel", "states", "--to", "{folder}/\x1b[2J.png"],
        ["export", "{capture}", "--panel", "lags", "--to", "{folder}/x.png"],
        ["pack", "{capture}", "--to", "{folder}/\x1b[2J\x9b.zip"], ["pack", SHORT], ["pack", SHORT + "x" * 5000],
        ["list", SHORT], ["list", "x" * 5000], [SHORT], [f"--{SHORT}"], ["list", f"--{SHORT}", "y" * 9000],
        ["run", "char-gru", "--arguments", SHORT], ["run", "char-gru", "--option", SHORT], ["run", "char-gru", "--edit", SHORT],
        ["run", "char-gru", "--seed", SHORT], ["run", "char-gru", SHORT], [f"./{SHORT}.py"], ["samples", SHORT],
    ],
)  # fmt: skip
def test_every_command_on_hostile_captures_and_arguments(
    arguments: list[str], capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    given = [part.replace("{capture}", str(capture)).replace("{folder}", str(tmp_path)) for part in arguments]
    code, out, err = call(*given)
    assert code in (0, 1, 2) and out + err
    assert_plain(out, err, limit=100_000 if "--json" in arguments else LONGEST_LINE)  # data is never cut
    if code:
        assert len(err.strip().split("\n")) == 1 and len(err.strip()) <= LONGEST_SENTENCE, err
    if "--json" in arguments:
        assert json.loads(out)["title"].startswith("\x1b[2J"), "data is escaped, not changed"


def test_samples_of_hostile_names(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = Sample(LONG, SHORT, LONG, SHORT, SHORT, Path("x.py"), (Path(SHORT),))
    monkeypatch.setattr("inspector.cli.samples.list_samples", lambda: [sample])
    for arguments, limit in ((("samples",), LONGEST_LINE), (("samples", "--json"), 8_000_000)):
        code, out, err = call(*arguments)
        assert code == 0
        assert_plain(out, err, limit=limit)


MODEL = """
import torch
from torch import nn
HOSTILE = {hostile!r}
class Model(nn.Module):
    def __init__(self, refuse=False):
        super().__init__()
        self.rnn = nn.GRU(2, 3)
        if refuse: raise ValueError(HOSTILE + "x" * 1_000_000)
    def forward(self, x):
        print("\\x1b[31m", HOSTILE, "\\tseen", "x" * 10_000)
        raise RuntimeError(HOSTILE + "x" * 1_000_000)
"""


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_what_models_say(debug: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "model\x1b.py"
    file.write_text(MODEL.format(hostile=SHORT.replace("\ud800", "")))
    out_to = str(tmp_path / "a.inspect")
    command = call if debug else apart
    code, out, err = command("run", f"{file}:Model", "--generate", "noise", "--out", out_to, *debug)
    assert code == 1 and "RuntimeError" in err and "\tseen" in out
    printed = max(map(len, out.split("\n")))  # what a model prints goes on whole, and nothing of it moves the cursor
    assert_plain(out.replace("\t", ""), "", limit=printed)
    assert_plain("", err.replace("\t", ""), limit=LONGEST_LINE if not debug else printed)
    code, out, err = call(
        "run", f"{file}:Model", "--arguments", '{"refuse": true}', "--out", str(tmp_path / "b.inspect"), *debug
    )
    assert code == 1 and "ValueError" in err
    assert_plain(out, err)


def test_keys_of_checkpoints(tmp_path: Path) -> None:
    keys = {SHORT.replace("\ud800", "") + str(n): torch.zeros(2) for n in range(3)}
    torch.save({**keys, "k" * 1_000_000: torch.zeros(2), "l" * 1_000_000: "no tensor"}, tmp_path / "hostile.pt")
    code, out, err = call("run", "char-gru", "--checkpoint", str(tmp_path / "hostile.pt"), "--out", str(tmp_path / "a.inspect"))  # fmt: skip
    assert code == 2 and len(err.strip().split("\n")) == 1 and len(err.strip()) <= LONGEST_SENTENCE
    assert_plain(out, err)
    code, out, err = call("run", str(tmp_path / "hostile.pt"))
    assert code == 2
    assert_plain(out, err)


def test_the_bar_and_a_fault_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Bar:
        n, disable = 0.0, False

        def __init__(self, **_options: Any) -> None: ...
        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None: ...
        def refresh(self) -> None: ...
        def close(self) -> None: ...
        def set_description_str(self, text: str, refresh: bool) -> None: shown.append(text)  # fmt: skip

    def fails(_load: object, _run: object, progress: Any, _output: object, _python: str | None = None) -> None:
        progress(Progress(done=1, total=2, text=LONG))
        raise RuntimeError(LONG)

    monkeypatch.setattr("tqdm.tqdm", Bar)
    monkeypatch.setattr("inspector.cli.reporting.run_and_wait", fails)
    for debug in ((), ("--debug",)):
        code, out, err = call("run", "char-gru", *debug)
        assert code == 1 and "RuntimeError" in err
        assert_plain(out, err)
    assert shown and not UNSEEN.search(shown[0]) and len(shown[0]) <= 58


@pytest.mark.skipif(sys.platform == "win32", reason="bytes in file names")
@pytest.mark.parametrize(
    "settings", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_names_that_the_terminal_cannot_show(settings: dict[str, str], tmp_path: Path, capture: Path) -> None:
    place = os.fsencode(tmp_path) + "/café-".encode() + b"\xe9.inspect"
    os.rename(_copy(capture, tmp_path), place)  # noqa: PTH104 - the name is no text
    command = [sys.executable, "-m", "inspector"]
    environment = {**os.environ, **settings}
    listed = subprocess.run([*command, "list", place], capture_output=True, env=environment)
    assert listed.returncode == 0 and b"\\u65e5" in listed.stdout, listed.stderr
    packed = subprocess.run([*command, "pack", place], capture_output=True, env=environment)
    assert packed.returncode == 0 and b".inspect.zip" in packed.stderr, packed.stderr
    missing = subprocess.run([*command, "list", b"\xe9"], capture_output=True, env=environment)
    assert missing.returncode == 2 and b"no capture" in missing.stderr
    for said in (listed.stdout, listed.stderr, packed.stderr, missing.stderr):
        assert said.isascii() and b"Traceback" not in said


def _copy(capture: Path, folder: Path) -> Path:
    copy = folder / "copy"
    copy.mkdir()
    for file in capture.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    return copy


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that has no space")
@pytest.mark.parametrize("command", [["rules"], ["docs", "install"], ["mute", "IN101"], ["mute", "IN101", "--off"]])
def test_output_that_finds_no_space_is_told_in_one_sentence(command: list[str], tmp_path: Path) -> None:
    """And blames no file: the page can be read, and the project's file has been changed."""
    (tmp_path / "inspector.toml").write_text('[diagnosis]\nmute = ["IN101"]\n' * ("--off" in command))
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "inspector", *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            cwd=tmp_path,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "What this prints cannot be written: No space left on device.\n")
    if command[0] == "mute":
        assert ("IN101" in (tmp_path / "inspector.toml").read_text()) == ("--off" not in command)
