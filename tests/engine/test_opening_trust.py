"""No code of the user runs unless its content was agreed to, and what runs is never older than the files."""

from __future__ import annotations

import importlib.util
import py_compile
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Asking
from workers import Parent

from inspector.capture import open_capture
from inspector.records import Failure, Loaded, NeedsTrust
from inspector.workspace.trust import digest

MODEL = """
import torch
from torch import nn
{imports}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 3)
        {made}
    def forward(self, x):
        {forward}
        return self.rnn(x)[0]
"""


def model(imports: str = "", made: str = "pass", forward: str = "pass") -> str:
    return MODEL.format(imports=imports, made=made, forward=forward)


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        made = Parent()
    yield made
    made.worker.close()


@pytest.fixture
def asking(tmp_path: Path, parent: Parent) -> Asking:
    return Asking(tmp_path, parent)


def test_the_usual_set_is_asked_for_at_once_and_nothing_has_run(asking: Asking) -> None:
    asking.write("model.py", model("import mine, json, numpy\nfrom kit import layers\nfrom kit.deep.er import x\n"
                                   "import spread.one\ndef later():\n    import late\n"))  # fmt: skip
    asking.write("mine.py", asking.canary("mine") + "import importlib\nimportlib.import_module('named')\n")
    asking.write("named.py", asking.canary("named"))
    asking.write("late.py", asking.canary("late"))
    asking.write("kit/__init__.py", asking.canary("kit"))
    asking.write("kit/layers.py", asking.canary("layers") + "from . import parts\nfrom .deep import er\n")
    asking.write("kit/parts.py", asking.canary("parts"))
    asking.write("kit/deep/__init__.py", "")
    asking.write("kit/deep/er.py", "x = 1\nfrom ..parts import __name__\n")
    asking.write("spread/one.py", asking.canary("one"))
    asking.write("unused.py", asking.canary("unused"))
    answer = asking.load()
    files = ["model.py", "mine.py", "named.py", "late.py", "kit/__init__.py", "kit/layers.py", "kit/parts.py"]
    assert asking.asked(answer) == dict.fromkeys(
        [*files, "kit/deep/__init__.py", "kit/deep/er.py", "spread/one.py"], "new"
    )
    assert not asking.ran and "model.py" in answer.message and "9 more" in answer.message
    asking.agree(answer)
    assert isinstance(asking.load(), Loaded) and {"mine", "kit", "layers", "parts", "one", "named"} == set(asking.ran)


def test_what_a_longer_path_leads_to_is_asked_for_at_once_too(asking: Asking) -> None:
    lib = str(asking.folder / "lib")
    asking.write("model.py", model("import mine\nimport b"))
    asking.write("mine.py", f"import sys\nsys.path.append({lib!r})\nimport kit, a\n")
    for name in ("a", "b", "c", "kit/parts"):
        asking.write(f"lib/{name}.py", "")
    asking.write("lib/kit/__init__.py", "from . import parts\n" + asking.canary("kit") + "import c\n")
    asking.agree(asking.load())
    answer = asking.load()
    files = ["lib/kit/__init__.py", "lib/kit/parts.py", "lib/a.py", "lib/b.py", "lib/c.py"]
    assert asking.asked(answer) == dict.fromkeys(files, "new") and asking.ran == []
    asking.agree(answer)
    assert isinstance(asking.load(), Loaded) and asking.ran == ["kit"]


def test_a_changed_helper_is_asked_about_and_the_rest_is_not(asking: Asking) -> None:
    asking.write("model.py", model("import mine"))
    asking.write("mine.py", asking.canary("old"))
    asking.agree(asking.load())
    assert isinstance(asking.load(), Loaded) and asking.ran == ["old"]
    asking.write("mine.py", asking.canary("new"))
    answer = asking.load()
    assert asking.asked(answer) == {"mine.py": "changed"} and asking.ran == [] and "changed" in answer.message
    asking.agree(answer)
    assert isinstance(asking.load(), Loaded) and asking.ran == ["new"], "and it is not the old one that runs on"


