"""All maps of a GPT-2-small of transformers in a capture, against other tools that give the same maps in memory.

Tools that are not installed have no line: transformers, torchlens, nnsight and transformer_lens. Every tool gets the
same model, or one of the same shape where it has only its own. What it returns is dropped at once.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from bench_attention import KEYS, captured
from harness import Row, interleave
from torch import Tensor

from inspector.engine.model.subject import Batch

STEPS, ROUNDS = 512, 2


def rows() -> list[Row]:
    """One line a tool; its time is that of a call which gives all maps."""
    if importlib.util.find_spec("transformers") is None:
        return []
    torch.manual_seed(0)
    torch.set_num_threads(1)
    transformers: Any = importlib.import_module("transformers")
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False)).eval().requires_grad_(False)
    ids = torch.randint(0, 50_257, (1, STEPS))
    batch, folder = Batch(ids, torch.tensor([STEPS])), Path(tempfile.mkdtemp(prefix="bench-attention-"))
    functions: dict[str, Callable[[], object]] = {"ours": lambda: captured(model, batch, folder, KEYS)}
    for name, make in TOOLS.items():
        with suppress(ImportError):  # not installed, or not all of what it needs
            functions[name] = make(transformers, ids)
    times = interleave(functions, ROUNDS)
    return [
        Row(
            name=f"all 144 maps and statistics in a capture / {SAID[name]}, T={STEPS}",
            ours=times["ours"],
            other=taken,
            ratio=times["ours"] / taken,
            note="GPT-2-small of transformers; theirs are in memory, ours in a file",
        )
        for name, taken in times.items()
        if name != "ours"
    ]


def _eager(transformers: Any) -> Any:
    config = transformers.GPT2Config(use_cache=False, attn_implementation="eager")
    return transformers.GPT2LMHeadModel(config).eval().requires_grad_(False)


def _transformers(transformers: Any, ids: Tensor) -> Callable[[], object]:
    model = _eager(transformers)
    return lambda: len(model(ids, output_attentions=True).attentions)


def _torchlens(transformers: Any, ids: Tensor) -> Callable[[], object]:
    lens: Any = importlib.import_module("torchlens")
    model = _eager(transformers)
    return lambda: lens.trace(model, ids) is None


def _nnsight(transformers: Any, ids: Tensor) -> Callable[[], object]:
    sight: Any = importlib.import_module("nnsight")
    model = sight.NNsight(_eager(transformers))

    def call() -> int:
        with model.trace(ids, output_attentions=True):
            kept = sight.save([block.attn.output[1] for block in model.transformer.h])
        return len(kept)

    return call


def _transformer_lens(transformers: Any, ids: Tensor) -> Callable[[], object]:
    """Release 4, which takes a model of transformers; it reads configuration and tokenizer from a folder."""
    bridge: Any = importlib.import_module("transformer_lens.model_bridge").TransformerBridge
    tokenizers: Any = importlib.import_module("tokenizers")
    model, folder, end = _eager(transformers), tempfile.mkdtemp(prefix="bench-lens-"), "<|endoftext|>"
    model.config.architectures = ["GPT2LMHeadModel"]
    model.config.save_pretrained(folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, end: 1}, unk_token="a"))
    ends = {"eos_token": end, "bos_token": end, "pad_token": end}
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, **ends).save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    lens = bridge.boot_transformers(folder, hf_model=model, tokenizer=tokenizer)
    return lambda: len(lens.run_with_cache(ids, names_filter=lambda name: name.endswith("hook_pattern"))[1])


TOOLS: dict[str, Callable[[Any, Tensor], Callable[[], object]]] = {
    "transformers": _transformers, "torchlens": _torchlens, "nnsight": _nnsight, "transformer_lens": _transformer_lens,
}  # fmt: skip
SAID = {
    "transformers": "eager with `output_attentions`", "torchlens": "TorchLens `trace` of every operation",
    "nnsight": "nnsight, maps saved", "transformer_lens": "TransformerLens `run_with_cache` of the maps",
}  # fmt: skip
