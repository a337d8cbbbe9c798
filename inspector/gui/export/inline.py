"""A panel's figure as a piece of an HTML page: SVG in the colours of the page, or an image where that is smaller."""

from __future__ import annotations

import base64
import html
from dataclasses import fields
from xml.etree import ElementTree

from inspector.capture import CaptureError
from inspector.gui.export.figure_files import png_bytes, svg_bytes
from inspector.gui.panel.base import Panel
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import DARK, LIGHT

MOST_SVG = 250_000
"""Characters of SVG beyond which an image stands in its place: a trajectory in thousands of pieces has megabytes."""
IMAGE_SCALE = 1.5
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
KNOWN = frozenset({
    "svg", "g", "path", "rect", "line", "polyline", "polygon", "circle", "ellipse", "text", "tspan", "image", "defs",
    "clipPath", "mask", "pattern", "use", "linearGradient", "radialGradient", "stop",
})  # fmt: skip
PLAIN = {
    "fill-opacity": "1", "stroke-opacity": "1", "font-style": "normal", "font-weight": "400",
    "transform": "matrix(1,0,0,1,0,0)", "font-family": None, "vector-effect": "none",
}  # fmt: skip
"""Attributes that say nothing where they have this value; the family of the font is that of the page."""


def markup(panel: Panel, name: str) -> str:
    """The figure; `name` is unique on the page. Raises CaptureError where it cannot be drawn."""
    getattr(panel, "complete", lambda: None)()  # what it reads beside the window is there first
    label = html.escape(clean(f"{panel.title} of the run"), quote=True)
    try:
        drawn = _smaller(svg_bytes(panel), name, label)
    except ElementTree.ParseError as problem:
        raise CaptureError(f"{panel.title} could not be written as SVG: {problem}.") from None
    if len(drawn) <= MOST_SVG:
        return drawn
    size, light = panel.picture_size(), _image(panel)
    panel.set_theme(DARK)
    panel.redraw()
    dark = f'<source media="screen and (prefers-color-scheme: dark)" srcset="{_image(panel)}">'
    shown = f'<img alt="{label}" width="{size.width()}" height="{size.height()}" src="{light}">'
    return f"<picture>{dark}{shown}</picture>"


def _image(panel: Panel) -> str:
    """The address of the figure as an image, which is the image itself."""
    return f"data:image/png;base64,{base64.b64encode(png_bytes(panel, IMAGE_SCALE)).decode('ascii')}"


def dark_colours() -> str:
    """Rules of a style sheet that give the SVG of a light panel the colours of a dark one."""
    pairs = {getattr(LIGHT, one.name): getattr(DARK, one.name) for one in fields(LIGHT) if one.type == "str"}
    pairs.update(zip(LIGHT.series, DARK.series, strict=True))
    return "\n".join(
        f'figure svg [fill="{light}"] {{ fill: {dark}; }}\nfigure svg [stroke="{light}"] {{ stroke: {dark}; }}'
        for light, dark in pairs.items()
    )


def _smaller(drawn: bytes, name: str, label: str) -> str:
    """Qt's SVG without what it says for nothing, its names made unique, as an element of an HTML page."""
    root = ElementTree.fromstring(drawn)
    _prune(root)
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        _reduce(element, name)
    for attribute in ("width", "height", "baseProfile", "version"):
        root.attrib.pop(attribute, None)
    text = ElementTree.tostring(root, encoding="unicode")
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def _prune(parent: ElementTree.Element) -> None:
    """Remove what draws nothing, and every element that is not known to do no more than draw."""
    for child in list(parent):
        _prune(child)
        empty = child.tag in (f"{SVG}g", f"{SVG}defs") and not len(child)
        if empty or child.tag.removeprefix(SVG) not in KNOWN:
            parent.remove(child)
        child.tail = None
        if child.tag == f"{SVG}g":
            child.text = None
    if parent.tag in (f"{SVG}svg", f"{SVG}defs"):
        parent.text = None


def _reduce(element: ElementTree.Element, name: str) -> None:
    """The attributes of one element: fewer, shorter, and nothing that leads out of the page."""
    for key, value in list(element.attrib.items()):
        if PLAIN.get(key, "") in (value, None):
            del element.attrib[key]
        elif key in ("d", "points"):  # no number is rounded: some are in the units of the data, not in pixels
            element.attrib[key] = " ".join(value.split())
        elif key == "id":
            element.attrib[key] = f"{name}-{value}"
        elif "url(#" in value:
            element.attrib[key] = value.replace("url(#", f"url(#{name}-")
    link = element.attrib.pop(LINK, "")
    if link.startswith("data:image/png;base64,"):
        element.attrib["href"] = link
    elif link.startswith("#"):
        element.attrib["href"] = f"#{name}-{link[1:]}"
