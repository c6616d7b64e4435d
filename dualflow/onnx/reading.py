"""Loads ONNX files; raises an error for invalid models and unsupported ops."""

from __future__ import annotations

import os
from typing import Any, Final

from dualflow.backends.onnx import onnx
from dualflow.backends.onnx.element_types import dtype_of_element_type
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.status_errors import DataLossError, UnimplementedError
from dualflow.core.tracebacks import entry
from dualflow.onnx.evaluation import RULES, all_graphs
from dualflow.onnx.model import OnnxModel

_OPSETS: Final = (13, 28)
"""The first and the last version of ONNX's ops that the rules are written for."""


@entry
def load(path: str | os.PathLike[str], *, trainable: bool = False) -> OnnxModel:
    """A model of ONNX as a function.

    Args:
        path: a file of opset 13 to 28. External data, if any, is in files of its folder.
        trainable: whether the initializers of floats with an axis or more become variables, which
            ``trainable_variables`` has and optimizers train; by default they are constants.

    Returns:
        The model: call it with tensors, eagerly or in a function that is traced.

    Raises:
        DataLossError: the file is no model of ONNX, or is damaged.
        InvalidArgumentError: the model is invalid, has another version, or external data outside of its
            folder.
        UnimplementedError: dualflow has no form of an op; the error names it.
        OSError: the file can't be read.

    Example:
        >>> import os, tempfile
        >>> import dualflow as df
        >>> f = df.function(lambda x: df.nn.softmax(x), name="f")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "f.onnx")
        ...     paths = f.get_concrete_function(df.TensorSpec([None, 3], name="x")).export(path, to="onnx")
        ...     model = df.onnx.load(path)
        >>> model(x=df.zeros([1, 3])).numpy().round(2)
        array([[0.33, 0.33, 0.33]], dtype=float32)
    """
    file = os.fspath(path)
    model = _parsed(file)
    _check_version(model, file)
    _check_ops(model, file)
    _check_tensors(model.graph, file)
    _read_external_data(model, file)
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError, TypeError) as error:
        raise InvalidArgumentError(f"{file} is no valid model of ONNX: {error}") from None
    return OnnxModel(model.graph, trainable=trainable)


def _parsed(file: str) -> onnx.ModelProto:
    with open(file, "rb") as stream:
        data = stream.read()
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except Exception as error:  # protobuf's own errors, of a package that dualflow does not import
        raise DataLossError(f"{file} is no model of ONNX, or is damaged: {error}.") from None
    if not model.graph.node and not model.graph.output:
        raise DataLossError(f"{file} is no model of ONNX, or is damaged: it has no graph.")
    return model


def _check_version(model: onnx.ModelProto, file: str) -> None:
    versions = {opset.domain: opset.version for opset in model.opset_import}
    version = versions.get("", versions.get("ai.onnx"))
    first, last = _OPSETS
    if version is None or not first <= version <= last:
        raise InvalidArgumentError(
            f"{file} has opset {version}; models of opset {first} to {last} can be loaded. Convert it with "
            "onnx.version_converter."
        )


def _check_ops(model: onnx.ModelProto, file: str) -> None:
    """Raise if an op has no rule."""
    if model.functions:
        names = ", ".join(sorted({function.name for function in model.functions}))
        raise UnimplementedError(f"{file} defines functions of its own, which can't be loaded: {names}.")
    nodes = [node for graph in all_graphs(model.graph) for node in graph.node]
    unknown = {
        f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        for node in nodes
        if node.op_type not in RULES or node.domain not in ("", "ai.onnx")
    }
    if unknown:
        raise UnimplementedError(
            f"{file} has ops that dualflow has no form of: {', '.join(sorted(unknown))}."
        )


def _check_tensors(graph: onnx.GraphProto, file: str) -> None:
    """Raise for constants whose bytes are not those of their shape and dtype, or that have no dtype here."""
    for inner in all_graphs(graph):
        if inner.sparse_initializer:
            raise UnimplementedError(f"{file} has sparse constants, which can't be loaded.")
        tensors = [
            *inner.initializer,
            *[a.t for node in inner.node for a in node.attribute if a.HasField("t")],
        ]
        for tensor in tensors:
            dtype = dtype_of_element_type(tensor.data_type)
            if dtype is None:
                raise InvalidArgumentError(f"{file}: the constant {tensor.name!r} has no dtype of dualflow.")
            _check_count(tensor, dtype, file)


def _check_count(tensor: Any, dtype: Any, file: str) -> None:
    count = 1
    for size in tensor.dims:
        if size < 0:
            raise InvalidArgumentError(f"{file}: the constant {tensor.name!r} has a negative size.")
        count *= size
    if tensor.HasField("raw_data") and len(tensor.raw_data) != count * dtype.size:
        raise InvalidArgumentError(
            f"{file}: the constant {tensor.name!r} has {len(tensor.raw_data)} bytes, and its shape "
            f"{list(tensor.dims)} has {count * dtype.size}."
        )
    typed = len(tensor.float_data) + len(tensor.int32_data) + len(tensor.int64_data) + len(tensor.double_data)
    typed += len(tensor.uint64_data) + len(tensor.string_data)
    if not tensor.HasField("raw_data") and not tensor.external_data and typed != count:
        raise InvalidArgumentError(
            f"{file}: the constant {tensor.name!r} has {typed} elements, and its shape {list(tensor.dims)} "
            f"has {count}."
        )


def _read_external_data(model: onnx.ModelProto, file: str) -> None:
    """Read the constants that are in other files, which must be in the model's folder."""
    folder = os.path.realpath(os.path.dirname(file) or ".")
    for graph in all_graphs(model.graph):
        for tensor in graph.initializer:
            locations = [entry.value for entry in tensor.external_data if entry.key == "location"]
            for location in locations:
                target = os.path.realpath(os.path.join(folder, location))
                if os.path.isabs(location) or os.path.commonpath([folder, target]) != folder:
                    raise InvalidArgumentError(
                        f"{file}: the constant {tensor.name!r} is in {location!r}, outside of its folder."
                    )
    try:
        onnx.load_external_data_for_model(model, folder)
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise InvalidArgumentError(f"{file}: its external data can't be read: {error}.") from None
