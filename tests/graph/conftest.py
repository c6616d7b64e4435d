"""Graphs for tests, traced from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dualflow.core.spec import TensorSpec
from dualflow.function.tracing.collect_results import collect
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import Graph, verify

Traced = Callable[..., Graph]


@pytest.fixture
def traced() -> Traced:
    """``traced(f, *specs)`` is the graph of ``f``; a spec may be given as a shape, of float32."""

    def trace(function: Callable[..., Any], *specs: Any) -> Graph:
        tracer = Tracer(function.__name__)
        arguments = [s if isinstance(s, TensorSpec) else TensorSpec(s) for s in specs]
        with tracing(tracer):
            result = function(*map(tracer.argument, arguments))
        return tracer.builder.finish(collect(result, tracer)[1], tracer.updates())

    return trace


@pytest.fixture
def keeps() -> Callable[..., Graph]:
    """``keeps(step, graph, *arrays)`` is what ``step`` makes of ``graph``: legal, with equal results."""

    def check(step: Callable[[Graph], Graph], graph: Graph, *arrays: Any) -> Graph:
        rewritten = step(graph)
        pending = [rewritten]
        while pending:
            verify(pending[-1])
            pending += [body for node in pending.pop().nodes for _, body in node.bodies]
        for mine, expected in zip(evaluate(rewritten, arrays), evaluate(graph, arrays), strict=True):
            assert mine.dtype == expected.dtype
            assert mine.shape == expected.shape
            assert mine.tobytes() == expected.tobytes()
        return rewritten

    return check
