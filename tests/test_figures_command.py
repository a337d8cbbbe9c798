"""`inspector export` of figures: many in one command, their size, numbers beside them, and in motion; in a notebook."""

from __future__ import annotations

import csv
import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import flip, numbers, write
from click.testing import CliRunner

import inspector
from inspector.capture import CaptureError, Writer, open_capture
from inspector.cli.command import cli
from inspector.gui.export.headless import drawing
from inspector.gui.export.look import Look, size_of
from inspector.gui.export.many import Wanted, export_many
from inspector.gui.export.number_files import axes_of
from inspector.records import Channel, Frame, Page, RunStart, RunStop, ViewAt

STEPS, UNITS, FRAMES = 12, 3, 3
NORM, STATE = "rnn.l0:jacobian/spectral_norm", "rnn.l0:h"


def state(frame: int) -> np.ndarray:
    return np.sin(np.arange(STEPS * UNITS, dtype=np.float64).reshape(STEPS, UNITS) + frame)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three frames of states and of norms, which the middle one does not have."""
    path = tmp_path_factory.mktemp("training") / "t.inspect"
    with Writer(path, RunStart(run="r", title="a training")) as writer:
        for frame in range(FRAMES):
            writer.write(Frame(index=frame, step=10 * frame))
            writer.write(Channel(name=STATE, kind="state", dims=("step", "unit"), shape=(STEPS, UNITS),
                                 dtype="float64", title="h", scale="diverging"))  # fmt: skip
            writer.write(Page(STATE, frame, (0, 0), state(frame)))
            if frame != 1:
                writer.write(Channel(name=NORM, kind="jacobian", dims=("step",), shape=(STEPS,), dtype="float64",
                                     title="norm", scale="log"))  # fmt: skip
                writer.write(Page(NORM, frame, (0,), np.linspace(1, 2 + frame, STEPS)))
        writer.write(RunStop(status="done"))
    return path


def run(*words: Any) -> tuple[int, str]:
    """The exit code, and what was said."""
    found = CliRunner().invoke(cli, ["export", *map(str, words)], standalone_mode=False)
    problem = found.exception
    if problem is None or isinstance(problem, SystemExit):
        return found.exit_code, found.output + found.stderr
    return getattr(problem, "code", 2), str(getattr(problem, "message", problem))


def size_in_png(path: Path) -> tuple[int, int]:
    """From the header, by the standard."""
    return struct.unpack(">II", path.read_bytes()[16:24])


def test_all_panels_over_all_frames_with_their_numbers_in_one_command(training: Path, tmp_path: Path) -> None:
    code, said = run(
        training, "--all-panels", "--all-frames", "--size", "85x60mm", "--dpi", 300, "--theme", "paper",
        "--font-size", 6, "--numbers", "csv", "--to", tmp_path / "f",
    )  # fmt: skip
    assert code == 0, said
    found = {path.name for path in (tmp_path / "f").iterdir()}
    assert {f"states-frame-{frame:04}.{kind}" for frame in range(3) for kind in ("png", "csv")} <= found
    assert {"jacobians-frame-0000.png", "jacobians-frame-0002.png"} <= found
    assert "jacobians-frame-0001.png" not in found, "that frame has none"
    width, height = size_in_png(tmp_path / "f" / "jacobians-frame-0002.png")
    assert abs(width - 85 / 25.4 * 300) <= 4 and abs(height - 60 / 25.4 * 300) <= 4
    with (tmp_path / "f" / "states-frame-0002.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["channel", "step", "unit", "value"]
    for row in rows:
        assert float(row["value"]) == state(2)[int(row["step"]), int(row["unit"])]
    assert len(rows) == STEPS * UNITS


def test_a_smaller_font_leaves_room_for_the_plots(training: Path, tmp_path: Path) -> None:
    """The picture has the size that was asked for; what is in it is laid out for a larger one, margins too."""
    found = {}
    for font in (9, 4.5, 18):
        to = tmp_path / f"{font}.svg"
        code, said = run(training, "--panel", "states", "--size", "800x600", "--font-size", font, "--to", to)
        assert code == 0, said
        head = to.read_text(encoding="utf-8")[:400]
        width = re.search(r'width="([\d.]+)mm"', head)
        box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
        assert width is not None and box is not None
        assert abs(float(width[1]) - 800 / 96 * 25.4) < 0.5
        found[font] = tuple(map(float, box.groups()))
    assert found == {9: (800, 600), 4.5: (1600, 1200), 18: (400, 300)}
    code, said = run(training, "--panel", "states", "--size", "200x150", "--font-size", 30, "--to", tmp_path / "x.png")
    assert code != 0 and "do not fit together" in said


def test_a_panel_that_asks_first_is_no_figure_of_everything(training: Path, tmp_path: Path) -> None:
    code, said = run(training, "--all-panels", "--size", "500x300", "--to", tmp_path / "f")
    assert code == 0, said
    assert {path.stem for path in (tmp_path / "f").iterdir()} & {"ask", "states"} == {"states"}


def test_paper_is_white_and_the_colours_are_those_asked_for(training: Path, tmp_path: Path) -> None:
    from PySide6.QtGui import QImage

    corners = {}
    for theme in ("light", "dark", "paper"):
        to = tmp_path / f"{theme}.png"
        code, said = run(training, "--panel", "states", "--size", "500x300", "--dpi", 96, "--theme", theme, "--to", to)
        assert code == 0 and size_in_png(to) == (500, 300), said
        corners[theme] = QImage(str(to)).pixelColor(0, 0).name()
    assert corners["paper"] == "#ffffff" and len(set(corners.values())) == 3


def test_numbers_of_a_figure_as_json_say_what_is_not_known(tmp_path: Path) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    flip(path, 2)
    code, said = run(path, "--panel", "states", "--damaged", "--numbers", "json", "--to", tmp_path / "s.png")
    assert code == 0, said
    told = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    (found,) = [one for one in told["numbers"] if one["name"] == "rnn.l0:h"]
    assert told["schema"] == "inspector-figure-1" and told["title"] == "States" and found["dims"] == ["step", "unit"]
    with open_capture(path) as capture:
        known, values = capture.known("rnn.l0:h"), np.ma.getdata(capture.array("rnn.l0:h"))
    for step, row in enumerate(found["values"]):
        for unit, value in enumerate(row):
            assert value == (float(values[step, unit]) if known[step, unit] else None)
    assert not known.all()


def test_names_of_axes_are_never_guessed(training: Path) -> None:
    with open_capture(training) as capture:
        assert axes_of(capture, STATE, np.zeros((STEPS, UNITS))) == ("step", "unit")
        assert axes_of(capture, f"{STATE}:cursor", np.zeros(UNITS)) == ("unit",)
        assert axes_of(capture, f"{STATE}:other", np.zeros((5, UNITS))) == ("index 0", "unit")
        assert axes_of(capture, f"{STATE}:square", np.zeros((UNITS, UNITS))) == ("index 0", "index 1")
        assert axes_of(capture, "nothing", np.zeros((2, 2))) == axes_of(None, "x", np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("over", "name", "count"), [("training", "a.gif", 3), ("training", "a.webp", 3), ("steps", "a.apng", 4)]
)
def test_an_animation_has_a_picture_for_each_place(
    training: Path, tmp_path: Path, over: str, name: str, count: int
) -> None:
    image = pytest.importorskip("PIL.Image")
    words = [] if over == "training" else ["--steps", "2:9", "--every", 2]
    to = tmp_path / name
    code, said = run(
        training, "--panel", "states", "--animate", over, *words, "--rate", 5, "--size", "400x260", "--dpi", 72,
        "--to", to,
    )  # fmt: skip
    assert code == 0, said
    with image.open(to) as found:
        assert found.n_frames == count and found.size == (300, 195) and found.is_animated
        pictures = set()
        for number in range(count):
            found.seek(number)
            pictures.add(found.convert("RGB").tobytes())
            assert found.info["duration"] == 200
        assert len(pictures) == count


def test_an_mp4_has_the_pictures_of_an_animation(training: Path, tmp_path: Path) -> None:
    image, av = pytest.importorskip("PIL.Image"), pytest.importorskip("av")
    for name in ("a.mp4", "a.apng"):
        code, said = run(
            training, "--panel", "states", "--animate", "training", "--rate", 5, "--size", "402x262", "--dpi", 72,
            "--to", tmp_path / name,
        )  # fmt: skip
        assert code == 0, said
    with av.open(tmp_path / "a.mp4") as film, image.open(tmp_path / "a.apng") as expected:
        stream = film.streams.video[0]
        shown = [frame.to_ndarray(format="rgb24") for frame in film.decode(stream)]
        assert stream.codec_context.name == "h264" and stream.average_rate == 5
        assert len(shown) == expected.n_frames == 3
        wanted = []
        for number in range(3):
            expected.seek(number)
            wanted.append(np.asarray(expected.convert("RGB")).astype(np.int64))
        for number, picture in enumerate(shown):
            assert picture.shape[0] % 2 == picture.shape[1] % 2 == 0
            there = picture[: wanted[0].shape[0], : wanted[0].shape[1]].astype(np.int64)
            apart = [float(np.abs(there - one).mean()) for one in wanted]
            assert apart[number] < 3 and apart[number] < 0.7 * min(apart[:number] + apart[number + 1 :]), apart


def test_pictures_that_memory_does_not_hold_become_a_film(
    training: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL")
    av = pytest.importorskip("av")
    from inspector.gui.export import animation

    words = ("--panel", "states", "--animate", "training", "--size", "402x262", "--dpi", 72, "--to")
    monkeypatch.setattr(animation, "MOST_PIXELS", 10_000)
    code, said = run(training, *words, tmp_path / "a.apng")
    assert code == 2 and "pixels do not fit into memory" in said and ".mp4, which needs none" in said
    monkeypatch.setattr(animation, "MOST", 2)
    code, said = run(training, *words, tmp_path / "a.gif")
    assert code == 2 and "3 pictures are too many" in said and "one of every 2 (--every 2), or .mp4" in said
    assert not list(tmp_path.iterdir())
    code, said = run(training, *words, tmp_path / "a.mp4")
    assert code == 0, said
    with av.open(tmp_path / "a.mp4") as film:
        assert sum(1 for _ in film.decode(film.streams.video[0])) == 3


def test_an_mp4_without_its_library_is_refused_in_a_sentence(
    training: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL")
    monkeypatch.setitem(sys.modules, "av", None)
    code, said = run(training, "--panel", "states", "--animate", "steps", "--to", tmp_path / "a.mp4")
    assert code == 2 and said.strip().endswith("pip install 'sequence-inspector[video]'.")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--panel", "states", "--size", "5"], "is no size"),
        (["--panel", "states", "--size", "1e9x2"], "is no size"),
        (["--panel", "states", "--size", "99999x20in"], "can be drawn"),
        (["--panel", "states", "--dpi", "7"], "7 dots an inch"),
        (["--panel", "states", "--font-size", "0.1"], "points cannot be used"),
        (["--panel", "states", "--dark", "--theme", "paper"], "contradict"),
        (["--panel", "states", "--all-panels"], "one of"),
        (["--channel", STATE, "--all-frames"], "of figures"),
        (["--panels", "states,nope"], "There is no panel 'nope'"),
        (["--all-panels", "--animate", "steps"], "one panel"),
        (["--panel", "jacobians", "--animate", "steps", "--to", "a.avi"], "there are .gif, .apng, .webp, .mp4"),
        (["--panel", "states", "--animate", "steps", "--rate", "0", "--to", "a.gif"], "pictures a second"),
        (["--panel", "states", "--animate", "steps", "--steps", "3:4", "--to", "a.gif"], "needs two steps"),
        (["--panels", "states", "--frame", "7"], "There is no frame 7"),
        (["--panel", "states", "--map-colours", "{1"], "are no colours"),
        (["--panel", "states", "--map-colours", '["states"]'], "are no colours"),
        (["--panel", "states", "--map-colours", '{"states": "full"}'], "are no colours"),
        (
            ["--panel", "states", "--map-colours", '{"states": {"diverging": {"span": "full"}}}'],
            "has 'span', not one of range",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_sentence(
    training: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("PIL")
    code, told = run(training, *words, *([] if "--to" in words else ["--to", "x"]))
    assert code == 2 and said in told and "\n" not in told.strip()
    assert not list(tmp_path.iterdir())


def test_sizes() -> None:
    assert size_of("900x600") == (900, 600) and size_of(" 25.4 × 25.4 cm ") == (960, 960)
    assert size_of("3.25x2in") == (312, 192) and Look(dpi=96).scale == 1.0


def test_a_notebook_shows_a_panel(training: Path, tmp_path: Path) -> None:
    with open_capture(training) as capture:
        shown = capture.show("States", frame=1, size=(400, 300), dpi=96)
        with pytest.raises(CaptureError, match="no panel 'lag'"):
            capture.show("lag")
        with pytest.raises(CaptureError, match="nothing to show"):
            capture.show("lags")
    assert shown._repr_png_().startswith(b"\x89PNG") and "<svg" in shown._repr_svg_()
    assert size_in_png(shown.save(tmp_path / "a.png")) == (400, 300)
    np.testing.assert_array_equal(shown.numbers[STATE], state(1))
    assert "<svg" in inspector.show(training, "jacobians").svg.decode()
    with pytest.raises(CaptureError, match=r"there are \.png and \.svg"):
        shown.save(tmp_path / "a.pdf")


def test_without_qt_a_notebook_gets_one_sentence(training: Path) -> None:
    code = (
        "import sys; sys.modules['PySide6'] = None\nimport inspector\nfrom inspector.capture import CaptureError\n"
        f"with inspector.open_capture({str(training)!r}) as capture:\n"
        "    try: capture.show('states')\n    except CaptureError as problem: print(problem)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "drawn by Qt, which cannot be loaded" in told.stdout and told.stdout.count("\n") == 1


GATED = "rnn.l0"


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four gates of 8 units over 40 steps."""
    path = tmp_path_factory.mktemp("gated") / "g.inspect"
    with Writer(path, RunStart(run="r", title="gates")) as writer:
        writer.write(Frame(index=0))
        for gate in ("i", "f", "g", "o"):
            name = f"{GATED}:gate/{gate}"
            writer.write(Channel(name=name, kind="gate", dims=("step", "unit"), shape=(40, 8), title=f"gate {gate}"))
            writer.write(Page(name, 0, (0, 0), np.random.default_rng(0).random((40, 8)).astype(np.float32)))
        writer.write(RunStop(status="done"))
    return path


