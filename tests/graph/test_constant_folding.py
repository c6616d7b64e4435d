"""Constant folding: nodes of constants are evaluated at compile time."""

from __future__ import annotations

import numpy as np

import dualflow as df
from dualflow.graph.passes.constant_folding import fold_constants
from dualflow.graph.passes.dead_code import eliminate_dead_code


def folded(graph):
    return eliminate_dead_code(fold_constants(graph))


def names(graph):
    return [n.op.name for n in folded(graph).nodes]


def test_constants_alone_become_one_constant(traced):
    graph = folded(traced(lambda: df.exp(df.constant([1.0, 2.0])) * 3.0 + 1.0))
    assert [n.op.name for n in graph.nodes] == ["constant"]
    value = graph.nodes[0].attrs["value"]
    assert np.array_equal(value, (df.exp(df.constant([1.0, 2.0])) * 3.0 + 1.0).numpy())


def test_nodes_that_read_an_argument_stay(traced):
    assert names(traced(lambda x: x + df.constant([1.0]) * 2.0, [1])) == ["constant", "add"]


def test_a_large_result_of_small_constants_stays(traced):
    assert "iota" in names(traced(lambda: df.range(100_000)))


def test_repeating_a_number_stays_a_view(traced):
    assert names(traced(lambda: df.zeros([8, 8]))) == ["constant", "broadcast_to"]


def test_elementwise_results_of_repeated_numbers_are_repeated_numbers(traced):
    graph = folded(traced(lambda: df.transpose(df.zeros([8, 3]) + 2.0) * df.fill([3, 8], 0.5)))
    assert [n.op.name for n in graph.nodes] == ["constant", "broadcast_to"]
    assert graph.nodes[0].attrs["value"] == np.float32(1.0)


def test_a_sum_of_a_repeated_number_is_known(traced):
    graph = folded(traced(lambda: df.reduce_sum(df.ones([8, 3]), 1)))
    assert [n.op.name for n in graph.nodes] == ["constant", "broadcast_to"]
    assert graph.nodes[0].attrs["value"] == np.float32(3.0)


def test_zeros_of_two_signs_are_no_number_repeated(traced):
    graph = folded(traced(lambda: df.zeros([2]) * df.constant([1.0, -1.0])))
    assert [n.op.name for n in graph.nodes] == ["constant"]
    assert np.signbit(graph.nodes[0].attrs["value"]).tolist() == [False, True]


def test_positions_of_repeated_numbers_differ(traced):
    graph = folded(traced(lambda: df.cumsum(df.ones([4]))))
    assert [n.op.name for n in graph.nodes] == ["constant"]
    assert graph.nodes[0].attrs["value"].tolist() == [1, 2, 3, 4]


def test_large_views_of_small_constants_are_not_computed(traced):
    assert "exp" in names(traced(lambda: df.reduce_max(df.exp(df.fill([1000, 1000], 2.0)))))


def test_the_gradient_of_a_linear_program_is_a_constant(traced):
    def program(x):
        for _ in range(5):
            x = df.transpose(x) * 1.01 - df.reduce_mean(x) + 0.1
        return df.reduce_sum(x)

    graph = folded(traced(df.autodiff.grad(program), [2, 2]))
    assert {n.op.name for n in graph.nodes} <= {"constant", "broadcast_to"}


def test_an_op_that_raises_is_not_folded(traced):
    assert "gather" in names(traced(lambda: df.gather(df.constant([1.0, 2.0]), 7)))


def test_effects_are_not_folded(traced):
    assert len([n for n in folded(traced(lambda: df.random.normal([2]))).nodes if n.effect is not None]) == 1


def test_folding_is_silent_about_infinities(traced, recwarn):
    folded(traced(lambda: df.constant(1.0) / df.constant(0.0)))
    assert len(recwarn) == 0
