"""Attention, whatever function computed it: queries, keys and masks of each call, and statistics of its weights.

In: calls that the probe `probes/attention.py` saw (scaled_dot_product_attention, nn.MultiheadAttention, the fused
encoder layer, softmax written by hand). Out: `trace.Attention` records, from which rows of weights are computed when a
quantity asks, so that maps of long sequences are never all in memory.

    calls       one call turned into an Attention, of the one sample that is shown
    multihead   nn.MultiheadAttention: queries and keys recomputed from inputs and weights
    recorder    names the calls by their module and keeps what could not be shown, with the reason
    rows        blocks of rows of weights from queries and keys
    statistics  one pass over the rows of every attention that writes maps and statistics together

Begin reading with `recorder.py`.
"""
