"""An argument that `inspector.run` does not have is refused before anything is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

import inspector


def test_an_argument_that_there_is_not_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"inspector\.run has no argument 'output'.* it has out, overwrite, .*decode\."):
        inspector.run(nn.GRU(2, 3), output=tmp_path / "a.inspect")
    assert not list(tmp_path.iterdir())
