"""Exports the optimised graph, before fusion into kernels, to ONNX."""

from dualflow.core.errors import NotFoundError

try:
    import onnx as onnx
except ModuleNotFoundError as error:
    raise NotFoundError(
        f"Models of ONNX are written and read by the package onnx ({error}): pip install 'dualflow[onnx]'"
    ) from error
