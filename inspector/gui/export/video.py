"""Pictures as an MP4 (H.264), by PyAV."""

from __future__ import annotations

import io
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from inspector.capture import CaptureError

NO_PYAV = "An MP4 is written by PyAV, which is not installed: pip install 'sequence-inspector[video]'."
CODEC, FORMAT = "libx264", "yuv420p"
NO_CODEC = f"This PyAV has no encoder for H.264 ({CODEC}), in which an MP4 is written; choose .gif, .apng or .webp."
QUALITY = "12"
"""Of 0 (without loss) to 51: thin lines and small texts stay sharp, at about a third of the bytes of 0."""
STILL = {"colorspace": "bt709", "color_primaries": "bt709", "color_trc": "bt709"}


def pyav() -> Any:
    """The library. Raises CaptureError where it, or its encoder, is not there."""
    try:
        import av
    except ImportError:
        raise CaptureError(NO_PYAV) from None
    if CODEC not in av.codecs_available:
        raise CaptureError(NO_CODEC)
    return av


def mp4_of(pictures: Iterator[Any], rate: float) -> bytes:
    """Images of Pillow's, all of one size, as the bytes of a film with so many of them a second.

    A size that is odd is made even by repeating the last row or column: two by two pixels share a colour in it.
    """
    av, out = pyav(), io.BytesIO()
    with av.open(out, "w", format="mp4") as film:
        stream: Any = None
        for picture in pictures:
            pixels = np.asarray(picture)
            high, wide = pixels.shape[:2]
            if stream is None:
                stream = _stream(film, wide + wide % 2, high + high % 2, rate)
            even = np.pad(pixels, ((0, high % 2), (0, wide % 2), (0, 0)), mode="edge")
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(even), format="rgb24")
            film.mux(stream.encode(frame.reformat(format=FORMAT, dst_colorspace="ITU709")))
        film.mux(stream.encode())
    return out.getvalue()


def _stream(film: Any, width: int, height: int, rate: float) -> Any:
    stream = film.add_stream(CODEC, rate=Fraction(rate).limit_denominator(1000))
    stream.width, stream.height, stream.pix_fmt = width, height, FORMAT
    stream.options = {"crf": QUALITY, **STILL}
    return stream