def test_a_file_replaced_between_the_question_and_the_import(asking: Asking) -> None:
    path = asking.write("model.py", model())
    asking.agree(asking.load())
    asking.write("model.py", asking.canary("replaced") + model())
    assert asking.asked(asking.load()) == {"model.py": "changed"} and asking.ran == []
    assert asking.agreed[path] != digest(Path(path).read_bytes())


def test_a_file_replaced_by_the_import_of_another(asking: Asking) -> None:
    """Between the look at all files and the import of one of them: what is compared is what is compiled."""
    evil = asking.canary("evil")
    asking.write("model.py", model(f"open({str(asking.folder / 'mine.py')!r}, 'w').write({evil!r})\nimport mine"))
    asking.write("mine.py", "")
    asking.agree(asking.load())
    assert asking.asked(asking.load()) == {"mine.py": "changed"} and asking.ran == []


def test_an_agreement_is_to_a_path_and_a_content(asking: Asking) -> None:
    asking.write("model.py", model())
    asking.agree(asking.load())
    asking.write("other/model.py", model())
    assert asking.asked(asking.load(f"{asking.folder / 'other' / 'model.py'}:Model")) == {"other/model.py": "new"}


def test_compiled_files_are_not_used_for_a_source_that_was_agreed_to(asking: Asking) -> None:
    source = Path(asking.write("mine.py", asking.canary("evil")))
    cached = Path(importlib.util.cache_from_source(str(source)))
    py_compile.compile(str(source), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    asking.write("mine.py", asking.canary("good"))
    asking.write("model.py", model("import mine"))
    asking.agree(asking.load())
    assert isinstance(asking.load(), Loaded) and asking.ran == ["good"]


def test_a_compiled_file_without_a_source_is_asked_about(asking: Asking) -> None:
    source = Path(asking.write("mine.py", asking.canary("compiled")))
    py_compile.compile(str(source), str(asking.folder / "mine.pyc"))
    source.unlink()
    asking.write("model.py", model("import mine"))
    answer = asking.load()
    assert asking.asked(answer) == {"model.py": "new", "mine.pyc": "new"} and asking.ran == []
    asking.agree(answer)
    assert isinstance(asking.load(), Loaded) and asking.ran == ["compiled"]


LOADED_BY_HAND = """
import importlib.util
spec = importlib.util.spec_from_file_location({name!r}, {path!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
"""


def test_a_file_that_the_model_loads_by_itself_is_asked_about(asking: Asking) -> None:
    path = asking.write("parts/by_hand.py", asking.canary("by_hand"))
    asking.write("model.py", model(LOADED_BY_HAND.format(name="by_hand", path=path)))
    asking.agree(asking.load())
    answer = asking.load()
    assert asking.asked(answer) == {"parts/by_hand.py": "new"} and asking.ran == []
    asking.agree(answer)
    assert isinstance(asking.load(), Loaded) and asking.ran == ["by_hand"]


def test_native_code_is_asked_about_and_not_loaded_twice(asking: Asking) -> None:
    specs = [importlib.util.find_spec(name) for name in ("_queue", "_json", "_bisect")]
    places = [
        Path(str(spec.origin)) for spec in specs if spec is not None and str(spec.origin).endswith((".so", ".pyd"))
    ]
    if not places:
        pytest.skip("this Python has no extension module to copy")
    native, name = places[0], places[0].name.partition(".")[0]
    copy = asking.folder / native.name
    copy.write_bytes(native.read_bytes())
    asking.write("model.py", model(LOADED_BY_HAND.format(name=name, path=str(copy))))
    asking.agree(asking.load())
    answer = asking.load()
    assert asking.asked(answer) == {native.name: "new"}
    asking.agree(answer)
    assert isinstance(asking.load(), Loaded) and isinstance(asking.load(), Loaded)
    copy.unlink()
    copy.write_bytes(native.read_bytes() + b"\0")
    answer = asking.load()
    assert isinstance(answer, Failure) and "native code cannot be loaded again" in answer.message


def test_code_in_an_archive_is_asked_about(asking: Asking) -> None:
    with zipfile.ZipFile(asking.folder / "kit.zip", "w") as archive:
        archive.writestr("packed.py", asking.canary("packed"))
    asking.write("model.py", model(f"import sys\nsys.path.append({str(asking.folder / 'kit.zip')!r})\nimport packed"))
    asking.agree(asking.load())
    answer = asking.load()
    assert asking.asked(answer) == {"kit.zip/packed.py": "new"} and asking.ran == []
    asking.agree(answer)
    assert isinstance(asking.load(), Loaded) and asking.ran == ["packed"]


def test_a_model_that_catches_the_refusal_is_asked_about_all_the_same(asking: Asking) -> None:
    hidden = (
        "import importlib\nname = 'mi' + 'ne'\ntry:\n    importlib.import_module(name)\nexcept Exception:\n    pass"
    )
    asking.write("model.py", model(hidden))
    asking.write("mine.py", asking.canary("mine"))
    asking.agree(asking.load())
    answer = asking.load()
    assert asking.asked(answer) == {"mine.py": "new"} and asking.ran == []


def test_what_is_imported_in_a_run_ends_it_with_the_name_of_the_file(asking: Asking) -> None:
    asking.write("model.py", model(forward="import importlib; importlib.import_module('la' + 'te')"))
    asking.write("late.py", asking.canary("late"))
    asking.agree(asking.load())
    assert isinstance(asking.load(), Loaded)
    answer = asking.run()
    assert asking.asked(answer) == {"late.py": "new"} and answer.request == "Run" and asking.ran == []
    with open_capture(asking.folder / f"{asking.generation}.inspect") as capture:
        assert capture.status == "failed" and "late.py" in capture.stop.message
    asking.agree(answer)
    assert isinstance(asking.load(), Loaded) and asking.run().stop.status == "done" and "late" in asking.ran


def test_a_run_is_of_the_code_as_it_is_now(asking: Asking) -> None:
    asking.write("model.py", model("from mine import scale", forward="x = x * scale"))
    asking.write("mine.py", "scale = 1.0\n")
    asking.agree(asking.load())
    assert isinstance(asking.load(), Loaded) and asking.run().stop.status == "done"
    asking.write("mine.py", asking.canary("edited") + "scale = 0.0\n")
    answer = asking.run()
    assert asking.asked(answer) == {"mine.py": "changed"} and asking.ran == []
    assert isinstance(asking.run(), NeedsTrust), "declining leaves the model open, and the next run asks again"
    asking.agree(answer)
    assert isinstance(asking.load(), Loaded) and asking.ran == ["edited"]
    asking.write("mine.py", "scale =\n")
    broken = asking.run()
    assert asking.asked(broken) == {"mine.py": "changed"}
    asking.write("mine.py", asking.canary("edited") + "scale = 0.0\n")
    assert asking.run().stop.status == "done" and asking.ran == [], "corrected, the open model runs on"


def test_an_opening_that_is_refused_leaves_the_open_model_whole(asking: Asking) -> None:
    flag = asking.folder / "later"
    forward = f"import os, mine as again; assert again is mine\n        if os.path.exists({str(flag)!r}): import extra"
    asking.write(
        "model.py", model(f"import mine, sys\nsys.path.append({str(asking.folder / 'lib')!r})", forward=forward)
    )
    extra = asking.write("lib/extra.py", asking.canary("extra"))
    asking.agreed[extra] = digest(Path(extra).read_bytes())
    asking.write("mine.py", "")
    asking.agree(asking.load())
    assert isinstance(asking.load(), Loaded) and asking.run().stop.status == "done"
    asking.write("mine.py", "1 / 0\n")
    assert isinstance(asking.run(), NeedsTrust)
    asking.write("mine.py", "")
    flag.touch()
    stop = asking.run().stop
    assert stop.status == "done" and set(asking.ran) == {"extra"}, stop


def test_names_of_variables_are_those_of_the_edited_code(asking: Asking) -> None:
    loop = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.u, self.v = nn.Linear(2, 3), nn.Linear(3, 3), nn.Linear(2, 3)
    def forward(self, x):
        h = torch.zeros(x.shape[0], 3)
        for t in range(x.shape[1]):
            {gate} = torch.sigmoid(self.w(x[:, t]) + self.u(h))
            h = {gate} * h + (1 - {gate}) * torch.tanh(self.v(x[:, t]))
        return h
"""
    for gate in ("z", "u"):
        asking.write("model.py", loop.format(gate=gate))
        asking.agree(asking.load())
        assert isinstance(asking.load(), Loaded) and asking.run().stop.status == "done"
        with open_capture(asking.folder / f"{asking.generation}.inspect") as capture:
            assert f"model:gate/{gate}" in capture.channels, list(capture.channels)


def test_two_models_with_helpers_of_one_name(asking: Asking) -> None:
    for place in ("a", "b"):
        asking.write(f"{place}/model.py", model("import mine"))
        asking.write(f"{place}/mine.py", asking.canary(place))
        subject = f"{asking.folder / place / 'model.py'}:Model"
        asking.agree(asking.load(subject))
        assert isinstance(asking.load(subject), Loaded) and asking.ran == [place]


def test_a_link_counts_as_the_file_that_it_leads_to(asking: Asking) -> None:
    real = asking.write("real/model.py", model())
    (asking.folder / "model.py").symlink_to(real)
    assert asking.asked(asking.load()) == {"real/model.py": "new"}
    site = Path(sysconfig.get_path("purelib"))
    (asking.folder / "installed").symlink_to(site)
    (asking.folder / "kit").mkdir()
    (asking.folder / "kit/__init__.py").symlink_to(site / "click" / "__init__.py")
    asking.write("real/model.py", model(f"import sys\nsys.path.insert(0, {str(asking.folder)!r})\nimport kit"))
    asking.agree(asking.load())
    assert asking.asked(asking.load()) == {"kit/__init__.py": "new"}, "where a link leads can change after the look"


def test_what_the_command_line_trusts_is_not_asked_about_and_not_cached(asking: Asking) -> None:
    asking.write("model.py", model("import mine"))
    asking.write("mine.py", asking.canary("mine"))
    assert isinstance(asking.load(trusted=True), Loaded) and asking.ran == ["mine"]
    assert not list(asking.folder.rglob("*.pyc"))
    assert isinstance(asking.load(), NeedsTrust), "and only for this once"


def test_samples_are_not_asked_about(asking: Asking) -> None:
    assert isinstance(asking.load("char-gru"), Loaded)


def test_files_that_are_no_code_or_do_not_exist(asking: Asking) -> None:
    asking.write("model.py", "def (:\n")
    asking.agree(asking.load())
    assert "SyntaxError" in asking.load().message
    answer = asking.load(f"{asking.folder / 'missing.py'}:Model")
    assert isinstance(answer, Failure) and "no file" in answer.message
    answer = asking.load("no_such_module_here:Model")
    assert isinstance(answer, Failure) and "no module" in answer.message


def test_what_stands_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parent = Parent()
    try:
        asking = Asking(tmp_path, parent)
        for name in ("sample_models/__init__.py", "sample_models/char_gru.py", "inspector/__init__.py", "torch.py"):
            asking.write(name, asking.canary(name) + "def build():\n    raise RuntimeError\n")
        assert isinstance(asking.load("char-gru"), Loaded) and asking.ran == []
        asking.write("mine/model.py", asking.canary("mine") + model())
        asking.write("mine/__init__.py", asking.canary("package"))
        answer = asking.load("mine.model:Model")
        assert asking.asked(answer) == {"mine/__init__.py": "new", "mine/model.py": "new"} and asking.ran == []
        asking.agree(answer)
        assert isinstance(asking.load("mine.model:Model"), Loaded) and asking.ran == ["package", "mine"]
        assert isinstance(asking.load("torch.nn:Linear", arguments={"in_features": 2, "out_features": 2}), Loaded)
    finally:
        parent.worker.close()


def test_the_loaders_of_this_process_are_its_own() -> None:
    assert "get_code" not in vars(importlib.machinery.SourceFileLoader), "only a worker asks"
