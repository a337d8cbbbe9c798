"""Frames on a cluster of dask.distributed's that exists already; it reads checkpoints and code by the same paths."""

from __future__ import annotations

import io
import math
import queue
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from inspector.engine.errors import CancelledError, InputError
from inspector.engine.session.sweep.one_frame import Maker, compute
from inspector.engine.session.sweep.runners import Done, spool_of
from inspector.engine.session.sweep.spool import Spool
from inspector.records import SweepFrame, decode, encode
from inspector.records.plain_text import shortened
from inspector.version import __version__

SECONDS = 15
"""Within which the scheduler must answer."""
AHEAD = 2
"""Frames for each thread of the cluster that are handed over: one is computed, one waits."""
ASK_SECONDS = 1.0
CANCELLED = "The sweep was cancelled."
_one_at_a_time = threading.Lock()
"""A process of dask's may have several threads; hooks and the random state belong to the process."""


def about() -> tuple[str, str]:
    """(version of inspector, version of torch) where this is called."""
    import torch

    return __version__, torch.__version__


class Stopped:
    """In a process of the cluster: whether the sweep was cancelled, which its scheduler is asked once in a while."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._asked = -math.inf
        self._said = False

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self._said and now - self._asked > ASK_SECONDS:
            self._asked = now
            with suppress(Exception):  # a scheduler that does not answer has not said so
                from distributed import Event, get_client

                self._said = bool(Event(self._name, client=get_client()).is_set())
        return self._said


def compute_there(request: bytes, stop: str) -> tuple[str, bytes]:
    """(why it failed or "", the spool) of a frame, in a process of the cluster; `stop` is the name of its sweep's
    event that ends all frames."""
    task, file, stopped = decode(request), io.BytesIO(), Stopped(stop)
    assert isinstance(task, SweepFrame)
    with _one_at_a_time:
        if stopped():
            return CANCELLED, b""
        try:
            failed = compute(task, Spool(file), Maker(), stopped, lambda _done, _total, _text: None)
        except CancelledError:
            return CANCELLED, b""
    return failed, b"" if failed else file.getvalue()


@dataclass(slots=True)
class Cluster:
    """The processes behind a scheduler's address, "tcp://host:8786"."""

    address: str
    _client: Any = None
    _stop: str = field(default_factory=lambda: f"inspector-sweep-{uuid.uuid4().hex}")
    _room: int = 1
    _waiting: dict[Any, SweepFrame] = field(default_factory=dict)
    _done: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)

    def connect(self) -> str:
        """Connect, and check that the cluster can compute frames; what is there, in a few words. Raises InputError."""
        try:
            from distributed import Client
        except ImportError:
            raise InputError(
                "--scheduler needs dask.distributed, which is not installed: pip install 'sequence-inspector[sweep]'."
            ) from None
        try:
            self._client = Client(self.address, timeout=SECONDS, set_as_default=False)
            held = self._client.nthreads()
        except (OSError, TimeoutError, ValueError) as problem:
            text = " ".join(str(problem).split())[:160] or type(problem).__name__
            raise InputError(f"There is no dask scheduler at {self.address} ({text}).") from None
        if not held:
            raise InputError(f"The cluster at {self.address} has no workers yet; start some first.")
        self._check_versions()
        self._room = AHEAD * sum(held.values())
        return f"{len(held)} at {self.address}"

    def _check_versions(self) -> None:
        own = about()
        try:
            found = self._client.run(about)
        except Exception as problem:  # noqa: BLE001 - what a cluster without this package raises is dask's own affair
            text = " ".join(str(problem).split())[:160]
            raise InputError(
                f"The cluster at {self.address} cannot run inspector ({text}); install version {__version__} there."
            ) from None
        other = next((versions for versions in found.values() if tuple(versions) != own), None)
        if other is not None:
            there, here = (f"inspector {one[0]} with torch {one[1]}" for one in (other, own))
            raise InputError(f"The cluster at {self.address} has {there}, and here is {here}; they must be the same.")

    def has_room(self) -> bool:
        return len(self._waiting) < self._room

    def submit(self, task: SweepFrame) -> None:
        future = self._client.submit(compute_there, encode(task), self._stop, pure=False)
        self._waiting[future] = task
        future.add_done_callback(self._done.put)

    def next(self, seconds: float) -> Done | None:
        try:
            future = self._done.get(timeout=seconds)
        except queue.Empty:
            return None
        return self._result(future)

    def rest(self) -> list[Done]:
        found = []
        while not self._done.empty():
            found.append(self._result(self._done.get()))
        return found

    def _result(self, future: Any) -> Done:
        task = self._waiting.pop(future)
        try:
            failed, data = future.result(timeout=SECONDS)
            if not failed:
                spool_of(task).write_bytes(data)
        except Exception as problem:  # noqa: BLE001 - a worker that died or was lost raises errors of dask's own
            said = shortened(" ".join(str(problem).split()), 200) or type(problem).__name__
            failed = f"The cluster did not compute it: {said}."
        future.release()
        return Done(task, failed)

    def close(self) -> None:
        if self._client is None:
            return
        with suppress(Exception):  # a scheduler that has gone has nothing left to cancel
            if self._waiting:
                self._end_frames()
            self._client.cancel(list(self._waiting))
        self._client.close(timeout=SECONDS)

    def _end_frames(self) -> None:
        """Those that are being computed, too: dask takes back only what has not begun."""
        from distributed import Event

        Event(self._stop, client=self._client).set()
