"""Recurrent nodes whose batch comes first (layout 1), which onnxruntime refuses, with their axes changed around them.

X (b, t, i), initial states (b, d, h), Y (b, t, d, h), Y_h (b, d, h) in layout 1; (t, b, i), (d, b, h), (t, d, b, h),
(d, b, h) in layout 0.
"""

from __future__ import annotations

from typing import Any

RECURRENT = ("LSTM", "GRU", "RNN")
SWAP, OF_Y = (1, 0, 2), (2, 0, 1, 3)


def time_first(onnx: Any, model: Any) -> int:
    """Rewrite these nodes in place; returns how many there were."""
    count, made = 0, []
    for node in model.graph.node:
        layout = next((one for one in node.attribute if one.name == "layout" and one.i), None)
        if node.op_type not in RECURRENT or layout is None:
            made.append(node)
            continue
        count += 1
        node.attribute.remove(layout)
        before, behind = [], []
        for n in (0, 5, 6):
            if n < len(node.input) and node.input[n]:
                name = f"{node.input[n]}/layout/{count}/{n}"
                before.append(_transpose(onnx, node.input[n], name, SWAP))
                node.input[n] = name
        for n, name in enumerate(node.output):
            if name:
                node.output[n] = f"{name}/layout/{count}"
                behind.append(_transpose(onnx, node.output[n], name, SWAP if n else OF_Y))
        made += [*before, node, *behind]
    if count:
        kept = [onnx.NodeProto.FromString(one.SerializeToString()) for one in made]
        del model.graph.node[:]
        model.graph.node.extend(kept)
    return count


def _transpose(onnx: Any, read: str, made: str, order: tuple[int, ...]) -> Any:
    return onnx.helper.make_node("Transpose", [read], [made], name=f"{made}/axes", perm=list(order))
