"""What SECURITY.md promises: nothing is sent anywhere, a capture runs nothing, a checkpoint is never unpickled freely.

Each is looked for by a hook of Python's own, which every process inherits and nothing can remove; what Qt and torch do
in native code is seen by `strace` only, so their modules that could are looked for by name.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
HOOK = """
import os, sys

ASKED = {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo",
         "socket.gethostbyname", "socket.gethostbyaddr"}

def look(event, given, log=os.environ["NETWORK_LOG"]):
    if event not in ASKED or getattr(given[0], "family", 0) == 1:  # AF_UNIX: between processes of this machine
        return
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{event} {given[1:]}\\n".encode())
    os.close(file)
    raise OSError("there is no network here")

sys.addaudithook(look)
"""
"""As `sitecustomize`, so that workers and what they start have it too."""
TRAINING = """
import sys, torch, inspector
torch.manual_seed(0)
model = torch.nn.RNN(2, 3, batch_first=True)
optimizer = torch.optim.SGD(model.parameters(), 0.001)
with inspector.watch(model, optimizer, sys.argv[1], every=1, probe=torch.randn(1, 4, 2)):
    for _ in range(5):
        model(torch.randn(2, 4, 2))[0].square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that may not use the network; what it tried is in `tried`."""
    hook = tmp_path / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(HOOK)
    paths = os.pathsep.join(map(str, (hook, ROOT, SUPPORT)))
    return {
        **os.environ, "PYTHONPATH": paths, "NETWORK_LOG": str(tmp_path / "tried"), "OMP_NUM_THREADS": "1",
        "QT_QPA_PLATFORM": "offscreen:", "DISPLAY": ":none",
    }  # fmt: skip


def tried(folder: Path) -> str:
    """What reached for the network."""
    return (folder / "tried").read_text() if (folder / "tried").exists() else ""


def done(words: list[str], environment: dict[str, str], more: str | None = None) -> str:
    ended = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, timeout=240, input=more, check=False
    )
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stdout


def test_the_hook_sees_who_reaches_for_the_network(tmp_path: Path, offline: dict[str, str]) -> None:
    code = (
        "import socket, subprocess, sys\n"
        "for go in (lambda: socket.create_connection(('127.0.0.1', 9)), lambda: socket.getaddrinfo('example.org', 80),\n"
        "           lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))):\n"
        "    try: go()\n"
        "    except OSError as problem: assert 'no network here' in str(problem), problem\n"
        "if len(sys.argv) < 2: subprocess.run([sys.executable, '-c', open('/proc/self/cmdline').read().split(chr(0))[2], 'x'])\n"
    )
    done(["-c", code], offline)
    assert tried(tmp_path).count("socket.") == (6 if sys.platform == "linux" else 3)


def test_a_run_its_diagnosis_report_and_numbers_use_no_network(tmp_path: Path, offline: dict[str, str]) -> None:
    run = str(tmp_path / "a.inspect")
    for words in (
        ["run", "char-elman", "--out", run],
        ["diagnose", run],
        ["diagnose", run, "--to", str(tmp_path / "report.html")],
        ["list", run],
    ):
        done(["-m", "inspector", *words], offline)
    assert (tmp_path / "report.html").exists() and tried(tmp_path) == ""
    for address in ("http://", "https://"):  # a page that somebody opens loads nothing either
        for asks in ('src="', "src='", "@import ", "url("):
            assert f"{asks}{address}" not in (tmp_path / "report.html").read_text("utf-8")


def test_a_training_watched_over_files_uses_no_network(tmp_path: Path, offline: dict[str, str]) -> None:
    done(["-c", TRAINING, str(tmp_path / "t.inspect")], offline)
    assert (tmp_path / "t.inspect").exists() and tried(tmp_path) == ""


@pytest.mark.skipif(sys.platform != "linux", reason="the driver is for Linux")
def test_a_window_that_starts_and_opens_a_capture_uses_no_network(tmp_path: Path, offline: dict[str, str]) -> None:
    done(["-c", TRAINING, str(tmp_path / "kept.inspect")], offline)
    window = subprocess.Popen(
        [sys.executable, str(SUPPORT / "driven_window.py"), "capture shown", str(tmp_path)], env=offline, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
    )  # fmt: skip
    assert window.stdin is not None and window.stdout is not None
    try:
        assert any("ready" in json.loads(line) for line in window.stdout if line.startswith("{"))
        _, errors = window.communicate("close\n", timeout=60)
        assert window.returncode == 0, errors
    finally:
        window.kill()
    assert tried(tmp_path) == ""


def parsed(*words: str) -> Iterator[tuple[Path, ast.Module]]:
    """The files of the package in which one of some words stands."""
    for path in sorted((ROOT / "inspector").rglob("*.py")):
        text = path.read_text("utf-8")
        if any(word in text for word in words):
            yield path, ast.parse(text)


def test_nothing_of_qts_that_could_reach_the_network_is_used() -> None:
    local = {"QLocalServer", "QLocalSocket"}
    for path, tree in parsed("PySide6"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module == "PySide6"):
                assert not [one.name for one in node.names if "QtNetwork" in one.name or "Web" in one.name], path
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("PySide6.Qt"):
                names = {one.name for one in node.names}
                assert "Web" not in str(node.module), path
                assert not node.module.endswith("QtNetwork") or names <= local, f"{path}: {names - local}"


READS = """
import json, sys
from inspector.capture import open_capture
from inspector.diagnosis import diagnose
names = {"compile", "exec", "import", "marshal.loads", "pickle.find_class", "subprocess.Popen", "os.system", "os.exec",
         "os.posix_spawn", "os.fork", "ctypes.dlopen", "code.__new__", "object.__setattr__"}
