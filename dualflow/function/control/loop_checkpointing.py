"""A loop as a loop over segments of its iterations, whose gradient keeps what each segment begins with, no
more.


The iterations of a segment are run again when the way back comes to it: two more runs of the loop, for memory
that grows with the square root of the number of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.function.control.bodies import traced
from dualflow.graph.control import run_loop
from dualflow.graph.control_spec import LoopSpec
from dualflow.graph.ir import Graph
from dualflow.ops.arrangement import reshape
from dualflow.ops.joining import concat

Tensors = list[Any]


def run(loop: LoopSpec, inputs: Sequence[Any], iterations: int) -> Tensors:
    """The results of ``loop``: by segments of ``iterations`` iterations, then what is left."""
    length, carried, reverse = loop.length, loop.carried, loop.reverse
    carry, given, rest = loop.parts(inputs)
    whole, left = divmod(length, iterations) if length is not None else (None, 0)
    many = [_segments(x, whole or 0, iterations, left, reverse) for x in given]
    outer = loop.another(body=_segment(loop, inputs, iterations), length=whole, recompute=True)
    found = run_loop(outer, [*carry, *many, *rest])
    stacks = (
        [reshape(y, (whole * iterations, *y.shape[2:])) for y in found[carried:]] if whole is not None else []
    )
    if not left:
        return [*found[:carried], *stacks]
    few = [x[:left] if reverse else x[-left:] for x in given]
    last = run_loop(loop.another(length=left), [*found[:carried], *few, *rest])
    pairs = zip(stacks, last[carried:], strict=True)
    joined = [concat([b, a] if reverse else [a, b], 0) for a, b in pairs]
    return [*last[:carried], *joined]


def _segments(x: Any, whole: int, iterations: int, left: int, reverse: bool) -> Any:
    """The rows of ``x`` that whole segments take, one row for each."""
    rows = x[left:] if reverse else x[: whole * iterations]
    return reshape(rows, (whole, iterations, *x.shape[1:]))


def _segment(loop: LoopSpec, inputs: Sequence[Any], iterations: int) -> Graph:
    """The body of the outer loop: so many iterations."""
    inner = loop.another(length=iterations)
    specs = [TensorSpec.of(x.shape, x.dtype) for x in inputs]
    for i in range(loop.carried, loop.end):
        specs[i] = TensorSpec.of(Shape((iterations, *inputs[i].shape[1:])), inputs[i].dtype)
    return traced(lambda *symbols: run_loop(inner, symbols), specs)
