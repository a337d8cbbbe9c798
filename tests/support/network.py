"""Two ends of a network: senders, listeners and what they exchange."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from inspector.records import Axis, Channel, Frame, Page, RunStart
from inspector.transport.network.address import Address
from inspector.transport.network.listener import Listener
from inspector.transport.network.sender import Sender

SECRET = b"a secret of enough letters"

RUN = "0123456789abcdef" * 2

LOSS = Channel(name="training:loss", kind="series", dims=("iteration",), shape=(None,), dtype="float64")


def sender(to: Listener | int, secret: bytes = SECRET) -> Sender:
    port = to if isinstance(to, int) else to.port
    return Sender(Address("127.0.0.1", port, "mine"), secret, RunStart(run=RUN, title="a run"))


def begin(one: Sender) -> None:
    for record in (Frame(index=0), Axis(name="iteration"), LOSS):
        one.write(record)


def page(n: int, length: int = 1) -> Page:
    return Page(LOSS.name, 0, (n * length,), np.arange(n * length, (n + 1) * length, dtype=np.float64))


def kept(folder: Path) -> Path:
    (found,) = folder.glob("*.inspect")
    return found


def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def cut(one: Listener) -> None:
    """Every connection of a listener breaks."""
    for connection in list(one._open):
        with suppress(OSError):  # the other side may have closed it
            connection.shutdown(socket.SHUT_RDWR)
