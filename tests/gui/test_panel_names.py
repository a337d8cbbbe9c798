"""The panels of `inspector export`, by their key or their title."""

from __future__ import annotations

import pytest

from inspector.capture import CaptureError
from inspector.gui.export.headless import key_of
from inspector.gui.panel.registry import ordered


def test_a_panel_is_named_by_its_key_or_its_title_in_letters_of_any_case() -> None:
    for key, panel in ordered():
        assert {key_of(name) for name in (key, key.upper(), panel.title, f" {panel.title.lower()} ")} == {key}
    assert key_of("Openers") == "openers"


def test_what_there_is_stands_with_key_and_title_beside_what_there_is_not() -> None:
    with pytest.raises(
        CaptureError, match=r"There is no panel 'none'; there are overview, states, .*lens \(Token\), gates, openers, "
    ):
        key_of("none")
