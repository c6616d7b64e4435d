"""The shape of the elements of a TensorArray that is first written to in a branch or the body of a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.tree import flatten, unflatten
from dualflow.function.control.tensor_array import TensorArray
from dualflow.function.control.trace_bodies import operands
from dualflow.function.control.unequal_elements import common_shape
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
        if isinstance(x, TensorArray) and isinstance(new, TensorArray) and _takes_shape(x, new)
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
    columns = [_equal_values(column, tracers) for column in zip(*[x for x, _ in flat], strict=True)]
    return [unflatten(flat[0][1], leaves) for leaves in zip(*columns, strict=True)]


def _equal_values(values: Sequence[Any], tracers: Sequence[Tracer]) -> Sequence[Any]:
    if not all(isinstance(x, TensorArray) for x in values):
        return values
    first = values[0]
    if all(x.is_unshaped for x in values) and all(map(first.is_unwritten_as, values)):
        return [first.unwritten_copy()] * len(values)
    return equal_arrays(values, tracers)


def equal_arrays(arrays: Sequence[TensorArray], tracers: Sequence[Tracer]) -> Sequence[TensorArray]:
    """One TensorArray after each branch, all with the element shape of the first write, or all unequal.

    ``tracers`` have recorded the branches.

    Raises:
        InvalidArgumentError: elements that may be unequal have different ranks.
    """
    written = [i for i, x in enumerate(arrays) if not x.is_unshaped]
    if not written:
        return arrays
    shapes = [s for x in arrays if (s := x.shape_of_elements) is not None]
    differ = len(set(shapes)) > 1 and all(arrays[i].may_take_shape for i in written)
    if differ or any(x.is_unequal for x in arrays):
        shape = common_shape(shapes)
        return [_unequal_in(tracer, x, shape) for tracer, x in zip(tracers, arrays, strict=True)]
    model, tracer = arrays[written[0]], tracers[written[0]]
    return [shaped_as(x, model, tracer) if x.is_unshaped else x for x in arrays]


def _unequal_in(tracer: Tracer, array: TensorArray, shape: Shape) -> TensorArray:
    """``array`` as unequal elements, recorded in the branch that has written to it."""
    with tracing(tracer):
        return array.as_unequal(shape)


def _takes_shape(array: TensorArray, written: TensorArray) -> bool:
    """Whether ``array``, before a write, needs the element shape, or the unequal elements, of ``written``."""
    if array.is_unshaped:
        return True
    return written.is_unequal and written.shape_of_elements != array.shape_of_elements


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
    element = written.shape_of_elements
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
