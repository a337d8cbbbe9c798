"""A model changes the process that runs it: once it has returned the worker has all that it counts on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

import pytest
from copies import Copies

PROGRAM = """
import builtins, gc, json, os, signal, sys, tempfile, threading, time
import numpy, resource, torch
from inspector.engine import process_state
{keep}
place = os.getcwd()
zeros, detach, thread = torch.zeros, torch.Tensor.detach, threading.Thread
with process_state.{context}:
    {harm}
told = {{
    "modules": all(name in sys.modules for name in ("sys", "torch", "json")), "len": builtins.len is not None,
    "zeros": torch.zeros is zeros, "detach": torch.Tensor.detach is detach, "thread": threading.Thread is thread,
    "stdout": sys.stdout is sys.__stdout__, "imports": bool(sys.meta_path and sys.path), "HOME": "HOME" in os.environ,
    "dtype": str(torch.ones(1).dtype), "device": torch.ones(1).device.type, "gradients": torch.is_grad_enabled(),
    "folder": os.getcwd() == place, "mask": os.umask(0), "recursion": sys.getrecursionlimit(), "collector": gc.isenabled(),
    "SIGTERM": str(signal.getsignal(signal.SIGTERM)), "numpy": numpy.geterr()["divide"], "profile": sys.getprofile() is None,
    "deterministic": torch.are_deterministic_algorithms_enabled(), "anomalies": torch.is_anomaly_enabled(),
    "new": sys.modules.get("new_one"), "own": os.environ.get("OWN"), "memory": resource.getrlimit(resource.RLIMIT_AS),
}}
print(json.dumps(told))
"""
HARM = """
    resource.setrlimit(resource.RLIMIT_AS, (1 << 33, resource.getrlimit(resource.RLIMIT_AS)[1]))
    os.chdir("/"); os.umask(0o777); sys.setrecursionlimit(5000); gc.disable(); numpy.seterr(all="raise")
    signal.signal(signal.SIGTERM, signal.SIG_IGN); torch.set_default_dtype(torch.float64); torch.set_grad_enabled(False)
    torch.set_default_device("meta"); torch.use_deterministic_algorithms(True); torch.autograd.set_detect_anomaly(True)
    os.environ.clear(); os.environ["OWN"] = "kept"; threading.Thread = None; torch.zeros = torch.Tensor.detach = None
    sys.stdout = None; sys.meta_path.clear(); sys.path.clear(); sys.modules.clear(); sys.modules["new_one"] = 1
    sys.setprofile(lambda *_: None); builtins.len = builtins.isinstance = builtins.open = builtins.getattr = None
"""


Told = Callable[..., dict[str, object]]


@pytest.fixture(scope="module")
def copies() -> Iterator[Copies]:
    """Processes that have imported torch; each program harms one of its own."""
    made = Copies("inspector.engine.process_state", "numpy", "torch")
    yield made
    made.close()


@pytest.fixture(scope="module")
def told(copies: Copies) -> Told:
    """What is there behind a harm."""

    def run(
        harm: str = HARM.strip(), *, keep: str = "process_state.keep()", context: str = "put_back()"
    ) -> dict[str, object]:
        done = copies.run(PROGRAM.format(keep=keep, harm=harm, context=context))
        assert done.returncode == 0, done.stderr
        return {**json.loads(done.stdout), "said": done.stderr}

    return run


@pytest.fixture(scope="module")
def plain(told: Told) -> dict[str, object]:
    """The same where nothing is harmed."""
    return told("pass")


def test_what_a_call_changes_is_put_back_and_told(told: Told, plain: dict[str, object]) -> None:
    harmed = told()
    said = str(harmed["said"])
    assert plain["said"] == ""
    assert said.count("\n") == 1 and said.endswith("of its process, which was put back.\n")
    assert harmed == {**plain, "new": 1, "own": "kept", "said": said}  # what is new is not taken away


def test_a_model_that_is_made_may_choose_for_its_calls(told: Told, plain: dict[str, object]) -> None:
    made = told(context="put_back(making=True)")
    assert made["dtype"] == "torch.float64" and made["device"] == "meta" and not made["folder"] and not made["zeros"]
    for name in ("modules", "len", "stdout", "imports"):
        assert made[name] == plain[name] is True


def test_the_next_model_begins_with_a_process_as_new(told: Told, plain: dict[str, object]) -> None:
    opened = "put_back(making=True): torch.set_default_dtype(torch.float64); os.chdir('/')\nwith process_state.fresh()"
    assert told("pass", context=opened) == plain


def test_one_that_cannot_be_opened_leaves_the_choices_of_the_one_before(told: Told) -> None:
    opened = (
        "put_back(making=True): torch.set_default_dtype(torch.float64)\n"
        "import contextlib\nwith contextlib.suppress(ValueError), process_state.fresh()"
    )
    assert told("raise ValueError", context=opened)["dtype"] == "torch.float64"


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked")
def test_a_forked_child_that_returns_ends_there(told: Told, plain: dict[str, object]) -> None:
    assert told("os.fork()") == plain  # one line of JSON, not two


def test_a_program_of_the_users_own_is_not_touched(told: Told) -> None:
    assert told("torch.set_default_dtype(torch.float64)", keep="")["dtype"] == "torch.float64"


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize(
    ("harm", "spent"),
    [
        ("pass", False),
        ("resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))", False),
        ("resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", False),
        ("resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))", True),
        ("resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36))", True),
    ],
)
def test_a_worker_is_spent_where_a_limit_that_it_needs_is_lowered_for_good(
    copies: Copies, harm: str, spent: bool
) -> None:
    program = (
        "import resource\nfrom inspector.engine import process_state\nlimits = 'limits of the process'\n"
        "process_state.SETTINGS[limits] = process_state.SETTINGS[limits][0], lambda _: None  # as for who may not lift them\n"
        f"process_state.keep()\nbefore = process_state.most_allowed()\nwith process_state.put_back():\n    {harm}\n"
        "print(process_state.is_spent(before))"
    )
    done = copies.run(program)
    assert done.stdout.strip() == str(spent), done.stderr
    assert "put back" not in done.stderr, "what could not be put back is not said to be"
