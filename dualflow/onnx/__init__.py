"""Models of ONNX as functions: ``df.onnx``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.onnx.model import OnnxModel as OnnxModel
    from dualflow.onnx.reading import load as load

_publish(
    globals(),
    lazy={"dualflow.onnx.model": "OnnxModel", "dualflow.onnx.reading": "load"},
)
