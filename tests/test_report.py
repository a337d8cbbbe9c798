"""The report of `inspector diagnose --to`: one page that needs nothing else, true to the capture, and plain text."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser import Parsed, browse, needs_chromium
from captures import flip
from commands import call
from PySide6.QtGui import QImage

from inspector.capture import Writer, add_note, open_any, open_capture
from inspector.cli.report import write_report
from inspector.diagnosis import Diagnosis, diagnose
from inspector.gui.widgets.theme import MAPS, colour_table
from inspector.records import Channel, Frame, Labels, Noted, Page, RunStart, RunStop
from inspector.workspace.trainings import path_or_training

TRAINING = "training-vanishing"
HOSTILE = '</title><script>alert(1)</script>]]>"onload="x\x1b[2J\u202egnp.exe'
SHOWN = '</title><script>alert(1)</script>]]>"onload="x⟨001b⟩[2J⟨202e⟩gnp.exe'
COUNTS = ("-inf", "<0", "0", ">0", "+inf", "nan", "first_bad_step")
MOST_BYTES = 4_000_000


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a training that vanishes, and a recorded run of its model."""
    folder = tmp_path_factory.mktemp("report")
    call("diagnose", TRAINING, "--to", "r.html", cwd=folder)
    return folder / "r.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture in which every text tries to be more than text, with a NaN."""
    path = tmp_path_factory.mktemp("hostile") / "h.inspect"
    with Writer(path, RunStart(run="r", title=HOSTILE, subject=HOSTILE, meta={HOSTILE: HOSTILE})) as writer:
        writer.write(Frame(index=0, label=HOSTILE))
        writer.write(Labels("step", ("<s>", HOSTILE, "]]>", "&lt;")))
        place = "rnn<img src=x onerror=y>"
        counts = Channel(
            name=f"{place}:health/h", kind="health", dims=("count",), shape=(7,), dtype="int64",
            labels={"count": COUNTS},
        )  # fmt: skip
        states = Channel(
            name=f"{place}:h", kind="state", dims=("step", "unit"), shape=(4, 3), dtype="float32", title=HOSTILE
        )
        for channel, values in ((counts, np.array([0, 1, 0, 1, 0, 2, 2])), (states, np.ones((4, 3), np.float32))):
            writer.write(channel)
            writer.write(Page(channel.name, 0, (0,) * values.ndim, values))
        writer.write(RunStop("done"))
    call("diagnose", str(path), "--to", "h.html", cwd=path.parent)
    return path


def read(path: Path) -> Parsed:
    return Parsed(path.read_text(encoding="utf-8"))


def test_the_page_needs_nothing_and_every_link_leads_somewhere(report: Path) -> None:
    page = read(report)
    assert report.stat().st_size < MOST_BYTES
    ids = [found["id"] for _, found in page.tags if "id" in found]
    assert len(ids) == len(set(ids))
    targets = [found["href"] for found in page.all("a")]
    assert len(targets) >= 4 and all(target[1:] in ids and target[0] == "#" for target in targets)
    loaded = [found.get(name, "") for _, found in page.tags for name in ("src", "href", "srcset", "data", "poster")]
    assert all(one.startswith(("data:image/png;base64,", "#")) for one in loaded if one)
    assert not {name for name, _ in page.tags} & {"script", "iframe", "object", "link", "form", "base", "foreignObject"}
    assert not [name for _, found in page.tags for name in found if name.startswith("on")]
    assert any("default-src 'none'" in found.get("content", "") for found in page.all("meta"))
    named = re.findall(r"url\(#([^)]*)\)", report.read_text(encoding="utf-8"))
    assert named and set(named) <= set(ids)


def test_findings_and_numbers_are_those_of_the_capture(report: Path) -> None:
    page = read(report)
    told = json.loads(call("diagnose", TRAINING, "--json", cwd=report.parent).stdout)
    assert len(told["findings"]) == 2 and len(page.all("article")) == 2
    for finding in told["findings"]:
        for word in ("message", "sure", "unless", "remedy", "code", "reference", "id", "rule", "place"):
            said = finding[word].replace("`", "") if word in ("sure", "unless", "remedy") else finding[word]
            assert "".join(said.split()) in "".join(page.text.split()), word
        assert all(line in page.text for line in finding["export"])
        assert all(view["draw"] in page.text for view in finding["views"])
    for key in told["silent"]:
        assert f" {key}: " in page.text
    assert "inspector run SUBJECT --with structure/batch" in page.text  # an object of a script has no name to be run by
    with open_any(path_or_training(TRAINING)) as capture:
        for name in ("training:loss", "rnn.l0:jacobian/lag"):
            values = np.ma.filled(np.ma.asarray(capture.array(name)).astype(float), np.nan)
            assert f"{np.nanmin(values):.4g} {np.nanmax(values):.4g}" in page.text
        assert capture.start.title in page.text
    assert "Adam, learning rate 0.002" in page.text