@pytest.mark.parametrize("font", ["7", None])
def test_a_column_of_a_paper_has_every_map_and_says_what_has_no_room(
    gated: Path, tmp_path: Path, font: str | None
) -> None:
    words = [] if font is None else ["--font-size", font]
    code, said = run(gated, "--panel", "gates", "--size", "85x60mm", *words, "--to", tmp_path / "g.png")
    assert code == 0 and "the saturation of units had no room" in said
    assert size_in_png(tmp_path / "g.png") == (642, 454)
    code, said = run(gated, "--panel", "gates", "--size", "900x600", "--to", tmp_path / "w.png")
    assert code == 0 and "no room" not in said and size_in_png(tmp_path / "w.png") == (1800, 1200)


def test_every_map_of_a_small_figure_has_height(gated: Path) -> None:
    with drawing(gated, ViewAt(panel="gates"), Look(size=size_of("85x60mm"))) as (_, panel):
        rows: Any = panel
        heights = [row.plot.vb.height() for row in rows.rows]
        assert len(heights) == 4 and min(heights) > 15
        bottoms = [row.plot.sceneBoundingRect().bottom() for row in rows.rows]
        assert bottoms == sorted(bottoms) and bottoms[-1] <= panel.figure.sceneRect().bottom() + 1


def test_progress_names_what_is_being_drawn(training: Path, tmp_path: Path) -> None:
    """It named the panel that had just been drawn: of one that takes long the one before was blamed."""
    wanted = Wanted(panels=("states", "jacobians"), frames=None)
    told = [(one.done, one.total, one.then) for one in export_many(training, tmp_path / "f", wanted)]
    states, jacobians = "States", "Jacobians"
    assert told == [
        (0, 6, states), (1, 6, states), (2, 6, states), (3, 6, jacobians), (4, 6, jacobians), (5, 6, jacobians),
        (6, 6, ""),
    ]  # fmt: skip
    code, said = run(training, "--panels", "states", "--progress", "--to", tmp_path / "g")
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert code == 0 and [(one["done"], one["text"]) for one in lines] == [(0, states), (1, states)], said
