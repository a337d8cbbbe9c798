"""Where faults of the window itself go: the log, and one dialog whose details can be copied; nothing vanishes."""

from __future__ import annotations

import sys
import threading
import traceback
from types import TracebackType

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

from inspector.gui.window.main_window import Window
from inspector.records import Log

QUIET = ("propagateSizeHints", "QStandardPaths: XDG_RUNTIME_DIR")


def install(window: Window) -> None:
    """Hook exceptions of slots and threads, and Qt's own messages."""

    def report(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            window.close()
            return
        details = "".join(traceback.format_exception(kind, fault, trace))
        sys.stderr.write(details)
        window.session.log.append(Log(details, "error", "window"))
        window.log.add([Log(details, "error", "window")])
        window.session.sentence = f"A fault in the window: {fault}. The log has the details; nothing captured is lost."

    def from_thread(arguments: threading.ExceptHookArgs) -> None:
        text = "".join(traceback.format_exception(arguments.exc_type, arguments.exc_value, arguments.exc_traceback))
        window.session.note(Log(text, "error", "thread"))

    def from_qt(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
        if not any(part in message for part in QUIET):
            window.session.note(Log(message, "warning", "Qt"))

    sys.excepthook = report
    threading.excepthook = from_thread
    qInstallMessageHandler(from_qt)
