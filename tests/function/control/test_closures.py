"""Branches and loop bodies as graphs: inputs are the values they read, outputs those they assign."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.function.control.closures import Closure, close_over
from dualflow.function.control.trace_bodies import trace_body
from dualflow.graph.interpret import evaluate

SCALAR = TensorSpec([], df.float32)


def closed(*functions: Callable[..., Any], test: Callable[..., Any] | None = None) -> Closure:
    """The closure of functions of two scalars; the first of their outputs is the leading one."""
    closures: list[Closure] = []

    @df.function(autograph=False)
    def trace() -> None:
        bodies = [trace_body(f, [SCALAR, SCALAR], lambda symbols: symbols) for f in functions]
        condition = None if test is None else trace_body(test, [SCALAR, SCALAR], lambda symbols: symbols)
        closures.append(close_over(bodies, 1, test=condition))

    trace.get_concrete_function()
    return closures[0]


def run(closure: Closure, at: int, *inputs: float) -> list[float]:
    arrays = [np.float32(x)[...] for x in inputs]
    return [float(y) for y in evaluate(closure.graphs[at], arrays)]


def test_variables_come_after_the_leading_arguments_and_outputs() -> None:
    v, captured = df.Variable(0.0), df.constant(0.0)

    def body(x: Any, y: Any) -> list[Any]:
        v.assign(v * x + captured)
        return [x + y, x - y]

    closure = closed(body)
    assert (closure.written, closure.read) == ((v,), (captured,))
    x, present, y, c = 3.0, 5.0, 2.0, 7.0
    assert run(closure, 0, x, present, y, c) == [x + y, present * x + c, x - y]


def test_bodies_take_what_any_of_them_reads_or_assigns() -> None:
    v, captured = df.Variable(0.0), df.constant(0.0)

    def assigns(x: Any, y: Any) -> list[Any]:
        v.assign(x)
        return [y]

    closure = closed(assigns, lambda x, y: [x + captured])
    assert (closure.written, closure.read) == ((v,), (captured,))
    assert {len(graph.inputs) for graph in closure.graphs} == {4}
    assert run(closure, 0, 1.0, 2.0, 3.0, 4.0) == [3.0, 1.0]
    assert run(closure, 1, 1.0, 2.0, 3.0, 4.0) == [5.0, 2.0]


def test_a_test_returns_no_variables() -> None:
    v, captured = df.Variable(0.0), df.constant(0.0)

    def body(x: Any, y: Any) -> list[Any]:
        v.assign(x)
        return [y]

    closure = closed(body, test=lambda x, y: [v + captured])
    assert closure.read == (captured,)
    assert run(closure, 1, 1.0, 2.0, 3.0, 4.0) == [6.0]