def test_a_figure_is_drawn_once_and_no_more_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_any(path_or_training(TRAINING)) as opened:
        finding = diagnose(opened, opened.frames).findings[0]
        twice = Diagnosis(findings=(finding, replace(finding, id="X2", rule="again")), asked=(), silent=(), broken=())
        write_report(opened, twice, TRAINING, None, str(tmp_path / "a.html"))
        monkeypatch.setattr("inspector.cli.report.MOST_BYTES", 0)
        write_report(opened, twice, TRAINING, None, str(tmp_path / "b.html"))
    page = read(tmp_path / "a.html")
    labels = [found["aria-label"] for found in page.all("svg")]
    assert labels.count("Training of the run") == 1 and {"href": "#figure-1"} in page.all("a")
    page = read(tmp_path / "b.html")
    assert len(page.all("svg")) == 1 and "Not drawn, since the report would be too large" in page.text


def test_figures_are_the_panels_with_their_texts(report: Path) -> None:
    page = read(report)
    figures = page.all("figure")
    labels = [found["aria-label"] for found in page.all("svg")]
    assert len(figures) == len(labels) >= 6 and labels[:2] == ["Training of the run", "Lags of the run"]
    assert "lag in steps" in page.text and "after 11 steps vanished" in page.text
    source = report.read_text(encoding="utf-8")
    dark = source.partition("@media screen and (prefers-color-scheme: dark)")[2].partition("</style>")[0]
    # an arrow at the end of a map's colour bar is data, as the bar is
    of_maps = {f"#{value & 0xFFFFFF:06x}" for scale in MAPS for value in colour_table(scale).tolist()}
    for colour in set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', source)) - {"#000000"} - of_maps:
        assert f'="{colour}"]' in dark, f"{colour} stays as it is on a dark page"


def test_hostile_text_is_plain_text(hostile: Path) -> None:
    page = read(hostile.parent / "h.html")
    assert not {name for name, _ in page.tags} & {"script"} and len(page.all("img")) == 0
    assert SHOWN in page.text and "rnn<img src=x onerror=y>" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", page.text)
    assert all(set(found) <= {"id", "class", "href", "src", "lang", "charset", "content", "http-equiv", "name",
                              "scope", "tabindex", "role", "aria-label"}
               for name, found in page.tags if name in ("p", "h1", "h2", "h3", "a", "td", "th", "code", "article"))  # fmt: skip


def test_commands_of_the_report_are_read_back_by_a_shell(hostile: Path) -> None:
    (finding,) = json.loads(call("diagnose", "h.inspect", "--json", cwd=hostile.parent).stdout)["findings"]
    assert finding["export"] and len(finding["views"]) == 1
    for number, line in enumerate((*finding["export"], finding["views"][0]["draw"])):
        words = shlex.split(line)
        assert words[0] == "inspector"
        done = call(*words[1:-1], f"{number}{Path(words[-1]).suffix}", cwd=hostile.parent)
        assert done.stderr.startswith(f"{number}.")
    assert json.loads((hostile.parent / "0.json").read_text(encoding="utf-8"))["values"] == [0, 1, 0, 1, 0, 2, 2]


def test_a_log_is_judged_by_the_rules_that_read_curves(tmp_path: Path) -> None:
    rows = [f"{n},{2 + 0.01 * (n % 3)}" for n in range(200)]
    (tmp_path / "log.csv").write_text("\n".join(["step,loss", *rows]), encoding="utf-8")
    call("diagnose", "log.csv", "--to", "l.html", cwd=tmp_path)
    page = read(tmp_path / "l.html")
    assert "IN303 plateau" in page.text and "This is a log that another tool wrote" in page.text
    assert len(page.all("svg")) >= 1 and "IN305 reach-through-time: " in page.text


def test_what_is_damaged_or_not_finished_is_told(tmp_path: Path) -> None:
    with Writer(tmp_path / "u.inspect", RunStart(run="r", title="unfinished")) as writer:
        writer.write(Frame(index=0, label="now"))
    call("diagnose", "u.inspect", "--to", "u.html", cwd=tmp_path)
    page = read(tmp_path / "u.html")
    assert "No rule had anything to look at." in page.text and "never finished" in page.text
    done = call("diagnose", "u.inspect", "--to", "u.pdf", cwd=tmp_path, expect=2)
    assert done.stderr == "A report is an HTML page, so --to takes a file that ends with .html, not u.pdf.\n"
    done = call("diagnose", "u.inspect", "--to", "none/u.html", cwd=tmp_path, expect=2)
    assert "none/u.html" in done.stderr and not (tmp_path / "none").exists()