seen, on = [], False

def look(event, given):
    if on and event in names:
        seen.append(f"{event} {str(given)[:200]}")

def read(path):
    with open_capture(path) as capture:
        capture.verify()
        for name in capture.channels:
            capture.array(name)
        return len(diagnose(capture, capture.frames).findings)

sys.addaudithook(look)
read(sys.argv[1])  # modules are imported by the first
on = True
read(sys.argv[2])
if sys.argv[3:]:
    exec(compile("1", "x", "exec"))
on = False
print(json.dumps(seen))
"""


@pytest.mark.parametrize("control", [False, True])
def test_reading_and_diagnosing_a_capture_executes_nothing(tmp_path: Path, control: bool) -> None:
    """Its texts are written to be executed; the control says that an execution would be seen."""
    from captures import numbers, write

    canary = tmp_path / "canary"
    text = f"__import__('os').system('touch {canary}')"
    for name in ("first", "second"):
        write(tmp_path / f"{name}.inspect", numbers(), name=f"{text}:h", title=text, formula=text, unit=text)
    words = [*(str(tmp_path / f"{name}.inspect") for name in ("first", "second")), *(["x"] if control else [])]
    ended = subprocess.run(
        [sys.executable, "-c", READS, *words], capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    assert not canary.exists() and [one.split()[0] for one in seen] == (["compile", "exec"] if control else []), seen


RESTRICTED = {"inspector/engine/model/distributed_metadata.py"}
"""Whose unpickler can name sixteen types and nothing else; its tests say so."""


def test_no_code_here_unpickles_without_weights_only() -> None:
    loads, unpickled = 0, []
    for path, tree in parsed("pickle", ".load"):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pickle":
                unpickled += [name] * (node.attr in ("load", "loads", "Unpickler"))
            if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "load":
                continue
            if ast.unparse(node.func) not in ("torch.load", "np.load", "numpy.load"):
                continue
            said = {one.arg: ast.unparse(one.value) for one in node.keywords}
            if ast.unparse(node.func) == "torch.load":
                loads += 1
                assert said.get("weights_only") == "True", f"{name}:{node.lineno}"
            else:
                assert said.get("allow_pickle", "False") == "False", f"{name}:{node.lineno}"
    assert loads >= 2 and set(unpickled) <= RESTRICTED


UNPICKLES = """
import json, pickle, random, sys
from pathlib import Path
from made_checkpoints import CANARY, Runs, code, weights
import torch
from inspector.engine.errors import InputError
from inspector.engine.opening.read_checkpoint import read_checkpoint

folder, seen = Path(sys.argv[1]), []
path = folder / "c.pt"
sys.addaudithook(lambda event, given: seen.append(str(given)) if event == "pickle.find_class" else None)
refused = 0
for seed in range(12):
    for old in (False, True):
        path.unlink(missing_ok=True)
        if old:
            torch.save({"a": Runs(open, str(folder / CANARY), "w")}, path, _use_new_zipfile_serialization=False)
        else:
            code(path, random.Random(seed))
        try:
            read_checkpoint(path)
        except InputError:
            refused += 1
torch.save(weights(), path)
read_checkpoint(path)
before = len(seen)
pickle.loads(pickle.dumps(Path("x")))
print(json.dumps([seen[:before], len(seen) - before, refused, (folder / CANARY).exists()]))
"""


def test_python_is_never_asked_for_what_a_checkpoint_names(tmp_path: Path) -> None:
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "faults", SUPPORT)))
    told = done(["-c", UNPICKLES, str(tmp_path)], {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"})
    asked, control, refused, executed = json.loads(told)
    assert asked == [] and control >= 1 and refused == 24 and not executed
