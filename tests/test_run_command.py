"""What `inspector run` computes, on which sequence, and what the catalogue offers for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from commands import call

import inspector


def test_a_repeated_text_is_a_batch_whose_chosen_sequence_is_shown(tmp_path: Path) -> None:
    texts = ["--text", "Alice", "--text", "The White Rabbit"]
    call("run", "char-gru", *texts, "--look-at", "1", "--out", "b.inspect", cwd=tmp_path)
    with (
        inspector.open_capture(tmp_path / "b.inspect") as batch,
        inspector.run("char-gru", "The White Rabbit") as alone,
    ):
        assert batch.array("rnn.l0:h").shape[0] == 16
        np.testing.assert_allclose(batch.array("rnn.l0:h"), alone.array("rnn.l0:h"), rtol=1e-4, atol=1e-5)


def test_with_adds_and_only_restricts_as_in_python(tmp_path: Path) -> None:
    given = ["run", "char-gru", "--text", "Alice", "--out", "a.inspect", "--overwrite"]

    def channels(*words: str) -> set[str]:
        call(*given, *words, cwd=tmp_path)
        with inspector.open_capture(tmp_path / "a.inspect") as capture:
            return set(capture.channels)

    default, vectors = channels(), "rnn.l0:gradient/h"
    assert vectors not in default and "rnn.l0:gate/update" in default
    assert channels("--with", "gradient/vectors@0:2") == default | {vectors}
    only = channels("--only", "states,input", "--only", "gates", "--with", "gradient/vectors@steps=0:2")
    assert vectors in only and "rnn.l0:gate/update" in only and "rnn.l0:jacobian/spectral_norm" not in only
    for asked in ({"gradient/vectors": {"steps": (0, 2)}}, ["gradient/vectors@0:2"], "gradient/vectors@0:2"):
        with inspector.run("char-gru", "Alice", only=["states", "input", "gates"], also=asked) as capture:
            assert set(capture.channels) == only
            values = capture.array(vectors)
            assert np.isfinite(values[:2]).all() and np.isnan(values[2:]).all() and not capture.verify()
    with inspector.run("char-gru", "Alice", quantities=["states"]) as capture:  # what `only` was called once
        assert {channel.signal for channel in capture.channels.values()} == {"h"}


def test_the_catalogue_lists_entries_with_their_options(tmp_path: Path) -> None:
    told = json.loads(call("catalogue", "quantities", "inputs", "rules", "--json", cwd=tmp_path).stdout)
    assert list(told) == ["quantities", "inputs", "rules"]
    (vectors,) = [entry for entry in told["quantities"] if entry["key"] == "gradient/vectors"]
    assert (
        vectors["needs"] == ["recurrence", "loss"]
        and vectors["options"][0]["name"] == "steps"
        and not vectors["default"]
    )
    out = call("catalogue", "inputs", "loaders", cwd=tmp_path).stdout
    assert "steps: a whole number from 0 to 10,000,000. How many steps. [64]" in out
    assert "torch         Files of torch.save; weights only, nothing is executed. (.pt .pth" in out
    assert "'loaders'" in call("catalogue", "nonsense", cwd=tmp_path, expect=2).stderr


def test_an_input_is_given_by_its_key(tmp_path: Path) -> None:
    given = [
        "--as",
        "generated",
        "impulse",
        "--option",
        "steps=6",
        "--option",
        "at=2",
        "--only",
        "input",
        "--out",
        "a.inspect",
    ]
    call("run", "digits-attention", *given, cwd=tmp_path)
    with inspector.open_capture(tmp_path / "a.inspect") as capture:
        assert capture.array("input:value")[:, 0].tolist() == [0, 0, 1, 0, 0, 0]
    assert (
        "no input 'generatd'; close to it is generated"
        in call("run", "digits-attention", "--as", "generatd", "x", cwd=tmp_path, expect=2).stderr
    )
