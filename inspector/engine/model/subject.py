"""A model and how to call it, however it was opened: the one object that probes, inputs and runs share.

A user's callable may return an nn.Module, or any object with a `model` attribute and some of the attributes
below; `adopt` fills in the rest. README shows both in ten lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from torch import Tensor, nn

from inspector.engine.cells.family import sequence_family
from inspector.engine.errors import InputError
from inspector.engine.model.batch import INPUT, Batch, InputKind, to_device
from inspector.engine.model.call import arguments, takes_batch
from inspector.engine.model.declared_inputs import DeclaredInput, declare, primary_of, two_sizes
from inspector.engine.model.model_output import LOGITS, candidates, loss_in, may_return_loss
from inspector.engine.model.uncompiled import original
from inspector.engine.process_state import put_back
from inspector.engine.wording import a_class, text_of
from inspector.records import CLASS_DOMAIN, VOCABULARY_DOMAIN

__all__ = ["Batch", "Kind", "Subject", "adopt", "to_device"]

Kind = Literal["tokens", "vectors"]


@dataclass(slots=True)
class Subject:
    """A model with its conventions; see README, "Open your own model", for each field."""

    model: nn.Module
    name: str = ""
    kind: InputKind | None = None
    vocabulary: Sequence[str] | None = None
    labels: Sequence[str] | None = None
    encode: Callable[[str], Tensor] | None = None
    width: int | None = None
    frames: Callable[[Tensor, int], Tensor] | None = None
    picture: tuple[int, int] | None = None
    """(rows, columns) of the picture that the numbers of all steps are, row by row; see DeclaredInput."""
    forward: Callable[..., Any] | None = None
    """(model, inputs, lengths) of the primary input, or (model, batch):
    distinguished by the number of its parameters."""
    logits: Callable[[Any], Tensor | None] | None = None
    loss: Callable[[Any, Batch], Tensor] | None = None
    loss_unit: str = ""
    """The unit of the loss ("nat", "bit", "m²"), where autograd's graph does not show that it is a log-likelihood."""
    next_token: bool = False
    mask_token: int | None = None
    """The id that hides a token of a masked language model: the option `mask` of a text puts it there."""
    encode_pair: Callable[[str, str], Tensor] | None = None
    """Two texts to the ids of one sequence: the option `pair` of a text is the second one."""
    label_of: Callable[[str, Tensor], list[int]] | None = None
    """(what the option `label` of a text says, ids (t,)) → the target of that sequence, a whole number for each step;
    None: `label` names one class of the whole text. Raises ValueError with a one-line message."""
    answer: Callable[[Any, Batch], Any] | None = None
    """(output, batch) → ids (b, t) of an output with a step axis of its own, negative at padding;
    or labels; or None."""
    decoder: str | Sequence[str] = ()
    """Modules that run over the output's step axis;
    by default recognised by their number of steps where it differs from the input's."""
    next_logits: Callable[[nn.Module, Batch, Tensor], Any] | None = None
    """(model, batch of one sequence, ids (n, t) of beginnings of answers) → logits (n, v) of what may follow each, or
    (n, t + 1, v) of what may follow each of its beginnings. None: a model of next tokens continues what it reads."""
    end_token: int | None = None
    """The id with which an answer ends."""
    optimizer: Any = None
    """The torch.optim.Optimizer that trains the model, or several: with what a next step would be made."""
    backward: Callable[[nn.Module, Batch, int], object] | None = None
    """(model, batch, passes): the backward of one step of training, accumulated over so many passes; steps nothing."""
    examples: Mapping[str, Any] = field(default_factory=dict)
    data: Any = None
    """Many sequences, written as examples are: a sequence of them, or a function that returns an iterable."""
    train_step: Callable[[nn.Module, Batch, Any], Any] | None = None
    """(model, batch, optimizer of its parameters) → the mean loss before the step that it made: how cures are tried."""
    training: Any = None
    """How it is trained, as samples say it: `draw(generator)` gives the next batch; `rate`, `clip`, `forward`."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """The model's inputs by name, in order (DeclaredInput has the fields); empty: one input that has no name."""
    reads: DeclaredInput | None = None
    """In a view of one input (see `view`): the declaration of that input."""
    guessed: bool = False
    """True where the width was not declared: it is that of the first layer, which may not be the model's input."""
    guessed_from: str = ""
    """The layer whose width that is, by name and class."""
    kind_guessed: bool = False
    """True where the kind is "tokens" only because the model has an embedding, which may be one of distances."""
    checkpoint: str = ""
    """The file that the weights are from; the training log beside it (history.json) is read."""
    rebuilt: str = ""
    """Of a model that was made from a file of weights alone: what it is, and what of that is a guess."""
    set_to_eval: tuple[str, ...] = ()
    """The modules with dropout or batch norm that were in training mode when the model was opened by name."""

    @property
    def declared(self) -> Mapping[str, DeclaredInput]:
        """The inputs as `adopt` has checked them."""
        return self.inputs

    @property
    def primary(self) -> str:
        """The declared input to which the attributes of the subject itself apply; "" where none is declared."""
        return primary_of(self.declared, list(self.declared)) if self.declared else ""

    def view(self, name: str, declared: DeclaredInput) -> Subject:
        """The subject restricted to one of its inputs:
        code that reads a sequence for a subject can read it for that one."""
        width = self.width if declared.width is None and name == self.primary else declared.width
        return replace(
            self, name=f"{name} of {self.name}", kind=declared.kind, vocabulary=declared.vocabulary,
            encode=declared.encode, width=width, guessed=declared.width is None, frames=declared.frames,
            examples={}, inputs={}, reads=declared, kind_guessed=False,
        )  # fmt: skip

    def placed(self, batch: Batch) -> Batch:
        """The batch on the device of the model's first parameter; unchanged for a model without parameters."""
        device = next((one.device for one in self.model.parameters()), None)
        return batch if device is None else to_device(batch, device)

    def run(self, batch: Batch) -> Any:
        """Call the model on a batch as its author would."""
        with put_back():
            return self.called(batch)

    def called(self, batch: Batch) -> Any:
        """The call alone; what it changes of a worker is not put back."""
        if self.forward is None:
            args, kwargs = arguments(self.model, batch)
            return self.model(*args, **kwargs)  # in a recording, the model's own code begins here (recorder.py)
        if takes_batch(self.forward, self.name):
            return self.forward(self.model, batch)
        return self.forward(self.model, batch.inputs, batch.lengths)

    def scores(self, output: Any) -> Tensor | None:
        """(b, t, v) scores of every step, or None when the output has no scores.

        Of an output's tensors, the first one whose width is the number of classes or of vocabulary entries; one named
        `logits` is accepted without that.
        """
        if self.logits is not None:
            return self.logits(output)
        found = [(name, one) for name, one in candidates(output) if one.dim() == 3 and one.is_floating_point()]
        fitting = next((one for _, one in found if self.classes(one.shape[-1])[1] is not None), None)
        return fitting if fitting is not None else next((one for name, one in found if name == LOGITS), None)

    def classes(self, width: int, whose: str = "") -> tuple[str, Sequence[str] | None]:
        """(label domain, names) of so many scores: the labels', the vocabulary's, or another input's as long.

        `whose`: the input whose vocabulary is tried first, where several are equally long. No names where none fits.
        """
        if self.labels is not None:
            return CLASS_DOMAIN, self.labels if len(self.labels) == width else None
        own = [(VOCABULARY_DOMAIN, self.vocabulary)]
        others = [(self.vocabulary_domain(name), one.vocabulary) for name, one in self.declared.items()]
        first = [(self.vocabulary_domain(whose), self.declared[whose].vocabulary)] if whose in self.declared else []
        known = [(domain, names) for domain, names in (*first, *own, *others) if names is not None]
        return next(((d, names) for d, names in known if len(names) == width), (VOCABULARY_DOMAIN, None))

    def vocabulary_domain(self, name: str) -> str:
        """The label domain of the ids of an input: one of its own where its vocabulary is not the primary one's."""
        own = self.declared[name].vocabulary if name in self.declared else None
        same = own is not None and self.vocabulary is not None and list(own) == list(self.vocabulary)
        return VOCABULARY_DOMAIN if same or name in (self.primary, INPUT) else f"{VOCABULARY_DOMAIN} of {name}"

    def may_give_loss(self, batch: Batch) -> bool:
        """Whether a run has a loss, as far as that is known before it: the subject's, or one in the model's output."""
        return self.loss is not None or may_return_loss(self.model, batch if self.forward is None else None)

    def loss_of(self, output: Any, batch: Batch) -> Any:
        """The subject's loss, without one the loss in the output; None where there is none."""
        return self.loss(output, batch) if self.loss is not None else loss_in(output)

    def decodes(self, place: str) -> bool:
        """Whether a place lies in a module that the subject declares to run over the output's step axis."""
        return self.lies_in(place, (self.decoder,) if isinstance(self.decoder, str) else self.decoder)

    def modules_over(self, name: str) -> tuple[str, ...]:
        """The modules that are declared to run over the step axis of an input."""
        names = self.declared[name].modules if name in self.declared else ()
        return (names,) if isinstance(names, str) else tuple(names)

    def elsewhere(self, place: str) -> bool:
        """Whether the module at a place is declared to run over another step axis than the primary input's."""
        others = (self.modules_over(name) for name in self.declared if name != self.primary)
        return self.decodes(place) or any(self.lies_in(place, names) for names in others)

    @staticmethod
    def lies_in(place: str, modules: Sequence[str]) -> bool:
        """Whether a place lies in one of some modules."""
        return any(place == name or place.startswith((f"{name}.", f"{name}#")) for name in modules if name)


