"""What arrives from a training on another machine, and what windows ask of a training."""

from __future__ import annotations

from pathlib import Path

from target import FoundError, Target

from inspector.capture.control import FOLDER, Command, Commands
from inspector.capture.kept import HELD, KeptRuns
from inspector.transport.network.content import Hello, packed, unpacked
from inspector.transport.network.files import FilePiece
from inspector.transport.network.wire import Kind, WireError


def attempt(data: bytes, scratch: Path) -> None:
    """The first byte says as what it arrives."""
    form, body = (data or b"\0")[0] % 6, data[1:]
    if form == 0:
        Hello.decoded(body)
    elif form == 1:
        Command.decoded(body)
    elif form == 2:
        _held(body, scratch)
    else:
        arrived = unpacked((Kind.RECORD, Kind.PAGE, Kind.FILE)[form - 3], body)
        if not isinstance(arrived.record, FilePiece):
            _, again = packed(arrived.number, arrived.record)[0]
            if type(unpacked((Kind.RECORD, Kind.PAGE)[form - 3], again).record) is not type(arrived.record):
                raise FoundError("it is of another kind after it was sent and arrived")


def _held(body: bytes, scratch: Path) -> None:
    """Files that other windows left: nothing is said of them, and nothing is raised."""
    for folder in (scratch / FOLDER, scratch / HELD):
        folder.mkdir()
        (folder / "0123456789abcdef.json").write_bytes(body)
    (scratch / "run-000001-x.inspect").mkdir()
    Commands(scratch).new()
    KeptRuns(scratch).prune(0)


TARGET = Target(
    "messages of trainings and windows",
    ("inspector.transport.network", "inspector.capture.control", "inspector.capture.kept", "inspector.records"),
    attempt,
    (WireError, ValueError),
)
