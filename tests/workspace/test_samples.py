"""Samples are listed without importing one, and from the folder that came with the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from inspector.workspace.samples import find_sample, list_samples, read_sample, step_of


def test_listing_samples_imports_no_torch() -> None:
    code = "import sys; from inspector.workspace.samples import list_samples; n = len(list_samples()); print(n, 'torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert int(out[0]) >= 7 and out[1] == "False"


def test_every_sample_has_a_row_and_checkpoints() -> None:
    for sample in list_samples():
        assert sample.row.startswith("S") and len(sample.checkpoints) >= 6 and sample.title and sample.shows
        steps = [step_of(path) for path in sample.checkpoints]
        assert steps[0] == 0 and steps == sorted(steps)


def test_checkpoints_are_found_by_name_number_and_position() -> None:
    sample = find_sample("char-lstm")
    assert sample is not None
    assert sample.checkpoint("") == sample.checkpoints[-1]
    assert sample.checkpoint("0") == sample.checkpoints[0]
    assert sample.checkpoint(sample.checkpoints[2].name) == sample.checkpoints[2]
    assert sample.checkpoint(str(step_of(sample.checkpoints[3]))) == sample.checkpoints[3]
    assert sample.checkpoint("-1") == sample.checkpoints[-1] and sample.checkpoint("nonsense") is None


def test_what_changes_beside_or_in_a_card_is_listed_as_it_is_now(tmp_path: Path) -> None:
    file, folder = tmp_path / "one.py", tmp_path / "checkpoints" / "one"
    file.write_text("SAMPLE = {'name': 'one', 'title': 'first'}\n")
    before = read_sample(file)
    assert before is not None and before.title == "first" and not before.checkpoints
    folder.mkdir(parents=True)
    (folder / "step-000001.safetensors").touch()
    after = read_sample(file, "other")
    assert after is not None and len(after.checkpoints) == 1 and after.module == "other.one"
    file.write_text("SAMPLE = {'name': 'one', 'title': 'other'}\n")
    os.utime(file, ns=(0, 0))
    again = read_sample(file)
    assert again is not None and again.title == "other"
    file.unlink()
    assert read_sample(file) is None


def test_a_card_is_never_executed(tmp_path: Path) -> None:
    file = tmp_path / "evil.py"
    file.write_text("SAMPLE = {'name': __import__('os').getcwd()}\n")
    assert read_sample(file) is None


def test_a_folder_of_samples_somewhere_else_is_never_taken_for_ours(tmp_path: Path) -> None:
    (tmp_path / "sample_models").mkdir()
    (tmp_path / "sample_models" / "__init__.py").write_text("open('ran', 'w')\n")
    (tmp_path / "sample_models" / "evil.py").write_text("SAMPLE = {'name': 'evil'}\ndef build(): open('ran', 'w')\n")
    (tmp_path / "sample_models" / "char_gru.py").write_text("def build(): open('ran', 'w')\n")
    code = (
        "import inspector\nfrom inspector.workspace.samples import list_samples\n"
        "assert 'evil' not in {sample.name for sample in list_samples()}, 'listed'\n"
        "try:\n    inspector.run('char-gru', 'a')\nexcept ValueError as problem:\n    print(problem)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), *sys.path[1:]))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert "hidden by" in done.stdout and str(tmp_path) in done.stdout, done.stderr
    assert not (tmp_path / "ran").exists()


def test_no_module_of_the_working_directory_is_taken_for_an_installed_one(tmp_path: Path) -> None:
    for name in ("click.py", "tqdm.py", "platformdirs.py", "sample_models.py"):
        (tmp_path / name).write_text("open('ran', 'a').write(__name__)\n")
    done = subprocess.run([sys.executable, "-m", "inspector", "samples"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "char-lstm" in done.stdout, done.stderr
    assert not (tmp_path / "ran").exists()
