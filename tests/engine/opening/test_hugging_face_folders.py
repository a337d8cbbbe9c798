"""What is refused of a folder of Hugging Face's, in one sentence, before anything of it is built."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from inspector.engine.errors import InputError
from inspector.engine.opening.open_subject import open_subject
from inspector.records import Load


def folder(path: Path, file: str = "config.json", **config: Any) -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (path / file).write_text(json.dumps({"model_type": "gpt2", **config}))
    (path / "model.safetensors").write_bytes(b"")
    return path


def refused(path: Path, **more: Any) -> str:
    with pytest.raises(InputError) as caught:
        open_subject(Load(subject=str(path), **more))
    text = str(caught.value)
    assert "\n" not in text and text.count(". ") <= 1
    return text


def test_without_transformers_it_is_said_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "transformers" else find(name, *a)
    )
    assert "pip install 'sequence-inspector[hf]'" in refused(folder(tmp_path / "f"))


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "preprocessor_config.json"])
@pytest.mark.parametrize("nested", [False, True])
def test_code_of_the_folder_is_never_run(file: str, nested: bool, tmp_path: Path) -> None:
    code = {"auto_map": {"AutoModel": "modeling_mine.Mine"}}
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "modeling_mine.py").write_text("raise SystemExit('ran')")
    told = refused(folder(tmp_path / "f", file, **({"text_config": code} if nested else code)), trusted=True)
    assert file in told and "Python code of its own (auto_map), which is never run" in told


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation"])
def test_a_kernel_of_the_hub_is_not_fetched(key: str, tmp_path: Path) -> None:
    told = refused(folder(tmp_path / "f", **{key: "somebody/kernel"}))
    assert "the attention kernel 'somebody/kernel' from Hugging Face's Hub" in told


def test_quantised_weights(tmp_path: Path) -> None:
    told = refused(folder(tmp_path / "f", quantization_config={"quant_method": "bitsandbytes"}))
    assert "quantised by bitsandbytes" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [("[]", "is not a table"), ("{", "is not whole JSON"), ("{}", "names no model_type"), ("[" * 99_999, "whole JSON")],
)
def test_a_description_that_is_none(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    assert told in refused(tmp_path)
