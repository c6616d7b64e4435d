"""Adds a conditional of traced branches, or a loop with a traced body, to the graph as one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.function.control.closures import close_over
from dualflow.function.control.trace_bodies import Body
from dualflow.graph.control_ops import run_cond, run_loop
from dualflow.graph.control_spec import LoopSpec


def cond_node(index: Any, bodies: Sequence[Body]) -> list[Any]:
    """The outputs of ``bodies[index]``; assigned variables get their new values.

    Args:
        index: an int32 scalar of the current engine.
        bodies: branches whose outputs have the same specs.
    """
    closure = close_over(bodies, len(bodies[0].outputs))
    variables, read = closure.operands()
    results, _ = closure.assign(run_cond(index, [*variables, *read], closure.graphs))
    return results


def loop_node(test: Body, iteration: Body, initial: Sequence[Any], limit: int | None) -> list[Any]:
    """The outputs of a while loop from the carried values ``initial``; assigned variables are carried too.

    Args:
        test: maps the carried values to a bool scalar.
        iteration: maps the carried values to the next ones, followed by a row of each stacked output.
        initial: tensors of the current engine.
        limit: the largest number of iterations; None if there is none.

    Returns:
        The final carried values, then the stacked outputs.
    """
    closure = close_over([iteration], len(initial), test=test)
    variables, read = closure.operands()
    body, condition = closure.graphs
    loop = LoopSpec(body, len(initial) + len(variables), 0, limit, condition=condition)
    carried, stacks = closure.assign(run_loop(loop, [*initial, *variables, *read]))
    return [*carried, *stacks]
