"""A listener of the network against strangers, and against friends who send what they should not."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from network import LOSS, RUN, SECRET, begin, kept, page, sender

from inspector.capture import open_capture
from inspector.records import Cancel, RunStart, RunStop, encode
from inspector.transport.network import listener as listening
from inspector.transport.network import wire as wires
from inspector.transport.network.content import Hello, packed
from inspector.transport.network.listener import Listener
from inspector.transport.network.wire import Kind, Wire, as_sender

# -- hostile peers


def connected(to: Listener) -> socket.socket:
    return socket.create_connection(("127.0.0.1", to.port), 5)


def closed(connection: socket.socket) -> bool:
    """Whether the other side ends a connection, not counting what it says before."""
    connection.settimeout(10)
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        pass
    return True


def test_strangers_neither_stop_nor_fill_a_listener(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random bytes, bytes one by one, silence, and more connections than there are places for."""
    monkeypatch.setattr(wires, "HANDSHAKE_SECONDS", 1.0)
    chance = random.Random(0)
    for _ in range(20):
        with connected(listener) as one:
            try:
                one.sendall(chance.randbytes(chance.choice((1, 64, 5000))))
                one.shutdown(socket.SHUT_WR)
            except OSError:  # it is closed already
                continue
            assert closed(one)
    silent = [connected(listener) for _ in range(40)]
    slow = connected(listener)
    try:
        for _ in range(15):
            slow.sendall(b"x")
            time.sleep(0.1)
    except ConnectionError:
        pass
    assert all(closed(one) for one in silent) and closed(slow)
    for one in (*silent, slow):
        one.close()
    assert not list((tmp_path / "kept").iterdir()) and not listener.received
    good = sender(listener)
    begin(good)
    good.write(page(0))
    good.close()
    assert kept(tmp_path / "kept").exists()


def friend(to: Listener) -> tuple[socket.socket, Wire]:
    """A peer that knows the secret, which does not make it trustworthy."""
    connection = connected(to)
    return connection, as_sender(connection, SECRET)


def test_a_length_is_not_believed(listener: Listener) -> None:
    connection, _ = friend(listener)
    with connection:
        connection.sendall(struct.pack("!IB", 2**32 - 1, Kind.HELLO) + b"x" * 1000)
        assert closed(connection)


def test_messages_are_neither_changed_nor_repeated(listener: Listener, tmp_path: Path) -> None:
    body = Hello(RUN, "mine", 1).encoded()
    for change in ("code", "number"):
        connection, wire = friend(listener)
        with connection:
            number = 0 if change == "code" else 5
            code = hmac.new(wire._key, b"S" + struct.pack("!QB", number, Kind.HELLO) + body, hashlib.sha256).digest()
            code = code if change == "number" else bytes(32)
            connection.sendall(struct.pack("!IB", len(body), Kind.HELLO) + body + code)
            assert closed(connection)
    assert not list((tmp_path / "kept").iterdir())


def a_page(**changes: Any) -> tuple[Kind, bytes]:
    told = {"channel": "a:b", "frame": 0, "offset": [0], "dtype": "float64", "shape": [1]} | changes
    head = json.dumps(told).encode()
    return Kind.PAGE, struct.pack("!Q?", 1, False) + struct.pack("!I", len(head)) + head + bytes(8)


def a_record(record: Any) -> tuple[Kind, bytes]:
    return Kind.RECORD, struct.pack("!Q?", 1, False) + (record if isinstance(record, bytes) else encode(record))


BAD = {
    "nothing": (Kind.RECORD, b""),
    "no json": a_record(b"\xff{"),
    "deep json": a_record(b"[" * 100_000),
    "a request": a_record(Cancel()),
    "a class": a_record(b'{"record": "os.system", "x": 1}'),
    "a field of another type": a_record(b'{"record": "Frame", "index": "0"}'),
    "a frame beyond all": a_record(b'{"record": "Frame", "index": 99999999999999999999}'),
    "a second run": a_record(RunStart(run="f" * 32, title="x")),
    "no description": (Kind.PAGE, struct.pack("!Q?", 1, False) + b"\xff" * 40),
    "a huge shape": a_page(shape=[2**62, 4]),
    "a shape that overflows to its bytes": a_page(shape=[2**32, 2**32, 1], offset=[0, 0, 0]),
    "a negative shape": a_page(shape=[-1]),
    "an object": a_page(dtype="object"),
    "a dtype in parts": a_page(dtype="f4,O"),
    "a place beyond all": a_page(offset=[2**62]),
    "many dims": a_page(shape=[1] * 9, offset=[0] * 9),
    "a truth of a number": a_page(offset=[True]),
    "truth values that are none": (a_page(dtype="bool", shape=[8])[0], a_page(dtype="bool", shape=[8])[1][:-1] + b"\7"),
}


@pytest.mark.parametrize("bad", list(BAD))
def test_what_a_friend_sends_is_checked(bad: str, listener: Listener, tmp_path: Path) -> None:
    """The connection ends; what came before is kept, and the listener goes on."""
    connection, wire = friend(listener)
    with connection:
        wire.send(Kind.HELLO, Hello(RUN, "mine", 1).encoded())
        wire.send(*packed(0, RunStart(run=RUN, title="x"))[0])
        assert wire.receive(5.0)
        wire.send(*BAD[bad])
        assert closed(connection)
    one = sender(listener)
    begin(one)
    one.write(page(0))
    one.write(RunStop("done"))
    one.close()
    with open_capture(kept(tmp_path / "kept")) as capture:
        assert capture.array(LOSS.name).shape == (1,)


@pytest.mark.parametrize("name", ["../out", "/etc/x", "a/b", "", ".", "a" * 100, "a\0b", "x\n"])
def test_a_name_is_no_path(name: str, listener: Listener, tmp_path: Path) -> None:
    connection, wire = friend(listener)
    with connection:
        wire.send(Kind.HELLO, json.dumps({"run": RUN, "name": name, "first": 1}).encode())
        assert closed(connection)
    assert [one.name for one in tmp_path.iterdir()] == ["kept"] and not list((tmp_path / "kept").iterdir())


def test_a_sender_that_falls_silent_or_is_slow_ends(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "SILENT_SECONDS", 0.5)
    monkeypatch.setattr(wires, "MESSAGE_SECONDS", 0.5)
    for part in (b"", b"\0"):
        connection, wire = friend(listener)
        with connection:
            wire.send(Kind.HELLO, Hello(RUN, "mine", 1).encoded())
            wire.send(*packed(0, RunStart(run=RUN, title="x"))[0])
            assert wire.receive(5.0)
            connection.sendall(part)
            assert closed(connection)


@pytest.mark.parametrize(
    "fault", [OSError(28, "No space left on device"), BrokenPipeError(), ValueError("closed file")]
)
def test_a_listener_whose_terminal_has_gone_takes_trainings(fault: Exception, tmp_path: Path) -> None:
    def nowhere(_line: str) -> None:
        raise fault

    with Listener(tmp_path / "kept", SECRET, say=nowhere) as listener:
        one = sender(listener)
        begin(one)
        one.write(page(0))
        one.write(RunStop("done"))
        one.close()
    with open_capture(kept(tmp_path / "kept")) as capture:
        assert capture.status == "done" and capture.array(LOSS.name).shape == (1,)
