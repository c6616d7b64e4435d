"""Stacks of rows that differ in size, as one vector with the layout of each row.

A loop whose carried tensors grow stacks rows for its gradient that differ in size. Such a stack becomes a
vector of the elements of all rows. A first loop counts the elements. A second one, which carries the vector,
writes its rows to it in place, and stacks their offsets and sizes. The loop of the backward pass scans these,
and reads its rows from the vector.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.dtypes import int64
from dualflow.core.records import NamedTuple
from dualflow.core.spec import TensorSpec
from dualflow.function.calls.recorded_body import recorded_graph
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.control_spec import LoopSpec
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph, Node, Value
from dualflow.ops.arrangement import reshape
from dualflow.ops.conversion import cast
from dualflow.ops.joining import stack
from dualflow.ops.positions import range as range_op
from dualflow.ops.scattering import tensor_scatter_nd_update
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import sizes_of
from dualflow.sizes.symbolic_sizes import UndecidedSize

_SCALAR: Final = TensorSpec((), int64)


class RaggedStack(NamedTuple):
    """A stack of rows that differ in size.

    Attributes:
        elements: the elements of all rows, a vector.
        layouts: for each row, its offset among the elements, then its sizes: a stack of int64 vectors.
        spec: the spec of a row, in which a size that differs is None.
    """

    elements: Value
    layouts: Value
    spec: TensorSpec


def refuse_ragged(ragged_stacks: Mapping[Value, RaggedStack], values: Sequence[Value]) -> None:
    """Raise an error if one of ``values`` is a stack of rows that differ in size: only loops scan it."""
    if any(v in ragged_stacks for v in values):
        raise UndecidedSize("the rows that a loop stacks differ in size")


def counting(loop: LoopSpec, rows: Sequence[int]) -> LoopSpec:
    """``loop`` without stacks, whose last carried values are the numbers of elements of ``rows`` so far.

    ``rows`` are indices of the outputs of the body that differ in size between iterations.
    """
    carried, count = loop.carried, len(rows)

    def iteration(values: Sequence[Any]) -> list[Any]:
        counts, results = values[carried : carried + count], _evaluated(loop.body, carried, count, values)
        return [*results[:carried], *[n + _count(results[i]) for n, i in zip(counts, rows, strict=True)]]

    return _extended(loop, [_SCALAR] * count, iteration)


def writing(loop: LoopSpec, rows: Sequence[int]) -> LoopSpec:
    """``loop`` with two more carried values for each of ``rows``: the offset, and the vector of elements.

    The stacks of ``rows`` are replaced by stacks of their layouts, which are the last ones.
    """
    carried, more = loop.carried, 2 * len(rows)
    dtypes = [loop.body.outputs[i].spec.dtype for i in rows]

    def iteration(values: Sequence[Any]) -> list[Any]:
        results = _evaluated(loop.body, carried, more, values)
        added, layouts = [], []
        for k, i in enumerate(rows):
            offset, elements, row = values[carried + 2 * k], values[carried + 2 * k + 1], results[i]
            end = offset + _count(row)
            added += [
                end,
                tensor_scatter_nd_update(elements, range_op(offset, end)[:, None], reshape(row, [-1])),
            ]
            layouts.append(stack([offset, *_sizes(row)]))
        equal = [x for i, x in enumerate(results) if i >= carried and i not in rows]
        return [*results[:carried], *added, *equal, *layouts]

    specs = [spec for dtype in dtypes for spec in (_SCALAR, TensorSpec((None,), dtype))]
    return _extended(loop, specs, iteration)


def reading(loop: LoopSpec, stacks: Mapping[int, RaggedStack]) -> LoopSpec:
    """``loop`` that scans layouts instead of ``stacks``, given by the index of an input of the body.

    The vectors of elements are its last invariants.
    """

    def iteration(values: Sequence[Any]) -> list[Any]:
        own, vectors = list(values[: len(values) - len(stacks)]), values[len(values) - len(stacks) :]
        for (i, rows), elements in zip(stacks.items(), vectors, strict=True):
            offset, *sizes = [own[i][axis] for axis in range(1 + rows.spec.rank)]
            count = _product(sizes)
            own[i] = reshape(gather(elements, range_op(offset, offset + count)), sizes)
        return replay(loop.body, own)

    specs = [v.spec for v in loop.body.inputs]
    for i, rows in stacks.items():
        specs[i] = TensorSpec((1 + rows.spec.rank,), int64)
    specs += [rows.elements.spec for rows in stacks.values()]
    return loop.as_new_loop(body=_traced(loop.body.name, specs, iteration))


def rowwise(
    node: Node, inputs: Sequence[Value], stacks: Mapping[Value, TensorSpec], others: Sequence[Value]
) -> LoopSpec:
    """A loop that computes ``node`` for each row of ``stacks``, whose specs these are.

    Its inputs are the stacks, and ``others``, which are the same for all rows.
    """
    order = [*stacks, *others]

    def iteration(values: Sequence[Any]) -> list[Any]:
        of_input = dict(zip(order, values, strict=True))
        return [dispatch.current().apply(node.op, tuple([of_input[v] for v in inputs]), dict(node.attrs))]

    body = _traced(node.op.name, [*stacks.values(), *[v.spec for v in others]], iteration)
    return LoopSpec(body, carried=0, scanned=len(stacks), length=None)


def _evaluated(graph: Graph, carried: int, added: int, values: Sequence[Any]) -> list[Any]:
    """The outputs of ``graph`` for ``values`` without the ``added`` ones that follow the carried ones."""
    return replay(graph, [*values[:carried], *values[carried + added :]])


def _extended(
    loop: LoopSpec, added: Sequence[TensorSpec], iteration: Callable[[Sequence[Any]], list[Any]]
) -> LoopSpec:
    """``loop`` with more carried values after its own, and another body."""
    carried = loop.carried
    specs = [v.spec for v in loop.body.inputs]
    body = _traced(loop.body.name, [*specs[:carried], *added, *specs[carried:]], iteration)
    condition = loop.condition
    if condition is not None:
        inputs = [v.spec for v in condition.inputs]
        evaluated = functools.partial(_evaluated, condition, carried, len(added))
        condition = _traced(condition.name, [*inputs[:carried], *added, *inputs[carried:]], evaluated)
    return loop.as_new_loop(body=body, condition=condition, carried=carried + len(added))


def _traced(name: str, specs: Sequence[TensorSpec], function: Callable[[Sequence[Any]], list[Any]]) -> Graph:
    tracer = Tracer(name)
    with tracing(tracer):
        inputs = [tracer.builder.argument(TensorSpec.of(spec.shape, spec.dtype)) for spec in specs]
        outputs = [tracer.lift(x)._value for x in function([tracer.tensor_of(v) for v in inputs])]
    return recorded_graph(tracer.builder, name, inputs, outputs)


def _sizes(x: Any) -> list[Any]:
    sizes = sizes_of(x, int64)
    return [sizes[axis] for axis in range(len(x.shape))]


def _count(x: Any) -> Any:
    """The number of elements."""
    return _product(_sizes(x))


def _product(sizes: Sequence[Any]) -> Any:
    count: Any = cast(1, int64)
    for size in sizes:
        count = count * size
    return count
