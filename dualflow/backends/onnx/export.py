"""The ONNX model of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from dualflow.backends.onnx import control_flow, elementwise, indexing, products, reductions, views
from dualflow.backends.onnx.element_types import element_type
from dualflow.backends.onnx.scope import Operand, live_nodes, names_read
from dualflow.backends.onnx.writer import GraphWriter, Rules
from dualflow.graph.ir import Graph, Value
from dualflow.graph.symbolic_size_ops import argument_sizes, first_axes
from dualflow.sizes.symbolic_sizes import SizeFactor, SymInt, variable_of

_IR_VERSIONS: Final = ((26, 13), (0, 9))
"""Pairs of the minimum opset and its IR version, the newest first."""

PRODUCER: Final = "dualflow"

RULES: Final[Rules] = {
    **elementwise.RULES,
    **views.RULES,
    **reductions.RULES,
    **indexing.RULES,
    **products.RULES,
    **control_flow.RULES,
}


def onnx_model(
    graph: Graph,
    outputs: Sequence[str],
    captured: Sequence[str],
    values: Sequence[np.ndarray[Any, Any]],
) -> onnx.ModelProto:
    """The model of ``graph``, a graph before fusion, whose sizes may be symbolic.

    A variable that the graph assigns is an input, whose default is the variable's value, and an output with
    the new value. Other variables, and captured tensors, are initializers.

    Args:
        graph: the graph.
        outputs: the name of each output.
        captured: the name of each captured variable or tensor.
        values: the value of each captured variable or tensor.

    Raises:
        InvalidArgumentError: an op has no ONNX form.
    """
    writer = GraphWriter(RULES)
    shared = writer.scope.shared
    for value, name in zip(graph.arguments, argument_names(graph), strict=True):
        writer.bind(value, Operand(shared.unique(name), value.spec.dtype))
    for value, name, array in zip(graph.inputs[len(graph.arguments) :], captured, values, strict=True):
        writer.bind(value, shared.constant(array, name))
    for name in outputs:
        shared.unique(name)
    writer.write(graph)
    names = [*outputs, *[f"{writer.operand(u.input).name}_updated" for u in graph.updates]]
    results = _name_results(writer, graph, names)
    dimensions = _dimension_names(writer, graph)
    inputs = [*graph.arguments, *[update.input for update in graph.updates]]
    nodes = live_nodes(writer.scope.nodes, results)
    read = names_read(nodes)
    proto = helper.make_graph(
        nodes,
        graph.name,
        [_value_info(writer.operand(value).name, value, dimensions) for value in inputs],
        [_value_info(name, value, dimensions) for name, value in zip(results, graph.results, strict=True)],
        [initializer for initializer in shared.initializers if initializer.name in read],
    )
    return helper.make_model(
        proto,
        opset_imports=[helper.make_opsetid("", shared.opset)],
        ir_version=next(ir for least, ir in _IR_VERSIONS if shared.opset >= least),
        producer_name=PRODUCER,
    )


def argument_names(graph: Graph) -> list[str]:
    """The name of each argument, or its number."""
    return [(v.spec.name or f"input_{i}").removesuffix(":0") for i, v in enumerate(graph.arguments)]


def _name_results(writer: GraphWriter, graph: Graph, names: Sequence[str]) -> list[str]:
    """Give the results of the graph their names.

    The node that computes a result is renamed. A result that is also an input, a constant or another result
    is copied.
    """
    scope, renamed = writer.scope, dict[str, str]()
    scope.label = ("", "")
    for value, name in zip(graph.results, names, strict=True):
        operand = scope.after_checks(writer.operand(value))
        if not scope.computes(operand) or operand.name in renamed:
            operand = scope.add("Identity", operand)
        renamed[operand.name] = name
    rename(scope.nodes, renamed)
    return list(names)


def rename(nodes: Sequence[onnx.NodeProto], names: Mapping[str, str]) -> None:
    """Rename tensors in ``nodes``, and in the graphs inside of them."""
    for node in nodes:
        for index, name in enumerate(node.input):
            node.input[index] = names.get(name, name)
        for index, name in enumerate(node.output):
            node.output[index] = names.get(name, name)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                rename(attribute.g.node, names)
                for info in attribute.g.output:
                    info.name = names.get(info.name, info.name)


def _dimension_names(writer: GraphWriter, graph: Graph) -> dict[SizeFactor, str]:
    """The name of each size variable: that of the first axis that it is the size of."""
    return {
        variable: f"{writer.operand(graph.inputs[argument]).name}_size{axis}"
        for variable, (argument, axis) in first_axes(argument_sizes(graph)).items()
    }


def _value_info(name: str, value: Value, dimensions: Mapping[SizeFactor, str]) -> onnx.ValueInfoProto:
    """The type of an input or output, with a name for a symbolic size."""
    shape = [_dimension(size, dimensions) for size in value.spec.shape]
    return helper.make_tensor_value_info(name, element_type(value.spec.dtype), shape)


def _dimension(size: int | None, dimensions: Mapping[SizeFactor, str]) -> int | str | None:
    if not isinstance(size, SymInt):
        return size
    variable = variable_of(size)
    return dimensions.get(variable) if variable is not None else None
