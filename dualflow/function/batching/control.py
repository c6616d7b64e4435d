"""Conditionals and loops for all rows at once.

Where a condition is the same for all rows, a spec stays a spec. Where it differs, each branch runs for
all rows if one row takes it, and each row keeps the results of its own branch; a loop iterations until the
last row is done, and a row that is done keeps what it has. Rows that a branch or iteration is not for are
computed with the values of a row that it is for: they raise no errors, and their gradients are no infinities
times zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.function.batching.batched_value import BatchedValue, UnbatchableError, moved_axis
from dualflow.function.batching.dependence import by_row, carried_by_row
from dualflow.function.control.control_flow import cond, switch_case
from dualflow.function.control.row_loop import repeat, repeat_while
from dualflow.graph.control_spec import CondSpec, LoopSpec
from dualflow.graph.ir import Graph
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.comparison import equal, logical_and, logical_not
from dualflow.ops.creation import zeros
from dualflow.ops.joining import stack
from dualflow.ops.reduction import argmax, reduce_any
from dualflow.ops.selection import where
from dualflow.ops.taking import gather

Run = Callable[[Graph, Sequence[BatchedValue]], list[BatchedValue]]
"""The outputs of a graph for all rows."""


def choose(
    spec: CondSpec, index: BatchedValue, operands: Sequence[BatchedValue], count: int, run: Run
) -> list[Any]:
    """The outputs of a spec for each of ``count`` rows, stacked."""
    if index.by_row:
        return _choose_by_row(spec, index.tensor, operands, count, run)

    def taking(branch: Graph) -> Callable[[], list[Any]]:
        return lambda: [y.stacked(count) for y in run(branch, operands)]

    branches = [taking(branch) for branch in spec.branches]
    found: list[Any] = branches[0]() if len(branches) == 1 else switch_case(index.tensor, branches)
    return found


def _choose_by_row(
    spec: CondSpec, index: Any, operands: Sequence[BatchedValue], count: int, run: Run
) -> list[Any]:
    *first, last = spec.branches
    masks = [equal(index, i) for i in range(len(first))]
    rest = logical_not(reduce_any(stack(masks), 0)) if masks else equal(index, index)
    found = _where_taken(last, rest, operands, count, run)
    for mask, branch in zip(masks, first, strict=True):
        taken = _where_taken(branch, mask, operands, count, run)
        found = [_select(mask, new, old) for new, old in zip(taken, found, strict=True)]
    return found


def _where_taken(
    graph: Graph, mask: Any, operands: Sequence[BatchedValue], count: int, run: Run
) -> list[Any]:
    """The outputs for the rows of ``mask``; for others anything."""

    def taken() -> list[Any]:
        given = [BatchedValue(_with_valid(mask, x.tensor), True) if x.by_row else x for x in operands]
        return [y.stacked(count) for y in run(graph, given)]

    shapes = [v.spec.shape for v in graph.outputs]
    if not all(shape.is_static for shape in shapes):
        raise UnbatchableError(
            "the results of a branch that rows decide have sizes that only the values tell; take one row "
            "after another with df.map_fn, or mask elements in place of leaving them out."
        )
    found: list[Any] = cond(
        reduce_any(mask), taken, lambda: [zeros((count, *v.spec.shape), v.spec.dtype) for v in graph.outputs]
    )
    return found


def _with_valid(mask: Any, tensor: Any) -> Any:
    """``tensor`` with the values of a row of ``mask`` in the rows that are not of ``mask``."""
    return _select(mask, tensor, gather(tensor, argmax(mask, 0), axis=0))


def _select(mask: Any, new: Any, old: Any) -> Any:
    missing = len(new.shape) - 1
    return where(expand_dims(mask, tuple(range(1, 1 + missing))) if missing else mask, new, old)


def iteration(loop: LoopSpec, inputs: Sequence[BatchedValue], count: int, run: Run) -> list[BatchedValue]:
    """The outputs of a loop for all rows."""
    if loop.condition is not None:
        return _iteration_while(loop, loop.condition, inputs, count, run)
    carry, stacks, rest = loop.parts(inputs)
    active = next((x.active for x in stacks if x.active is not None), None)
    others = [x.by_row for x in (*stacks, *rest)]
    differ = carried_by_row(loop.body, [x.by_row or active is not None for x in carry], others)
    rows_differ = by_row(loop.body, [*differ, *others])[loop.carried :]

    def step(state: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        given = [BatchedValue(x, kind) for x, kind in zip(state, differ, strict=True)]
        read = [BatchedValue(x, stack.by_row) for x, stack in zip(row, stacks, strict=False)]
        found = run(loop.body, [*given, *read, *rest])
        after = _as_kinds(found[: loop.carried], differ, count)
        if active is not None:
            after = [_select(row[-1], new, old) for new, old in zip(after, state, strict=True)]
        return after, _as_kinds(found[loop.carried :], rows_differ, count)

    start = _as_kinds(carry, differ, count)
    xs = [x.iteration_by_iteration for x in stacks] + ([] if active is None else [active])
    length = loop.length if loop.length is not None else xs[0].shape[0]
    end, found = repeat(step, start, xs, length, loop.reverse)
    of_iterations = any(x.of_iterations for x in stacks)
    kept = [
        BatchedValue(moved_axis(y, 1, 0) if kind and not of_iterations else y, kind, of_iterations, active)
        for y, kind in zip(found, rows_differ, strict=True)
    ]
    return [*map(BatchedValue, end, differ), *kept]


def _iteration_while(
    loop: LoopSpec, condition: Graph, inputs: Sequence[BatchedValue], count: int, run: Run
) -> list[BatchedValue]:
    carry, _, rest = loop.parts(inputs)
    others = [x.by_row for x in rest]
    differ = carried_by_row(loop.body, [x.by_row for x in carry], others)
    (by_condition,) = by_row(condition, [*differ, *others])
    if by_condition:
        return _iteration_masked(loop, condition, carry, rest, count, run)
    rows_differ = by_row(loop.body, [*differ, *others])[loop.carried :]

    def mapped(state: Sequence[Any]) -> list[BatchedValue]:
        return [*map(BatchedValue, state, differ), *rest]

    def step(state: list[Any]) -> tuple[list[Any], list[Any]]:
        found = run(loop.body, mapped(state))
        after = _as_kinds(found[: loop.carried], differ, count)
        return after, _as_kinds(found[loop.carried :], rows_differ, count)

    end, found = repeat_while(
        lambda *state: run(condition, mapped(state))[0].tensor,
        step,
        _as_kinds(carry, differ, count),
        loop.length,
    )
    return [
        *map(BatchedValue, end, differ),
        *[BatchedValue(y, k, True) for y, k in zip(found, rows_differ, strict=True)],
    ]


def _iteration_masked(
    loop: LoopSpec,
    condition: Graph,
    carry: Sequence[BatchedValue],
    rest: Sequence[BatchedValue],
    count: int,
    run: Run,
) -> list[BatchedValue]:
    """Rows that are done keep what they have, until all are."""

    def goes_on(state: Sequence[Any]) -> Any:
        return run(condition, [*_rows(state), *rest])[0].stacked(count)

    def step(before: list[Any]) -> tuple[list[Any], list[Any]]:
        active, *state = before
        given = [
            BatchedValue(_with_valid(active, x.tensor), True) if x.by_row else x
            for x in (*_rows(state), *rest)
        ]
        found = [y.stacked(count) for y in run(loop.body, given)]
        after = [_select(active, new, old) for new, old in zip(found, state, strict=False)]
        kept = [*found[loop.carried :], active] if loop.stacked else []
        return [logical_and(active, goes_on(after)), *after], kept

    start = [x.stacked(count) for x in carry]
    (_, *end), kept = repeat_while(
        lambda active, *_: reduce_any(active), step, [goes_on(start), *start], loop.length
    )
    return [*_rows(end), *[BatchedValue(y, True, True, kept[-1]) for y in kept[:-1]]]


def _rows(state: Sequence[Any]) -> list[BatchedValue]:
    return [BatchedValue(x, True) for x in state]


def _as_kinds(values: Sequence[BatchedValue], kinds: Sequence[bool], count: int) -> list[Any]:
    return [x.stacked(count) if kind else x.tensor for x, kind in zip(values, kinds, strict=True)]
