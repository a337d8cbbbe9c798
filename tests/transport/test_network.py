"""Trainings on other machines: what arrives, what is sent again, and what hostile peers cannot do."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import CHECKOUT, called
from network import LOSS, RUN, SECRET, begin, cut, kept, page, sender, until

from inspector.capture import CaptureError, open_capture
from inspector.records import Event, Page, RunStart, RunStop
from inspector.transport.network import sender as sending
from inspector.transport.network import wire as wires
from inspector.transport.network.address import Address, address_of, secret_in, secret_of
from inspector.transport.network.content import packed, unpacked
from inspector.transport.network.listener import Limits, Listener
from inspector.transport.network.sender import Sender

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
        for name in [own for own in one.channels if not own.startswith(("training:time", "training:cost"))]:
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
            until(lambda: list((tmp_path / "kept").glob("*.inspect/index.sqlite")))
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
    if sys.platform != "win32":
        with pytest.raises(ValueError, match="more than 65,536 bytes"):
            secret_of(Path("/dev/zero"))


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


def test_of_two_listeners_that_make_a_secret_the_first_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, first = os.link, b"f" * 64

    def late(*names: Any) -> None:
        (tmp_path / "secret").write_bytes(first)
        link(*names)

    monkeypatch.setattr(os, "link", late)
    assert secret_in(tmp_path / "secret") == first and len(list(tmp_path.iterdir())) == 1


def test_a_secret_is_made_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_names: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    secret = secret_in(tmp_path / "secret")
    assert len(secret) == 64 and secret_in(tmp_path / "secret") == secret and len(list(tmp_path.iterdir())) == 1


def test_half_a_secret_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = os.fdopen

    def full(descriptor: int, *more: Any, **others: Any) -> Any:
        made(descriptor, *more, **others).close()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match="No space"):
        secret_in(tmp_path / "secret")
    monkeypatch.undo()
    assert not (tmp_path / "secret").exists() and len(secret_in(tmp_path / "secret")) == 64
