"""The residual stream: what goes from layer to layer of a transformer, and how the model reads its scores off it.

The layers are the elements of a list of modules (nn.ModuleList, nn.Sequential) that attend and return a tensor of the
shape that they were given. A model that keeps its layers in attributes of other names has the nearest modules around
its attentions instead.

Letters: b batch, t steps, e width, v classes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.analyses.attention.attended import following, with_gradients
from inspector.engine.analyses.attention.score_scale import AS_THEY_ARE, ScoreScale, score_scale
from inspector.engine.analyses.module_calls import ModuleCall, module_calls, same_memory, same_numbers
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported, model_error
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN

AGAIN = "The model, called again,"
NO_LAYERS = (
    "No layers were found that attend and return a tensor of the shape that they are given, so there is no stream."
)


NO_STACK = (
    "The attention of this model ({}) is part of a recurrent module, which no layers surround, so there is no residual "
    "stream."
)


@dataclass(slots=True)
class Stream:
    """One stack of layers.

    Attributes:
        name: of the list of layers.
        layers: their calls, in order.
        calls: of all modules of the run, in the order in which they returned.
        batch, sample, length: how many sequences, the selected one, and its real steps along this stream.
        time_first: the stream is (t, b, e).
        domain: the label domain of its steps.
    """

    name: str
    layers: list[ModuleCall]
    calls: list[ModuleCall]
    batch: int
    sample: int
    length: int
    time_first: bool = False
    domain: str = "position"

    @property
    def values(self) -> list[Tensor]:
        """The stream before the first layer and behind each, as the model has it, with its graph."""
        first = self.layers[0].given
        assert first is not None
        return [first, *(one for layer in self.layers if (one := layer.result) is not None)]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the values."""
        return (f"into {self.layers[0].name}", *_numbered([layer.name for layer in self.layers]))

    def layer_of(self, attention: Attention) -> ModuleCall | None:
        """The call of a layer in which an attention ran; None where it lies in none of them, or it is not known in
        which of several calls."""
        own = [one for one in self.layers if f"{attention.called}.".startswith(f"{one.name}.")]
        if attention.call < len(own):
            return own[attention.call]
        return None

    def of_sample(self, tensor: Tensor) -> Tensor:
        """(t, e) the selected sequence without padding, of (b, t, e), (t, b, e) or (t, e)."""
        if tensor.dim() == 2:
            return tensor[: self.length]
        row = tensor[:, self.sample] if self.time_first else tensor[self.sample if tensor.shape[0] > 1 else 0]
        return row[: self.length]


def streams(trace: Trace) -> tuple[Any, list[Stream]]:
    """(the output of one more call with its graph, the streams of its stacks of layers). Raises Unsupported."""
    subject, why = trace.subject, no_stack(trace)
    if why:
        raise Unsupported(why)
    with undisturbed(subject.model, trace.seed), following(subject.model):
        batch = subject.placed(with_gradients(trace.batch))
        try:
            output, calls = module_calls(subject.model, lambda: subject.run(batch))
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - the user's code may raise anything
            raise Unsupported(str(model_error(fault, AGAIN))) from None
    found = [_stream(trace, name, layers, calls) for name, layers in stacks(trace, calls)]
    if not found:
        raise Unsupported(NO_LAYERS)
    return output, found


def no_stack(trace: Trace) -> str:
    """Why there are no layers, from where attentions and recurrences lie; "" where there may be some.

    That is where all attention is to another sequence, lies in no list of modules, and every module around it has a
    recurrence inside: a decoder whose states carry what it knows is no layer of a residual stream, whatever its shape.
    """
    modules = dict(trace.subject.model.named_modules())
    cells = [f"{one.place}." for one in trace.recurrences]
    for attention in trace.attentions:
        words = _module_of(attention.place, modules).split(".")
        around = [".".join(words[:count]) for count in range(len(words) + 1)]
        listed = any(isinstance(modules.get(one), (nn.ModuleList, nn.Sequential)) for one in around[:-1])
        recurrent = all(any(cell.startswith(f"{one}.") for cell in cells) for one in around[1:-1])
        if listed or not recurrent or not cells or attention.of_itself or not attention.source_known:
            return ""
    places = ", ".join(dict.fromkeys(one.place for one in trace.attentions))
    return NO_STACK.format(places) if places else ""


