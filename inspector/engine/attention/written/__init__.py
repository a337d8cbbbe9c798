"""Attention that a model computes itself, in whatever way it is written.

In: torch functions that the probe saw (softmax, sigmoid, masks, dropout, products, sums). Out: `Attention` records with
the weights of the selected sample, each checked against the sum that the model computed with them; and a line for every
softmax that is not attention, with the reason.

Weights are recognised where they are *used*: a sum of products of weights and values, over an axis of keys. They are
weights because they come from a softmax or a sigmoid, or by their values (none below 0, each row sums to 1), which
covers every other way of normalising.

- `by_hand.py` - the handlers of the functions by which weights are made and passed on;
- `sums.py` - every sum of products, and what becomes of it; `linear.py` - linear attention, which has no weights;
- `contraction.py` - a sum of products in whatever way it is spelled, with a letter for each axis;
- `layout.py` - its batch, heads, queries and keys, the selected sample, and the check;
- `facts.py` - what is known of results (softmax, masks, dropout) and of views and copies of them;
- `masking.py` - where masks are applied; `judging.py` - attention, or a gate, a mixture, a router;
- `put_in.py`, `unreached.py` - masks that any operation puts in, by the numbers that it takes or by autograd's graph;
- `gated.py` - products of queries and keys that something multiplies before they are summed;
- `unfollowed.py` - functions that weigh and sum inside: which one it was;
- `log_sums.py` - exp of scores minus the logarithm of a sum that has a sink in it;
- `transformed.py` - what is listed inside a torch.func transform;
- `windows.py` - windows of keys that overlap;
- `pieces.py` - weights that are taken one by one and added up;
- `parts.py` - one softmax over the keys of several memories;
- `picked.py` - hard attention: the key with the largest score, taken by its index.
"""
