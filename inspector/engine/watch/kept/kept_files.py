"""Where iterations that are kept to be run again are written: into the capture here, or at the listener that has it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from safetensors.torch import save, save_file
from torch import Tensor

from inspector.capture import CaptureError
from inspector.capture.spike_files import FOLDER, KEY, SUFFIX
from inspector.transport.network.files import MOST_BYTES, KeptFile
from inspector.transport.network.sender import Sender

PATIENCE_SECONDS = 5.0


class KeptFiles(Protocol):
    """Takes files."""

    def has_room(self, nbytes: int) -> bool:
        """Whether one of so many bytes will be taken; then it must be given, or its room stays taken."""

    def write(self, name: str, nbytes: int, tensors: dict[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write a file, on a thread of its own. What goes wrong there is silent: the event is in the capture anyway."""


class InFolder:
    """Beside the pages of a capture on this machine."""

    def __init__(self, capture: Path) -> None:
        self._folder = capture / FOLDER

    def has_room(self, nbytes: int) -> bool:
        """Always: on a full disk there is no file."""
        return True

    def write(self, name: str, nbytes: int, tensors: dict[str, Tensor], about: Mapping[str, Any]) -> None:
        """As a whole, or not at all."""
        path = self._folder / name
        partial = path.with_suffix(".part")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            save_file(tensors, partial, metadata=_metadata(about))
            partial.replace(path)
        except Exception:  # noqa: BLE001 - safetensors has exceptions of its own for what the system refuses
            with suppress(OSError):
                partial.unlink(missing_ok=True)


class AtListener:
    """Beside the pages of a capture that a listener on another machine writes."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def has_room(self, nbytes: int) -> bool:
        """While what waits to be sent has room; the header of the file is counted as a mebibyte."""
        return self._sender.promise(nbytes + (1 << 20))

    def write(self, name: str, nbytes: int, tensors: dict[str, Tensor], about: Mapping[str, Any]) -> None:
        """Hand it to the connection."""
        content = b""
        with suppress(Exception):  # safetensors has exceptions of its own; memory may be short
            made = save(tensors, metadata=_metadata(about))
            content = made if len(made) <= MOST_BYTES else b""
        with suppress(CaptureError):
            self._sender.send_file(KeptFile(name, content), nbytes + (1 << 20))


class Writing:
    """Threads that write files; waited for at the end, but not long."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def begin(
        self, to: KeptFiles, name: str, nbytes: int, tensors: dict[str, Tensor], about: Mapping[str, Any]
    ) -> None:
        """Write a file on a thread of its own."""
        arguments = (name, nbytes, tensors, about)
        thread = threading.Thread(target=to.write, args=arguments, name="watch-spike", daemon=True)
        thread.start()
        self._threads = [*(one for one in self._threads if one.is_alive()), thread]

    def wait(self) -> None:
        """A slow disk does not hold up the end of a program."""
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)


def file_name(number: int) -> str:
    """Of the n-th file of a training."""
    return f"{number:04d}{SUFFIX}"


def _metadata(about: Mapping[str, Any]) -> dict[str, str]:
    return {KEY: json.dumps(about)}
