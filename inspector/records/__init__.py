"""The tongue: what the rooms say to each other, as frozen dataclasses (numpy and the standard library only)."""

from inspector.records.channel import DTYPES, KINDS, Channel
from inspector.records.codec import BadRecordError, decode, encode
from inspector.records.edits import Edit, parse_edit
from inspector.records.labels import ANSWER_DOMAIN, CARRIED, CLASS_DOMAIN, STATE, STEP_DOMAIN, VOCABULARY_DOMAIN
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
from inspector.records.sequences import input_spec

__all__ = [
    "ANSWER_DOMAIN", "CARRIED", "CLASS_DOMAIN", "DTYPES", "KINDS", "STATE", "STEP_DOMAIN", "VOCABULARY_DOMAIN",
    "Analyse", "BadRecordError", "Cancel", "Catalog", "Channel", "CheckpointReport", "Edit", "Entry", "Failure",
    "Finding", "Finished", "Frame", "InputSpec", "Labels", "Load", "Loaded", "Log", "Mismatch", "Page", "Place",
    "Progress", "Quit", "Refusal", "Run", "RunStart", "RunStop", "Scalar", "Severity", "Status", "decode", "encode",
    "input_spec", "parse_edit",
]  # fmt: skip
