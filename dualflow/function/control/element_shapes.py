"""The shape of the elements of a TensorArray that is first written to in a branch or the body of a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.function.control.tensor_array import TensorArray
from dualflow.function.control.trace_bodies import operands
from dualflow.function.errors import here
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.extract import ancestors
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph, Value


def with_element_shapes(
    before: Sequence[Any],
    after: Sequence[Any],
    tracer: Tracer,
    inputs: Sequence[Value],
    initial: Callable[[], Sequence[Any]],
) -> list[Any]:
    """The values ``before`` a loop, with an element shape for each TensorArray that has none.

    The element shape is that of the first write in the body of the loop. Dynamic sizes of elements are
    computed for the ``initial`` values, so that the elements have these sizes before the first iteration.

    Args:
        before: the loop variables.
        after: the loop variables after an iteration, which ``tracer`` has recorded.
        tracer: has recorded an iteration.
        inputs: its inputs for the carried values.
        initial: returns the carried values before the loop.

    Raises:
        InvalidArgumentError: ops with an effect compute a dynamic size.
    """
    return [
        shaped_as(x, new, tracer, inputs, initial)
        if isinstance(x, TensorArray) and x.is_unshaped and isinstance(new, TensorArray)
        else x
        for x, new in zip(before, after, strict=False)  # the caller checks the structure
    ]


def shaped_as(
    array: TensorArray,
    written: TensorArray,
    tracer: Tracer,
    inputs: Sequence[Value] = (),
    initial: Callable[[], Sequence[Any]] = tuple,
) -> TensorArray:
    """``array``, to which nothing was written, with the element shape of ``written``.

    ``tracer`` has recorded the write, in a branch or an iteration. Dynamic sizes are computed anew by the
    current engine, from the values ``initial()`` of ``inputs``.

    Raises:
        InvalidArgumentError: ops with an effect compute a dynamic size.
    """
    element = written.element_shape
    if element is None or element.is_static:
        return array if element is None else array.shaped(element)
    with tracing(tracer):
        sizes = tracer.lift(written.element_sizes())._value
    reads = {v: c.source for v, c in tracer.builder.captures}
    nodes, sources = ancestors([sizes], [*inputs, *reads])
    if sources or any(node.effect is not None for node in nodes):
        raise InvalidArgumentError(
            f"The elements of a TensorArray have shape {element}, and their sizes depend on ops with effects "
            f"or on data that the loop reads; write an element before.{here()}"
        )
    order = tuple([node for node in tracer.builder.nodes if node in nodes])
    graph = Graph(tracer.name, (*inputs, *reads), order, (sizes,))
    return array.shaped(element, *replay(graph, [*initial(), *operands(list(reads.values()))]))
