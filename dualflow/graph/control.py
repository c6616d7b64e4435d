"""Control flow in a graph: a choice between graphs, and a graph that runs while another holds.

Bodies are graphs in ``attrs``. They capture nothing: whatever they read is among the node's inputs, so that a
pass sees all that flows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dualflow.core.errors import InvalidArgumentError, ResourceExhaustedError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import Graph
from dualflow.ops.forms import Choice, Loop
from dualflow.ops.record import Effect, Op

Array = np.ndarray[Any, Any]
_numbers = itertools.count()


def _infer_choice(
    index: TensorSpec, *operands: TensorSpec, branches: tuple[Graph, ...]
) -> tuple[TensorSpec, ...]:
    if index.shape or not index.dtype.is_integer:
        raise InvalidArgumentError(f"a branch is chosen by an integer scalar, not {index}.")
    return tuple(v.spec for v in branches[0].outputs)


def _run_choice(index: Array, *operands: Array, branches: tuple[Graph, ...]) -> tuple[Array, ...]:
    at = int(index)
    return tuple(evaluate(branches[at if 0 <= at < len(branches) else -1], operands))


CHOICE: Final = Op(
    name="choice",
    doc="The results of one of several graphs, by an index; one that is out of range takes the last.",
    infer=_infer_choice,
    kernel=_run_choice,
    form=Choice(),
    outputs=None,
)


def _infer_loop(
    *specs: TensorSpec,
    body: Graph,
    condition: Graph | None,
    carried: int,
    mapped: int,
    length: int | None,
    reverse: bool,
    lineage: tuple[int, ...],
    again: bool,
) -> tuple[TensorSpec, ...]:
    turns = length if condition is None else None
    rows = [v.spec for v in body.outputs[carried:]]
    return (*specs[:carried], *[TensorSpec.of(Shape((turns, *r.shape)), r.dtype) for r in rows])


def _run_loop(
    *arrays: Array,
    body: Graph,
    condition: Graph | None,
    carried: int,
    mapped: int,
    length: int | None,
    reverse: bool,
    lineage: tuple[int, ...],
    again: bool,
) -> tuple[Array, ...]:
    carry: Sequence[Array] = arrays[:carried]
    given, rest = arrays[carried : carried + mapped], arrays[carried + mapped :]
    rows = [v.spec for v in body.outputs[carried:]]
    if condition is None:
        count = length if length is not None else len(given[0])
        stacks = [np.empty((count, *r.shape), r.dtype.dtype) for r in rows]
        for t in reversed(range(count)) if reverse else range(count):
            found = evaluate(body, [*carry, *[x[t, ...] for x in given], *rest])
            carry = found[:carried]
            for stack, row in zip(stacks, found[carried:], strict=True):
                stack[t] = row
        return (*carry, *stacks)
    kept: list[Sequence[Array]] = []
    turns = 0
    try:
        while (length is None or turns < length) and bool(evaluate(condition, [*carry, *rest])[0]):
            found = evaluate(body, [*carry, *rest])
            carry = found[:carried]
            kept.append(found[carried:])
            turns += 1
        return (*carry, *[_stacked(spec, [k[i] for k in kept]) for i, spec in enumerate(rows)])
    except MemoryError:
        each = sum(a.nbytes for a in kept[0]) if kept else 0
        kept.clear()
        raise ResourceExhaustedError(memory_message(each)) from None


def _stacked(spec: TensorSpec, rows: Sequence[Array]) -> Array:
    return np.stack(rows) if rows else np.empty((0, *spec.shape), spec.dtype.dtype)


def memory_message(each: int) -> str:
    """What is said when the rows that a loop keeps don't fit into memory."""
    return (
        f"memory is full: a loop keeps {each} bytes of every turn for its gradient. Bound the loop with "
        "maximum_iterations, or carry less."
    )


LOOP: Final = Op(
    name="loop",
    doc="A body for each row, or while a condition holds: what it carries in the end, and its rows, stacked.",
    infer=_infer_loop,
    kernel=_run_loop,
    form=Loop(),
    outputs=None,
)
"""Its attributes:

- ``body``: takes what is carried, a row of each mapped input, and the rest; answers what is carried on, and
  rows.
- ``condition``: takes what is carried and the rest, and answers whether there is another turn. None where the
  number of turns is ``length``, or for ``length`` None that of the rows of the mapped inputs. With a
  condition nothing is mapped, and ``length`` is the largest number of turns, None for any.
- ``carried``, ``mapped``: how many of the inputs are.
- ``reverse``: from the last row to the first; what is stacked stays beside its row.
- ``lineage``: numbers that tell loops apart. One whose lineage begins with another's, over the same inputs,
  has the other's results first among its own.
- ``again``: for its gradient, each turn is computed again from what it begins with, and nothing else is kept.

Rows of a loop with a condition make a stack whose first size only the run knows. Loops alone read such.
"""


def loop_attrs(
    body: Graph,
    carried: int,
    mapped: int,
    length: int | None,
    *,
    condition: Graph | None = None,
    reverse: bool = False,
    extends: tuple[int, ...] = (),
    again: bool = False,
) -> dict[str, Any]:
    """The attributes of a loop, one that begins as that of lineage ``extends`` does; see :data:`LOOP`."""
    return {
        "body": body,
        "condition": condition,
        "carried": carried,
        "mapped": mapped,
        "length": length,
        "reverse": reverse,
        "lineage": (*extends, next(_numbers)),
        "again": again,
    }


def with_effects(op: Op, bodies: Sequence[Graph]) -> Op:
    """``op``, marked as having effects if a node of its bodies has."""
    found = {n.op.effect for body in bodies for n in body.nodes} - {Effect.ASSIGN}
    effects = [effect for effect in found if effect is not None]
    return op if not effects else _marked(op, Effect.PYTHON if Effect.PYTHON in effects else effects[0])


def _marked(op: Op, effect: Effect) -> Op:
    key = op.name, effect
    if key not in _MARKED:
        _MARKED[key] = replace(op, effect=effect)
    return _MARKED[key]


_MARKED: Final[dict[tuple[str, Effect], Op]] = {}
