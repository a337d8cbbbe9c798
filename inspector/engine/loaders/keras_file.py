"""Weights of Keras: .keras and .weights.h5 of Keras 3, .h5 of Keras 2 and 3, by h5py. No code of a file runs.

LSTM, GRU and SimpleRNN get the names and the order of torch's layers where these compute the same:

- LSTM: kernel (i, 4u) in the order i, f, c, o is `weight_ih_l0` transposed, the order of torch's i, f, g, o;
- GRU with reset_after: kernel (i, 3u) in the order z, r, h, where torch has r, z, n; bias (2, 3u), one row for the
  input and one for the state (with one row, (3u,), the reset gate is before the product: torch has no such layer, and
  it keeps Keras' names);
- dense layers and embeddings: kernels transposed; tables as they are.

Source: keras.layers.LSTMCell, GRUCell and SimpleRNNCell, their `call`; torch.nn.LSTM, GRU, the formulas.
"""

from __future__ import annotations

from pathlib import Path

from inspector.engine.contracts import REBUILDING, State
from inspector.engine.errors import InputError
from inspector.engine.model.keras_layers import converted, read_layers
from inspector.engine.registries import LOADERS
from inspector.records.plain_text import shortened
from inspector.records.unreadable import why_unreadable


class KerasFile:
    """Variables of layers by name; recurrent, dense and embedding layers in torch's names and order."""

    title = "Keras"
    summary = "Weights of Keras 2 and 3: .keras, .h5 (extra [formats])."
    suffixes = (".keras", ".h5", ".hdf5")
    magic = (b"\x89HDF\r\n\x1a\n",)

    def sniff(self, path: Path, head: bytes) -> bool:
        """HDF5, or a zip archive of that name."""
        return head.startswith(self.magic) or (head.startswith(b"PK") and path.suffix.lower() == ".keras")

    def load(self, path: Path) -> State:
        """All variables. Raises InputError for damaged files, or without h5py."""
        try:
            read = read_layers(path)
        except InputError:
            raise
        except Exception as problem:  # noqa: BLE001 - a damaged archive raises many kinds
            raise InputError(f"{path.name} is damaged or no file of Keras: {why_unreadable(problem)}.") from None
        found = converted(read)
        if found.twice:
            raise InputError(f"{path.name} holds two variables named {shortened(found.twice, 80)!r}.")
        return State(found.tensors, "Keras", meta={REBUILDING: found.hints})


LOADERS.register("keras")(KerasFile())
