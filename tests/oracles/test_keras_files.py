"""Files that Keras writes, run by us, against what Keras computes (with torch as its backend)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inspector

os.environ.setdefault("KERAS_BACKEND", "torch")
keras: Any = pytest.importorskip("keras")
L = keras.layers
CELLS = {
    "lstm": lambda: L.LSTM(5, return_sequences=True),
    "gru": lambda: L.GRU(5, return_sequences=True),
    "simple": lambda: L.SimpleRNN(5, return_sequences=True),
    "relu": lambda: L.SimpleRNN(5, activation="relu", return_sequences=True),
    "no bias": lambda: L.LSTM(5, use_bias=False, return_sequences=True),
    "reset before": lambda: L.GRU(5, reset_after=False, return_sequences=True),
    "hard": lambda: L.LSTM(5, recurrent_activation="hard_sigmoid", return_sequences=True),
    "both ways": lambda: L.Bidirectional(L.GRU(5, return_sequences=True)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", ["keras", "h5", "weights.h5"])
@pytest.mark.parametrize("cell", CELLS)
def test_states_are_those_of_keras(cell: str, suffix: str, tmp_path: Path) -> None:
    keras.utils.set_random_seed(1)
    if cell in ("relu", "hard") and suffix == "weights.h5":
        pytest.skip("the file does not tell its activation")
    model = keras.Sequential([keras.Input((7, 3)), CELLS[cell](), L.Dense(4)])
    model.layers[0].set_weights([np.random.default_rng(2).normal(size=w.shape) for w in model.layers[0].get_weights()])
    x = np.random.default_rng(0).normal(size=(1, 7, 3)).astype("float32")
    path = tmp_path / f"model.{suffix}"
    (model.save_weights if suffix == "weights.h5" else model.save)(path)
    known = np.asarray(keras.ops.convert_to_numpy(model.layers[0](x)))[0]
    with inspector.run(str(path), x[0]) as capture:
        names = [
            name
            for name in capture.channels
            if name.endswith((".l0:h", ".l0.reverse:h", "gru:h", "lstm:h")) or name.partition(":")[2] == "h"
        ]
        found = np.concatenate([np.asarray(capture.array(name)) for name in names], -1)
    np.testing.assert_allclose(found, known, atol=2e-5, rtol=2e-5)


@pytest.mark.filterwarnings("ignore")
def test_layers_are_found_by_class_in_a_stack_of_keras_three(tmp_path: Path) -> None:
    model = keras.Sequential([
        keras.Input((7,), dtype="int32"), L.Embedding(9, 3), L.LSTM(5, return_sequences=True), L.Dropout(0.1),
        L.LSTM(4, return_sequences=True), L.TimeDistributed(L.Dense(9)),
    ])  # fmt: skip
    ids = np.random.default_rng(0).integers(0, 9, 7)
    model.save(tmp_path / "m.keras")
    inner = keras.Model(model.inputs, model.layers[3].output)
    known = np.asarray(keras.ops.convert_to_numpy(inner(ids[None])))[0]
    with inspector.run(str(tmp_path / "m.keras"), ids) as capture:
        np.testing.assert_allclose(capture.array("lstm_1.l0:h"), known, atol=2e-6)
        told = next(log.text for log in capture.logs if "rebuilt" in log.text)
        assert "embedding: embedding of 9 tokens" in told and "linear 4 → 9" in told
