"""Control flow in a graph: a choice between graphs, and a graph that runs while another holds.

Bodies are graphs in ``attrs``. They capture nothing: whatever they read is among the node's inputs, so that a
pass sees all that flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import Graph
from dualflow.ops.forms import Choice, Loop
from dualflow.ops.record import Effect, Op

Array = np.ndarray[Any, Any]


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
    *specs: TensorSpec, condition: Graph, body: Graph, limit: int | None
) -> tuple[TensorSpec, ...]:
    return specs[: len(body.outputs)]


def _run_loop(*arrays: Array, condition: Graph, body: Graph, limit: int | None) -> tuple[Array, ...]:
    count = len(body.outputs)
    carried: Sequence[Array] = arrays[:count]
    rest = arrays[count:]
    turns = 0
    while (limit is None or turns < limit) and bool(evaluate(condition, [*carried, *rest])[0]):
        carried = evaluate(body, [*carried, *rest])
        turns += 1
    return tuple(carried)


LOOP: Final = Op(
    name="loop",
    doc="What is carried from turn to turn of a body while a condition holds, at most ``limit`` turns.",
    infer=_infer_loop,
    kernel=_run_loop,
    form=Loop(),
    outputs=None,
)


def with_effects(op: Op, bodies: Sequence[Graph]) -> Op:
    """``op``, marked as having effects if a node of its bodies has."""
    effects = {n.op.effect for body in bodies for n in body.nodes if n.op.effect is not None}
    return (
        op if not effects else _marked(op, Effect.PYTHON if Effect.PYTHON in effects else next(iter(effects)))
    )


def _marked(op: Op, effect: Effect) -> Op:
    key = op.name, effect
    if key not in _MARKED:
        _MARKED[key] = replace(op, effect=effect)
    return _MARKED[key]


_MARKED: Final[dict[tuple[str, Effect], Op]] = {}
