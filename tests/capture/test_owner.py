"""Whether the process that took a lease still runs: its number may be another's by now, a dead one's, or forged."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from captures import NAME, START, channel, write

from inspector.capture import Writer, open_capture
from inspector.capture.layout import INDEX
from inspector.capture.owner import give_up, is_alive, own_lease, start_mark
from inspector.records import Page

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
FORGED = [0, -1, -(2**63), 2**31, 2**40, 2**63 - 1, 10**400]
"""Numbers that no process has: of 0 and below the system understands groups."""


def test_the_process_that_took_it() -> None:
    pid, mark, token = own_lease()
    assert pid == os.getpid() and is_alive(pid, mark)
    give_up(token)
    assert not is_alive(pid, mark)


@linux
def test_another_process_with_its_number_is_not_it() -> None:
    """After a restart, or when numbers are used again."""
    boot, _, ticks = start_mark(os.getpid()).partition(":")
    assert boot and ticks
    assert not is_alive(os.getpid(), f"{boot}:{int(ticks) + 1}#token")
    assert not is_alive(os.getpid(), f"another:{ticks}#token")


@linux
def test_one_that_has_ended_and_that_nobody_has_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        mark = f"{start_mark(child.pid)}#token"
        assert is_alive(child.pid, mark)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert start_mark(child.pid) and not is_alive(child.pid, mark)
    assert not is_alive(child.pid, mark) and not is_alive(child.pid, "")


@pytest.mark.parametrize("mark", ["", "boot:1#token", "\0", "#"])
@pytest.mark.parametrize("pid", FORGED)
def test_numbers_that_no_process_has(pid: int, mark: str) -> None:
    assert not is_alive(pid, mark)


@pytest.mark.parametrize("pid", FORGED[:-1])
def test_a_forged_lease_is_nobodys(pid: int, tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", np.ones((8, 4), np.float32), done=False)
    index = sqlite3.connect(path / INDEX)
    index.execute("INSERT INTO lease VALUES (NULL, ?, '', 't')", (pid,))
    index.commit()
    index.close()
    with open_capture(path) as capture:
        assert capture.status == "unfinished" and not capture.damage
    with Writer(path, START, overwrite=True) as writer:
        writer.write(channel())
        writer.write(Page(NAME, 0, (0, 0), np.zeros((8, 4), np.float32)))
    with open_capture(path) as capture:
        assert not capture.array(NAME).any()
