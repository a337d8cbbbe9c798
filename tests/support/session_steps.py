"""What tests of a session do with it."""

from __future__ import annotations

from fakes import Fake

from inspector.gui.state.session import Session
from inspector.records import (
    InputSpec,
    Load,
)  # fmt: skip

# -- opening another model: the one before stays open until that has succeeded


def open_another(session: Session, fake: Fake) -> Load:
    """Begin to open a model beside the one that is open; the request that the worker gets."""
    session.open_subject(Load(subject="y", checkpoint="w.pt"), InputSpec(kind="text", value="to y"))
    assert isinstance(fake.sent[-1], Load)
    return fake.sent[-1]
