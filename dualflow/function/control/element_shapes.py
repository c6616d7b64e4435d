"""The shape of the elements of a TensorArray that is first written to in a branch or the body of a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tree import flatten, unflatten
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
        if isinstance(x, TensorArray) and isinstance(new, TensorArray) and takes_shape(x, new)
        else x
        for x, new in zip(before, after, strict=False)  # the caller checks the structure
    ]


def with_equal_arrays(results: Sequence[Any], tracers: Sequence[Tracer]) -> list[Any]:
    """The results of branches, whose TensorArrays have the element shape that a branch gives them.

    ``tracers`` have recorded the branches.
    """
    flat = [flatten(x, is_leaf=lambda leaf: isinstance(leaf, TensorArray)) for x in results]
    has_arrays = any(isinstance(leaf, TensorArray) for leaf in flat[0][0])
    if not has_arrays or any(structure != flat[0][1] for _, structure in flat):
        return list(results)
    columns = [_equal_arrays(column, tracers) for column in zip(*[x for x, _ in flat], strict=True)]
    return [unflatten(flat[0][1], leaves) for leaves in zip(*columns, strict=True)]


def _equal_arrays(arrays: Sequence[Any], tracers: Sequence[Tracer]) -> Sequence[Any]:
    if not all(isinstance(x, TensorArray) for x in arrays):
        return arrays
    written = [i for i, x in enumerate(arrays) if not x.is_unshaped]
    if not written:
        first = arrays[0]
        return [first.unwritten_copy()] * len(arrays) if all(map(first.is_unwritten_as, arrays)) else arrays
    source = next((i for i in written if arrays[i].is_unequal), written[0])
    model = arrays[source]
    return [shaped_as(x, model, tracers[source]) if takes_shape(x, model) else x for x in arrays]


def takes_shape(array: TensorArray, written: TensorArray) -> bool:
    """Whether ``array``, before a write, needs the element shape, or the unequal elements, of ``written``."""
    return array.is_unshaped or (written.is_unequal and not array.is_unequal)


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
    if written.is_unequal:
        return array.as_unequal(element)
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
