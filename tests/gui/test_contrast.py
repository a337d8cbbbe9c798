"""Every text can be read on every ground in both themes, and no map or line is told from another by red and green alone.

The eyes of people who lack a kind of cone are simulated by the matrices of Machado, Oliveira and Fernandes (2009) for
severity 1, on linear light; distances are those of CIE L*a*b* (1976) under D65.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pytest
from PySide6.QtGui import QColor, QPalette

from inspector.gui.widgets.theme import (
    BEYOND,
    DARK,
    DIVERGING,
    LAST,
    LIGHT,
    MAPS,
    MASKED,
    SEQUENTIAL,
    STYLE,
    Theme,
    colour_table,
    mixed,
    readable_on,
)

Array = npt.NDArray[np.float64]
EYES = {
    "full": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip
WHITE = np.array([0.95047, 1.0, 1.08883])
THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def rgb(*names: str | QColor) -> Array:
    return np.array([QColor(name).getRgbF()[:3] for name in names], float)


def linear(colours: Array) -> Array:
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def seen(colours: Array, eyes: str) -> Array:
    """L*, a*, b* of sRGB colours."""
    relative = np.clip(linear(colours) @ EYES[eyes].T, 0, 1) @ TO_XYZ.T / WHITE
    f = np.where(relative > 216 / 24389, np.cbrt(relative), (24389 / 27 * relative + 16) / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)


def contrast(one: str | QColor, other: str | QColor) -> float:
    """WCAG 2.2."""
    lights = sorted(float(linear(rgb(name))[0] @ [0.2126, 0.7152, 0.0722]) + 0.05 for name in (one, other))
    return lights[1] / lights[0]


def test_the_formulas_are_those_of_the_books() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    np.testing.assert_allclose(seen(rgb("#ff0000"), "full")[0], [53.24, 80.09, 67.20], atol=0.02)


@THEMES
def test_every_colour_of_text_is_read_on_every_ground(theme: Theme) -> None:
    for role in ("text", "muted", "accent", "warning", "error", "cursor"):
        for ground in ("window", "base", "raised"):
            found = contrast(getattr(theme, role), getattr(theme, ground))
            assert found >= 4.5, f"{role} on {ground}: {found:.2f}"
    for rule in re.findall(r"tab:(?:hover|selected) \{ background: palette\((\w+)\)", STYLE):
        ground = theme.palette().color(getattr(QPalette.ColorRole, rule.capitalize())).name()
        for role in ("text", "muted"):  # a pale tab has nothing to show
            assert contrast(getattr(theme, role), ground) >= 4.5, f"{role} on a tab under the mouse or in front"
    colours, roles = theme.palette(), QPalette.ColorRole
    pairs = (
        (roles.HighlightedText, roles.Highlight), (roles.ToolTipText, roles.ToolTipBase), (roles.ButtonText, roles.Button),
        (roles.PlaceholderText, roles.Base), (roles.BrightText, roles.Window), (roles.Link, roles.Base),
    )  # fmt: skip
    for group in (QPalette.ColorGroup.Active, QPalette.ColorGroup.Inactive, QPalette.ColorGroup.Disabled):
        for text, ground in pairs:
            assert contrast(colours.color(group, text), colours.color(group, ground)) >= 4.5, (group, text)
    assert min(contrast(line, getattr(theme, ground)) for line in theme.series for ground in ("window", "base")) >= 3


@THEMES
def test_the_first_curves_of_a_plot_are_told_apart_by_thin_lines(theme: Theme) -> None:
    curves = seen(rgb(*theme.series[:5]), "full")
    apart = np.linalg.norm(curves[:, None] - curves, axis=-1)[np.triu_indices(5, 1)]
    assert apart.min() >= 37


@THEMES
def test_a_token_is_read_on_whatever_colour_its_number_has(theme: Theme) -> None:
    for end in (theme.accent, theme.series[1]):
        for share in np.linspace(0, 1, 65):
            ground = mixed(QColor(theme.base), QColor(end), float(share))
            assert contrast(readable_on(ground), ground) >= 4.5
    for special in colour_table("sequential")[[254, 255]]:
        ground = QColor.fromRgb(int(special))
        assert contrast(readable_on(ground), ground) >= 4.5


@pytest.mark.parametrize("eyes", sorted(EYES))
@pytest.mark.parametrize("name", sorted({*MAPS.values(), *SEQUENTIAL, *DIVERGING}))
def test_a_map_has_the_same_order_for_every_eye(name: str, eyes: str) -> None:
    table = colour_table(name)[: LAST + 1]
    colours = np.stack([table >> shift & 255 for shift in (16, 8, 0)], 1) / 255
    sixteen = seen(colours[:: len(colours) // 16], eyes)
    steps = np.linalg.norm(np.diff(sixteen, axis=0), axis=1)
    assert steps.min() > 2, "two neighbours look the same"
    apart = np.linalg.norm(sixteen[:, None] - sixteen, axis=-1)
    two = np.abs(np.subtract.outer(np.arange(len(sixteen)), np.arange(len(sixteen)))) >= 2
    assert apart[two].min() > 5, "two numbers that are far apart look alike"
    if name.startswith("CET-D"):  # the middle is the lightest, and the ends have opposite hues
        middle = len(sixteen) // 2
        assert (np.diff(sixteen[: middle - 1, 0]) > 0).all() and (np.diff(sixteen[middle + 1 :, 0]) < 0).all()
        assert np.linalg.norm(sixteen[0, 1:] - sixteen[-1, 1:]) > 50
    else:
        assert (np.diff(sixteen[:, 0]) > 0).all()


@pytest.mark.parametrize("eyes", sorted(EYES))
@pytest.mark.parametrize("name", sorted({*SEQUENTIAL, *DIVERGING}))
def test_what_is_marked_as_beyond_the_range_has_the_colour_of_nothing_else(name: str, eyes: str) -> None:
    table = colour_table(name, marked=True)
    colours = np.stack([table >> shift & 255 for shift in (16, 8, 0)], 1) / 255
    others = seen(np.delete(colours, [BEYOND, MASKED], axis=0), eyes)
    assert np.linalg.norm(others - seen(colours[[BEYOND]], eyes), axis=1).min() > 30


@THEMES
@pytest.mark.parametrize("eyes", sorted(EYES))
def test_any_two_lines_of_a_plot_are_told_apart_by_every_eye(theme: Theme, eyes: str) -> None:
    looks = seen(rgb(*theme.series), eyes)
    apart = np.linalg.norm(looks[:, None] - looks, axis=-1)[np.triu_indices(len(looks), 1)]
    assert apart.min() > 17
