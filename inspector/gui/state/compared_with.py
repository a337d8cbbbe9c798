"""What the capture that is shown is compared with: another capture, or another frame of its own; without Qt."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from inspector.capture import Capture, CaptureError, Pair, Reference, aligned, open_capture
from inspector.capture.comparing.alignment import Alignment
from inspector.records import counted


class ComparedWith:
    """The first side of a comparison. `capture` is None while nothing is compared."""

    def __init__(self) -> None:
        self.capture: Capture | None = None
        self.itself = False
        """Whether it is another frame of what is shown."""
        self.frame = -1
        self._key: object = None
        self._pair: Pair | None = None

    def open(self, path: Path) -> None:
        """Compare with a capture from disk. Raises CaptureError, and then what was compared with before stays."""
        capture = open_capture(path)
        self.end()
        self.capture, self.frame = capture, newest(capture)

    def compare_frames(self, capture: Capture) -> None:
        """Compare with another frame of what is shown: the first one. Raises CaptureError where it has only one."""
        if len(capture.frames) < 2:
            raise CaptureError(f"{capture.path.name} has one frame; choose another capture to compare it with.")
        self.end()
        self.capture, self.itself, self.frame = capture, True, capture.frames[0].index

    def end(self) -> None:
        """Compare with nothing."""
        if self.capture is not None and not self.itself:
            self.capture.close()
        self.capture, self.itself, self._pair, self._key = None, False, None, None

    def grown(self) -> bool:
        """Read what was written to the other capture since; whether there was anything."""
        if self.capture is None or self.itself or not self.capture.changed():
            return False
        return bool(self.capture.refresh())

    def pair(self, shown: Capture, frame: int) -> Pair:
        """The comparison with a frame of what is shown; the same object while nothing else is compared.

        Steps are aligned where their tokens differ; where they are too long for that, they are not.
        """
        assert self.capture is not None
        frame = newest(shown) if frame < 0 else frame
        own = newest(self.capture) if self.frame < 0 else self.frame
        labels = tuple(len(view.labels("step", at)) for view, at in ((self.capture, own), (shown, frame)))
        key = (id(self.capture), own, id(shown), shown.start.run, frame, labels)
        if self._pair is None or key != self._key:
            names = self._names(shown, own, frame)
            before, after = Reference(self.capture, own, names[0]), Reference(shown, frame, names[1])
            found: dict[str, Alignment] = {}
            with suppress(CaptureError):  # then channels along these steps are refused, with the first other token
                before, after, found = aligned(before, after)
            self._pair, self._key = Pair(before, after), key
            self._pair.alignments = found
        return self._pair

    def _names(self, shown: Capture, own: int, frame: int) -> tuple[str, str]:
        assert self.capture is not None
        if self.itself:
            return f"frame {own}", f"frame {frame}"
        names = []
        for capture, at, other in ((self.capture, own, shown), (shown, frame, self.capture)):
            several = f" frame {at}" if len(capture.frames) > 1 else ""
            same = capture.path.name == other.path.name and capture.path.parent.name != other.path.parent.name
            folder = f"{capture.path.parent.name}/" if same else ""
            names.append(f"{folder}{capture.path.name}{several}")
        return names[0], names[1]


def newest(capture: Capture) -> int:
    """The number of the newest frame; -1 where there is none."""
    return max((frame.index for frame in capture.frames), default=-1)


def told_of(pair: Pair) -> tuple[str, list[str]]:
    """(how many channels are compared and how many are not; the reasons of those that are not)."""
    compared, refused, apart = len(pair.channels), pair.refused, len(pair.separate)
    parts = [f"{counted(compared, 'channel')} compared"]
    if refused:
        parts.append(f"{len(refused)} cannot be compared")
    if apart:
        parts.append(f"{apart} read one run at a time")
    said = [alignment.sentence for alignment in pair.alignments.values()]
    return "; ".join([", ".join(parts), *said]), [*said, *(f"{name}: {reason}" for name, reason in refused.items())]


def in_short(pair: Pair) -> list[str]:
    """The same where there is little room, the longest first."""
    compared, refused = f"{len(pair.channels)} compared", len(pair.refused)
    first = [told_of(pair)[0].partition("; ")[0]] if pair.alignments else []
    return [*first, *([f"{compared}, {refused} not"] if refused else []), compared]
