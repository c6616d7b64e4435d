"""Interprets an ONNX graph with dualflow ops, eagerly or in a trace."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any, Final

import numpy as np

from dualflow.backends.onnx import onnx
from dualflow.core import dispatch
from dualflow.core.errors import DualflowError, InvalidArgumentError
from dualflow.core.memory_errors import out_of_memory
from dualflow.eager.engine import EAGER
from dualflow.onnx import control_ops, elementwise_ops, neural_ops, reduction_ops, shape_ops
from dualflow.onnx.calls import NodeCall, Rules, is_constant

RULES: Final[Rules] = {
    **control_ops.RULES,
    **elementwise_ops.RULES,
    **neural_ops.RULES,
    **reduction_ops.RULES,
    **shape_ops.RULES,
}
"""How the ops of ONNX are computed."""

Values = MutableMapping[str, Any]


def evaluate(graph: onnx.GraphProto, values: Values) -> list[Any]:
    """The outputs of ``graph`` for ``values``, a dict of tensors by name, which also gets all results.

    A node that reads constants alone is evaluated eagerly, so that sizes and axes which are computed from
    them are known while a function is traced.
    """
    for node in graph.node:
        run_node(node, values)
    return [values[output.name] for output in graph.output]


def run_node(node: onnx.NodeProto, values: Values) -> None:
    """Evaluate one node.

    Raises:
        InvalidArgumentError: the node does not fit its operands.
        ResourceExhaustedError: a result needs more memory than there is.
    """
    inputs = tuple([values[name] if name else None for name in node.input])
    name = f"{node.op_type} (node {node.name!r})" if node.name else node.op_type
    call = NodeCall(
        name, inputs, _attributes(node), len(node.output), lambda g, xs: _evaluate_body(g, xs, values)
    )
    folds = not graphs_of(node) and all(x is None or is_constant(x) for x in inputs)
    try:
        results = _eagerly(node.op_type, call) if folds else RULES[node.op_type](call)
    except DualflowError as error:
        error.add_note(f"in {name} of the ONNX model")
        raise
    except MemoryError as error:
        raise out_of_memory(f"{name} of the ONNX model", error) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{name} of the ONNX model can't be computed: {error}.") from error
    listed = results if isinstance(results, tuple | list) else (results,)
    values.update({output: x for output, x in zip(node.output, listed, strict=False) if output})


def _eagerly(op_type: str, call: NodeCall) -> list[Any]:
    """The results of an op on constants, as constants."""
    with dispatch.using(EAGER):
        results = RULES[op_type](call)
    listed = results if isinstance(results, tuple | list) else (results,)
    return [np.array(x, order="C") for x in listed]


def _evaluate_body(graph: onnx.GraphProto, inputs: Sequence[Any], outer: Values) -> list[Any]:
    """The outputs of a branch or body, which reads tensors of the graph around it by name."""
    values: Values = ChainMap(initializers(graph), outer)
    values.update({info.name: x for info, x in zip(graph.input, inputs, strict=True)})
    return evaluate(graph, values)


def initializers(graph: onnx.GraphProto) -> dict[str, Any]:
    """The constants of a graph."""
    return {tensor.name: array_of(tensor) for tensor in graph.initializer}


def array_of(tensor: onnx.TensorProto) -> np.ndarray[Any, Any]:
    """The elements of a tensor of a file; strings are bytes."""
    if tensor.data_type == onnx.TensorProto.STRING:
        return np.array(list(tensor.string_data), object).reshape(tuple(tensor.dims))
    return onnx.numpy_helper.to_array(tensor)


def graphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs among the attributes of a node."""
    return [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph, and the graphs inside of it."""
    pending = [graph]
    while pending:
        current = pending.pop()
        yield current
        pending += [inner for node in current.node for inner in graphs_of(node)]


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: _attribute(a) for a in node.attribute}


def _attribute(attribute: onnx.AttributeProto) -> Any:
    if attribute.type == onnx.AttributeProto.TENSOR:
        return array_of(attribute.t)
    value = onnx.helper.get_attribute_value(attribute)
    return list(value) if attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS) else value
