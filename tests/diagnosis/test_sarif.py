"""SARIF: what the standard (OASIS SARIF 2.1.0, sections 3.13 to 3.58) and code hosts require is there, of the right type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from commands import call

from inspector.cli.sarif import address, sarif
from inspector.diagnosis import RULES, Diagnosis
from inspector.records import Finding

LEVELS = {"none", "note", "warning", "error"}
SUPPRESSIONS = {"inSource", "external"}
RECORDED = Path(__file__).parents[2] / "sample_models" / "illnesses" / "recorded"


def message(one: Any) -> None:
    """3.11: text or id; here always a text, which is not empty."""
    assert isinstance(one["text"], str) and one["text"].strip()


def checked(log: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of a log that has what is required."""
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")  # 3.13
    (run,) = log["runs"]
    driver = run["tool"]["driver"]  # 3.14.6, 3.18.2
    assert driver["name"] and isinstance(driver["version"], str)
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))  # 3.49.3
    for rule in driver["rules"]:
        for part in ("shortDescription", "fullDescription", "help"):  # code hosts want them
            message(rule[part])
    for invocation in run["invocations"]:
        assert isinstance(invocation["executionSuccessful"], bool)  # 3.20.14
        for one in invocation["toolExecutionNotifications"]:
            message(one["message"])
            assert one["level"] in LEVELS
    for one in run["results"]:
        message(one["message"])  # 3.27.11
        assert one["ruleId"] in ids and one["level"] in LEVELS
        assert one["partialFingerprints"] and all(
            isinstance(value, str) for value in one["partialFingerprints"].values()
        )
        assert all(entry["kind"] in SUPPRESSIONS for entry in one.get("suppressions", ()))  # 3.35.2
        for place in one["locations"]:
            physical = place["physicalLocation"]
            uri = urlsplit(physical["artifactLocation"]["uri"])
            assert uri.path and " " not in uri.geturl() and "\\" not in uri.geturl()  # RFC 3986
            assert physical["region"]["startLine"] >= 1
            assert all(one["fullyQualifiedName"] and one["kind"] for one in place["logicalLocations"])
    return run["results"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["diverged", "uniform_attention", "no_gradient"])
def test_what_is_written_of_a_recording_has_what_is_required(name: str, tmp_path: Path) -> None:
    file = tmp_path / "r.sarif"
    call("diagnose", str(RECORDED / name / "ill" / "run.inspect"), "--sarif", str(file), cwd=tmp_path)
    results = checked(json.loads(file.read_text(encoding="utf-8")))
    assert results and all(
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"][:8] == "file:///" for one in results
    )


def found(*places: str) -> Finding:
    key, rule = next((key, rule) for key, rule in RULES.items() if rule.id == "IN412")
    return Finding(rule=key, id=rule.id, severity="warning", place="", places=places, message="even", frame=0)


def test_places_mutes_and_broken_rules() -> None:
    told = Diagnosis((found("a", "b"),), (), (), ("x: broke",), muted=(found(),))
    first, muted = checked(sarif(told, "run 1/ä%.inspect"))
    assert [one["fullyQualifiedName"] for one in first["locations"][0]["logicalLocations"]] == ["a", "b"]
    assert [one["fullyQualifiedName"] for one in muted["locations"][0]["logicalLocations"]] == ["model"]
    assert muted["suppressions"] == [{"kind": "external"}] and "suppressions" not in first
    uri = first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "run%201/%C3%A4%25.inspect" and unquote(uri) == "run 1/ä%.inspect"
    log = sarif(told, "r.inspect")
    assert log["runs"][0]["invocations"][0]["executionSuccessful"] is False
    assert address("/a b/r.inspect") == "file:///a%20b/r.inspect"


@pytest.mark.parametrize("broken", ["version", "ruleId", "message", "partialFingerprints", "region"])
def test_the_check_sees_what_is_missing(broken: str) -> None:
    log = sarif(Diagnosis((found("a"),), (), (), ()), "r.inspect")
    result = log["runs"][0]["results"][0]
    for part in (log, result, result["locations"][0]["physicalLocation"]):
        part.pop(broken, None)
    with pytest.raises((KeyError, AssertionError)):
        checked(log)
