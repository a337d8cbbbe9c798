"""Graphs of ONNX: run by onnxruntime once, on an example, and by torch from then on.

    protobuf     the file: sizes checked, tensors beside it, what it reads
    session      onnxruntime, with every value of the graph
    operands     what an operator is given, and how it calls torch: at once, or as a node of a graph
    operators/   operators as torch's functions, by their names
    cells        LSTM, GRU and RNN of ONNX, in torch
    recurrent    from a node to its module
    foreign      a node that is left to onnxruntime
    model        the graph as a module, each node of which was compared with onnxruntime

Begin reading with `model.py`. Source of all definitions: the operator schemas of ONNX, onnx.ai/onnx/operators.
"""
