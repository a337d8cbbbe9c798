"""A window that looks through folders before it opens them, and goes on meanwhile where that takes a while."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from inspector.capture import PACKED_SUFFIX, SUFFIX
from inspector.capture.regular import is_a_folder
from inspector.gui.state.folder_look import FolderLook, Held, held_by
from inspector.gui.state.offered import Offered
from inspector.gui.state.session import Session
from inspector.gui.state.settings import Settings
from inspector.gui.window.model_opening import is_capture
from inspector.gui.window.showing import Showing
from inspector.workspace.session_files import is_session


class LooksThrough(Showing):
    """Asks of each folder once what it holds, in a thread."""

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__(session, settings)
        self.offered = Offered()
        """What the worker can open and run; nothing before its catalogue has arrived."""
        self._held: Mapping[str, Held] = {}
        """What folders hold that are being opened, for as long as that takes: files come and go."""

    def look_through(self, paths: Sequence[str], then: Callable[[], None]) -> None:
        """Call `then` once the folders among these paths were looked through: at once where they are small."""
        self.session.forget_look()
        folders = [path for path in paths if is_mere_folder(path)]
        if not folders:
            then()
            return
        look = FolderLook(folders, self.offered, then)
        if look.soon() and not look.problem:
            self.go_on(look)
        else:
            self.session.look_through(look)
            self.show_state()

    def go_on(self, look: FolderLook) -> None:
        """Do what waited for a look."""
        if look.offered is not self.offered:  # the worker's catalogue has arrived meanwhile
            self.look_through(look.folders, look.then)
            return
        self._held = look.held
        try:
            look.then()
        finally:
            self._held = {}

    def held_by(self, folder: str) -> Held:
        """What a folder holds, by the look at it."""
        found = self._held.get(folder)
        return held_by(folder, self.offered) if found is None else found


def is_mere_folder(path: str) -> bool:
    """Whether a path is a folder that is no capture, so that what it holds says how it is opened."""
    return is_a_folder(path) and not is_or_was_capture(path) and not is_session(path)


def is_or_was_capture(path: str) -> bool:
    """Whether a path is that of a capture, also by its name alone: opening it says what is wrong with it then."""
    return path.rstrip("/").endswith((SUFFIX, PACKED_SUFFIX)) or is_capture(path)
