"""Common subexpression elimination: equal nodes are computed once."""

from __future__ import annotations

import dualflow as df
from dualflow.graph.passes.common_subexpressions import merge_common_subexpressions


def count(graph, name):
    return [n.op.name for n in merge_common_subexpressions(graph).nodes].count(name)


def test_equal_expressions_are_one(traced):
    assert count(traced(lambda x: df.exp(df.sin(x)) + df.exp(df.sin(x)), [3]), "exp") == 1


def test_other_attributes_are_other_values(traced):
    graph = traced(lambda x: df.reduce_sum(x, 0) + df.reduce_sum(x, 1) + df.reduce_sum(x, 0), [3, 3])
    assert count(graph, "reduce_sum") == 2


def test_constants_merge_by_dtype_and_bits(traced):
    def f(x):
        return [x * c for c in (df.constant(0.0), df.constant(0.0), df.constant(-0.0))]

    assert count(traced(f, [3]), "constant") == 2


def test_the_earliest_node_stays(traced):
    graph = traced(lambda x: [df.exp(x), df.exp(x)], [3])
    merged = merge_common_subexpressions(graph)
    assert merged.outputs == (graph.nodes[0].output,) * 2


def test_two_draws_are_two_draws(traced):
    graph = merge_common_subexpressions(traced(lambda: df.random.normal([3]) - df.random.normal([3])))
    assert len([n for n in graph.nodes if n.effect is not None]) == 2