def test_damaged_evidence_is_told(tmp_path: Path) -> None:
    with Writer(tmp_path / "d.inspect", RunStart(run="r", title="damaged")) as writer:
        writer.write(Frame(index=0, label="now"))
        for name in ("x:health/h", "y:health/h"):
            writer.write(Channel(name=name, kind="health", dims=("count",), shape=(7,), dtype="int64",
                                 labels={"count": COUNTS}))  # fmt: skip
            writer.write(Page(name, 0, (0,), np.array([0, 1, 0, 1, 0, 2, 3])))
        writer.write(RunStop("done"))
    flip(tmp_path / "d.inspect", 2)
    call("diagnose", "d.inspect", "--to", "d.html", "--damaged", cwd=tmp_path)
    page = read(tmp_path / "d.html")
    assert "part of what it reads is damaged: 1 damaged page: y:health/h" in page.text
    assert len(page.all("article")) == 1 and "2 NaN of 4 values" in page.text


def test_notes_stand_with_their_finding_and_findings_of_several_frames_once(tmp_path: Path) -> None:
    with Writer(tmp_path / "n.inspect", RunStart(run="r", title="noted")) as writer:
        for frame in range(3):
            writer.write(Frame(index=frame, label=f"moment {frame}"))
            counts = Channel(
                name="rnn:health/h", kind="health", dims=("count",), shape=(7,), dtype="int64",
                labels={"count": COUNTS},
            )  # fmt: skip
            writer.write(counts)
            writer.write(Page(counts.name, frame, (0,), np.array([0, 1, 0, 1, 0, 1 + frame, 7])))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "n.inspect") as capture:
        add_note(capture, Noted(finding="IN101", place="rnn"), "The batch of <Tuesday>.\nAsk Ada.")
        add_note(capture, Noted(step=4), "Here it begins.")
    call("diagnose", "n.inspect", "--to", "n.html", cwd=tmp_path)
    page = read(tmp_path / "n.html")
    assert (
        len(page.all("article")) == 1
        and "rnn; 3 of 3 frames, moment 0 to moment 2; the numbers are of moment 2" in page.text
    )
    source = (tmp_path / "n.html").read_text(encoding="utf-8")
    own, _, others = source.partition('<section id="notes">')
    assert "IN101 rnn" in own and "<p>The batch of &lt;Tuesday&gt;.</p><p>Ask Ada.</p>" in own
    assert "Here it begins." in others and "step 4" in others and "Tuesday" not in others


def test_without_qt_tables_stand_in_place_of_figures(hostile: Path, tmp_path: Path) -> None:
    code = (
        "import sys\nfor name in ('PySide6', 'pyqtgraph', 'shiboken6'): sys.modules[name] = None\n"
        f"sys.argv = ['inspector', 'diagnose', {str(hostile)!r}, '--to', 'q.html']\n"
        "from inspector.cli import main\nsys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr.startswith("The report has no figures: Qt cannot be loaded")
    page = read(tmp_path / "q.html")
    assert not page.all("svg") and page.all("table") and "There are no figures: Qt cannot be loaded" in page.text
    assert "2 NaN of 4 values" in page.text


# -- in a browser


def brightness(path: Path) -> float:
    image = QImage(str(path)).scaled(1, 1)
    assert not image.isNull()
    return image.pixelColor(0, 0).lightnessF()


@needs_chromium
def test_a_browser_draws_it_light_and_dark_and_complains_of_nothing(report: Path, tmp_path: Path) -> None:
    found = {}
    for dark in (False, True):
        shot = tmp_path / f"{dark}.png"
        _, said = browse(report, tmp_path, f"--screenshot={shot}", dark=dark)
        assert "CONSOLE" not in said
        found[dark] = brightness(shot)
    assert found[False] > 0.8 > 0.3 > found[True]


@needs_chromium
@pytest.mark.parametrize("width", [400, 1000])
def test_it_fits_a_narrow_window_and_paper(report: Path, tmp_path: Path, width: int) -> None:
    measure = (
        "<script>addEventListener('load', () => { const r = document.documentElement;"
        "const drawn = [...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect());"
        "document.title = JSON.stringify({page: r.scrollWidth, window: innerWidth, figures: drawn.length,"
        "seen: drawn.filter(b => b.width > 300 && b.height > 150).length}) })</script>"
    )
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", report.read_text(encoding="utf-8"))
    (tmp_path / "m.html").write_text(page.replace("</body>", f"{measure}</body>"), encoding="utf-8")
    told, _ = browse(tmp_path / "m.html", tmp_path, "--dump-dom", width=width)
    match = re.search("<title>({.*?})</title>", told)
    assert match is not None
    sizes = json.loads(match[1])
    assert sizes["page"] <= sizes["window"] and sizes["seen"] == sizes["figures"] > 0
    if width == 1000:
        browse(report, tmp_path, f"--print-to-pdf={tmp_path / 'p.pdf'}")
        assert (tmp_path / "p.pdf").read_bytes()[:5] == b"%PDF-"


@needs_chromium
def test_nothing_hostile_runs_in_a_browser(hostile: Path, tmp_path: Path) -> None:
    told, said = browse(hostile.parent / "h.html", tmp_path, "--dump-dom")
    assert "CONSOLE" not in said, said
    bare = re.sub(">[^<]*<", "><", re.sub('"[^"]*"', '""', told))  # without texts, nor values that are quoted
    assert "<script" not in told and "onerror" not in bare
