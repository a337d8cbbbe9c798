"""Where the user's code went wrong: its own file and line, never a file of Python's or of torch's."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.engine.errors import ModelError
from inspector.engine.opening.open_subject import open_subject
from inspector.records import Load


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import torch\n\ndef make(:\n    pass\n", "SyntaxError (mine.py, line 3): invalid syntax."),
        ("import torch\nimport no_such_module_here\n", "ModuleNotFoundError (mine.py, line 2): No module named"),
    ],
)
def test_code_that_cannot_be_imported_is_said_to_be_wrong_in_its_own_line(tmp_path: Path, code: str, said: str) -> None:
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(ModelError) as told:
        open_subject(Load(subject=f"{tmp_path / 'mine.py'}:make", trusted=True))
    assert said in str(told.value) and "frozen" not in str(told.value)
    assert str(told.value).count("line ") == 1
