"""A traced function for all rows at once, through the current engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.function.batching.batched_value import BatchedValue, UnbatchableError
from dualflow.function.batching.control import choose, iteration
from dualflow.function.batching.rules import over_rows
from dualflow.graph import origin
from dualflow.graph.ir import Graph, Node, Value
from dualflow.graph.respecialise_bodies import attrs_for
from dualflow.ops.measuring import SHAPE, sizes_of
from dualflow.ops.op_kinds import Cond, Literal, Loop
from dualflow.ops.record import Effect

Note = Callable[[Any, Any], None]


def evaluate_batched(
    graph: Graph, inputs: Sequence[BatchedValue], count: int, note: Note | None = None
) -> list[BatchedValue]:
    """The results of ``graph`` (outputs, then updates) for each of ``count`` rows, or for all together.

    ``note`` is told of each assignment outside of bodies: the variable, and the tensor that it holds from
    there on.

    Raises:
        UnbatchableError: what can't be done for all rows at once, with the user's line.
    """
    known: dict[Value, BatchedValue] = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        given = [known[v] for v in node.inputs]
        with origin.forced(node.origin):
            try:
                found = _outputs(node, given, count, note)
            except UnbatchableError as error:
                if node.origin is None or str(node.origin) in str(error):
                    raise
                raise UnbatchableError(f"{error}\n  {node.origin}") from None
        known.update(zip(node.outputs, found, strict=True))
    return [known[v] for v in graph.results]


def _outputs(node: Node, given: Sequence[BatchedValue], count: int, note: Note | None) -> list[BatchedValue]:
    if isinstance(node.op.kind, Literal):
        return [BatchedValue(dispatch.current().constant(node.attrs["value"]), False)]
    if node.effect is Effect.ASSIGN:
        if note is not None:
            note(node.attrs["variable"], shared(given[0], node.attrs["variable"]))
        return []
    attrs = dict(attrs_for(node, [x.row_spec for x in given]))
    if not any(x.by_row for x in given) and node.effect is not Effect.RANDOM:
        found = dispatch.current().apply(node.op, tuple([x.tensor for x in given]), attrs)
        return [BatchedValue(y, False) for y in (found if isinstance(found, tuple) else (found,))]

    if node.op is SHAPE:  # all rows of a tensor have the same sizes
        sizes: Any = sizes_of(given[0].rows_first.tensor, attrs["dtype"])
        return [BatchedValue(sizes[1:], False)]

    def run(body: Graph, inputs: Sequence[BatchedValue]) -> list[BatchedValue]:
        return evaluate_batched(body, inputs, count)

    if isinstance(node.op.kind, Loop):
        return iteration(attrs["loop"], given, count, run)
    active = next((x.active for x in given if x.active is not None), None)
    given = [x.rows_first for x in given]
    if isinstance(node.op.kind, Cond):
        index, *operands = given
        stacks = choose(attrs["cond"], index, operands, count, run)
    else:
        stacks = over_rows(node.op, given, attrs, count)
    return [BatchedValue(y, True, active=active) for y in stacks]


def shared(value: BatchedValue, variable: Any) -> Any:
    """The tensor that all rows assign.

    Raises:
        UnbatchableError: rows assign different ones.
    """
    if value.by_row:
        raise UnbatchableError(
            f"{variable!r} is assigned a value that differs from row to row, but it holds one for all. "
            "Return the value, and assign what it is reduced to outside."
        )
    return value.tensor
