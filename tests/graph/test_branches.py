"""Conditionals with a known index are resolved at compile time; others lose unused inputs and results."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import branches_of
from dualflow.graph.interpret import evaluate
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.graph.passes.inline_branches import take_branches
from dualflow.graph.passes.pipeline import SIMPLIFICATIONS, optimise
from dualflow.graph.passes.trimming import trim_control
from dualflow.ops.op_kinds import Cond

X, Y = np.float32([1, -2, 3]), np.float32([4, 5, -6])
INDEX = TensorSpec([], "int32")


def cond_nodes(graph):
    return [n for n in graph.nodes if isinstance(n.op.kind, Cond)]


def three(index, x, y):
    index = df.cond(df.constant(True), lambda: index, lambda: index + 1)
    return df.switch_case(index, [lambda: x + y, lambda: x * y, lambda: x - 1.0])


def simplified(graph):
    return optimise(graph, CompileOptions(), passes=SIMPLIFICATIONS)


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 7])
def test_the_branch_of_a_static_index_replaces_the_cond(traced, keeps, index):
    graph = traced(lambda x, y: three(df.constant(index), x, y), [3], [3])
    assert not cond_nodes(keeps(simplified, graph, X, Y))


def test_an_unknown_index_leaves_the_cond(traced, keeps):
    graph = keeps(simplified, traced(three, INDEX, [3], [3]), np.int32(1), X, Y)
    assert len(cond_nodes(graph)) == 1


def test_conds_inside_a_branch_that_is_taken_are_simplified_too(traced, keeps):
    def f(x, y):
        return df.cond(df.constant(True), lambda: three(df.constant(1), x, y), lambda: x)

    assert not cond_nodes(keeps(simplified, traced(f, [3], [3]), X, Y))


def test_effects_of_the_branch_that_is_taken_stay_and_others_go(traced):
    def f(x):
        return df.cond(df.constant(True), lambda: df.random.normal([3]) + x, lambda: df.random.uniform([3]))

    optimised = take_branches(simplified(traced(f, [3])))
    assert not cond_nodes(optimised)
    assert sum(n.effect is not None for n in optimised.nodes) == 1


def test_a_result_that_is_the_same_operand_in_all_branches_is_that(traced, keeps):
    def f(index, x, y):
        unchanged, changed = df.cond(index > 0, lambda: (x, x + y), lambda: (x, y * 2.0))
        return unchanged, changed

    graph = keeps(trim_control, traced(f, INDEX, [3], [3]), np.int32(0), X, Y)
    assert graph.outputs[0] is graph.inputs[1]
    assert len(cond_nodes(graph)[0].outputs) == 1


def test_a_cond_that_changes_nothing_goes(traced, keeps):
    graph = traced(lambda i, x: df.cond(i > 0, lambda: x, lambda: x), INDEX, [3])
    assert not cond_nodes(keeps(simplified, graph, np.int32(0), X))


def test_results_and_operands_that_nothing_reads_go(traced, keeps):
    def f(index, x, y):
        first, _ = df.cond(index > 0, lambda: (x * 2.0, df.sin(y)), lambda: (x + 1.0, df.cos(y)))
        return first

    (node,) = cond_nodes(keeps(trim_control, traced(f, INDEX, [3], [3]), np.int32(0), X, Y))
    assert len(node.outputs) == 1
    assert len(node.inputs) == 2
    assert all(len(b.nodes) == 2 for b in branches_of(node)), "an op and its number"


def test_branches_with_effects_keep_what_these_read(traced):
    def f(index, x):
        def loud():
            df.print(x)
            return x * 2.0, x * 3.0

        return df.cond(index > 0, loud, lambda: (x * 4.0, x * 5.0))[0] * 0.0

    def g(index, x):
        f(index, x)
        return x

    (node,) = cond_nodes(trim_control(eliminate_dead_code(traced(g, INDEX, [3]))))
    assert not node.outputs
    assert len(node.inputs) == 2
    assert any(n.effect is not None for n in branches_of(node)[1].nodes)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_compiled_conds_and_their_gradients_are_those_of_eager_runs(index):
    def run(i, x, y):
        with df.GradientTape() as tape:
            tape.watch([x, y])
            value = df.reduce_sum(three(i, x, y))
        return value, *tape.gradient(value, [x, y], unconnected_gradients="zero")

    specialised = df.function(lambda x, y: run(df.constant(index), x, y))
    inputs = df.constant(X), df.constant(Y)
    expected = run(df.constant(index), *inputs)
    for result in (specialised(*inputs), df.function(run)(df.constant(index), *inputs)):
        for mine, theirs in zip(result, expected, strict=True):
            assert np.array_equal(mine.numpy(), theirs.numpy())


def test_values_of_operands_under_a_cond_are_evaluated_as_before(traced):
    graph = traced(three, INDEX, [3], [3])
    for index in (0, 1, 2):
        expected = evaluate(graph, [np.int32(index), X, Y])[0]
        assert np.array_equal(evaluate(simplified(graph), [np.int32(index), X, Y])[0], expected)
