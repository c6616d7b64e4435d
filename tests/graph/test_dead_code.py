"""Nodes whose results aren't used are removed."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.graph.passes.dead_code import eliminate_dead_code
from dualflow.ops.checks import required


def names(graph):
    return [n.op.name for n in graph.nodes]


def test_a_node_that_nothing_reads_goes(traced):
    def f(x):
        df.exp(df.sin(x))
        return df.cos(x)

    assert names(eliminate_dead_code(traced(f, [3]))) == ["cos"]


def test_a_node_that_would_fail_goes_too(traced):
    def f(x):
        df.gather(x, 99)
        return df.cos(x)

    assert names(eliminate_dead_code(traced(f, [3]))) == ["cos"]


def test_effects_stay_with_what_they_read(traced):
    def f(x):
        df.random.normal([2])
        return df.cos(x)

    kept = [n for n in eliminate_dead_code(traced(f, [3])).nodes if n.effect is not None]
    assert len(kept) == 1


def test_arguments_stay_and_unread_captures_go(traced):
    big = df.constant(np.zeros(100, np.float32))

    def f(x, y):
        big + x
        return y * 2.0

    graph = eliminate_dead_code(traced(f, [100], [1]))
    assert len(graph.arguments) == 2
    assert graph.captures == ()


def test_a_captured_variable_stays_if_it_is_only_assigned(traced):
    v = df.Variable([0.0])
    graph = eliminate_dead_code(traced(lambda x: v.assign(x, read_value=False), [1]))
    assert graph.captures[0].source is v
    assert len(graph.updates) == 1


def test_assigning_a_variable_its_own_value_is_nothing(traced):
    v = df.Variable([0.0])

    def f():
        v.assign(v)

    graph = eliminate_dead_code(traced(f))
    assert (graph.updates, graph.captures, graph.inputs) == ((), (), ())


@pytest.mark.parametrize("count", [0, 3])
def test_a_condition_of_a_tensor_that_may_be_empty_is_checked_where_it_is_read(count):
    @df.function(input_signature=[df.TensorSpec([None]), df.TensorSpec([], df.bool)])
    def f(x, holds):
        required(x, holds, "a condition that nothing reads")
        return df.exp(required(x, df.logical_not(holds), "the condition of a tensor"))

    assert f(df.ones([count]), False).shape == (count,)
    with pytest.raises(df.errors.InvalidArgumentError, match="the condition of a tensor"):
        f(df.ones([count]), True)


def test_a_graph_of_which_nothing_is_removed_is_returned_itself(traced):
    graph = eliminate_dead_code(traced(lambda x: df.exp(x) * 2.0, [3]))
    assert eliminate_dead_code(graph) is graph


def test_a_changed_copy_of_such_a_graph_is_examined_again(traced):
    graph = eliminate_dead_code(traced(lambda x: df.exp(df.sin(x)), [3]))
    shortened = graph.with_results([graph.nodes[0].output])
    assert names(eliminate_dead_code(shortened)) == ["sin"]
