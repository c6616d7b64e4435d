"""A loop as a loop over segments of its turns, whose gradient keeps what each segment begins with, no more.

The turns of a segment are run again when the way back comes to it: two more runs of the loop, for memory that
grows with the square root of the number of turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.memory import limit_loops, loop_budget
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.function.control.bodies import traced
from dualflow.graph.control import loop_attrs
from dualflow.ops.arrangement import reshape
from dualflow.ops.joining import concat
from dualflow.ops.record import Op

Tensors = list[Any]


@entry
def set_loop_memory(nbytes: int | None) -> None:
    """Let the gradient of a loop keep at most about so many bytes of its turns; None for the default.

    Where a loop would keep more, its turns are run again in segments instead. That can be told before the
    loop runs if the number of turns is known, or bounded by ``maximum_iterations``; with a limit set here,
    also for any other loop. The default is a quarter of the memory that was available when first asked for.
    Functions that have been traced stay as they are.

    Raises:
        InvalidArgumentError: ``nbytes`` is not positive.

    >>> import dualflow as df
    >>> df.config.set_loop_memory(64 << 20)
    >>> df.config.loop_memory() >> 20
    64
    >>> df.config.set_loop_memory(None)
    """
    if nbytes is not None and nbytes <= 0:
        raise InvalidArgumentError(f"The memory of a loop is a positive number of bytes, not {nbytes}.")
    limit_loops(None if nbytes is None else int(nbytes))


def loop_memory() -> int:
    """How many bytes the gradient of a loop may keep; see :func:`set_loop_memory`."""
    return loop_budget()[0]


def run(op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any], turns: int) -> Tensors:
    """The results of the loop ``op`` of ``attrs``: by segments of ``turns`` turns, then what is left."""
    length, carried, mapped = attrs["length"], attrs["carried"], attrs["mapped"]
    carry, given, rest = inputs[:carried], inputs[carried : carried + mapped], inputs[carried + mapped :]
    whole, left = divmod(length, turns) if length is not None else (None, 0)
    many = [_segments(x, whole or 0, turns, left, attrs["reverse"]) for x in given]
    body = _segment(op, inputs, attrs, turns)
    outer = _attrs(attrs, body, whole, again=True)
    found = list(dispatch.current().run(op, (*carry, *many, *rest), outer))
    stacks = [reshape(y, (whole * turns, *y.shape[2:])) for y in found[carried:]] if whole is not None else []
    if not left:
        return [*found[:carried], *stacks]
    few = [x[:left] if attrs["reverse"] else x[-left:] for x in given]
    last = dispatch.current().run(op, (*found[:carried], *few, *rest), _attrs(attrs, attrs["body"], left))
    pairs = zip(stacks, last[carried:], strict=True)
    joined = [concat([b, a] if attrs["reverse"] else [a, b], 0) for a, b in pairs]
    return [*last[:carried], *joined]


def _segments(x: Any, whole: int, turns: int, left: int, reverse: bool) -> Any:
    """The rows of ``x`` that whole segments take, one row for each."""
    rows = x[left:] if reverse else x[: whole * turns]
    return reshape(rows, (whole, turns, *x.shape[1:]))


def _segment(op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any], turns: int) -> Any:
    """The body of the outer loop: so many turns."""
    start, end = attrs["carried"], attrs["carried"] + attrs["mapped"]
    inner = _attrs(attrs, attrs["body"], turns)
    specs = [TensorSpec.of(x.shape, x.dtype) for x in inputs]
    for i in range(start, end):
        specs[i] = TensorSpec.of(Shape((turns, *inputs[i].shape[1:])), inputs[i].dtype)
    return traced(lambda *symbols: list(dispatch.current().run(op, symbols, inner)), specs)


def _attrs(attrs: Mapping[str, Any], body: Any, length: int | None, again: bool = False) -> dict[str, Any]:
    condition, reverse = attrs["condition"], attrs["reverse"]
    carried, mapped = attrs["carried"], attrs["mapped"]
    return loop_attrs(body, carried, mapped, length, condition=condition, reverse=reverse, again=again)
