"""Functions of tensors as graphs: the two sides of equations, and the replacements of rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any

from dualflow.core.dispatch import AbstractTensor
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.function.calls.array_ownership import array_of
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.rewrite import rebuilt
from dualflow.ops.creation import CONSTANT, convert_to_tensor

OPTIONS = CompileOptions()


def trace(function: Callable[..., Any], specs: Sequence[TensorSpec], name: str) -> tuple[Graph, bool]:
    """The graph of ``function`` for arguments of these specs, and whether it returns a tuple.

    Tensors that it captures are constants of the graph.

    Raises:
        InvalidArgumentError: it reads a variable.
    """
    graph, several = Context().run(_traced, function, specs, name)
    constants = []
    values = {}
    for value, capture in zip(graph.inputs[len(graph.arguments) :], graph.captures, strict=True):
        if capture.variable:
            raise InvalidArgumentError(
                f"The rewrite {name!r} reads a variable, whose value it can't compile in. Match the variable "
                "as an argument, or pass its value: variable.numpy()."
            )
        node = Node(CONSTANT, (), {"value": array_of(capture.source)}, [value.spec])
        constants.append(node)
        values[value] = node.output
    if not constants:
        return graph, several
    nodes = rebuilt(graph.nodes, lambda node, current: None, values)
    outputs = [values.get(v, v) for v in graph.outputs]
    return Graph(graph.name, graph.arguments, (*constants, *nodes), tuple(outputs)), several


def _traced(function: Callable[..., Any], specs: Sequence[TensorSpec], name: str) -> tuple[Graph, bool]:
    tracer = Tracer(name, options=OPTIONS)
    with tracing(tracer):
        result = function(*[tracer.argument(spec) for spec in specs])
        several = isinstance(result, tuple | list)
        outputs = [tracer.lift(_tensor(x))._value for x in (result if several else [result])]
    return eliminate_dead_code(tracer.builder.finish(outputs)), several


def _tensor(x: Any) -> Any:
    return x if isinstance(x, AbstractTensor) else convert_to_tensor(x)


def inlined(
    graph: Graph, arguments: Sequence[Value], replaced: Node, merged: Sequence[Node], rewrite: Any
) -> tuple[list[Node], list[Value]]:
    """Inline ``graph``: copies of its nodes that read ``arguments``, and its results.

    The copies have the origin of the node ``replaced``, into which those of ``rewrite`` and of the nodes
    ``merged`` are merged.
    """
    lines = [rewrite, *replaced.merged_origins]
    for node in merged:
        lines += [node.origin, *node.merged_origins]
    distinct = dict.fromkeys(line for line in lines if line is not None and line != replaced.origin)
    values = dict(zip(graph.arguments, arguments, strict=True))
    nodes = []
    for node in graph.nodes:
        inputs = [values.get(v, v) for v in node.inputs]
        new = Node(
            node.op, inputs, node.attrs, node.specs, replaced.origin, tuple(distinct)[:_MAX_MERGED_ORIGINS]
        )
        nodes.append(new)
        values.update(zip(node.outputs, new.outputs, strict=True))
    return nodes, [values[v] for v in graph.outputs]


_MAX_MERGED_ORIGINS = 4