NOT_GIVEN = ("reads", "rebuilt", "set_to_eval")
"""Fields that are set here, never taken from a user's object."""


def adopt(thing: Any, name: str = "") -> Subject:
    """A Subject from whatever a user's callable returned: an nn.Module, a Subject, or an object with `model`."""
    if isinstance(thing, Subject):
        subject = thing
    elif isinstance(thing, nn.Module):
        subject = Subject(model=thing)
    elif isinstance(getattr(thing, "model", None), nn.Module):
        said = [part.name for part in fields(Subject) if part.name not in NOT_GIVEN and hasattr(thing, part.name)]
        known = {name: getattr(thing, name) for name in said}
        subject = Subject(**{key: value for key, value in known.items() if value is not None})
    else:
        raise InputError(
            f"{name or 'The callable'} returned {a_class(thing)}; expected a torch.nn.Module, or an object "
            "with a `model` attribute that is one."
        )
    subject.model = original(subject.model)
    subject.name = text_of(subject.name or name or type(subject.model).__name__)
    if subject.forward is not None:
        takes_batch(subject.forward, subject.name)
    _settle_inputs(subject)
    _settle_texts(subject)
    _settle_kind(subject)
    return subject


def _settle_inputs(subject: Subject) -> None:
    """Check what is declared; fields of the subject's sequence apply to the primary input, and the reverse."""
    if subject.picture is not None:
        subject.picture = two_sizes(subject.picture, f"The `picture` of {subject.name}", "its pixels")
    if not subject.inputs:
        return
    subject.inputs = declare(subject.inputs, subject.name)
    name = subject.primary
    primary = subject.declared[name]
    own = ("vocabulary", "encode", "width", "frames", "picture")
    both = {key: getattr(primary, key) if getattr(primary, key) is not None else getattr(subject, key) for key in own}
    subject.inputs = {**subject.inputs, name: replace(primary, **both)}
    subject.kind = primary.kind
    for key, value in both.items():
        setattr(subject, key, value)


