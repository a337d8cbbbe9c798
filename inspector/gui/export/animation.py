"""A panel in motion, over steps of the input or over a training, as GIF, APNG, WebP (by Pillow) or MP4 (by PyAV)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.capture import CaptureError, DamagedError, summary, write_atomically
from inspector.gui.export.headless import PLAIN, drawing, why_nothing
from inspector.gui.export.look import Look
from inspector.gui.export.video import mp4_of, pyav
from inspector.records import STEP_DOMAIN, ViewAt

if TYPE_CHECKING:
    from inspector.gui.export.offscreen import Stage
    from inspector.gui.panel.base import Panel

FILM = "MP4"
FORMATS = {".gif": "GIF", ".apng": "PNG", ".webp": "WEBP", ".mp4": FILM}
OVER = ("steps", "training")
MOST, MOST_OF_FILM = 1_000, 100_000
"""Pictures of an animation at most: a browser holds all of them in memory, but those of a film one by one."""
MOST_PIXELS = 300_000_000
"""Of all pictures together: Pillow holds them in memory too, in three bytes each. A film is written as it is drawn."""
FASTEST = 50.0
"""Pictures a second: the shortest time of one in a GIF that browsers keep to is 0.02 s."""
NO_PILLOW = "An animation is written by Pillow, which is not installed: pip install 'sequence-inspector[animation]'."
Told = Callable[[int, int], None]


def export_animation(
    path: Path | str, at: ViewAt, to: Path | str, over: str, *, look: Look = PLAIN, rate: float = 10.0, every: int = 1,
    damaged: bool = False, told: Told = lambda _done, _total: None,
) -> tuple[Path, int]:  # fmt: skip
    """Draw a panel at one step after the other, or at one frame of the training after the other: (the file, how many
    pictures it has).

    Args:
        at: the panel and what stays; `at.steps` are the first and last step of an animation over steps.
        over: "steps" or "training". rate: pictures a second. every: each how many-th step or frame is drawn.
        told: called with (pictures drawn, all of them).

    Raises DamagedError or CaptureError with a one-line message, also where nothing moves.
    """
    target = Path(to)
    form = FORMATS.get(target.suffix.lower())
    if form is None:
        raise CaptureError(
            f"Cannot write an animation as {target.suffix or target.name!r}; there are {', '.join(FORMATS)}."
        )
    _check(over, rate, every)
    image = _pillow()
    if form == FILM:
        pyav()  # before anything is drawn
    with drawing(path, at, look) as (stage, panel):
        if (why := why_nothing(panel, damaged=damaged)) is not None:
            raise why
        places = _places(stage, panel, at, over)[::every]
        film = form == FILM
        _check_count(places, over, MOST_OF_FILM if film else MOST)
        pictures = _Pictures(stage, panel, image, look, over, damaged=damaged, film=film)
        data = _written(pictures.of(places, told), form, rate, panel.title)
    if not pictures.moved:
        raise CaptureError(f"{panel.title} shows the same at every one of these {over}: there is nothing to animate.")
    write_atomically(target, data)
    return target, len(places)


def _check(over: str, rate: float, every: int) -> None:
    if over not in OVER:
        raise CaptureError(f"An animation goes over {' or '.join(OVER)}, not over {over!r}.")
    if not 0.1 <= rate <= FASTEST:
        raise CaptureError(f"{rate:g} pictures a second cannot be shown; 0.1 to {FASTEST:g} can.")
    if every < 1:
        raise CaptureError(f"One of every {every} pictures cannot be drawn; 1 or more is expected.")


def _check_count(places: list[int], over: str, most: int) -> None:
    if len(places) < 2:
        raise CaptureError(f"An animation needs two {over if over == 'steps' else 'frames'} or more; here is one.")
    if len(places) > most:
        film = "" if most > MOST else f", or .mp4, which holds {MOST_OF_FILM:,}"
        raise CaptureError(
            f"{len(places):,} pictures are too many for this animation, at most {most:,}: choose a range of steps, one "
            f"of every {-(-len(places) // most)} (--every {-(-len(places) // most)}){film}."
        )


def _check_room(pixels: int, count: int) -> None:
    if pixels * count > MOST_PIXELS:
        raise CaptureError(
            f"{count:,} pictures of {pixels:,} pixels do not fit into memory, {MOST_PIXELS:,} pixels together do: "
            "choose fewer dots an inch (--dpi), a smaller size, fewer pictures (--every), or .mp4, which needs none."
        )


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise CaptureError(NO_PILLOW) from None
    return Image


def _places(stage: Stage, panel: Panel, at: ViewAt, over: str) -> list[int]:
    """The steps, or the indices of the frames in which the panel has something to show."""
    if over == "training":
        return [one.index for one in stage.capture.frames]
    length = stage.cursor.length_of(STEP_DOMAIN)
    first, last = at.steps or (0, length - 1)
    return list(range(first, min(last, length - 1) + 1))


class _Pictures:
    """Draws one place after the other. `moved`: whether two pictures differ."""

    def __init__(
        self, stage: Stage, panel: Panel, image: Any, look: Look, over: str, *, damaged: bool, film: bool = False
    ) -> None:  # fmt: skip
        self._film, self._stage, self._panel, self._image, self._look = film, stage, panel, image, look
        self._over, self._damaged = over, damaged
        self.moved = False

    def of(self, places: list[int], told: Told) -> Iterator[Any]:
        """Images of Pillow's, all of one size."""
        first: Any = None
        for number, place in enumerate(places):
            drawn = self._draw(place)
            if first is None:
                first = drawn
                if not self._film:
                    _check_room(first.width * first.height, len(places))
            elif drawn.size != first.size:  # a note below the figure made it higher
                drawn = drawn.crop((0, 0, *first.size))
            self.moved |= drawn is not first and drawn.tobytes() != first.tobytes()
            told(number + 1, len(places))
            yield drawn

    def _draw(self, place: int) -> Any:
        from PySide6.QtGui import QImage

        from inspector.gui.export.figure_files import picture
        from inspector.gui.panel.damaged import damage_in

        if self._over == "steps":
            self._stage.cursor.move(step=place)
        else:
            self._stage.turn(self._panel, place)
        getattr(self._panel, "complete", lambda: None)()  # what it reads beside the window is there first
        shown = picture(self._panel, self._look.scale, self._look.zoom).convertToFormat(QImage.Format.Format_RGB888)
        lost = summary(damage_in(self._panel))
        if lost and not self._damaged:
            raise DamagedError(f"{self._panel.title} shows damaged data: {lost}")
        size = (shown.width(), shown.height())
        return self._image.frombytes("RGB", size, bytes(shown.constBits()), "raw", "RGB", shown.bytesPerLine())


def _written(pictures: Iterator[Any], form: str, rate: float, title: str) -> bytes:
    if form == FILM:
        return mp4_of(pictures, rate)
    first, out = next(pictures), io.BytesIO()
    if form == "GIF":
        first, pictures = _with_palette(first), (_with_palette(one) for one in pictures)
    options: dict[str, Any] = {"lossless": True} if form == "WEBP" else {}
    rest = list(pictures)  # the writer of APNG goes through them twice
    first.save(
        out, form, save_all=True, append_images=rest, duration=round(1000 / rate), loop=0, **options
    )  # fmt: skip
    return out.getvalue()


def _with_palette(image: Any) -> Any:
    """256 colours of its own for each picture: those of the maps of one picture are not those of another."""
    return image.quantize(256, dither=0)
