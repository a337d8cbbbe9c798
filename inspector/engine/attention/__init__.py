"""Attention as the model computed it: queries and keys of every call, and rows of its map when needed.

In: the calls that `probes/attention.py` records (scaled dot product, multi-head, fused encoder layers, a softmax of the
model's own). Out: `Attention` records of the one selected sample, each checked against what the call returned, and, for
the quantities, blocks of rows with their statistics. No map is ever in memory as a whole, except those that a model
computes itself and those joined from the calls of a cache.

Begin with `recorder.py`, which says what is done with each kind of call. Then, in the order of a call:

- `selected_sample.py` - which entries of a batch axis belong to the selected sample, windows and merged heads included;
- `masks.py` - what a mask forbids: nothing, the causal triangle, some keys;
- `calls.py` - queries, keys and mask to an Attention, and the check; `multihead.py` does it for projected inputs;
- `caches.py` - calls that are rows of one map: a cache of keys, a decoder that attends once a step;
- `rows.py` - the weights of some rows, their entropy and the keys that each may attend to;
- `statistics.py` - one pass over all rows for every statistic and the maps.
"""
