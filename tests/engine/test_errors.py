"""Where the user's code went wrong: its own file and line, never a file of Python's or of torch's."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.engine.errors import LONGEST_DETAILS, LONGEST_TEXT, ModelError, model_error
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


def test_a_long_text_is_quoted_with_what_was_left_out_marked_and_is_whole_in_the_details() -> None:
    advice = "Expected all tensors to be on the same device, but found at least two devices. " * 3
    short = model_error(RuntimeError(advice.strip()))
    assert str(short) == f"The model raised RuntimeError: {advice.strip()}" and "…" not in str(short)
    long = f"begin {'middle ' * 200}what to do about it"
    told = model_error(RuntimeError(long))
    quoted = str(told).removeprefix("The model raised RuntimeError: ").removesuffix(".")
    assert len(quoted) <= LONGEST_TEXT and quoted.count("…") == 1
    assert quoted.startswith("begin middle") and quoted.endswith("middle what to do about it")
    assert told.details == f"RuntimeError: {long}"
    assert len(model_error(RuntimeError("x" * 10**7)).details) < LONGEST_DETAILS + 100
