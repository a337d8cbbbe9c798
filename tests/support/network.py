"""Two ends of a network: senders, listeners and what they exchange."""

from __future__ import annotations

from pathlib import Path

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
