"""Iterations that a training on another machine keeps to be run again: they are sent beside its records."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import inspector
from inspector.capture import CaptureError, open_capture
from inspector.capture.spike_files import spike_files
from inspector.records import Frame, RunStart, RunStop
from inspector.transport.network import files
from inspector.transport.network import sender as sending
from inspector.transport.network.address import Address
from inspector.transport.network.content import unpacked
from inspector.transport.network.files import Arriving, FilePiece, KeptFile, packed_file, unpacked_file
from inspector.transport.network.listener import Limits, Listener
from inspector.transport.network.sender import Sender
from inspector.transport.network.wire import Kind, WireError

SECRET = b"a secret of enough letters"
NAME = "0001.safetensors"


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    with Listener(tmp_path / "kept", SECRET) as found:
        yield found


def kept(folder: Path) -> Path:
    (found,) = folder.glob("*.inspect")
    return found


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Dropout(0.3), nn.Linear(7, 1))


def trained(path: str, **more: Any) -> None:
    one = model()
    optimizer = torch.optim.AdamW(one.parameters(), 0.01)
    torch.manual_seed(1)
    with inspector.watch(one, optimizer, path, every=1, **more) as watcher:
        for n in range(30):
            (one(torch.randn(6, 5)).square().mean() * (1e4 if n == 27 else 1)).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert watcher.error is None


def test_a_spike_of_a_training_elsewhere_is_kept_there_and_run_again(listener: Listener, tmp_path: Path) -> None:
    trained(str(tmp_path / "here.inspect"))
    trained(f"tcp://127.0.0.1:{listener.port}/there", secret=SECRET)
    there = kept(tmp_path / "kept")
    (file,) = spike_files(there)
    assert file.iteration == 28 and file.path.name == NAME and file.path.stat().st_mode & 0o077 == 0
    assert file.path.read_bytes() == (tmp_path / "here.inspect" / "spikes" / NAME).read_bytes()
    assert not list(file.path.parent.glob("*.part"))
    with open_capture(there) as capture:
        (event,) = capture.events
        assert event.text.endswith(f"; kept in spikes/{NAME}")
    with inspector.run(model(), spike=file.path, out=tmp_path / "again.inspect") as again:
        assert again.status == "done" and any(name.startswith("spike:") for name in again.channels)


def test_what_has_no_room_is_said_and_only_what_must_be_is_sent(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "MOST_BYTES", (1 << 20) + 12_000)  # the least is 6 kB: two states of the generator no
    trained(f"tcp://127.0.0.1:{listener.port}/there", secret=SECRET)
    (file,) = spike_files(kept(tmp_path / "kept"))
    with inspector.run(model(), spike=file.path, out=tmp_path / "again.inspect") as again:
        assert again.status == "done"
    assert file.path.stat().st_size < 12_000
    monkeypatch.setattr(sending, "MOST_BYTES", 1 << 20)
    trained(f"tcp://127.0.0.1:{listener.port}/none", secret=SECRET)
    (none,) = (tmp_path / "kept").glob("none-*.inspect")
    with open_capture(none) as capture:
        assert not spike_files(none) and "not kept: 0 MB have no room" in capture.events[0].text


def begun(port: int) -> Sender:
    one = Sender(Address("127.0.0.1", port, "mine"), SECRET, RunStart(run="ab" * 16, title="a run"))
    one.write(Frame(index=0))
    return one


def test_a_file_whose_connection_breaks_is_sent_again(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIECE", 1000)
    content = bytes(n % 251 for n in range(300_000))
    one = begun(listener.port)
    assert one.promise(len(content))
    one.send_file(KeptFile(NAME, content), len(content))
    for n in range(1, 4):
        until(lambda n=n: listener.received > n * 20_000)  # type: ignore[misc]
        for connection in list(listener._open):
            with suppress(OSError):
                connection.shutdown(2)
    until(lambda: one._promised == 0)
    one.write(RunStop("done"))
    one.close()
    assert (kept(tmp_path / "kept") / "spikes" / NAME).read_bytes() == content
    assert not one._promised and not one._bytes


def test_an_earlier_listener_gets_no_file_and_a_line_instead(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Sender._welcomed

    def welcomed(self: Sender, wire: Any) -> bool:
        fresh = real(self, wire)
        self._takes_files = False
        return fresh

    monkeypatch.setattr(Sender, "_welcomed", welcomed)
    one = begun(listener.port)
    assert one.promise(10)
    one.send_file(KeptFile(NAME, b"0123456789"), 10)
    one.write(RunStop("done"))
    one.close()
    assert not one.promise(10)
    with open_capture(kept(tmp_path / "kept")) as capture:
        assert [log.text for log in capture.logs] == [sending.NO_FILES]
        assert not spike_files(Path(capture.path))


def test_parts_are_bounded_and_nothing_but_kept_iterations_is_written(tmp_path: Path) -> None:
    (good,) = packed_file(3, KeptFile(NAME, b"abc"))
    assert unpacked_file(good) == (3, False, FilePiece(NAME, 0, 3, b"abc"))
    assert unpacked(Kind.FILE, good).record.content == b"abc"

    def body(head: bytes, content: bytes = b"abc", more: bool = False) -> bytes:
        return struct.pack("!Q?", 3, more) + struct.pack("!I", len(head)) + head + content

    for wrong in (
        b"", good[:12], body(b"{"), body(b"[]"), body(b"[" * 1000), body(b'{"file":"../x","start":0,"total":3}'),
        body(b'{"file":"0001.safetensors/../../x","start":0,"total":3}'),
        body(b'{"file":"0001.safetensors\\n","start":0,"total":3}'),
        body(b'{"file":"0001.safetensors","start":1,"total":3}'),
        body(b'{"file":"0001.safetensors","start":-1,"total":3}'),
        body(b'{"file":"0001.safetensors","start":0,"total":1099511627776}', more=True),
        body(b'{"file":"0001.safetensors","start":0,"total":true}', b"a"),
        body(b'{"file":"0001.safetensors","start":0,"total":3}', more=True),
        body(b'{"file":"0001.safetensors","start":0,"total":4}'),
        body(b" " * 2000),
    ):  # fmt: skip
        with pytest.raises(WireError):
            unpacked_file(wrong)
    (tmp_path / "a.inspect").mkdir()
    arriving = Arriving(tmp_path / "a.inspect")
    arriving.take(FilePiece(NAME, 0, 4, b"ab"))
    for piece in (FilePiece(NAME, 3, 4, b"d"), FilePiece("0002.safetensors", 2, 4, b"cd")):
        with pytest.raises(WireError, match="missing"):
            arriving.take(piece)
    arriving.take(FilePiece(NAME, 2, 4, b"cd"))
    assert [one.name for one in (tmp_path / "a.inspect" / "spikes").iterdir()] == [NAME]
    for n in range(2, 21):
        arriving.take(FilePiece(f"{n:04d}.safetensors", 0, 1, b"x"))
    arriving.take(FilePiece(NAME, 0, 1, b"y"))  # again, since it was not confirmed
    with pytest.raises(WireError, match="more files"):
        arriving.take(FilePiece("0021.safetensors", 0, 1, b"x"))


def test_files_count_for_what_a_listener_takes(tmp_path: Path) -> None:
    with Listener(tmp_path / "kept", SECRET, limits=Limits(total=5000)) as small:
        one = begun(small.port)
        assert one.promise(10_000)
        one.send_file(KeptFile(NAME, bytes(10_000)), 10_000)
        until(lambda: one.error)
        assert "takes no more" in str(one.error) and not one._promised
        with pytest.raises(CaptureError):
            one.close()
    assert not spike_files(kept(tmp_path / "kept"))
