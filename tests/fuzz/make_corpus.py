"""The seed corpus, made from real files: `python tests/fuzz/make_corpus.py` writes `corpus/` and `beside/` anew.

Small files as the libraries write them (torch, safetensors, numpy, h5py, gguf, scipy, this program's own writer) and logs
as tests/support/log_files.py makes them, which tests/oracles compares with those of the tools themselves.
"""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import struct
import sys
import tempfile
import wave
from contextlib import closing
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parent / "faults"), str(HERE.parent.parent)]

import h5py  # noqa: E402
import log_files as logs  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from made_checkpoints import weights  # noqa: E402
from safetensors.torch import save  # noqa: E402
from target import CORPUS, targets  # noqa: E402
from torch import nn  # noqa: E402

from inspector.records import encode  # noqa: E402

Seeds = dict[str, bytes]


def lstm() -> dict[str, torch.Tensor]:
    """Weights that can be rebuilt without a model."""
    torch.manual_seed(2)
    model = nn.ModuleDict({"emb": nn.Embedding(4, 3), "rnn": nn.LSTM(3, 2), "head": nn.Linear(2, 4)})
    return {name: one.detach().clone() for name, one in model.state_dict().items()}


def records() -> Seeds:
    """Every kind of record, as a capture and a pipe have them."""
    from every_record import examples

    return {name: encode(record) for name, record in examples().items()}


def capture_files() -> Seeds:
    """One capture whole."""
    from targets.capture_files import packed, whole

    return {"run": packed(whole().path)}


def capture_cells() -> Seeds:
    """A change of every table."""
    change = [bytes((table, 0, 3, 1)) + (5).to_bytes(2, "little") + b"[0,0]" for table in range(6)]
    return {f"table-{n}": one for n, one in enumerate(change)} | {"all": b"".join(change)}


def packed() -> Seeds:
    """The same capture packed."""
    from targets.capture_files import whole

    from inspector.capture import pack

    with tempfile.TemporaryDirectory() as folder:
        return {"run": pack(whole().path, Path(folder) / "a.inspect.zip").read_bytes()}


def log_tensorboard() -> Seeds:
    """Scalars of both encodings, a histogram, settings."""
    values = [
        logs.scalar("loss", 1),
        logs.tensor("t", 1, logs.part(4, struct.pack("<f", 1))),
        logs.histogram("w", [0, 1, 2], [1, 2, 3], 0, 2),
    ]
    settings = logs.part(1, "_hparams_/x") + logs.metadata(
        "hparams", logs.part(3, logs.part(1, logs.part(1, "lr") + logs.part(2, logs.part(2, 0.5))))
    )
    table = logs.tensor("h", 2, logs.part(4, struct.pack("<6d", *range(6))), (2, 3), "histograms")
    bodies = [logs.event(n, *values, table, settings) for n in range(3)]
    return {"all": logs.BEGIN + b"".join(map(logs.record, bodies)), "curve": logs.growing_events(5)}


def log_wandb() -> Seeds:
    """History, settings, a histogram; records over several blocks."""
    bins = {"_type": "histogram", "values": [1, 2], "bins": [0, 1, 2]}
    bodies = [
        logs.part(5, logs.part(1, logs.item(["lr"], 1))),
        *(logs.history(n, logs.item(["a", "b"], n), logs.item(["h"], bins)) for n in range(3)),
        logs.part(17, logs.part(1, "id") + logs.part(8, "name")),
    ]
    begin = logs.WANDB_BEGIN
    return {"all": begin + logs.wandb_records(len(begin), *bodies), "curve": logs.growing_wandb(3)}


def log_csv() -> Seeds:
    """Separators, quotes, decimal commas, empty cells."""
    return {
        "plain": b"step,_timestamp,loss,acc\n" + b"".join(b"%d,%d,%.3f,\n" % (n, n, n / 3) for n in range(6)),
        "quoted": b'"step";"a ""b""";c\n1;"2,5";3\n2;"2,25";4\n',
        "tabs": b"epoch\ttrain/loss\n0\t1e-3\n1\tNaN\n2\tinf\n",
        "falls-back": b"step,loss\n0,1\n1,2\n2,3\n1,4\n2,5\n",
        "grouped": b"step,loss\n1.000,1.234,5\n",
    }


def log_lines() -> Seeds:
    """Rows of numbers, nested objects, a histogram."""
    rows: list[Any] = [{"step": n, "loss": n / 3, "o": {"x": [n]}, "t": "text"} for n in range(4)]
    hist = [
        {"_step": n, "h": {"_type": "histogram", "values": [1, 2], "bins": [0, 1, 2]}, "epoch": 0.5} for n in range(3)
    ]
    return {
        name: "".join(json.dumps(row) + "\n" for row in own).encode() for name, own in (("rows", rows), ("bins", hist))
    }


