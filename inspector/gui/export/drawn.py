"""The panels of one capture or log as pieces of an HTML page, one after the other."""

from __future__ import annotations

from inspector.capture import Capture, CaptureError, LogView, summary
from inspector.gui.export.headless import application, as_window
from inspector.gui.export.inline import dark_colours, markup
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.damaged import damage_in
from inspector.gui.panel.registry import PANELS
from inspector.records import ViewAt

SIZE = (1000, 560)


class Drawing:
    """Draws panels at positions. Each is deleted once it was drawn, so that memory stays that of one panel."""

    def __init__(self, opened: Capture | LogView) -> None:
        self._application = application()
        self._opened, self._count = as_window(opened), 0
        self.style = dark_colours()

    def figure(self, at: ViewAt) -> tuple[str, str, str] | None:
        """(the panel's title, its figure as HTML, what is damaged of it as one line); None where it shows nothing."""
        self._count += 1
        stage = Stage(self._opened, SIZE)
        try:
            panel = stage.panel(at.panel, at=at)
            if panel.state != "figure":
                return None
            return PANELS[at.panel].title, markup(panel, f"f{self._count}"), summary(damage_in(panel))
        except CaptureError:
            return None
        finally:
            stage.close()

    def close(self) -> None:
        """Release Qt's application, where this was the first to need one."""
        del self._application
