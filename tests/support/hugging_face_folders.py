"""Folders of Hugging Face's, as `save_pretrained` writes them: small models with random weights, tokenizers made here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

SENTENCE = "the cat sat on the mat"
WORDS = ("the", "cat", "sat", "on", "mat", "dog", "ran", "un", "##der", "a", "quick", "brown", "fox")
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def word_pieces() -> Any:
    """A tokenizer like BERT's: [CLS] … [SEP], pieces within a word begin with ##."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    known = {piece: number for number, piece in enumerate((*special, *WORDS))}
    made = Tokenizer(models.WordPiece(known, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", known["[CLS]"]), ("[SEP]", known["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=32,
    )  # fmt: skip


def byte_pieces() -> Any:
    """A tokenizer like GPT-2's: bytes, merged; a space belongs to the word behind it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([SENTENCE] * 9, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", bos_token="<end>")


def sentence_pieces() -> Any:
    """A tokenizer like T5's: ▁ is a space, </s> ends a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    made = Tokenizer(models.Unigram([*special, *((f"▁{word}", -2.0) for word in WORDS), ("▁", -5.0)], unk_id=2))
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="</s>", pad_token="<pad>", unk_token="<unk>", model_max_length=64
    )


def _bert(head: str, **more: Any) -> tuple[Any, Any]:
    import transformers

    tokenizer = word_pieces()
    config = transformers.BertConfig(vocab_size=24, max_position_embeddings=32, **SIZES, **more)
    return getattr(transformers, head)(config), tokenizer


def _bert_masked() -> tuple[Any, Any]:
    return _bert("BertForMaskedLM")


def _bert_plain() -> tuple[Any, Any]:
    return _bert("BertModel")


def _bert_classes() -> tuple[Any, Any]:
    return _bert("BertForSequenceClassification", id2label={0: "sad", 1: "calm", 2: "glad"})


def _bert_tags() -> tuple[Any, Any]:
    return _bert("BertForTokenClassification", id2label={0: "O", 1: "B-PET", 2: "I-PET"})


def _bert_answers() -> tuple[Any, Any]:
    return _bert("BertForQuestionAnswering")


def _gpt2() -> tuple[Any, Any]:
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = byte_pieces()
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=len(tokenizer) + 3, n_positions=32, n_embd=16, n_layer=2, n_head=2)
    ), tokenizer


def _llama() -> tuple[Any, Any]:
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = sentence_pieces()
    config = LlamaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=64, num_key_value_heads=1, **SIZES, bos_token_id=None,
        eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config), tokenizer


def _t5() -> tuple[Any, Any]:
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = sentence_pieces()
    config = T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, decoder_start_token_id=0
    )
    return T5ForConditionalGeneration(config), tokenizer


def _bart() -> tuple[Any, Any]:
    from transformers import BartConfig, BartForConditionalGeneration

    tokenizer = sentence_pieces()
    config = BartConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=64,
        pad_token_id=0, bos_token_id=0, eos_token_id=1, decoder_start_token_id=1, forced_eos_token_id=1,
    )  # fmt: skip
    return BartForConditionalGeneration(config), tokenizer


def _vit() -> tuple[Any, Any]:
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    config = ViTConfig(image_size=12, patch_size=4, num_channels=3, id2label={0: "cat", 1: "dog"}, **SIZES)
    size = {"height": 12, "width": 12}
    return ViTForImageClassification(config), ViTImageProcessor(size=size)


MAKERS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "bert": _bert_masked, "bert-plain": _bert_plain, "bert-classes": _bert_classes,
    "bert-tags": _bert_tags, "bert-answers": _bert_answers, "gpt2": _gpt2, "llama": _llama,
    "t5": _t5, "bart": _bart, "vit": _vit,
}  # fmt: skip


def save(name: str, folder: Path, **how: Any) -> Any:
    """Write the folder of one of the models; returns the model in evaluation mode."""
    torch.manual_seed(0)
    model, reader = MAKERS[name]()
    model.save_pretrained(folder, **how)
    reader.save_pretrained(folder)
    return model.eval()
