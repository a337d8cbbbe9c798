"""Logs that other tools wrote of a training, read without these tools and served as a View.

A format is one file in `readers/`, or in another package (entry-point group `inspector.logs`). A reader recognises
files by their first bytes or names and opens them; an open file puts points, histograms, settings and what it could
not read into runs. Nothing is unpickled, and every length is checked against the file.

In: a file or a folder. Out: `LogView`, curves and histograms by name along iteration axes, following files that grow.

    reader                     the protocol, the registry, and what a file puts its contents into
    search, source             the logs in a folder; files and runs, and reading what is new
    run_log, curves, growing   one run: restarts, curves that share axes, packed numbers
    view, parts                runs as channels
    roles                      what a logged name stands for: loss, learning rate, gradient norm
    rows, json_values, lines, document, csv_header, flat_yaml    what readers of text share
    wire, tfrecord, crc32c, tensors, bins, leveldb_log           what readers of binary files share
    tail                       a file that grows, or is replaced

Begin reading with `reader.py`, then `run_log.py`.
"""

from inspector.capture.logs.reader import LOGS, CancelledError, Intake, LogFile, LogReader, OneFile
from inspector.capture.logs.roles import Role, role_of
from inspector.capture.logs.view import LogView

__all__ = ["LOGS", "CancelledError", "Intake", "LogFile", "LogReader", "LogView", "OneFile", "Role", "role_of"]