def log_history() -> Seeds:
    """Columns with and without steps."""
    return {
        "steps": json.dumps({"step": [0, 1, 2], "loss": [3, 2.5, 2], "m": {"step": [1], "n": [2]}, "lr": 0.1}).encode(),
        "keras": json.dumps({"loss": [1, 0.5, None], "val_loss": [2, 1, 0.5]}).encode(),
    }


def log_trainer_state() -> Seeds:
    """What a Trainer writes."""
    rows = [{"step": n, "epoch": n / 2, "loss": 1 / (n + 1), "learning_rate": 1e-3} for n in range(4)]
    return {"state": json.dumps({"log_history": rows, "global_step": 4, "max_steps": 4, "best_metric": None}).encode()}


def log_trackio() -> Seeds:
    """A database of a few rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.db"
        rows: list[tuple[str, int, Any]] = [("a", n, {"loss": n, "h": {"_type": "histogram"}}) for n in range(3)]
        with closing(logs.trackio(path, rows)) as base:
            base.execute("PRAGMA page_size = 512")
            base.execute("VACUUM")
            base.commit()
        return {"rows": path.read_bytes()}


def safetensors() -> Seeds:
    """With and without metadata, empty and scalar tensors."""
    more = {
        "a": torch.zeros(0, 3),
        "b": torch.tensor(1.5),
        "c": torch.ones(2, dtype=torch.int64),
        "d": torch.ones(3).half(),
    }
    return {
        "plain": save(weights()),
        "meta": save(weights(), {"step": "7", "format": "pt"}),
        "kinds": save(more),
        "lstm": save(lstm()),
    }


def _saved(what: Any, *, new: bool = True) -> bytes:
    stream = io.BytesIO()
    torch.save(what, stream, _use_new_zipfile_serialization=new)
    return stream.getvalue()


def _states() -> dict[str, Any]:
    return {
        "plain": weights(),
        "nested": {"model": weights(), "epoch": 3, "optimizer": {"state": {}, "lr": 0.1}},
        "lstm": {"state_dict": lstm(), "global_step": 9, "pytorch-lightning_version": "2"},
    }


def torch_archive() -> Seeds:
    """Layouts of trainers."""
    return {name: _saved(one) for name, one in _states().items()}


def torch_pickle() -> Seeds:
    """The same in the old form."""
    return {name: _saved(one, new=False) for name, one in _states().items()}


def numpy_archive() -> Seeds:
    """Plain and compressed."""
    found: Seeds = {}
    for name, write in (("plain", np.savez), ("packed", np.savez_compressed)):
        stream = io.BytesIO()
        write(stream, w=np.arange(6.0).reshape(2, 3), b=np.arange(3, dtype=np.float16), n=np.arange(4))
        found[name] = stream.getvalue()
    return found


def numpy_array() -> Seeds:
    """Of both orders and several types."""
    found: Seeds = {}
    arrays = {
        "c": np.arange(6.0).reshape(2, 3),
        "f": np.asfortranarray(np.ones((2, 3), np.float32)),
        "big": np.arange(4, dtype=">i2"),
    }
    for name, array in arrays.items():
        stream = io.BytesIO()
        np.save(stream, array)
        found[name] = stream.getvalue()
    return found


def gguf() -> Seeds:
    """Plain and quantised tensors, and settings of several types."""
    import gguf as library

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.gguf"
        writer = library.GGUFWriter(str(path), "llama")
        writer.add_uint32("llama.block_count", 1)
        writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
        writer.add_tensor("token_embd.weight", np.arange(8, dtype=np.float32).reshape(2, 4))
        packed = library.quants.quantize(np.arange(32, dtype=np.float32), library.GGMLQuantizationType.Q8_0)
        writer.add_tensor("blk.0.attn_q.weight", packed, raw_dtype=library.GGMLQuantizationType.Q8_0)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return {"small": path.read_bytes()}


def keras() -> Seeds:
    """A layer of Keras 2 in an HDF5 file, and a .keras archive of Keras 3."""
    import zipfile

    config = {
        "class_name": "Sequential",
        "config": {"layers": [{"class_name": "LSTM", "config": {"name": "lstm", "units": 2}}]},
    }
    old, inner, archive = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with h5py.File(old, "w") as file:
        file.attrs["keras_version"], file.attrs["model_config"] = "2.15.0", json.dumps(config)
        cell = file.create_group("model_weights/lstm/lstm/lstm_cell")
        for name, shape in (("kernel:0", (3, 8)), ("recurrent_kernel:0", (2, 8)), ("bias:0", (8,))):
            cell.create_dataset(name, data=np.ones(shape, np.float32))
    with h5py.File(inner, "w") as file:
        for n, shape in enumerate(((3, 8), (2, 8), (8,))):
            file.create_dataset(f"layers/lstm/cell/vars/{n}", data=np.ones(shape, np.float32))
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("config.json", json.dumps(config))
        file.writestr("metadata.json", json.dumps({"keras_version": "3.10.0"}))
        file.writestr("model.weights.h5", inner.getvalue())
    return {"old": old.getvalue(), "new": archive.getvalue()}


def matlab() -> Seeds:
    """Version 5."""
    import scipy.io

    stream = io.BytesIO()
    scipy.io.savemat(stream, {"w": np.arange(6.0).reshape(2, 3), "name": "text"})
    return {"five": stream.getvalue()}


def hugging_face() -> Seeds:
    """Index, trainer's state, description and tokenizer."""
    texts = [
        {"metadata": {"total_size": 100}, "weight_map": dict.fromkeys(weights(), "one.safetensors")},
        {"global_step": 5, "log_history": []},
        {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "torch_dtype": "float32"},
        {"tokenizer_class": "GPT2Tokenizer"},
    ]
    return {"folder": b"\0".join(json.dumps(one).encode() for one in texts)}


