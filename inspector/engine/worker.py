"""The worker: a child process that opens models and runs them; requests in, records out, arrays to the capture.

Its first message is the Catalog of its registries. A reader thread takes the requests, so that a Cancel is noticed
during a run; everything else happens in the main thread. It ends with its parent.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.transport.parent_link import ParentLink
from inspector.transport.process import ALTERED_CODE, SPENT_CODE
from inspector.transport.supervisor import stay_above

if TYPE_CHECKING:
    from inspector.engine.session.service import Service

SILENT_SECONDS = 30.0
"""After so many seconds without a message from a request, the log gets the stack, once; native code included."""


def main() -> int:
    """Serve requests until Quit, or until the parent is gone."""
    stay_above(os.getppid())  # from here on in a process of its own, on Linux
    _be_killed_first()
    link = ParentLink()
    from inspector.engine.opening.checked_imports import check_imports
    from inspector.engine.opening.user_code import UserCode
    from inspector.engine.process_state import altered, is_spent, keep, most_allowed
    from inspector.engine.session.catalogue import catalog
    from inspector.engine.session.service import Service
    from inspector.records import Analyse, Load, Quit, Run

    def say(record: Any) -> None:
        _heartbeat(True)
        link.send(record)

    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    link.send(catalog())  # this loads entries of other packages before any of the user's code
    code = UserCode()
    check_imports(code)
    keep()
    service = Service(say, code)
    threading.Thread(target=_listen, args=(link, service, requests), name="requests", daemon=True).start()
    while not isinstance(request := requests.get(), Quit):
        allowed = most_allowed()
        if isinstance(request, Load) and altered(code.is_installed):
            os._exit(ALTERED_CODE)  # the next model is opened by a worker in which nothing is
        _serve(link, service, request)
        if isinstance(request, (Run, Analyse)) and is_spent(allowed):
            os._exit(SPENT_CODE)  # at once: there may be no memory for anything more
    service.close()
    return 0


def _listen(link: ParentLink, service: Service, requests: queue.SimpleQueue[Any]) -> None:
    """Pass requests on; a Cancel takes effect at once, between two pages of the current run."""
    from inspector.records import Cancel, Failure, Quit

    while True:
        try:
            request = link.receive()
        except EOFError:
            os._exit(0)  # the parent has ended: a run may never end by itself
        except ValueError as problem:
            link.send(Failure(message=str(problem), kind="input"))
            continue
        if isinstance(request, (Cancel, Quit)):
            service.cancel()
        if not isinstance(request, Cancel):
            service.received()
            requests.put(request)


def _serve(link: ParentLink, service: Service, request: Any) -> None:
    """One request; the worker outlives it."""
    from inspector.records import Failure

    _heartbeat(True)
    try:
        service.serve(request)
    except Exception:  # noqa: BLE001 - the worker outlives any single request
        failure = Failure(
            message="The worker had an internal error; see the log.", details=traceback.format_exc(), kind="worker",
            request=type(request).__name__, generation=int(getattr(request, "generation", 0)),
        )  # fmt: skip
        link.send(failure)
    finally:
        _heartbeat(False)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the model may have closed or replaced it
                stream.flush()


def _heartbeat(working: bool) -> None:
    """Restart the timer of the stack dump, or stop it between requests.
    It needs no interpreter lock, so native hangs are logged."""
    with contextlib.suppress(Exception):  # the model may have closed or replaced stderr
        if working:
            faulthandler.dump_traceback_later(SILENT_SECONDS, exit=False)
        else:
            faulthandler.cancel_dump_traceback_later()


def _be_killed_first() -> None:
    """If memory runs out, Linux should end this process and not the window."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("900", encoding="ascii")


if __name__ == "__main__":
    sys.exit(main())
