"""Names of the numbers that tell what attention does with its scores."""

from __future__ import annotations

SCORES = ("maps", "rectified", "factor", "width", "turned again", "layers", "products between", "across")
"""Softmaxes over products of queries and keys; those whose scores go through a ReLU first; the largest number by which
q·k is multiplied, and the width of its queries; maps whose queries or keys are turned by the same angles twice; layers
of attention one above the other, and the matrix products on the shortest way from the uppermost to the lowest; maps
whose softmax is over the queries."""
