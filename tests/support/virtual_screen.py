"""A screen that nobody sees: an X server in memory, with a window manager where one is wanted."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def display(size: str, manager: str = "") -> Iterator[str]:
    """A display number of a fresh Xvfb, with a window manager if one is named."""
    missing = [name for name in ("Xvfb", manager) if name and shutil.which(name) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{size}x24"], pass_fds=[write],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()
    time.sleep(0.2)
    managing = subprocess.Popen(
        [manager], env={**os.environ, "DISPLAY": f":{number}"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) if manager else None  # fmt: skip
    try:
        yield f":{number}"
    finally:
        for process in (managing, server):
            if process is not None:
                process.terminate()
                process.wait()
