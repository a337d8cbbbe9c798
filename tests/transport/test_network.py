"""Trainings on other machines: what arrives, what is sent again, and what hostile peers cannot do."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import CHECKOUT, called

from inspector.capture import CaptureError, open_capture
from inspector.records import Axis, Cancel, Channel, Event, Frame, Page, RunStart, RunStop, encode
from inspector.transport.network import listener as listening
from inspector.transport.network import sender as sending
from inspector.transport.network import wire as wires
from inspector.transport.network.address import Address, address_of, secret_in, secret_of
from inspector.transport.network.content import Hello, packed, unpacked
from inspector.transport.network.listener import Limits, Listener
from inspector.transport.network.sender import Sender
from inspector.transport.network.wire import Kind, Wire, as_sender

SECRET = b"a secret of enough letters"
RUN = "0123456789abcdef" * 2
LOSS = Channel(name="training:loss", kind="series", dims=("iteration",), shape=(None,), dtype="float64")


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    with Listener(tmp_path / "kept", SECRET) as found:
        yield found


def sender(to: Listener | int, secret: bytes = SECRET) -> Sender:
    port = to if isinstance(to, int) else to.port
    return Sender(Address("127.0.0.1", port, "mine"), secret, RunStart(run=RUN, title="a run"))


def begin(one: Sender) -> None:
    for record in (Frame(index=0), Axis(name="iteration"), LOSS):
        one.write(record)


def page(n: int, length: int = 1) -> Page:
    return Page(LOSS.name, 0, (n * length,), np.arange(n * length, (n + 1) * length, dtype=np.float64))


def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def kept(folder: Path) -> Path:
    (found,) = folder.glob("*.inspect")
    return found


def cut(one: Listener) -> None:
    """Every connection of a listener breaks."""
    for connection in list(one._open):
        with suppress(OSError):  # the other side may have closed it
            connection.shutdown(socket.SHUT_RDWR)


# -- what arrives


def test_a_watched_training_is_the_same_elsewhere(listener: Listener, tmp_path: Path) -> None:
    import torch
    from torch import nn

    import inspector

    def trained(path: str, **more: Any) -> dict[str, Any]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)
        with inspector.watch(model, optimizer, path, every=1, **more) as watcher:
            for _ in range(20):
                model(torch.ones(6, 5)).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
            watcher.note("the end")
        assert watcher.error is None
        return dict(model.state_dict())

    here = trained(str(tmp_path / "here.inspect"))
    there = trained(f"tcp://127.0.0.1:{listener.port}/there", secret=SECRET)
    assert all(torch.equal(here[name], there[name]) for name in here)
    assert kept(tmp_path / "kept").name.startswith("there-")
    with open_capture(tmp_path / "here.inspect") as one, open_capture(kept(tmp_path / "kept")) as other:
        assert other.status == "done" and dict(one.channels) == dict(other.channels)
        for name in set(one.channels) - {"training:time", "training:cost"}:
            np.testing.assert_array_equal(one.array(name), other.array(name))
        assert [event.text for event in one.events] == [event.text for event in other.events]
        assert one.labels("parameter") == other.labels("parameter")


def test_pages_of_every_kind_travel_exactly() -> None:
    rng = np.random.default_rng(0)
    for dtype in ("bool", "int8", "uint64", "float16", "float32", "float64"):
        for shape in ((), (0, 3), (2, 3, 4)):
            array = (rng.normal(size=shape) * 100).astype(dtype)
            array = array.astype(array.dtype.newbyteorder(">")) if dtype == "float64" else array
            ((kind, body),) = packed(7, Page("a:b", 2, (1,) * len(shape), array))
            found = unpacked(kind, body)
            assert (found.number, found.more, found.record.frame, found.record.offset) == (
                7,
                False,
                2,
                (1,) * len(shape),
            )
            np.testing.assert_array_equal(found.record.array, array)
    large = packed(1, Page("a:b", 0, (0,), np.zeros(3_000_000)))
    assert len(large) > 1 and [unpacked(*one).more for one in large] == [True] * (len(large) - 1) + [False]


def test_what_was_missed_is_sent_again_once(listener: Listener, tmp_path: Path) -> None:
    """Connections break again and again; nothing is lost, and no event arrives twice."""
    one = sender(listener)
    begin(one)
    for n in range(60):
        one.write(page(n))
        one.write(Event(n, "note", f"note {n}"))
        if n % 15 == 7:
            until(lambda n=n: one._sent >= n)  # type: ignore[misc]
            cut(listener)
    one.write(RunStop("done"))
    one.close()
    with open_capture(kept(tmp_path / "kept")) as capture:
        np.testing.assert_array_equal(capture.array(LOSS.name), np.arange(60.0))
        assert [event.text for event in capture.events] == [f"note {n}" for n in range(60)]


def test_a_listener_that_is_started_again_goes_on_with_the_capture(tmp_path: Path) -> None:
    with Listener(tmp_path / "kept", SECRET) as first:
        port = first.port
        one = sender(first)
        begin(one)
        for n in range(5):
            one.write(page(n))
        one.flush()
    for n in range(5, 10):
        one.write(page(n))
    with Listener(tmp_path / "kept", SECRET, port=port):
        one.write(RunStop("done"))
        until(lambda: not one._ring)
        one.close()
    with open_capture(kept(tmp_path / "kept")) as capture:
        np.testing.assert_array_equal(capture.array(LOSS.name), np.arange(10.0))
        assert capture.status == "done"


# -- nobody there, somebody else there


def test_without_a_listener_the_ring_is_bounded_and_what_is_left_out_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "RING_BYTES", 100_000)
    monkeypatch.setattr(sending, "CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    one = sender(port)
    begin(one)
    for n in range(50):
        one.write(page(n, 1000))
    assert one._bytes <= 100_000 and one.dropped == 50 - (100_000 - 3000) // 8000
    with pytest.raises(CaptureError, match="could not be delivered"):
        one.close()


def test_another_secret_ends_it_with_one_line(listener: Listener, tmp_path: Path) -> None:
    one = sender(listener, b"another secret of some length")
    until(lambda: one.error)
    assert "another secret" in str(one.error) and "\n" not in str(one.error)
    with pytest.raises(CaptureError):
        one.write(LOSS)
    assert not list((tmp_path / "kept").iterdir())


def test_a_sender_trusts_no_listener_without_the_secret() -> None:
    """One that takes every proof and sends none of its own gets no record."""
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as false:
        one = sender(int(false.getsockname()[1]))
        begin(one)
        connection, _ = false.accept()
        with connection:
            connection.sendall(wires.GREETING + bytes(32) + bytes(32))
            connection.settimeout(5)
            while piece := connection.recv(4096):
                got.append(piece)
    until(lambda: one.error)
    assert len(b"".join(got)) == 64 and SECRET not in b"".join(got)
    with pytest.raises(CaptureError):
        one.close()


def test_all_that_is_written_has_a_limit(tmp_path: Path) -> None:
    with Listener(tmp_path / "kept", SECRET, limits=Limits(total=200_000)) as found:
        one = sender(found)
        begin(one)
        with pytest.raises(CaptureError, match="takes no more"):
            for n in range(1000):
                one.write(page(n, 1000))
                time.sleep(0.001)
            one.close()
    assert sum(file.stat().st_size for file in (tmp_path / "kept").rglob("*") if file.is_file()) < 600_000


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


# -- what windows want of the training


def test_a_window_pauses_a_training_elsewhere_through_its_connection(listener: Listener, tmp_path: Path) -> None:
    """Commands are obeyed once, also where the connection breaks and they are sent again."""
    from inspector.capture.control import Command, Controller

    heard: list[Command] = []
    one = Sender(Address("127.0.0.1", listener.port, "mine"), SECRET, RunStart(run=RUN, title="a run"), heard.append)
    begin(one)
    one.write(page(0))
    until(lambda: list((tmp_path / "kept").glob("*.inspect")))
    window = Controller(kept(tmp_path / "kept"))
    window.send("pause")
    until(lambda: heard)
    window.send("break", "loss > 3")
    until(lambda: len(heard) > 1)
    assert [(one.action, one.number, one.condition) for one in heard] == [("pause", 1, ""), ("break", 2, "loss > 3")]
    (kept(tmp_path / "kept") / "control" / f"{window.command.window}.json").write_bytes(b"[" * 3000)  # not sent on
    cut(listener)
    window.beat()
    until(lambda: len(heard) > 2)
    assert (heard[2].number, heard[2].beat) == (2, 3) and one.error is None
    one.close()


def test_a_training_elsewhere_waits_and_goes_on(listener: Listener, tmp_path: Path) -> None:
    import threading

    import torch
    from torch import nn

    import inspector
    from inspector.capture.control import Controller

    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    over = threading.Event()

    def loop() -> None:
        while not over.is_set():
            model(torch.ones(6, 5)).square().mean().backward()
            optimizer.step()
            time.sleep(0.005)

    def events() -> list[str]:
        with open_capture(kept(tmp_path / "kept")) as capture:
            return [one.kind for one in capture.events if one.kind in ("paused", "continued")]

    thread = threading.Thread(target=loop)
    try:
        with inspector.watch(model, optimizer, f"tcp://127.0.0.1:{listener.port}/there", secret=SECRET) as watcher:
            thread.start()
            until(lambda: list((tmp_path / "kept").glob("*.inspect")))
            window = Controller(kept(tmp_path / "kept"))
            window.send("pause")
            until(lambda: events() == ["paused"])
            at = watcher.iteration
            time.sleep(0.5)
            assert watcher.iteration == at
            window.send("continue")
            until(lambda: watcher.iteration > at + 5)
    finally:  # the numbers that it draws would be missing in the tests after this one
        over.set()
        thread.join(30)
    assert watcher.error is None and events() == ["paused", "continued"]


# -- addresses, secrets, the command


def test_addresses_and_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert address_of("tcp://node7:7000/big") == Address("node7", 7000, "big")
    assert (
        address_of("tcp://[::1]:7000") == Address("::1", 7000, "run") and str(Address("::1", 1)) == "tcp://[::1]:1/run"
    )
    for wrong in ("tcp://", "tcp://a:b", "tcp://a:70000", "tcp://a:0", "tcp://a/..", "udp://a:1", "tcp://a:1/a b"):
        with pytest.raises(ValueError, match="no address"):
            address_of(wrong)
    made = secret_in(tmp_path / "deep" / "secret")
    assert secret_of(tmp_path / "deep" / "secret") == made and len(made) == 64
    assert sys.platform == "win32" or (tmp_path / "deep" / "secret").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("INSPECTOR_SECRET", "from the environment")
    assert secret_of(None) == b"from the environment"
    for short in ("", "short", tmp_path / "nothing"):
        with pytest.raises(ValueError, match="secret"):
            secret_of(short)


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C by a signal of POSIX")
def test_the_command_listens_at_this_machine_alone(tmp_path: Path) -> None:
    import signal

    command = [sys.executable, "-m", "inspector", "listen", "--out", "kept", "--port", "0"]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=env) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        port = int(line.partition("127.0.0.1:")[2].partition("/")[0])
        one = sender(port, secret_of(tmp_path / "kept" / "secret"))
        begin(one)
        one.write(RunStop("done"))
        one.close()
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 0
    done = called("listen", "--out", "kept", "--host", "203.0.113.7", cwd=tmp_path)
    assert (done.code, len(done.stderr.splitlines())) == (2, 1) and "203.0.113.7" in done.stderr
