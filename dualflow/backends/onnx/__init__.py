"""The ONNX exporter: the graph before kernels, as nodes of ONNX's own ops."""

from dualflow.core.errors import NotFoundError

try:
    import onnx as onnx
except ModuleNotFoundError as error:
    raise NotFoundError(
        f"Models of ONNX are written and read by the package onnx ({error}): pip install 'dualflow[onnx]'"
    ) from error