def _settle_texts(subject: Subject) -> None:
    """Entries and names as plain strings: an object of the user's may have a `__str__` of its own, or a broken one."""
    subject.loss_unit = text_of(subject.loss_unit)
    for attribute in ("vocabulary", "labels"):
        entries = getattr(subject, attribute)
        if entries is not None and not all(type(entry) is str for entry in entries):
            setattr(subject, attribute, tuple(map(text_of, entries)))
    for name, one in subject.declared.items():
        if one.vocabulary is not None and not all(type(entry) is str for entry in one.vocabulary):
            subject.inputs = {**subject.inputs, name: replace(one, vocabulary=tuple(map(text_of, one.vocabulary)))}
    if not all(type(name) is str for name in subject.examples):
        subject.examples = {text_of(name): example for name, example in subject.examples.items()}


def _settle_kind(subject: Subject) -> None:
    embedding = next((m for m in subject.model.modules() if isinstance(m, nn.Embedding)), None)
    if subject.kind is None:
        subject.kind = "tokens" if subject.vocabulary is not None or embedding is not None else "vectors"
        subject.kind_guessed = subject.kind == "tokens" and subject.vocabulary is None
    if subject.kind == "vectors" and subject.width is None:
        subject.width, subject.guessed_from = _first_width(subject.model)
        subject.guessed = subject.width is not None and sequence_family(subject.model) is None


def guess_again(subject: Subject, given: Tensor) -> None:
    """Take a model with an embedding for one of vectors where these are given and a layer that reads as many numbers is
    defined before the embedding, which is then of something else (distances, a second input); and back for ids.

    Counter-example: a layer of the model's end that is defined first. The model then says what it cannot read.
    """
    width, _ = _first_width(subject.model, until=nn.Embedding)
    if subject.kind == "tokens" and given.dim() == 2 and given.is_floating_point() and given.shape[1] == width:
        subject.kind, subject.width = "vectors", width
    elif subject.kind == "vectors" and given.dim() == 1 and not given.is_floating_point():
        subject.kind, subject.width = "tokens", None


def _first_width(model: nn.Module, until: type[nn.Module] | None = None) -> tuple[int | None, str]:
    """The input width of the first module that has one, in the order of their definition, and its name and class; none
    from the first module of a class on."""
    for name, module in model.named_modules():
        if until is not None and isinstance(module, until):
            break
        for attribute in ("input_size", "in_features", "d_model", "embed_dim"):
            width = getattr(module, attribute, None)
            if isinstance(width, int):
                return width, f"{name} ({type(module).__name__})" if name else type(module).__name__
    return None, ""
