"""Maps that a scan stands for: drawn about zero, with their kind in the title; kernels of convolutions are lag curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from panel_captures import channel, shown

T = 6
WEIGHTS = np.tril(-40.0 * 0.5 ** np.subtract.outer(np.arange(T), np.arange(T)))[None].astype(np.float32)
WEIGHTS[0, :, 0] *= -1
STATISTICS = {"statistic": ("median", "p10", "p90", "mean")}


def test_weights_of_either_sign_are_drawn_about_zero(tmp_path: Path) -> None:
    part = channel(
        "a:attention", "attention", ("head", "query", "key"), WEIGHTS, title="equivalent map", scale="diverging",
        domains={"query": "step", "key": "step"},
    )  # fmt: skip
    with shown(tmp_path, "attention", part, place="a") as (stage, panel):
        assert "equivalent map" in panel.row.heading
        levels = panel.row.map._levels
        assert levels.low == -levels.high and levels.scale == "diverging"
        choice = panel.choices()[0][1]
        picture = panel.levels.thumbnail(panel.capture, choice, at_once=True)
        assert choice.signed and len(np.unique(picture)) > 3, "weights far above 1 are told apart in the thumbnail"
        stage.cursor.move(place="a", head=0, step=3, key=3)
        said = dict(panel.readout(stage.cursor.position))
        assert any("-40" in value or "−40" in value for value in said.values()), said


def test_a_kernel_is_a_curve_over_channels_without_a_horizon(tmp_path: Path) -> None:
    rows = np.stack([scale * 0.5 ** np.arange(T) for scale in (1.0, 0.5, 2.0, 1.1)])
    part = channel(
        "a:scan/kernel", "lag", ("statistic", "lag"), rows, scale="log", labels=STATISTICS, title="kernel by lag"
    )
    with shown(tmp_path, "lags", part, place="a") as (_, panel):
        assert "kernel by lag" in panel.plot.titleLabel.text and not panel.horizon.isVisible()
        names = [name for _, name in panel.legend.entries]
        assert "median over channels" in names


def test_products_of_jacobians_come_before_a_kernel(tmp_path: Path) -> None:
    rows = np.stack([scale * 0.5 ** np.arange(T) for scale in (1.0, 0.5, 2.0, 1.1)])
    kernel = channel("a:scan/kernel", "lag", ("statistic", "lag"), rows, scale="log", labels=STATISTICS)
    products = channel("a:jacobian/lag", "lag", ("statistic", "lag"), rows, scale="log", labels=STATISTICS)
    with shown(tmp_path, "lags", kernel, products, place="a") as (_, panel):
        assert [one.signal for one in panel.tables()] == ["jacobian/lag", "scan/kernel"]
