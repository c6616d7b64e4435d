"""Exports traces to ONNX, checks the models, and runs them in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from required_tools import require_module

from dualflow.function.concrete import ConcreteFunction

onnx = require_module("onnx")
Array = np.ndarray[Any, Any]


def exported(concrete: ConcreteFunction, folder: Path, name: str = "model.onnx") -> Any:
    """The model that ``concrete.export`` writes, which checks it."""
    (path,) = concrete.export(folder / name, to="onnx")
    return onnx.load(path)


@cache
def onnxruntime() -> Any:
    """ONNX Runtime, which tests import when they run: each process of a run collects all files."""
    module = require_module("onnxruntime")
    module.set_default_logger_severity(4)
    return module


def errors() -> tuple[type[Exception], ...]:
    """What ONNX Runtime raises where a model fails."""
    state = onnxruntime().capi.onnxruntime_pybind11_state
    return state.Fail, state.InvalidArgument


def session(model: Any) -> Any:
    """ONNX Runtime for a model, with one thread."""
    options = onnxruntime().SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime().InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run(model: Any, arrays: Sequence[Array] | Mapping[str, Array]) -> dict[str, Array]:
    """The results of a model by name, for arrays by name or in the order of its inputs."""
    running = session(model)
    if not isinstance(arrays, Mapping):
        arrays = dict(zip([i.name for i in running.get_inputs()], arrays, strict=False))
    return dict(zip([o.name for o in running.get_outputs()], running.run(None, dict(arrays)), strict=True))


def op_types(model: Any) -> list[str]:
    """The ops of a model's nodes, in order."""
    return [node.op_type for node in model.graph.node]


def shapes(values: Any) -> dict[str, list[int | str]]:
    """The shape of each input or output, with the names of its symbolic sizes."""
    return {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in values
    }
