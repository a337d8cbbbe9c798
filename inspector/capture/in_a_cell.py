"""`capture.show("lags")`: a panel's figure as the result of a notebook's cell.

Figures are drawn by a package above this one, which needs Qt. It is reached through the one that contains both, which
is always loaded: nothing here imports it, and reading a capture never loads Qt.
"""

from __future__ import annotations

import sys
from typing import Any

TOP = __name__.partition(".")[0]


class InACell:
    """What is open and can be drawn."""

    def show(self, panel: str, **options: Any) -> Any:
        """A panel's figure, which a notebook shows; `options` are those of `inspector.show`.

        Raises CaptureError with a one-line message.
        """
        return sys.modules[TOP].show(self, panel, **options)
