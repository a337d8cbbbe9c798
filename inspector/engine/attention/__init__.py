"""Attention as it ran: every call of a model turned into queries and keys, and those into rows of its map when asked.

In come the calls that `probes/attention.py` sees (scaled dot product, multi-head, fused encoder layers, a softmax of
the model's own); out go `Attention` records of the one sample looked at, each checked against what the call returned,
and, for the quantities, blocks of rows with the statistics that are made of them. No map is ever in memory as a whole,
but for those that a model computes itself and those joined from the calls of a cache.

Begin with `recorder.py`, which says what is done with each kind of call. Then, in the order of a call:

- `looked.py` - which entries of a batch axis belong to the sample, windows and merged heads included;
- `masks.py` - what a mask forbids: nothing, the causal triangle, some keys;
- `calls.py` - queries, keys and mask to an Attention, and the check; `multihead.py` does it for projected inputs;
- `caches.py` - calls that are rows of one map: a cache of keys, a decoder that looks once a step;
- `rows.py` - the weights of some rows, entropy and what each may look at;
- `statistics.py` - one walk over all rows for every statistic and the maps.
"""
