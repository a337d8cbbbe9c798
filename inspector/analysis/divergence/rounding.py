"""How much of the difference between two results of one operation rounding explains.

Three parts, each an upper bound or a measurement with a margin:

* the operation's own rounding: MARGIN times its measured response to one unit of rounding in its inputs (recorded with
  it), and for sums over k terms γ = √k · u times the sum of the sizes of the terms (the probabilistic bound of Higham
  & Mary 2019, "A new approach to probabilistic rounding error analysis"; the order of a sum differs between machines);
* what was different in its inputs before: the response grows with it in proportion;
* the estimate: a distance is known from 16 random signs, to within a factor of three.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from inspector.analysis.divergence.recorded import Made, Value

UNITS: Mapping[str, float] = MappingProxyType({
    "float64": 2.0**-52, "complex128": 2.0**-52, "float32": 2.0**-23, "complex64": 2.0**-23, "float16": 2.0**-10,
    "bfloat16": 2.0**-7, "float8_e4m3fn": 2.0**-3, "float8_e5m2": 2.0**-2,
})  # fmt: skip
"""Distance from 1 to the next number, by dtype."""
ACCUMULATED = 2.0**-23
"""Half precision is summed in float32."""
MARGIN = 4.0
ESTIMATE = 3.0
FEW = 4.0
"""Units of rounding within which functions of one entry (exp, tanh) of two libraries agree."""

PRODUCTS = frozenset((
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "mv", "dot", "convolution", "convolution_backward", "linear",
    "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "_thnn_fused_lstm_cell", "_cudnn_rnn", "_cudnn_rnn_backward",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_backward",
))  # fmt: skip
SUMS = frozenset((
    "sum", "mean", "var", "var_mean", "std", "std_mean", "linalg_vector_norm", "norm", "logsumexp", "cumsum", "prod",
    "cumprod", "_softmax", "_log_softmax", "native_layer_norm", "native_layer_norm_backward", "native_group_norm",
    "native_batch_norm", "native_batch_norm_backward", "_fused_rms_norm", "embedding_dense_backward", "index_add",
    "index_add_", "index_put_", "_index_put_impl_", "scatter_add", "scatter_add_", "nll_loss_forward",
    "_softmax_backward_data", "_log_softmax_backward_data", "nll_loss_backward",
))  # fmt: skip
EXACT = frozenset((
    "clone", "copy_", "cat", "stack", "index", "index_select", "embedding", "gather", "where", "masked_fill",
    "masked_fill_", "relu", "relu_", "neg", "neg_", "abs", "maximum", "minimum", "amax", "amin", "max", "min", "flip",
    "roll", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "zero_", "fill_", "arange", "eye", "tril",
    "triu", "constant_pad_nd", "unsafe_split", "unsafe_split_with_sizes", "_unsafe_view", "transpose_", "squeeze_",
    "unsqueeze_", "threshold_backward", "sort", "topk", "split_with_sizes_copy", "scalar_tensor", "result", "clamp",
    "clamp_", "clamp_min", "clamp_max", "slice_backward", "select_backward", "new_zeros", "new_ones", "new_full",
    "_to_copy", "sign", "repeat", "masked_select", "_reshape_copy", "_reshape_alias_copy", "as_strided_copy",
))  # fmt: skip
"""These round nothing (a change of dtype rounds once)."""
PASSED_ON = EXACT | frozenset((
    "add", "add_", "sub", "sub_", "rsub", "tanh", "tanh_", "sigmoid", "sigmoid_", "gelu", "silu", "silu_", "sin", "cos",
    "leaky_relu", "elu", "hardtanh", "softplus", "_softmax", "_log_softmax", "dropout", "sum",
))  # fmt: skip
"""A change of an input changes the output of these by about as much at most, however small the output is."""


def unit(*values: Value) -> float:
    """The coarsest unit of rounding among floating values; 0 where none is."""
    return max((UNITS.get(value.dtype, 2.0**-23) for value in values if value.floating), default=0.0)


def own_rounding(one: Made, output: int, u: float) -> float:
    """How far two correct results of an operation on the same inputs may be apart, ‖·‖₂. `u`: of the coarser run."""
    made = one.outputs[output]
    own = unit(made)
    if one.name in EXACT:
        return u * made.norm if any(value.dtype != made.dtype for value in one.inputs) or u > own else 0.0
    if not made.floating:
        return 0.0
    grown = max(u / own, 1.0) if own else 1.0
    response = one.response[output] if output < len(one.response) else math.nan
    return MARGIN * _known(response) * grown + FEW * u * made.norm + _order(one, made, u)


def _order(one: Made, made: Value, u: float) -> float:
    """What another order of a sum may change."""
    floats = [value for value in one.inputs if value.floating]
    if not floats:
        return 0.0
    gamma = min(u, ACCUMULATED) if u > ACCUMULATED else u
    if one.name in PRODUCTS:
        terms, sizes = _terms(floats), sorted((value.norm for value in floats), reverse=True)[:2]
        return gamma * math.sqrt(terms) * math.prod(sizes)
    if one.name in SUMS:
        largest = max(floats, key=lambda value: value.entries)
        terms = max(1.0, largest.entries / max(1, made.entries))
        scale = made.norm / max(largest.norm, 1e-300) if "norm" in one.name or "mean" in one.name else math.sqrt(terms)
        return gamma * math.sqrt(terms) * scale * largest.norm
    return 0.0


def _terms(values: list[Value]) -> float:
    """The length of the sums of a product: what both factors have in common and the result lacks; at most the longest
    axis that there is."""
    return float(max((int(n) for value in values for n in value.shape.split("×") if n), default=1))


def _known(response: float) -> float:
    return response if math.isfinite(response) else 0.0


def passed_on(one: Made, output: int, u: float, changes: list[float]) -> float:
    """How far apart results may be since inputs were: `changes` is ‖a − b‖ of each input."""
    if not any(changes):
        return 0.0
    made = one.outputs[output]
    own = unit(*one.inputs, made) or u or 2.0**-52
    relative = max(
        (change / value.norm if value.norm else math.inf)
        for change, value in zip(changes, one.inputs, strict=False) if change
    )  # fmt: skip
    response = one.response[output] if output < len(one.response) else math.nan
    if not math.isfinite(response):
        response = 2 * own * made.norm  # it could not be run again: taken to pass on relative changes as they are
    found = MARGIN * max(response, own * made.norm) * relative / own
    if one.name in PASSED_ON:
        pairs = zip(changes, one.inputs, strict=False)
        found += 2 * sum(c * math.sqrt(max(1.0, made.entries / max(1, value.entries))) for c, value in pairs if c)
    return found
