"""ONNX's Scan: a graph that runs for each row of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx
from onnx import helper

from dualflow.backends.onnx.element_types import element_type
from dualflow.backends.onnx.scope import Operand, live_nodes
from dualflow.backends.onnx.writer import GraphWriter
from dualflow.core.spec import TensorSpec

Step = Callable[..., tuple[Sequence[Operand], Sequence[Operand]]]
"""``step(writer, *states, *rows)`` writes the body; returns the new states, and the rows of the results."""


def scan_node(
    w: GraphWriter,
    step: Step,
    states: Sequence[TensorSpec],
    initial: Sequence[Operand],
    scanned: Sequence[tuple[TensorSpec, Operand]],
    stacked: Sequence[TensorSpec],
    *,
    axis: int = 0,
    reverse: bool,
) -> list[Operand]:
    """A Scan; returns the last states, then the stacked rows.

    Args:
        w: the writer of the graph around it.
        step: writes the body.
        states: the specs of the states.
        initial: the states before the first row.
        scanned: the spec of a row of each scanned tensor, and the tensor.
        stacked: the specs of the rows of each result.
        axis: the axis of the rows.
        reverse: whether the rows are scanned and stacked from the last to the first.
    """
    inner = GraphWriter(w.rules, w)
    rows = [spec for spec, _ in scanned]
    inputs = [Operand(w.scope.shared.unique("row"), spec.dtype) for spec in (*states, *rows)]
    updated, results = step(inner, *inputs)
    body = body_graph(
        inner, list(zip(inputs, (*states, *rows), strict=True)), [*updated, *results], [*states, *stacked]
    )
    directions: dict[str, Any] = {
        "scan_input_directions": [int(reverse)] * len(rows),
        "scan_output_directions": [int(reverse)] * len(stacked),
        "scan_input_axes": [axis] * len(rows),
        "scan_output_axes": [axis] * len(stacked),
    }
    return w.scope.add_node(
        "Scan",
        [*initial, *[tensor for _, tensor in scanned]],
        [spec.dtype for spec in (*states, *stacked)],
        body=body,
        num_scan_inputs=len(rows),
        **{name: value for name, value in directions.items() if value and any(value)},
    )


def body_graph(
    inner: GraphWriter,
    inputs: Sequence[tuple[Operand, TensorSpec]],
    outputs: Sequence[Operand],
    specs: Sequence[TensorSpec],
) -> onnx.GraphProto:
    """The graph of a branch or an iteration, which ``inner`` has written.

    Each output is the result of a node of the graph, as the runtime requires; the first one depends on the
    checks of the graph.
    """
    names: list[Operand] = []
    for i, operand in enumerate(outputs):
        checked = inner.scope.after_checks(operand) if i == 0 else operand
        if not inner.scope.computes(checked) or checked in names:
            checked = inner.scope.add("Identity", checked)
        names.append(checked)
    return helper.make_graph(
        live_nodes(inner.scope.nodes, [operand.name for operand in names]),
        inner.scope.shared.unique("body"),
        [value_info(operand, spec) for operand, spec in inputs],
        [value_info(operand, spec) for operand, spec in zip(names, specs, strict=True)],
    )


def value_info(operand: Operand, spec: TensorSpec) -> onnx.ValueInfoProto:
    """The type of a tensor inside of a body: symbolic sizes are dynamic."""
    shape = [size if type(size) is int else None for size in spec.shape]
    return helper.make_tensor_value_info(operand.name, element_type(operand.dtype), shape)