def _stream(trace: Trace, name: str, layers: list[ModuleCall], calls: list[ModuleCall]) -> Stream:
    batch, given, answer = trace.batch, layers[0].given, trace.answer
    assert given is not None
    time_first = given.dim() == 3 and _time_first(layers[0], given, batch.size)
    steps = given.shape[0] if given.dim() == 2 or time_first else given.shape[1]
    length, domain = steps, "position"
    if steps == batch.steps:
        length, domain = batch.length, STEP_DOMAIN
    elif answer is not None and steps == answer.steps:
        length, domain = answer.length(trace.look_at), ANSWER_DOMAIN
    return Stream(name, layers, calls, batch.size, trace.look_at, length, time_first, domain)


def _time_first(layer: ModuleCall, given: Tensor, batch: int) -> bool:
    """Whether a stream is (t, b, e): by its sizes, and by `batch_first` of torch's modules where both are the batch's.

    Counter-example: a layer of one's own that is given time first, as many steps as there are sequences.
    """
    if given.shape[0] != batch or given.shape[1] != batch:
        return given.shape[0] != batch and given.shape[1] == batch
    said = [one for module in layer.module.modules() if (one := getattr(module, "batch_first", None)) is not None]
    return batch > 1 and bool(said) and not any(said)


def stacks(trace: Trace, calls: Sequence[ModuleCall]) -> Iterator[tuple[str, list[ModuleCall]]]:
    """(name, calls of its layers) of every stack."""
    modules = dict(trace.subject.model.named_modules())
    places = [_module_of(one.place, modules) for one in trace.attentions]
    kept = {call.name: call for call in reversed(calls) if _keeps_shape(call)}
    chosen: dict[str, None] = {}
    for place in places:
        parent = _list_of(place, places, modules, kept)
        if parent is not None:
            chosen.setdefault(parent)
    for parent in chosen:
        names = [call.name for call in calls if call.name.rpartition(".")[0] == parent and call.name in kept]
        yield parent, _in_turn(names, calls, kept)
    alone = [_nearest(place, kept) for place in places if not any(place.startswith(f"{one}.") for one in chosen)]
    names = list(dict.fromkeys(name for name in alone if name))
    if names and not _beside(names, kept):
        yield "layers", _in_turn(names, calls, kept)


def _in_turn(names: Sequence[str], calls: Sequence[ModuleCall], kept: dict[str, ModuleCall]) -> list[ModuleCall]:
    """All calls of some layers in the order in which they ran, where each is given what the one before it returned;
    else the first call of each. Called more than once without that, layers run over several sequences."""
    every = [call for call in calls if call.name in names and _keeps_shape(call)]
    joined = all(same_numbers(before.result, after.given) for before, after in itertools.pairwise(every))
    return every if joined else [kept[name] for name in dict.fromkeys(names)]


def _numbered(names: Sequence[str]) -> list[str]:
    """Names of calls: later ones of one module have their number, as attentions have it."""
    before: dict[str, int] = {}
    found = []
    for name in names:
        count = before[name] = before.get(name, -1) + 1
        found.append(f"{name}.{count}" if count else name)
    return found


def _module_of(place: str, modules: dict[str, nn.Module]) -> str:
    """The module of a place, whose later calls are numbered ("attn.1" is the second call of "attn")."""
    return place if place in modules else place.rpartition(".")[0]


def _keeps_shape(call: ModuleCall) -> bool:
    given, result = call.given, call.result
    return given is not None and result is not None and given.dim() in (2, 3) and given.shape == result.shape


def _list_of(
    place: str, places: Sequence[str], modules: dict[str, nn.Module], kept: dict[str, ModuleCall]
) -> str | None:
    """The list of modules of which the one around a place is a layer: the outermost with two such layers, else the
    innermost. Counter-example: a model whose embedding, stack and head are one nn.Sequential has one such element."""
    words, found = place.split("."), []
    for count in range(1, len(words)):
        name, parent = ".".join(words[: count + 1]), ".".join(words[:count])
        listed = isinstance(modules.get(parent), (nn.ModuleList, nn.Sequential))
        if listed and name in kept:
            layers = {one.removeprefix(f"{parent}.").split(".")[0] for one in places if one.startswith(f"{parent}.")}
            if _beside([f"{parent}.{one}" for one in layers], kept):
                continue
            found.append((parent, len(layers)))
    several = [parent for parent, count in found if count > 1]
    return several[0] if several else found[-1][0] if found else None


