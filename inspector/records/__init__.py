"""Records: the messages that the packages exchange, as frozen dataclasses (numpy and the standard library only).

They travel as JSON between processes and in the index of a capture; `codec.py` checks every field of what it reads.

    channel    what one measured array is: name, kind, axes, unit, formula, how it was computed
    axis       what the positions along an axis are: their number, layout and unit
    labels     names of label domains
    break_condition  when a watched training is to wait
    event      what happened at an iteration of a training
    note       what a person notes on a frame, step or finding
    run        the life of a run: start, frames, pages, labels, refusals, findings, log, stop
    requests   what a window asks of a worker, and the answers
    catalogue  what a worker offers: every entry of its registries
    decoding   how an answer is searched for, and the tree of what was tried
    view_at    where one looks at a capture, as options of a command
    options    options of an entry, and how they are written
    edits      changes to a run
    codec      records as bytes and back
    bounds, plain_values   records of bounded size, whatever they contain

Begin reading with `channel.py`.
"""

from inspector.records import report
from inspector.records.axis import Axis, Layout
from inspector.records.bounds import cut, encoded
from inspector.records.break_condition import BreakCondition, parse_condition
from inspector.records.catalogue import NEEDS, Catalog, Entry
from inspector.records.channel import DTYPES, KINDS, Channel, Comparison
from inspector.records.checkpoint_list import CheckpointList, ListCheckpoints, ListedCheckpoint
from inspector.records.codec import BadRecordError, decode, encode
from inspector.records.counted import counted, duration
from inspector.records.decoding import Decode, DecodedToken, DecodedTree
from inspector.records.edits import Edit, parse_edit
from inspector.records.event import BREAK_ON, CONTINUED, EVENT_KINDS, PAUSED, Event
from inspector.records.labels import (
    ANSWER_DOMAIN,
    CARRIED,
    CLASS_DOMAIN,
    FINGERPRINTS,
    ITERATION_DOMAIN,
    LAYER_DOMAIN,
    LOSS_UNIT,
    OPERATIONS,
    OWN_ITERATIONS,
    PROBLEM_DOMAIN,
    SECONDS,
    SEQUENCE_DOMAIN,
    STATE,
    STEP_DOMAIN,
    TRAINED,
    UNBOUNDED,
    VOCABULARY_DOMAIN,
)
from inspector.records.naming import channel_name, model_in_file, place_name
from inspector.records.note import Note, Noted
from inspector.records.options import Option, requests_in, split_request
from inspector.records.parameter_changes import CompareCheckpoints, ParameterChange, ParameterChanges
from inspector.records.requests import (
    Analyse,
    Cancel,
    CheckpointReport,
    CodeFile,
    Failure,
    Finished,
    InputSpec,
    Load,
    Loaded,
    Mismatch,
    NeedsTrust,
    Progress,
    Quit,
    Run,
    Sweep,
    SweepFrame,
)  # fmt: skip
from inspector.records.run import (
    SHAPES,
    Finding,
    Frame,
    Labels,
    Log,
    Page,
    Place,
    Refusal,
    RowCounts,
    RunStart,
    RunStop,
    Scalar,
    Severity,
    Status,
)  # fmt: skip
from inspector.records.sequences import SEQUENCES, data_spec, input_spec, is_data_set
from inspector.records.view_at import ViewAt, command
from inspector.records.weights import WEIGHTS

__all__ = [
    "ANSWER_DOMAIN",
    "BREAK_ON",
    "CARRIED",
    "CLASS_DOMAIN",
    "CONTINUED",
    "DTYPES",
    "EVENT_KINDS",
    "FINGERPRINTS",
    "ITERATION_DOMAIN",
    "KINDS",
    "LAYER_DOMAIN",
    "LOSS_UNIT",
    "NEEDS",
    "OPERATIONS",
    "OWN_ITERATIONS",
    "PAUSED",
    "PROBLEM_DOMAIN",
    "SECONDS",
    "SEQUENCES",
    "SEQUENCE_DOMAIN",
    "SHAPES",
    "STATE",
    "STEP_DOMAIN",
    "TRAINED",
    "UNBOUNDED",
    "VOCABULARY_DOMAIN",
    "WEIGHTS",
    "Analyse",
    "Axis",
    "BadRecordError",
    "BreakCondition",
    "Cancel",
    "Catalog",
    "Channel",
    "CheckpointList",
    "CheckpointReport",
    "CodeFile",
    "CompareCheckpoints",
    "Comparison",
    "Decode",
    "DecodedToken",
    "DecodedTree",
    "Edit",
    "Entry",
    "Event",
    "Failure",
    "Finding",
    "Finished",
    "Frame",
    "InputSpec",
    "Labels",
    "Layout",
    "ListCheckpoints",
    "ListedCheckpoint",
    "Load",
    "Loaded",
    "Log",
    "Mismatch",
    "NeedsTrust",
    "Note",
    "Noted",
    "Option",
    "Page",
    "ParameterChange",
    "ParameterChanges",
    "Place",
    "Progress",
    "Quit",
    "Refusal",
    "RowCounts",
    "Run",
    "RunStart",
    "RunStop",
    "Scalar",
    "Severity",
    "Status",
    "Sweep",
    "SweepFrame",
    "ViewAt",
    "channel_name",
    "command",
    "counted",
    "cut",
    "data_spec",
    "decode",
    "duration",
    "encode",
    "encoded",
    "input_spec",
    "is_data_set",
    "model_in_file",
    "parse_condition",
    "parse_edit",
    "place_name",
    "report",
    "requests_in",
    "split_request",
]  # fmt: skip
