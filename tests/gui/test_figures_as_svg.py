"""SVG files are what the screen shows: a part of an image is that part, and nothing is drawn beyond the axes."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PySide6.QtGui import QImage

from inspector.capture import open_capture
from inspector.gui.export.figure_files import svg_bytes
from inspector.gui.export.inline import KNOWN, MOST_SVG, markup
from inspector.gui.export.offscreen import Stage
from inspector.gui.export.panels_of import panel_for, panels_of
from inspector.records import ViewAt

STEPS, UNITS = 300, 32

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def stage(a_capture: Path, qapp: object) -> Iterator[Stage]:
    with open_capture(a_capture) as capture:
        made = Stage(capture, (800, 500))
        yield made
        made.close()


def images(svg: bytes) -> list[QImage]:
    found = re.findall(r'href="data:image/png;base64,([^"]*)"', svg.decode())
    return [QImage.fromData(base64.b64decode(one)) for one in found]


def test_an_image_in_the_svg_has_a_cell_for_each_step_and_unit(stage: Stage) -> None:
    map_ = images(svg_bytes(stage.panel("states")))[0]
    assert (map_.width(), map_.height()) == (STEPS, UNITS)


def clipped(svg: bytes, wanted: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of the clip of every group that has some drawing in it (an XPath)."""
    root = ElementTree.fromstring(svg)
    clips = {one.attrib["id"]: one[0].attrib["d"] for one in root.iter(f"{SVG}clipPath")}
    found = []
    for group in root.iter(f"{SVG}g"):
        if "clip-path" in group.attrib and group.find(wanted) is not None:
            corners = np.array(re.findall(r"-?[\d.]+", clips[group.attrib["clip-path"][5:-1]]), float).reshape(-1, 2)
            found.append((*corners.min(0), *corners.max(0)))
    return found


def test_a_zoomed_curve_ends_at_the_axes(stage: Stage) -> None:
    panel = stage.panel("states", at=ViewAt(panel="states", step=12, steps=(10, 19)))
    area = panel.plots[-1].vb.sceneBoundingRect()
    colour = stage.theme.series[0]
    (clip,) = clipped(svg_bytes(panel), f".//{SVG}g[@stroke='{colour}']/{SVG}polyline") or clipped(
        svg_bytes(panel), f".//{SVG}g[@stroke='{colour}']/{SVG}path"
    )
    assert clip == pytest.approx((area.left(), area.top(), area.right(), area.bottom()), abs=1.5)


def test_what_comes_after_a_clipped_text_is_still_seen(stage: Stage) -> None:
    """The bar of colours is drawn after labels, each of which has a clip of its own."""
    found = clipped(svg_bytes(stage.panel("states")), f".//{SVG}image")
    assert len(found) == 2 and all(right - left > 12 and low - high > 200 for left, high, right, low in found)


def test_markup_of_a_page_is_known_elements_alone(stage: Stage) -> None:
    text = markup(stage.panel("states"), "f1")
    root = ElementTree.fromstring(text)
    assert {one.tag.rpartition("}")[2] for one in root.iter()} <= KNOWN and len(text) < MOST_SVG
    ids = [one.attrib["id"] for one in root.iter() if "id" in one.attrib]
    assert ids and all(name.startswith("f1-") for name in ids)
    assert len(images(text.encode())) == 2


def test_the_panel_of_a_channel_is_the_one_that_draws_least_beside_it(stage: Stage) -> None:
    panels = panels_of(stage.capture)
    drawn = {key for key in [one.key for one in panels] if stage.panel(key).state == "figure"}
    assert drawn == {one.key for one in panels} >= {"states", "units"}
    name = next(iter(stage.capture.channels))
    assert panel_for(panels, name) == "states" == panel_for(panels, f"{name}/saturation")
    assert panel_for(panels, "nowhere:x") == ""
