"""The capture: a folder of page files with an SQLite index; panels read nothing else.

A run in progress, a finished one and a capture from a colleague have the same format. Bytes are written first, then the
row that commits them, so a reader never sees an incomplete page.

In: records and arrays from the engine (`Writer`). Out: channels, arrays and labels by name (`Capture`), or the
comparison of two frames read the same way (`Comparison`, `Difference`). Nothing in a capture is ever unpickled,
imported or executed.

    layout, checksums           file names, tables, versions; the checksum of each row
    writer, owner               the one writer of a capture, and the lease that shows that it is alive
    resuming                    the same for a training loop: it waits for room on a full disk
    connection, snapshot        the index of a run that may still be writing, without a file mapped into memory
    reader, index, contents     reading: rows are checked before they are used
    placing, pages              where every page belongs; its bytes are checked against their checksum
    assemble, pyramid           arrays from pages; levels of detail for drawing
    view                        the protocol that panels read
    comparison, comparable      two frames of any captures as one; `difference`: two as a window shows them;
                                `side`: one of two beside each other
    alignment, aligned          steps of two sides aligned by their tokens; by_parts: overviews of what has no pyramid
    compare, references         a comparison of what is given by path, by `PATH#FRAME` or opened
    coordinates                 numbers of the positions along an axis (iterations)
    curves                      the curves over training that a view has, and their points
    together                    the curves of several captures and logs as one view
    over_frames                 one number of a channel for each frame, along the iterations
    tables, pack                numbers for other programs; one file to mail; `whole_file`: as a whole or not at all
    control                     what windows ask of a training that writes a capture; `spike_files`: what it kept
    awaited                     that a listener waits for a training whose connection broke
    noted                       what a person notes; added to the index of a finished run
    remaining                   what a run had chosen and has not computed
    logs                        logs that other tools wrote, as a view too; `opening`: a capture or a log at a path

Begin reading with `layout.py`, then `reader.py`.
"""

from inspector.capture.comparable import Reference
from inspector.capture.comparing.aligned import aligned
from inspector.capture.comparing.alignment import Alignment, align
from inspector.capture.comparing.compare import compare, reference_of
from inspector.capture.comparing.comparison import Comparison
from inspector.capture.comparing.difference import Difference, Pair
from inspector.capture.comparing.side import Side
from inspector.capture.coordinates import coordinate_of, numbers_along, series
from inspector.capture.curves import Curve, Points, curves_of, points_of
from inspector.capture.damage import Damage, listed, summary
from inspector.capture.holes import Holes
from inspector.capture.layout import PACKED_SUFFIX, SUFFIX, CaptureError, NewerVersionError, TooLargeError
from inspector.capture.logs import LOGS, CancelledError, LogView, Role, role_of
from inspector.capture.noted import add_note, change_note, notes
from inspector.capture.opening import capture_of_index, is_log, open_any, open_log
from inspector.capture.over_frames import OverFrames, over_frames, summaries_of
from inspector.capture.pack import pack
from inspector.capture.reader import Capture, open_capture
from inspector.capture.references import open_reference, split_reference
from inspector.capture.remaining import left_of, not_added_to, not_computed
from inspector.capture.resuming import ResumingWriter
from inspector.capture.tables import DamagedError, csv_bytes, export_channel, write_atomically
from inspector.capture.target import check_target
from inspector.capture.writer import Writer

__all__ = [
    "LOGS",
    "PACKED_SUFFIX",
    "SUFFIX",
    "Alignment",
    "CancelledError",
    "Capture",
    "CaptureError",
    "Comparison",
    "Curve",
    "Damage",
    "DamagedError",
    "Difference",
    "Holes",
    "LogView",
    "NewerVersionError",
    "OverFrames",
    "Pair",
    "Points",
    "Reference",
    "ResumingWriter",
    "Role",
    "Side",
    "TooLargeError",
    "Writer",
    "add_note",
    "align",
    "aligned",
    "capture_of_index",
    "change_note",
    "check_target",
    "compare",
    "coordinate_of",
    "csv_bytes",
    "curves_of",
    "export_channel",
    "is_log",
    "left_of",
    "listed",
    "not_added_to",
    "not_computed",
    "notes",
    "numbers_along",
    "open_any",
    "open_capture",
    "open_log",
    "open_reference",
    "over_frames",
    "pack",
    "points_of",
    "reference_of",
    "role_of",
    "series",
    "split_reference",
    "summaries_of",
    "summary",
    "write_atomically",
]
