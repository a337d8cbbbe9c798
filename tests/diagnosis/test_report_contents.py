"""What a report takes from a capture, and what it makes of it, without a window."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from inspector.diagnosis.report import Figure, Report, Support, page
from inspector.diagnosis.report.added import tried_of
from inspector.diagnosis.report.contents import Numbers, Shown, Written
from inspector.records import Finding, ViewAt, command


def test_cures_that_were_tried_are_told_with_their_seeds() -> None:
    about = {"kind": "cure", "unit": "nat", "title": "Clip: loss of training", "method": "adam"}
    after = SimpleNamespace(dims=("version", "seed"), name="model:trial/cure/x/after", shape=(2, 3), **about)
    other = SimpleNamespace(dims=("version", "seed", "iteration"), name="model:trial/cure/x", shape=(2, 3, 7), **about)
    numbers = {after.name: np.array([[2.0, 3.0, 4.0], [1.0, 3.5, 3.0]]), other.name: np.zeros((2, 3, 7))}
    channels = {one.name: one for one in (other, after)}
    view: Any = SimpleNamespace(
        channels=channels,
        channel=lambda name, _frame: channels[name],
        array=lambda name, _frame: numbers[name],
        extent=lambda name, _frame: numbers[name].shape,
        revision=lambda _name, _frame: 1,
    )
    (sentence,) = tried_of(view)
    assert sentence.startswith("Clip: no difference beyond the spread of the seeds. After 7 steps,")
    assert "0.5 ± 0.5 nat lower" in sentence and "2 of 3 seeds" in sentence and sentence.endswith("(adam)")
    assert tried_of(SimpleNamespace(channels={})) == []


def test_everything_of_a_report_is_on_the_page_and_escaped() -> None:
    evil = "<i>&\"'"
    finding = Finding(
        rule="r", id="X1", severity="error", place=evil, message=evil, sure=evil, unless=evil, remedy=evil, code=evil,
        reference=evil, steps=tuple(range(14)), iterations=(1000,),
    )  # fmt: skip
    numbers = Numbers(evil, evil, evil, -1.5, 2.25, ((evil, float("nan")),), evil)
    shown = Shown(finding, evil, (numbers,), Support((Figure(evil, "<svg></svg>", evil),), (), evil, (evil,)),
                  (Written(evil, f"{evil}\n\n{evil}"),))  # fmt: skip
    report = Report(
        title=evil, about=((evil, evil),), sentence=evil, findings=(shown,), figures=(Figure(evil, "<svg></svg>"),),
        clear=(evil,), unseen=((evil, evil),), notes=(Written(evil, evil, written=0.5),), tried=(evil,),
        remarks=(evil,), without_figures=evil, opens=evil,
    )  # fmt: skip
    made = page(report)
    assert "<i>" not in made and made.count("&lt;i&gt;&amp;&quot;&#x27;") > 30
    assert "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more" in made and "1,000" in made
    assert "-1.5" in made and "2.25" in made and "not a finite number" in made
    for name in ("cures", "figures", "notes", "unseen", "run"):
        assert f'href="#{name}"' in made and f'id="{name}"' in made


def test_what_stands_between_two_backticks_is_code_and_all_else_plain() -> None:
    finding = Finding(
        rule="r", id="X1", severity="info", place="a`b", message="at `a` <i>`", sure="`x <i>` & `y`", unless="one ` alone",
        remedy="Ask `inspector preflight` first ` and <b>", reference="`r`",
    )  # fmt: skip
    made = page(Report(title="t", about=(), findings=(Shown(finding, "a`b"),)))
    assert "<code>x &lt;i&gt;</code> &amp; <code>y</code>" in made and "one ` alone" in made
    assert "Ask <code>inspector preflight</code> first ` and &lt;b&gt;" in made
    assert "at `a` &lt;i&gt;`" in made and "<code>r</code>" not in made  # messages have names from outside


def test_a_position_in_words_is_what_a_shell_hands_on() -> None:
    at = ViewAt(
        panel="gates", frame=0, place="a b'c", step=0, steps=(3, 7), iterations=(9, 9), unit=0, head=2, run="-x"
    )
    assert at.words == [
        "--panel", "gates", "--frame", "0", "--place=a b'c", "--step", "0", "--unit", "0", "--head", "2",
        "--steps", "3:8", "--iterations", "9:10", "--run=-x",
    ]  # fmt: skip
    assert ViewAt().words == [] and command("my run.inspect") == "inspector 'my run.inspect'"
