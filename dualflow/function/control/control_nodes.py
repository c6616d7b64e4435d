"""Adds a choice between traced branches, or a loop with a traced body, to the graph as one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualflow.core import dispatch
from dualflow.function.control.bodies import Body, aligned, operands
from dualflow.graph.control import run_choice, run_loop
from dualflow.graph.control_spec import LoopSpec


def choice_node(index: Any, bodies: Sequence[Body]) -> list[Any]:
    """The outputs of ``bodies[index]``; variables that a body assigns get their new values.

    Args:
        index: an int32 scalar of the current engine.
        bodies: their outputs have the same specs.
    """
    written = {key: variable for b in bodies for key, (variable, _) in b.writes.items()}
    sources = {key: source for b in bodies for key, (source, _) in b.reads.items()} | written
    graphs = []
    for body, inputs in zip(bodies, aligned(bodies, sources), strict=True):
        place = dict(zip(sources, inputs, strict=True))
        news = [body.writes[key][1] if key in body.writes else place[key] for key in written]
        graphs.append(body.graph(inputs, [*body.outputs, *news]))
    results = run_choice(index, operands(list(sources.values())), graphs)
    count = len(bodies[0].outputs)
    for variable, value in zip(written.values(), results[count:], strict=True):
        dispatch.current().innermost.update(variable, value, results)
    return results[:count]


def loop_node(test: Body, turn: Body, initial: Sequence[Any], limit: int | None = None) -> list[Any]:
    """What is carried from turn to turn while ``test`` holds, from ``initial``; assigned variables likewise.

    Args:
        test: takes the carried values and returns a bool scalar.
        turn: takes the carried values and returns the next ones, and rows behind them.
        initial: tensors of the current engine.
        limit: the most turns.

    Returns:
        What is carried in the end, then the rows of all turns, stacked: as many as the run has turns.
    """
    count = len(initial)
    written = {key: variable for key, (variable, _) in turn.writes.items()}
    read = {key: source for b in (test, turn) for key, (source, _) in b.reads.items()}
    kept = {key: source for key, source in read.items() if key not in written}
    graphs = []
    for traced, carried, rest in zip(
        (test, turn), aligned((test, turn), written), aligned((test, turn), kept), strict=True
    ):
        inputs = [*traced.arguments, *carried, *rest]
        news = [] if traced is test else [value for _, value in turn.writes.values()]
        graphs.append(traced.graph(inputs, [*traced.outputs[:count], *news, *traced.outputs[count:]]))
    state = operands([*written.values(), *kept.values()])
    end = count + len(written)
    loop = LoopSpec(graphs[1], end, 0, limit, condition=graphs[0])
    results = run_loop(loop, [*initial, *state])
    for variable, value in zip(written.values(), results[count:end], strict=True):
        dispatch.current().innermost.update(variable, value, results)
    return [*results[:count], *results[end:]]
