"""Rematerialisation within a budget: same bits, a planned peak below it, and no needless recomputation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.backends.llvm import backend
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import Graph, Value, verify
from dualflow.graph.work import work
from dualflow.schedule.early_order import first_readers, ordered_early
from dualflow.schedule.recomputation import Parts, recomputed
from dualflow.schedule.rematerialisation import SmallestPossible, WithinBudget, within_budget

N = 16


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def optimised(f: Callable[..., Any], *shapes: tuple[int, ...]) -> Graph:
    result: Graph = df.function(f).get_concrete_function(*map(df.TensorSpec, shapes)).optimised_graph
    return result


def gradient_of(f: Callable[..., Any], *shapes: tuple[int, ...]) -> Graph:
    """The graph of the values and gradients of ``f``."""

    def both(*xs: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(xs)
            y = f(*xs)
        return y, tape.gradient(y, xs)

    return optimised(both, *shapes)


def chain(x: Any, iterations: int = 8) -> Any:
    for _ in range(iterations):
        x = df.sin(x @ x)
    return x


def blocks(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = x + df.nn.softmax(x @ w) * df.tanh(x)
        x = x - df.reduce_mean(x, -1, keepdims=True)
    return df.reshape(df.transpose(df.reshape(x, [4, N // 4, N]), [1, 0, 2]), [N, N]) @ w


def run(graph: Graph) -> list[bytes]:
    return [x.tobytes() for x in evaluate(graph, [numbers(*v.spec.shape) for v in graph.inputs])]


def smallest(graph: Graph) -> int:
    rewritten = within_budget(graph, 0, backend.footprint)
    assert isinstance(rewritten, SmallestPossible)
    return rewritten.peak


GRAPHS = {
    "a chain of products": gradient_of(chain, (N, N)),
    "blocks": gradient_of(blocks, (N, N), (N, N)),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_a_budget_is_kept_and_the_results_are_the_same(graph: Graph, share: float) -> None:
    least, most = smallest(graph), backend.footprint(graph).peak
    budget = round(least + share * (most - least))
    rewritten = within_budget(graph, budget, backend.footprint)
    assert isinstance(rewritten, WithinBudget)
    verify(rewritten.graph)
    assert least < most
    assert rewritten.peak == backend.footprint(rewritten.graph).peak <= budget
    assert run(rewritten.graph) == run(graph)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_that_fits_is_left_alone(graph: Graph) -> None:
    most = backend.footprint(graph).peak
    rewritten = within_budget(graph, most, backend.footprint)
    assert rewritten == WithinBudget(graph, most)


def test_less_memory_takes_more_work_but_never_much_for_little() -> None:
    graph = GRAPHS["a chain of products"]
    least, most = smallest(graph), backend.footprint(graph).peak
    extras = []
    for budget in np.linspace(most, least, 6).round().astype(int):
        rewritten = within_budget(graph, int(budget), backend.footprint)
        assert isinstance(rewritten, WithinBudget)
        once = sum(map(work, graph.nodes))
        assert sum(map(work, rewritten.graph.nodes)) == pytest.approx(
            once + sum(map(work, rewritten.repeated))
        )
        extras.append(rewritten.extra)
    assert extras[0] == 0.0
    assert extras == sorted(extras)
    assert extras[1] < 0.1


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_whatever_is_dropped_the_results_are_the_same(graph: Graph, data: st.DataObject) -> None:
    """Any values may be dropped after any nodes: correctness doesn't depend on the choice."""
    values = [v for node in graph.nodes for v in node.outputs]
    places = st.dictionaries(
        st.integers(0, len(graph.nodes) - 1), st.lists(st.sampled_from(values), max_size=4), max_size=30
    )
    rewritten = recomputed(graph, data.draw(places), Parts())
    verify(rewritten.graph)
    assert run(rewritten.graph) == run(graph)


def test_dropped_values_are_recomputed_before_their_readers() -> None:
    graph = optimised(lambda x, y: (x @ y) @ (df.matmul(x @ y, y) @ y), (N, N), (N, N))
    product = graph.nodes[0]
    rewritten = recomputed(graph, {0: [], 1: [product.output]}, Parts())
    assert [n.op.name for n in rewritten.graph.nodes] == ["matmul"] * 5
    assert rewritten.repeated == (rewritten.graph.nodes[3],)
    assert rewritten.graph.nodes[4].inputs[0] is rewritten.graph.nodes[3].output


def test_values_not_read_before_they_are_dropped_move() -> None:
    graph = optimised(lambda x, y: (x @ y) @ ((x @ x) @ y), (N, N), (N, N))
    rewritten = recomputed(graph, {0: [graph.nodes[0].output]}, Parts())
    assert rewritten.repeated == ()
    assert len(rewritten.graph.nodes) == len(graph.nodes)
    assert rewritten.graph.nodes[-2].inputs == graph.nodes[0].inputs


def test_a_long_chain_is_no_recursion() -> None:
    def deep(x: Any) -> Any:
        y = x
        for _ in range(1200):
            y = y @ x
        return y, y + df.sin(y)

    graph = optimised(deep, (2, 2))
    drops: dict[int, list[Value]] = {i: list(n.outputs) for i, n in enumerate(graph.nodes[:-2])}
    drops[len(graph.nodes) - 2] = [v for n in graph.nodes[:-2] for v in n.outputs]
    assert run(recomputed(graph, drops, Parts()).graph) == run(graph)


def test_updates_of_variables_run_as_early_as_they_can() -> None:
    weights = [df.Variable(numbers(N, N)) for _ in range(6)]

    @df.function
    def step(x: Any) -> Any:
        with df.GradientTape() as tape:
            y = x
            for w in weights:
                y = df.tanh(y @ w)
            loss = df.reduce_sum(y)
        for w, slope in zip(weights, tape.gradient(loss, weights), strict=True):
            w.assign_sub(0.1 * slope)
        return loss

    graph = step.get_concrete_function(df.TensorSpec([N, N])).optimised_graph
    taken = backend.footprint(graph)
    early = ordered_early(graph, taken, first_readers(graph, taken))
    verify(early)
    assert run(early) == run(graph)
    assert sorted(map(id, early.nodes)) == sorted(map(id, graph.nodes))
    places = {n: i for i, n in enumerate(early.nodes)}
    updates = [places[u.value.node] for u in early.updates if u.value.node is not None]
    assert updates[1:] == sorted(updates[1:], reverse=True)
    assert min(updates) < len(graph.nodes) // 2 + 4


def test_failing_ops_and_side_effects_run_once() -> None:
    def f(x: Any) -> Any:
        kept = [df.random.normal([N, N]), df.gather(x, df.cast(x[0], df.int32)), x @ x]
        y = x
        for _ in range(6):
            y = df.sin(y @ x)
        return df.reduce_sum(y @ kept[0] @ kept[1] @ kept[2])

    graph = optimised(f, (N, N))
    rewritten = within_budget(graph, smallest(graph), backend.footprint)
    assert isinstance(rewritten, WithinBudget)
    names = [n.op.name for n in rewritten.graph.nodes]
    assert names.count("random_normal") == 1
    assert str(rewritten.graph).count("gather(") == str(graph).count("gather(")
