"""Graphs as networkx sees them."""

from __future__ import annotations

import networkx as nx

import dualflow as df
from dualflow.graph.analysis import critical_path, to_networkx


def test_edges_run_from_producers_to_readers(traced):
    graph = traced(lambda x: df.exp(x) * x, [3])
    drawn = to_networkx(graph)
    exp, product = graph.nodes
    assert nx.is_directed_acyclic_graph(drawn)
    assert set(drawn.successors(graph.inputs[0])) == {exp, product}
    assert drawn.get_edge_data(exp, product)[0]["slot"] == 0


def test_a_value_read_twice_is_two_edges(traced):
    graph = traced(lambda x: x * x, [3])
    assert to_networkx(graph).number_of_edges(graph.inputs[0], graph.nodes[0]) == 2


def test_the_critical_path_takes_the_dear_branch(traced):
    def f(x):
        dear = df.matmul(df.matmul(x, x), x)
        cheap = x + x
        return dear + cheap

    path = critical_path(traced(f, [64, 64]))
    assert [n.op.name for n in path] == ["matmul", "matmul", "add"]


def test_the_critical_path_of_nothing_is_empty(traced):
    assert critical_path(traced(lambda x: x, [3])) == []


def test_any_cost_will_do(traced):
    graph = traced(lambda x: df.exp(df.exp(x)) + df.sin(x), [3])
    path = critical_path(graph, lambda n: 100.0 if n.op.name == "sin" else 1.0)
    assert [n.op.name for n in path] == ["sin", "add"]
