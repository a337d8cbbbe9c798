"""What a report holds, section by section. Texts are plain text as they came; only `Figure.markup` is HTML."""

from __future__ import annotations

from dataclasses import dataclass, field

from inspector.records import Finding


@dataclass(frozen=True, slots=True)
class Written:
    """A note of a person: what it is about in words, the number and place of the finding that it is about ("" for
    none), the text, and when it was written, in seconds since 1970."""

    about: str
    text: str
    finding: str = ""
    place: str = ""
    written: float = 0.0


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture. `markup`: trusted HTML, an SVG or an image; `command`: the command line that opens the panel there;
    `name`: by which links lead to it, "" where none does."""

    caption: str
    markup: str
    command: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is known of one channel of a finding's evidence.

    Attributes:
        channel, shape: its name, its axes with their lengths; unit: of its numbers.
        least, greatest: of all finite numbers, NaN where there are none.
        at: of a channel with one axis the number at positions of the finding: (position in words, number).
        problem: why it could not be read, or what of it is damaged; "" for nothing.
    """

    channel: str
    shape: str = ""
    unit: str = ""
    least: float = float("nan")
    greatest: float = float("nan")
    at: tuple[tuple[str, float], ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Support:
    """What whoever writes a report adds to a finding: figures, those that stand with an earlier finding, and command
    lines that open the capture where it shows and that write its numbers and figures to files."""

    figures: tuple[Figure, ...] = ()
    before: tuple[Figure, ...] = ()
    opens: str = ""
    saves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A finding with all that supports it.

    Attributes:
        where: the frame and the place in words. notes: those that are about it.
    """

    finding: Finding
    where: str = ""
    numbers: tuple[Numbers, ...] = ()
    support: Support = field(default_factory=Support)
    notes: tuple[Written, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """One report.

    Attributes:
        title: of what was diagnosed; about: rows of what was run; sentence: what all of it comes to.
        findings: the worst first. figures: of what else was captured.
        clear: titles of the rules that judged and found nothing.
        unseen: (what was not looked at, why), in the order of their weight.
        tried: what came of cures that were tried, a sentence each.
        notes: those on no finding that is shown. without_figures: why there are none, "" where there are.
        opens: the command that opens the whole. style: of figures, added to the style sheet.
    """

    title: str
    about: tuple[tuple[str, str], ...]
    sentence: str = ""
    findings: tuple[Shown, ...] = ()
    figures: tuple[Figure, ...] = ()
    clear: tuple[str, ...] = ()
    unseen: tuple[tuple[str, str], ...] = ()
    notes: tuple[Written, ...] = ()
    tried: tuple[str, ...] = ()
    remarks: tuple[str, ...] = field(default=())
    without_figures: str = ""
    opens: str = ""
    style: str = ""
