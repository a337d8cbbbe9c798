"""`inspector preflight --json`: an object with its schema, as every other command prints."""

from __future__ import annotations

import json
from pathlib import Path

from commands import call


def test_what_it_prints_has_a_schema(tmp_path: Path) -> None:
    told = json.loads(call("preflight", "char-elman", "--text", "Alice", "--quick", "--json", cwd=tmp_path).stdout)
    assert told["schema"] == "inspector-preflight-1" and set(told) == {"schema", "tests"}
    assert {"test", "word", "sentence", "number", "channel", "place", "steps"} <= told["tests"][0].keys()
