"""Operators of ONNX as calls of torch's functions. Each is compared with onnxruntime on the values of an example before
it is used: what differs, in any form that is not meant here, is left to onnxruntime.
"""
