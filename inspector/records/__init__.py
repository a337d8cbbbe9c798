"""The tongue: what the rooms say to each other, as frozen dataclasses (numpy and the standard library only)."""

from inspector.records import report
from inspector.records.bounds import cut, encoded
from inspector.records.channel import ANSWER_DOMAIN, DTYPES, KINDS, STEP_DOMAIN, VOCABULARY_DOMAIN, Channel
from inspector.records.codec import BadRecordError, decode, encode
from inspector.records.edits import Edit, parse_edit
from inspector.records.naming import channel_name, place_name
from inspector.records.requests import (
    Analyse,
    Cancel,
    Catalog,
    CheckpointReport,
    Entry,
    Failure,
    Finished,
    InputSpec,
    Load,
    Loaded,
    Mismatch,
    Progress,
    Quit,
    Run,
)  # fmt: skip
from inspector.records.run import (
    Finding,
    Frame,
    Labels,
    Log,
    Page,
    Place,
    Refusal,
    RunStart,
    RunStop,
    Scalar,
    Severity,
    Status,
)  # fmt: skip

__all__ = [
    "ANSWER_DOMAIN", "DTYPES", "KINDS", "STEP_DOMAIN", "VOCABULARY_DOMAIN", "Analyse", "BadRecordError", "Cancel",
    "Catalog", "Channel", "CheckpointReport", "Edit", "Entry", "Failure", "Finding", "Finished", "Frame", "InputSpec",
    "Labels", "Load", "Loaded", "Log", "Mismatch", "Page", "Place", "Progress", "Quit", "Refusal", "Run",
    "RunStart", "RunStop", "Scalar", "Severity", "Status", "channel_name", "cut", "decode", "encode", "encoded",
    "parse_edit", "place_name", "report",
]  # fmt: skip