def distributed() -> Seeds:
    """What torch.distributed.checkpoint writes, without a process group; its parts go to `beside`."""
    import torch.distributed.checkpoint as checkpoint

    with tempfile.TemporaryDirectory() as folder:
        checkpoint.save({"model": weights(), "step": 3}, checkpoint_id=folder, no_dist=True)
        beside = HERE / "beside"
        beside.mkdir(exist_ok=True)
        shutil.copyfile(Path(folder) / "__0_0.distcp", beside / "__0_0.distcp")
        return {"metadata": (Path(folder) / ".metadata").read_bytes()}


def sequences() -> Seeds:
    """Each form once for each model."""
    stream = io.BytesIO()
    np.save(stream, np.arange(6.0).reshape(2, 3))
    arrays = numpy_archive()["plain"]
    contents = [
        b"abba",
        b"0 1 2;1",
        b"0.1 0.2 0.3; 1 2 3",
        b"a\nb\n",
        b"1 2 3",
        b"x,y,z\n1,2,3\n4,5,6\n",
        stream.getvalue(),
        arrays,
        stream.getvalue(),
        b"ab\nba\n",
    ]
    return {
        f"{n}-{model:02x}": bytes((n, model)) + content for n, content in enumerate(contents) for model in (0, 0xFF)
    }


def sound() -> Seeds:
    """Sixteen samples."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(np.arange(32, dtype="<i2").tobytes())
    return {"short": stream.getvalue()}


def picture() -> Seeds:
    """A few pixels."""
    from PIL import Image

    found: Seeds = {}
    for form in ("PNG", "BMP", "GIF", "JPEG", "WEBP"):
        stream = io.BytesIO()
        Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(stream, form)
        found[form.lower()] = stream.getvalue()
    return found


def session() -> Seeds:
    """One with everything."""
    from every_record import examples

    record = examples()["SavedSession"]
    return {"full": json.dumps(json.loads(encode(record)), indent=1).encode(), "empty": b'{"record": "SavedSession"}'}


def project_file() -> Seeds:
    """What the documentation shows."""
    return {
        "both": b'[diagnosis]\nmute = ["IN403", { rule = "no-gradient", place = "extra.*", reason = "frozen" }]\n\n'
        b'[diagnosis.limits]\n"updates-lost.share" = 0.3\n'
    }


def messages() -> Seeds:
    """Each kind once."""
    from every_record import examples

    from inspector.capture.control import Command
    from inspector.records import Page
    from inspector.transport.network.content import Hello, packed
    from inspector.transport.network.files import KeptFile, packed_file

    page = packed(1, Page("l:h", 0, (0, 0), np.ones((2, 3), np.float32)))[0][1]
    return {
        "hello": b"\0" + Hello("0" * 32, "run", 0).encoded(),
        "command": b"\1" + Command("0123456789abcdef", 1, "break", "loss > 3", 2).encoded(),
        "held": b"\2" + json.dumps({"pid": 1, "started": "", "names": ["run-000001-x.inspect"]}).encode(),
        "record": b"\3" + packed(1, examples()["Channel"])[0][1],
        "page": b"\4" + page,
        "file": b"\5" + next(packed_file(1, KeptFile("0001.safetensors", b"x" * 40))),
    }


def main() -> None:
    """Write all of them."""
    assert sqlite3.sqlite_version_info > (3, 30)
    for name in targets():
        folder = CORPUS / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for seed, content in globals()[name]().items():
            (folder / seed).write_bytes(content)


if __name__ == "__main__":
    main()
