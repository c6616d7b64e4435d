"""The graph walk that all rewrite rules share."""

from __future__ import annotations

import pytest

import dualflow as df
from dualflow.core.errors import InternalError
from dualflow.graph.ir import verify
from dualflow.graph.rewrite import first_of, producer, rewrite


def double(x):
    return x + x


def test_unchanged_nodes_are_shared(traced):
    graph = traced(lambda x: df.exp(double(x)), [3])
    same = rewrite(graph, lambda node, make: None)
    assert same.nodes == graph.nodes
    assert same.outputs == graph.outputs


def test_a_replacement_reaches_every_later_reader(traced):
    graph = traced(lambda x: df.exp(df.abs(x)) + df.abs(x), [3])
    gone = rewrite(graph, lambda node, make: node.inputs if node.op.name == "abs" else None)
    verify(gone)
    assert [n.op.name for n in gone.nodes] == ["exp", "add"]
    assert gone.nodes[-1].inputs == (gone.nodes[0].output, gone.inputs[0])


def test_with_ops_the_rule_gets_nodes_of_these_and_new_nodes(traced):
    graph = traced(lambda x: df.exp(df.abs(x)), [3])
    visited = []

    def rule(node, make):
        visited.append(node.op.name)
        return (make(df.negative.op, node.inputs),) if node.op is df.abs.op else None

    changed = rewrite(graph, rule, {df.abs.op})
    verify(changed)
    assert visited == ["abs", "negative"]
    assert [n.op.name for n in changed.nodes] == ["negative", "exp"]


def test_results_and_updates_are_replaced_too(traced):
    v = df.Variable([1.0])

    def step(x):
        v.assign(df.abs(x))
        return df.abs(x)

    graph = rewrite(traced(step, [1]), lambda node, make: node.inputs if node.op.name == "abs" else None)
    assert graph.outputs == graph.inputs[:1]
    assert graph.updates[0].value is graph.inputs[0]


def test_rules_apply_to_the_nodes_they_make(traced):
    def lower(node, make):
        steps = {df.exp.op: df.sin.op, df.sin.op: df.cos.op}
        return (make(steps[node.op], node.inputs),) if node.op in steps else None

    assert [n.op.name for n in rewrite(traced(df.exp, [3]), lower).nodes] == ["cos"]


def test_a_new_node_keeps_the_line_of_the_node_it_replaces(traced):
    graph = traced(lambda x: df.exp(x), [3])
    rewritten = rewrite(
        graph, lambda node, make: (make(df.sin.op, node.inputs),) if node.op.name == "exp" else None
    )
    assert rewritten.nodes[0].origin == graph.nodes[0].origin


def test_a_new_node_merges_the_lines_of_skipped_nodes(traced):
    def two_lines(x):
        y = -x
        return y * 2.0

    def skip(node, make):
        inner = producer(node.inputs[0], df.negative.op) if node.op.name == "multiply" else None
        return (make(df.multiply.op, (inner.inputs[0], node.inputs[1])),) if inner else None

    graph = traced(two_lines, [3])
    last = rewrite(graph, skip).nodes[-1]
    assert last.origin.line == graph.nodes[0].origin.line + 1
    assert last.merged_origins == (graph.nodes[0].origin,)


def test_a_replacement_of_another_spec_is_refused(traced):
    graph = traced(lambda x: df.reduce_sum(x), [3])
    with pytest.raises(InternalError, match="a rewrite replaced"):
        rewrite(graph, lambda node, make: node.inputs)


def test_the_first_rule_that_returns_a_node_is_used(traced):
    to_sin = lambda node, make: (make(df.sin.op, node.inputs),) if node.op.name == "exp" else None  # noqa: E731
    to_cos = lambda node, make: (make(df.cos.op, node.inputs),) if node.op.name == "exp" else None  # noqa: E731
    assert rewrite(traced(df.exp, [3]), first_of([to_sin, to_cos])).nodes[0].op.name == "sin"
