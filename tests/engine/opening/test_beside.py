"""Files in different folders that have modules of one name beside them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import inspector
from inspector.engine.errors import InputError

MODEL = """
import torch
from {helper} import WIDTH

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.GRU(2, WIDTH)

    def forward(self, x):
        return self.rnn(x)[0]
"""


def written(folder: Path, width: int, helper: str = "beside_helper") -> Path:
    folder.mkdir()
    (folder / "model.py").write_text(MODEL.format(helper=helper))
    (folder / f"{helper}.py").write_text(f"WIDTH = {width}\n")
    return folder / "model.py"


def width_of(path: Path) -> int:
    with inspector.run(f"{path}:Model", only=["states"]) as capture:
        return int(capture.array("rnn.l0:h").shape[-1])


def test_each_file_gets_the_module_beside_it(tmp_path: Path) -> None:
    files = {width: written(tmp_path / f"of_{width}", width) for width in (3, 5)}
    assert [width_of(files[width]) for width in (3, 5, 3, 3, 5)] == [3, 5, 3, 3, 5]


def test_a_package_beside_it_too(tmp_path: Path) -> None:
    for width in (2, 4):
        path = written(tmp_path / f"of_{width}", width, "beside_package")
        (path.parent / "beside_package").mkdir()
        (path.parent / "beside_package.py").rename(path.parent / "beside_package" / "__init__.py")
        assert width_of(path) == width


def test_a_module_that_no_other_file_has_stays_loaded(tmp_path: Path) -> None:
    width_of(written(tmp_path / "one", 3, "beside_kept"))
    kept = sys.modules["beside_kept"]
    width_of(written(tmp_path / "two", 4, "beside_other"))
    assert sys.modules["beside_kept"] is kept


def test_a_module_that_was_imported_from_elsewhere_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "model", 3)
    (tmp_path / "beside_helper.py").write_text("WIDTH = 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match=r"model.py imports beside_helper, .* comes first in sys.path; rename one"):
        width_of(path)
    loaded = importlib.import_module("beside_helper")
    with pytest.raises(InputError, match="is loaded already; rename one of them, or open it in a new process"):
        width_of(path)
    assert loaded.WIDTH == 7 and sys.modules["beside_helper"] is loaded


def test_an_installed_package_does_not_hide_it_in_silence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"imports scipy, which lies beside it \(scipy.py\)"):
        width_of(written(tmp_path / "model", 3, "scipy"))


def test_a_standard_module_stays_what_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "model", 3)
    (path.parent / "queue.py").write_text("raise RuntimeError('not this one')\n")
    path.write_text("import queue\nassert queue.Queue\n" + path.read_text())
    assert width_of(path) == 3
