"""Adds a conditional between traced branches, or a loop with a traced body, to the graph as one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.function.control.bodies import Body
from dualflow.function.control.closures import close_over
from dualflow.graph.control import run_cond, run_loop
from dualflow.graph.control_spec import LoopSpec


def cond_node(index: Any, bodies: Sequence[Body]) -> list[Any]:
    """The outputs of ``bodies[index]``; variables that a body assigns get their new values.

    Args:
        index: an int32 scalar of the current engine.
        bodies: their outputs have the same specs.
    """
    closure = close_over(bodies, len(bodies[0].outputs))
    variables, read = closure.operands()
    results, _ = closure.assign(run_cond(index, [*variables, *read], closure.graphs))
    return results


def loop_node(test: Body, iteration: Body, initial: Sequence[Any], limit: int | None = None) -> list[Any]:
    """What is carried between iterations while ``test`` holds, from ``initial``; assigned variables likewise.

    Args:
        test: takes the carried values and returns a bool scalar.
        iteration: takes the carried values and returns the next ones, and rows behind them.
        initial: tensors of the current engine.
        limit: the most iterations.

    Returns:
        What is carried in the end, then the rows of all iterations, stacked: as many as the run has
        iterations.
    """
    closure = close_over([iteration], len(initial), test=test)
    variables, read = closure.operands()
    body, condition = closure.graphs
    loop = LoopSpec(body, len(initial) + len(variables), 0, limit, condition=condition)
    carried, rows = closure.assign(run_loop(loop, [*initial, *variables, *read]))
    return [*carried, *rows]
