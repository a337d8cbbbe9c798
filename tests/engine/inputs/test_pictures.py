"""Pictures from files, for a model that reads an image."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from several_inputs import Captioner, made

from inspector.engine.errors import InputError
from inspector.engine.model.batch import Batch
from inspector.engine.model.subject import adopt
from inspector.engine.pipeline.batches import batch_of_spec
from inspector.records import InputSpec


def asked(path: Path, **image: Any) -> Batch:
    inputs = {"image": {"kind": "image", **image}, "caption": {"size": 6}}
    parts = {"image": InputSpec(kind="file", value=str(path)), "caption": InputSpec(kind="ids", value="1 2")}
    return batch_of_spec(adopt(SimpleNamespace(model=made(Captioner), inputs=inputs)), InputSpec(parts=parts), 0)


def drawn(path: Path, *shape: int) -> np.ndarray[Any, Any]:
    image = pytest.importorskip("PIL.Image", reason="pillow is in the extra 'hf'")
    numbers = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    image.fromarray(numbers).save(path)
    return numbers


def test_without_a_processor_a_picture_is_numbers_from_0_to_1(tmp_path: Path) -> None:
    numbers = drawn(tmp_path / "a.png", 5, 7, 3)
    batch = asked(tmp_path / "a.png")
    assert batch["image"].shape == (1, 3, 5, 7)
    np.testing.assert_allclose(batch["image"][0].permute(1, 2, 0).numpy(), numbers / 255, atol=1e-7)
    assert asked(tmp_path / "a.png", shape=(1, 5, 7))["image"].shape == (1, 1, 5, 7)
    with pytest.raises(InputError, match=r"has the shape \(3, 4, 4\); given was an array of shape \(3, 5, 7\)"):
        asked(tmp_path / "a.png", shape=(3, 4, 4))


def test_the_subjects_own_processor(tmp_path: Path) -> None:
    numbers = drawn(tmp_path / "a.png", 5, 7, 3)
    batch = asked(
        tmp_path / "a.png", pixels=lambda picture: torch.from_numpy(picture[::2, ::2].copy()).permute(2, 0, 1)
    )
    assert batch["image"][0].permute(1, 2, 0).tolist() == numbers[::2, ::2].tolist()


def test_what_is_no_picture(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image", reason="pillow is in the extra 'hf'")
    for content in (b"", b"\x89PNG\r\n\x1a\n" + b"\0" * 40, b"%!PS-Adobe-3.0 EPSF-3.0\n"):
        (tmp_path / "a.png").write_bytes(content)
        with pytest.raises(InputError, match=r"a\.png cannot be read as a picture"):
            asked(tmp_path / "a.png")


def test_without_pillow_it_is_said_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(InputError, match=r"needs pillow to be read: pip install 'sequence-inspector\[hf\]'"):
        asked(tmp_path / "a.png")