def _beside(names: Sequence[str], kept: dict[str, ModuleCall]) -> bool:
    """Whether two modules that attend were given one tensor: heads or branches beside each other, no layers."""
    given = [kept[name].given for name in names if name in kept]
    return any(same_memory(before, after) for before, after in itertools.combinations(given, 2))


def _nearest(place: str, kept: dict[str, ModuleCall]) -> str:
    """The nearest module around a place that returns the shape that it was given; "" where there is none."""
    name = place.rpartition(".")[0]
    while name and name not in kept:
        name = name.rpartition(".")[0]
    return name


@dataclass(frozen=True, slots=True)
class Readout:
    """The modules by which the model reads its scores off the last layer, in order; the last is the linear layer.

    after: what the model does with the result of that.
    """

    modules: tuple[nn.Module, ...]
    names: tuple[str, ...]
    after: ScoreScale = AS_THEY_ARE

    def scores(self, stream: Tensor) -> Tensor:
        """(…, v) of a stream (…, e)."""
        for module in self.modules:
            stream = module(stream)
        return self.after.of(stream)


def readout(trace: Trace, output: Any, stream: Stream) -> Readout:
    """How the scores are read off the last layer of a stream; checked. Raises Unsupported with what was found."""
    scores, last = trace.subject.scores(output), stream.values[-1]
    if not isinstance(scores, Tensor):
        raise Unsupported("The model gives no scores, so nothing can be read off its layers.")
    own = [call for call in stream.calls if call.result is not None and call.given is not None]
    head, after = _head(own, scores)
    chain, at = [head], head.given
    while not same_memory(at, last):
        # A module and the last one inside it return the same tensor: the inner one returns first.
        made = [call for call in own[: own.index(chain[0])] if same_memory(call.result, at)]
        before = next((call for call in made if not same_memory(call.given, at)), None)
        if before is None:
            names = " → ".join(call.name for call in chain)
            raise Unsupported(f"What is between the last layer ({stream.layers[-1].name}) and {names} is no module.")
        chain, at = [before, *chain], before.given
    found = Readout(tuple(call.module for call in chain), tuple(call.name for call in chain), after)
    with torch.no_grad():
        again = stream.of_sample(found.scores(last))
    rows = scores[trace.look_at, : stream.length].detach()
    near = max(1e-3, 16 * torch.finfo(rows.dtype).eps)
    if again.shape != rows.shape or not torch.allclose(again, rows, rtol=near, atol=near * float(rows.abs().max())):
        raise Unsupported(f"{' → '.join(found.names)} do not give the scores again.")
    return found


def _head(own: Sequence[ModuleCall], scores: Tensor) -> tuple[ModuleCall, ScoreScale]:
    """The call of the linear layer that gives the scores, and what the model does with them. Raises Unsupported."""
    linear = [call for call in reversed(own) if _is_matrix(call)]
    for call in linear:
        if same_memory(call.result, scores):
            return call, AS_THEY_ARE
    for call in linear[:1]:
        assert call.result is not None
        after = score_scale(call.result, scores)
        if after is not None:
            return call, after
    raise Unsupported(
        "The scores are not the result of a linear layer that is a module of the model, nor that times a number or "
        "with a soft cap."
    )


def reading(trace: Trace, output: Any, found: Sequence[Stream]) -> tuple[Stream, Readout]:
    """The stream off which the scores are read, and how; the reasons of all where there is none. Raises Unsupported."""
    reasons: list[str] = []
    for stream in reversed(found):
        try:
            return stream, readout(trace, output, stream)
        except Unsupported as reason:
            reasons.append(str(reason))
    raise Unsupported(" ".join(dict.fromkeys(reasons)))


def _is_matrix(call: ModuleCall) -> bool:
    weight = getattr(call.module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() == 2
