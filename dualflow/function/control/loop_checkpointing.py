"""Checkpointing: a loop over segments of iterations, whose gradient stores the start of each segment only.

The backward pass runs the iterations of a segment again. This costs two more runs of the loop, and the memory
grows with the square root of the number of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.control.trace_bodies import traced
from dualflow.graph.control_ops import run_loop
from dualflow.graph.control_spec import LoopSpec
from dualflow.graph.ir import Graph
from dualflow.ops.arrangement import reshape
from dualflow.ops.joining import concat

Tensors = list[Any]


def run_in_segments(loop: LoopSpec, inputs: Sequence[Any], iterations: int) -> Tensors:
    """Run ``loop`` in segments of ``iterations`` iterations, then the remaining ones; returns its results."""
    length, reverse = loop.length, loop.reverse
    carry, scanned, invariants = loop.split_inputs(inputs)
    segments, remainder = divmod(length, iterations) if length is not None else (None, 0)
    segmented = [_segments(x, segments or 0, iterations, remainder, reverse) for x in scanned]
    outer = loop.as_new_loop(body=_segment(loop, inputs, iterations), length=segments, recompute=True)
    carry, segment_stacks = loop.split_results(run_loop(outer, [*carry, *segmented, *invariants]))
    stacks = (
        [reshape(y, (segments * iterations, *y.shape[2:])) for y in segment_stacks]
        if segments is not None
        else []
    )
    if not remainder:
        return [*carry, *stacks]
    remaining = [x[:remainder] if reverse else x[-remainder:] for x in scanned]
    last = run_loop(loop.as_new_loop(length=remainder), [*carry, *remaining, *invariants])
    carry, last_rows = loop.split_results(last)
    joined = [concat([b, a] if reverse else [a, b], 0) for a, b in zip(stacks, last_rows, strict=True)]
    return [*carry, *joined]


def _segments(x: Any, segments: int, iterations: int, remainder: int, reverse: bool) -> Any:
    """The rows of ``x`` that the segments scan, with a new first axis of the segments."""
    rows = x[remainder:] if reverse else x[: segments * iterations]
    return reshape(rows, (segments, iterations, *x.shape[1:]))


def _segment(loop: LoopSpec, inputs: Sequence[Any], iterations: int) -> Graph:
    """The body of the outer loop: a loop of ``iterations`` iterations."""
    inner = loop.as_new_loop(length=iterations)
    specs = [TensorSpec.of(x.shape, x.dtype) for x in inputs]
    for i in range(loop.carried, loop.end):
        specs[i] = TensorSpec.of(Shape((iterations, *inputs[i].shape[1:])), inputs[i].dtype)
    return traced(lambda *tensors: run_loop(inner, tensors), specs)
