"""Where errors of the window itself are shown: the log, and one dialog whose details can be copied; none is lost."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

from inspector.gui.runtime.crash_file import write
from inspector.records import Log
from inspector.transport.terminal import say_details

QUIET = ("propagateSizeHints", "QStandardPaths: XDG_RUNTIME_DIR")


def install(
    show: Callable[[Log, str, Path | None], None], note: Callable[[Log], None], close: Callable[[], object]
) -> None:
    """Hook exceptions of slots and threads, and Qt's own messages.

    `show(log, sentence, file)` is called in the window's thread, with the file to send where one could be written;
    `note(log)` in any; `close()` ends the window at Ctrl-C.
    """

    def report(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            close()
            return
        details = "".join(traceback.format_exception(kind, fault, trace))
        say_details(details)
        file = write(details)
        kept = f"please send {file}" if file is not None else "the log has the details"
        # what is to be done is read first: the row has no room for all of a long fault
        sentence = f"An error in the window, nothing captured is lost; {kept}: {fault}"
        show(Log(details, "error", "window"), sentence, file)

    def from_thread(arguments: threading.ExceptHookArgs) -> None:
        text = "".join(traceback.format_exception(arguments.exc_type, arguments.exc_value, arguments.exc_traceback))
        note(Log(text, "error", "thread"))

    def from_qt(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
        if not any(part in message for part in QUIET):
            note(Log(message, "warning", "Qt"))

    sys.excepthook = report
    threading.excepthook = from_thread
    qInstallMessageHandler(from_qt)
