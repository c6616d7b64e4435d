"""Batching rules of conditionals and loops.

With a shared condition they stay one conditional or loop. With a batched condition, each branch that some
element takes runs for the whole batch, and the results are selected; a loop runs until no element continues,
and the carried values of finished elements stay unchanged. In a branch or iteration, elements that do not
take it are replaced by one that does: so they raise no errors, and no gradient is infinity times zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.batching.batched_value import BatchedValue, UnbatchableError, moved_axis
from dualflow.function.batching.dependence import batched_carries, batched_outputs
from dualflow.function.control.control_flow import cond, switch_case
from dualflow.function.control.scan_loop import scan_loop, scan_while
from dualflow.graph.control_spec import CondSpec, LoopSpec
from dualflow.graph.ir import Graph
from dualflow.ops.arrangement import expand_dims
from dualflow.ops.comparison import equal, logical_and, logical_not
from dualflow.ops.creation import zeros
from dualflow.ops.joining import stack
from dualflow.ops.reduction import argmax, reduce_any
from dualflow.ops.selection import where
from dualflow.ops.taking import gather

EvaluateBody = Callable[[Graph, Sequence[BatchedValue]], list[BatchedValue]]
"""Evaluates a graph for the whole batch."""


def batched_cond(
    spec: CondSpec, index: BatchedValue, operands: Sequence[BatchedValue], count: int, evaluate: EvaluateBody
) -> list[Any]:
    """The outputs of a conditional, each with a batch axis of ``count`` elements."""
    if index.is_batched:
        return _select_branches(spec, index.tensor, operands, count, evaluate)

    def function(branch: Graph) -> Callable[[], list[Any]]:
        return lambda: [y.with_batch_axis(count) for y in evaluate(branch, operands)]

    branches = [function(branch) for branch in spec.branches]
    outputs: list[Any] = branches[0]() if len(branches) == 1 else switch_case(index.tensor, branches)
    return outputs


def _select_branches(
    spec: CondSpec, index: Any, operands: Sequence[BatchedValue], count: int, evaluate: EvaluateBody
) -> list[Any]:
    *first, last = spec.branches
    masks = [equal(index, i) for i in range(len(first))]
    last_mask = logical_not(reduce_any(stack(masks), 0)) if masks else equal(index, index)
    outputs = _masked_branch(last, last_mask, operands, count, evaluate)
    for mask, branch in zip(masks, first, strict=True):
        taken = _masked_branch(branch, mask, operands, count, evaluate)
        outputs = [_select(mask, new, old) for new, old in zip(taken, outputs, strict=True)]
    return outputs


def _masked_branch(
    graph: Graph, mask: Any, operands: Sequence[BatchedValue], count: int, evaluate: EvaluateBody
) -> list[Any]:
    """The outputs of a branch; those of elements outside of ``mask`` are unspecified."""

    def taken() -> list[Any]:
        valid = [
            BatchedValue(_with_valid(mask, x.tensor), is_batched=True) if x.is_batched else x
            for x in operands
        ]
        return [y.with_batch_axis(count) for y in evaluate(graph, valid)]

    shapes = [v.spec.shape for v in graph.outputs]
    if not all(shape.is_static for shape in shapes):
        raise UnbatchableError(
            "the condition is batched, and the sizes of the results of a branch depend on values; use "
            "df.map_fn, or mask entries instead of removing them."
        )
    outputs: list[Any] = cond(
        reduce_any(mask), taken, lambda: [zeros((count, *v.spec.shape), v.spec.dtype) for v in graph.outputs]
    )
    return outputs


def _with_valid(mask: Any, tensor: Any) -> Any:
    """``tensor`` with the batch elements outside of ``mask`` replaced by the first one inside it."""
    if mask.shape[0] == 0:
        return tensor
    return _select(mask, tensor, gather(tensor, argmax(mask, 0), axis=0))


def _select(mask: Any, new: Any, old: Any) -> Any:
    missing = len(new.shape) - 1
    return where(expand_dims(mask, tuple(range(1, 1 + missing))) if missing else mask, new, old)


def batched_loop(
    loop: LoopSpec, inputs: Sequence[BatchedValue], count: int, evaluate: EvaluateBody
) -> list[BatchedValue]:
    """The outputs of a loop for the whole batch."""
    if loop.condition is not None:
        return _batched_while(loop, loop.condition, inputs, count, evaluate)
    carry, scanned, invariants = loop.split_inputs(inputs)
    active = next((x.active for x in scanned if x.active is not None), None)
    others = [x.is_batched for x in (*scanned, *invariants)]
    carries_batched = batched_carries(loop.body, [x.is_batched or active is not None for x in carry], others)
    stacks_batched = loop.split_results(batched_outputs(loop.body, [*carries_batched, *others])).stacked

    def step(state: list[Any], xs: list[Any]) -> tuple[list[Any], list[Any]]:
        carried = [BatchedValue(x, batched) for x, batched in zip(state, carries_batched, strict=True)]
        slices = [BatchedValue(x, whole.is_batched) for x, whole in zip(xs, scanned, strict=False)]
        results = loop.split_results(evaluate(loop.body, [*carried, *slices, *invariants]))
        new_state = _unwrapped(results.carried, carries_batched, count)
        if active is not None:
            new_state = [_select(xs[-1], new, old) for new, old in zip(new_state, state, strict=True)]
        return new_state, _unwrapped(results.stacked, stacks_batched, count)

    start = _unwrapped(carry, carries_batched, count)
    scan_inputs = [x.scan_input for x in scanned] + ([] if active is None else [active])
    length = loop.length if loop.length is not None else scan_inputs[0].shape[0]
    final, stacks = scan_loop(step, start, scan_inputs, length, reverse=loop.reverse)
    is_loop_stack = any(x.is_loop_stack for x in scanned)
    stacked = [
        BatchedValue(
            moved_axis(y, 1, 0) if batched and not is_loop_stack else y, batched, is_loop_stack, active
        )
        for y, batched in zip(stacks, stacks_batched, strict=True)
    ]
    return [*map(BatchedValue, final, carries_batched), *stacked]


def _batched_while(
    loop: LoopSpec, condition: Graph, inputs: Sequence[BatchedValue], count: int, evaluate: EvaluateBody
) -> list[BatchedValue]:
    carry, _, invariants = loop.split_inputs(inputs)
    others = [x.is_batched for x in invariants]
    carries_batched = batched_carries(loop.body, [x.is_batched for x in carry], others)
    (condition_batched,) = batched_outputs(condition, [*carries_batched, *others])
    if condition_batched:
        return _masked_while(loop, condition, carry, invariants, count, evaluate)
    stacks_batched = loop.split_results(batched_outputs(loop.body, [*carries_batched, *others])).stacked

    def body_inputs(state: Sequence[Any]) -> list[BatchedValue]:
        return [*map(BatchedValue, state, carries_batched), *invariants]

    def step(state: list[Any]) -> tuple[list[Any], list[Any]]:
        results = loop.split_results(evaluate(loop.body, body_inputs(state)))
        new_state = _unwrapped(results.carried, carries_batched, count)
        return new_state, _unwrapped(results.stacked, stacks_batched, count)

    start = _unwrapped(carry, carries_batched, count)
    final, stacks = scan_while(
        lambda *state: evaluate(condition, body_inputs(state))[0].tensor,
        step,
        start,
        loop.length,
        [_carried_spec(v.spec, x) for v, x in zip(loop.body.inputs, start, strict=False)],
    )
    return [
        *map(BatchedValue, final, carries_batched),
        *[
            BatchedValue(y, batched, is_loop_stack=True)
            for y, batched in zip(stacks, stacks_batched, strict=True)
        ],
    ]


def _carried_spec(spec: TensorSpec, start: Any) -> TensorSpec:
    """The spec of a carried value with the batch axis of ``start``, if it has one.

    A size that is dynamic in ``spec``, that of the loop to be batched, may change from its size in ``start``.
    """
    sizes = list(start.shape)
    first = len(sizes) - len(spec.shape)
    sizes[first:] = [
        None if size is None else now for size, now in zip(spec.shape, sizes[first:], strict=True)
    ]
    return TensorSpec.of(Shape(sizes), spec.dtype)


def _masked_while(
    loop: LoopSpec,
    condition: Graph,
    carry: Sequence[BatchedValue],
    invariants: Sequence[BatchedValue],
    count: int,
    evaluate: EvaluateBody,
) -> list[BatchedValue]:
    """A while loop with a batched condition: an element whose condition is false keeps its carried values.

    Raises:
        UnbatchableError: an iteration changes the size of a carried value, so that it differs between
            elements.
    """

    def continues(state: Sequence[Any]) -> Any:
        return evaluate(condition, [*_batched(state), *invariants])[0].with_batch_axis(count)

    def step(active_and_state: list[Any]) -> tuple[list[Any], list[Any]]:
        active, *state = active_and_state
        valid = [
            BatchedValue(_with_valid(active, x.tensor), is_batched=True) if x.is_batched else x
            for x in (*_batched(state), *invariants)
        ]
        outputs = [y.with_batch_axis(count) for y in evaluate(loop.body, valid)]
        _check_sizes(state, outputs)
        new_state = [_select(active, new, old) for new, old in zip(outputs, state, strict=False)]
        stacked = [*loop.split_results(outputs).stacked, active] if loop.stacked else []
        return [logical_and(active, continues(new_state)), *new_state], stacked

    start = [x.with_batch_axis(count) for x in carry]
    (_, *final), stacks = scan_while(
        lambda active, *_: reduce_any(active), step, [continues(start), *start], loop.length
    )
    return [
        *_batched(final),
        *[BatchedValue(y, is_batched=True, is_loop_stack=True, active=stacks[-1]) for y in stacks[:-1]],
    ]


def _check_sizes(state: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Raise an error unless an iteration keeps the shapes of carried values."""
    for old, new in zip(state, outputs, strict=False):
        if old.shape != new.shape:
            raise UnbatchableError(
                f"the condition of a loop is batched, and an iteration changes a loop variable of shape "
                f"{old.shape[1:]} to {new.shape[1:]}, so that its size differs between batch elements; use "
                "df.map_fn, or write to a TensorArray of a fixed size."
            )


def _batched(tensors: Sequence[Any]) -> list[BatchedValue]:
    return [BatchedValue(x, is_batched=True) for x in tensors]


def _unwrapped(values: Sequence[BatchedValue], batched: Sequence[bool], count: int) -> list[Any]:
    """The tensors of ``values``, with a batch axis where ``batched`` is true."""
    return [x.with_batch_axis(count) if b else x.tensor for x, b in zip(values, batched, strict=True)]
