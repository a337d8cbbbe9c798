"""A model alters what torch does for every model: the worker opens no other one, and its end says why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from workers import Parent

from inspector.records import Failure, Load, Loaded
from inspector.transport.process import ALTERED, ALTERED_CODE, Exit

MODEL = """
from torch import nn
{altering}
class M(nn.GRU):
    def __init__(self):
        super().__init__(2, 3)
"""
HOOK = "nn.modules.module.register_module_forward_hook(lambda module, given, made: None)"


@pytest.fixture
def parent() -> Iterator[Parent]:
    made = Parent()
    yield made
    made.worker.close()


def opened(parent: Parent, file: Path, altering: str) -> Loaded | Failure | Exit:
    file.write_text(MODEL.format(altering=altering))
    parent.worker.send(Load(subject=f"{file}:M", trusted=True))
    answer: Loaded | Failure | Exit = parent.wait(Loaded, Failure, Exit)
    return answer


def test_the_next_model_is_left_to_another_worker(parent: Parent, tmp_path: Path) -> None:
    assert isinstance(opened(parent, tmp_path / "a.py", ""), Loaded)
    assert isinstance(opened(parent, tmp_path / "b.py", HOOK), Loaded)
    ended = opened(parent, tmp_path / "c.py", "")
    assert isinstance(ended, Exit) and (ended.code, ended.sentence) == (ALTERED_CODE, ALTERED)
