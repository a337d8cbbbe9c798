"""Events of a training run, from a writer to a reader."""

from __future__ import annotations

import math
from pathlib import Path

from inspector.capture import Writer, open_capture
from inspector.records import Event, RunStart, RunStop, decode, encode


def test_events_are_read_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    events = [
        Event(3.0, "spike", "gradient norm 12", 1), Event(2.5, "note", "<s> \x1b[31m"),
        Event(math.nan, "a kind of its own"),
    ]  # fmt: skip
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(events[0])
        writer.flush()
        with open_capture(tmp_path / "a.inspect") as capture:
            assert capture.events == events[:1]
            for event in events[1:]:
                writer.write(event)
            writer.write(RunStop("done"))
            writer.flush()
            capture.refresh()
            assert capture.events[1] == events[1] and math.isnan(capture.events[2].iteration)
    with open_capture(tmp_path / "a.inspect") as capture:
        assert [event.kind for event in capture.events] == ["spike", "note", "a kind of its own"]
        assert not capture.damage


def test_an_event_is_a_record_of_the_wire() -> None:
    event = Event(1e9, "checkpoint", "step 5", -1)
    assert decode(encode(event)) == event
