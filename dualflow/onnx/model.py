"""A model of ONNX as a function of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dualflow as df
from dualflow.backends.onnx import onnx
from dualflow.backends.onnx.element_types import dtype_of_element_type
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.onnx.calls import is_constant
from dualflow.onnx.evaluation import graphs_of, initializers, run_node


class OnnxModel(df.Module):
    """A model of ONNX: a function of named tensors, which ``df.onnx.load`` returns.

    Its ops are those of dualflow. Called in a ``df.function`` they are traced and compiled; gradients flow.

    Attributes:
        inputs: the spec of each input, with its name. A named or unknown dimension is None.
        outputs: the name of each output.
        weights: the initializers that are variables, by name; none unless the model is trainable.

    Example:
        >>> import os, tempfile
        >>> import dualflow as df
        >>> double = df.function(lambda x: x * 2.0, name="double")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace = double.get_concrete_function(df.TensorSpec([None], name="x"))
        ...     (path,) = trace.export(os.path.join(folder, "double.onnx"), to="onnx")
        ...     model = df.onnx.load(path)
        >>> model.inputs
        [TensorSpec(shape=(None,), dtype=tf.float32, name='x')]
        >>> model(df.constant([1.0, 2.0])).numpy()
        array([2., 4.], dtype=float32)
    """

    def __init__(self, graph: onnx.GraphProto, *, trainable: bool = False) -> None:
        super().__init__(name=None)
        self._graph = graph
        self.weights: dict[str, Any] = {}
        constants = initializers(graph)
        if trainable:
            floats = {k: v for k, v in constants.items() if df.as_dtype(v.dtype).is_floating and v.ndim}
            self.weights = {name: df.Variable(array, name=name) for name, array in floats.items()}
        self._defaults = {i.name: constants[i.name] for i in graph.input if i.name in constants}
        self.inputs = [_spec(info) for info in graph.input]
        self.outputs = [info.name for info in graph.output]
        self._nodes, self._constants = _fold_constants(
            graph, {**constants, **self.weights}, set(self._defaults)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs of the model.

        Args:
            *args: tensors, in the order of :attr:`inputs`, of their dtypes.
            **kwargs: tensors by the names of inputs. An input with a default may be left out.

        Returns:
            The output, if the model has one; else a dict of the outputs by name.

        Raises:
            InvalidArgumentError: an input is missing or unknown, or its shape does not fit.
            DTypeError: an input has another dtype.
        """
        tensors = self._bound(args, kwargs)
        values = {**self._constants, **self._defaults, **tensors}
        for node in self._nodes:
            run_node(node, values)
        results = {name: df.convert_to_tensor(values[name]) for name in self.outputs}
        return results if len(results) > 1 else next(iter(results.values()))

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The tensors of the arguments, by the names of their inputs."""
        names = [spec.name for spec in self.inputs]
        if len(args) > len(names):
            raise InvalidArgumentError(f"The model takes {len(names)} inputs, {names}, not {len(args)}.")
        by_name: dict[Any, Any] = dict(zip(names, args, strict=False))
        unknown = sorted(kwargs.keys() - set(names) | kwargs.keys() & by_name.keys())
        by_name |= kwargs
        missing = [name for name in names if name not in by_name and name not in self._defaults]
        if unknown or missing:
            raise InvalidArgumentError(
                f"The model has the inputs {names}: {missing or 'none'} missing, {unknown or 'none'} unknown "
                "or given twice."
            )
        specs = {spec.name: spec for spec in self.inputs}
        return {name: _checked(name, x, specs[name]) for name, x in by_name.items()}


def _checked(name: str, x: Any, spec: df.TensorSpec) -> Any:
    """An argument as a tensor of the input's dtype and shape."""
    tensor = df.convert_to_tensor(x, dtype=None if hasattr(x, "dtype") else spec.dtype)
    if tensor.dtype is not spec.dtype:
        raise DTypeError(
            f"The input {name} has dtype {spec.dtype.name}, not {tensor.dtype.name}; use df.cast."
        )
    if not spec.shape.is_compatible_with(tensor.shape):
        raise InvalidArgumentError(f"The input {name} has shape {spec.shape}, not {tensor.shape}.")
    return tensor


def _spec(info: onnx.ValueInfoProto) -> df.TensorSpec:
    tensor = info.type.tensor_type
    dtype = dtype_of_element_type(tensor.elem_type)
    if dtype is None:
        raise InvalidArgumentError(f"The input {info.name} of the ONNX model is no tensor of a known dtype.")
    if not tensor.HasField("shape"):
        return df.TensorSpec(None, dtype, info.name)
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    return df.TensorSpec(sizes, dtype, info.name)


def _fold_constants(
    graph: onnx.GraphProto, constants: dict[str, Any], inputs: set[str]
) -> tuple[list[onnx.NodeProto], dict[str, Any]]:
    """Constant folding: the nodes that depend on an input or a weight, and the values of all others."""
    remaining = []
    for node in graph.node:
        names = [name for name in node.input if name]
        is_fixed = all(is_constant(constants.get(name)) and name not in inputs for name in names)
        if is_fixed and not graphs_of(node):
            run_node(node, constants)
        else:
            remaining.append(node)
    return remaining, constants
