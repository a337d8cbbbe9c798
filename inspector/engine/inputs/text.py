"""Typed text, in the model's own vocabulary, with its masked tokens or its class; several texts are a batch."""

from __future__ import annotations

from inspector.capture.regular import in_words, read_text
from inspector.engine.errors import InputError
from inspector.engine.model.batching import MAX_TEXT, encode_text, more_of, pad, regular_file
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.model.text_targets import LABEL, MASK, PAIR, judged, with_pair
from inspector.engine.registries import INPUTS
from inspector.records import InputSpec, Option


class Text:
    """Text as it is given; `options["texts"]` adds more sequences, `options["vocabulary"]` names a vocabulary file.

    `pair` is the second text of a model of two; `mask` and `label` are what a masked language model and a classifier
    are judged by.
    """

    title = "Text"
    summary = "Text, in the model's own vocabulary."
    form = "line"
    order = 10
    prompt = "Type text and press Enter (↵ is a line break)"
    reads = ("tokens",)
    suffixes = (".txt", ".md")
    of_content = True
    options = (
        Option(name="vocabulary", type="text", default=None, help="A file with the vocabulary, one entry a line."),
        Option(name="texts", type="texts", default=(), help="Further texts of the batch."),
        MASK,
        LABEL,
        PAIR,
    )

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """One sequence, or a batch of several; the one at `look_at` is shown."""
        vocabulary = spec.options.get("vocabulary")
        if vocabulary is not None:
            subject.vocabulary = read_vocabulary(str(vocabulary))
        texts = [spec.value, *more_of(spec, "texts")]
        shown = texts[spec.look_at] if 0 <= spec.look_at < len(texts) else spec.value
        title = shown if len(shown) <= 40 else shown[:39] + "…"
        pair = spec.options.get(PAIR.name)
        rows = [encode_text(subject, one) if pair is None else with_pair(subject, one, str(pair)) for one in texts]
        rows, targets = judged(subject, rows, spec.options.get(MASK.name), spec.options.get(LABEL.name))
        return pad(subject, rows, targets=targets, title=title, look_at=spec.look_at)


def read_vocabulary(path: str) -> list[str]:
    """One entry a line, in the order of the ids. Raises InputError."""
    file = regular_file(path, MAX_TEXT)
    try:
        lines = read_text(file).split("\n")
    except UnicodeDecodeError:
        raise InputError(f"{file.name} is not UTF-8 text; a vocabulary file has one entry a line.") from None
    except OSError as problem:
        raise InputError(f"{file.name} cannot be read: {in_words(problem)}.") from None
    return lines[:-1] if lines and lines[-1] == "" else lines


INPUTS.register("text")(Text())
