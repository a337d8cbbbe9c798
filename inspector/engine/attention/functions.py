"""The functions of torch that are looked at to find attention, each with the method that looks at its calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from inspector.engine.attention import flex
from inspector.engine.attention.operators import of_operators
from inspector.engine.attention.recorder import AttentionRecorder

Handler = Callable[..., None]
Looked = list[tuple[Any, Handler]]
Named = Sequence[tuple[Handler, str]]

ENTRYWISE = (
    "abs acos arccos asin arcsin atan arctan cos sin sinh cosh erf erfc log1p expm1 neg negative sqrt rsqrt "
    "reciprocal hardshrink"
)
"""Functions of each entry by which weights are made of scores, beside those that have a handler of their own."""
OF_LAYERS = "softsign hardsigmoid hardtanh elu selu celu mish leaky_relu relu6 hardswish tanhshrink softshrink"
"""The same in torch.nn.functional."""


def functions_looked_at(recorder: AttentionRecorder) -> Looked:
    """Each function, also under its other names and as a method of tensors, with what is told of its calls."""
    named = _by_name(recorder)
    found = [*_looked_at(named, (torch, torch.Tensor)), *_functional(recorder), *_of_tensors(recorder)]
    found += of_operators(recorder, named)
    if flex.operation() is not None:
        found.append((flex.operation(), recorder.flex))
    return found


def _by_name(recorder: AttentionRecorder) -> Named:
    """Those that are called by one name in torch and on a tensor."""
    return *_computing(recorder), *_placing(recorder)


def _computing(recorder: AttentionRecorder) -> Named:
    """Those that make new numbers of the entries."""
    own = recorder.own
    return (
        (own.product, "matmul bmm mm mv"),
        (own.product_added, "baddbmm addmm"),
        (own.sigmoid, "sigmoid"),
        (own.added_product, "addcmul addcmul_ addmv addmv_"),
        (own.inner, "inner"),
        (own.chained, "chain_matmul"),
        (own.added, "add add_"),
        (own.subtracted, "sub sub_ subtract"),
        (own.multiplied, "mul mul_ multiply"),
        (own.summed, "sum nansum"),
        (own.averaged, "mean"),
        (own.made, "relu square pow"),
        (own.clamped, "clamp clamp_ clamp_min clamp_min_ clamp_max clamp_max_ clip clip_"),
        (own.replaced, "minimum maximum min fmin fmax lerp lerp_ masked_scatter masked_scatter_"),
        (own.powers, "exp exp_"),
        (own.powers_of_two, "exp2"),
        (own.quotient, "div div_ true_divide"),
        (own.accumulated, "cumsum"),
        (own.entrywise, ENTRYWISE),
        (own.logarithm, "log"),
        (own.log_summed, "logsumexp logaddexp"),
        (own.softmax, "softmax"),
    )


def _placing(recorder: AttentionRecorder) -> Named:
    """Those that compare and choose entries, and put them in other places."""
    own = recorder.own
    return (
        (own.masked, "masked_fill masked_fill_"),
        (own.chosen, "where"),
        (own.lower, "tril tril_"),
        (own.upper, "triu triu_"),
        (own.compared, "eq ge"),
        (own.ordered, "argsort sort argmin"),
        (own.filled_in, "index_fill index_fill_ fill_ index_put index_put_"),
        (own.passed, "unsqueeze nan_to_num contiguous clone to type type_as float half bfloat16 double log_softmax"),
        (own.routed, "topk"),
        (own.largest, "argmax max"),
        (own.scattered, "scatter scatter_"),
        (own.gathered, "gather"),
        (own.along, "take_along_dim"),
        (own.selected_rows, "index_select"),
        (own.summed_by_index, "index_add index_add_ scatter_add scatter_add_"),
        (own.copied_into, "copy_"),
        (own.copied, "repeat_interleave repeat tile"),
        (own.made_sparse, "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc"),
        (recorder.reshaped, "reshape flatten view unflatten"),
    )


def _looked_at(named: Named, spaces: Sequence[Any]) -> Looked:
    return [
        (getattr(space, name), handler)
        for handler, names in named
        for name in names.split()
        for space in spaces
        if hasattr(space, name)
    ]


def _functional(recorder: AttentionRecorder) -> Looked:
    """Those of torch.nn.functional and torch alone."""
    own = recorder.own
    several: Sequence[tuple[Handler, Sequence[Any]]] = (
        (own.softmax, (torch.special.softmax, F.softmax)),
        (own.dropped, (F.dropout, torch.dropout, F.alpha_dropout)),
        (own.made, (F.relu, F.normalize, F.threshold)),
        (own.softened, (F.softplus,)),
        (own.mapped, (F.layer_norm, F.rms_norm, F.gelu, F.silu, F.tanh, torch.tanh)),
        (own.sigmoid, (F.sigmoid, torch.special.expit)),
        (recorder.joined, (torch.cat, torch.concat, torch.concatenate)),
        (own.padded, (F.pad,)),
        (own.passed, (F.log_softmax,)),
        (own.stacked, (torch.stack,)),
        (recorder.sdpa, (F.scaled_dot_product_attention,)),
        (recorder.function, (F.multi_head_attention_forward,)),
        (own.layer, (F.linear,)),
        (own.softmin, (F.softmin,)),
        (own.gumbel, (F.gumbel_softmax,)),
        (own.one_hot, (F.one_hot,)),
        (own.entrywise, [getattr(F, name) for name in OF_LAYERS.split()]),
        (own.entrywise, (torch.special.erf, torch.special.expm1)),
        (own.logarithm, (F.logsigmoid,)),
        (own.looked_up, (F.embedding,)),
        (own.log_summed, (torch.special.logsumexp,)),
        (own.bagged, (F.embedding_bag,)),
        (own.convolved, (F.conv1d, F.conv2d, F.conv3d)),
        (own.product, (torch.linalg.matmul,)),
        (own.vectors, (torch.linalg.vecdot,)),
        (own.chained, (torch.linalg.multi_dot,)),
        (own.einsum, (torch.einsum,)),
        (own.tensordot, (torch.tensordot,)),
    )
    return [(function, handler) for handler, functions in several for function in functions]


def _of_tensors(recorder: AttentionRecorder) -> Looked:
    """Methods and operators of tensors alone."""
    own, tensor = recorder.own, torch.Tensor
    return [
        (tensor.tanh, own.mapped),
        (tensor.__getitem__, own.indexed),
        (tensor.__setitem__, own.assigned),
        (tensor.__pow__, own.made),
        (tensor.__eq__, own.compared),
        (tensor.__ge__, own.compared),
        (tensor.__rsub__, own.passed),
        (tensor.__rdiv__, own.made),
    ]
