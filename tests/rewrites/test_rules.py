"""Rules and passes as functions of nodes and graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

import dualflow as df
from dualflow.graph.rewrite import rewrite as apply_rule

X = df.constant([0.5, -1.0, 2.0])


def test_a_rule_is_not_applied_to_what_it_has_made() -> None:
    @df.rewrite.rule
    def doubled(node: Any, make: Any) -> Any:
        """exp(x) = exp(x / 2) ** 2"""
        if node.op.name != "exp":
            return None
        return make(lambda x: df.square(df.exp(x / 2.0)), node.inputs[0])

    f = df.function(df.exp, rewrites=[doubled])
    np.testing.assert_allclose(f(X), np.exp(X.numpy()), rtol=1e-6)
    assert str(f.get_concrete_function(X).optimised_graph).count("= exp(") == 1


def test_a_rule_under_a_tape_is_applied_once() -> None:
    calls = []

    @df.rewrite.rule
    def counted(node: Any, make: Any) -> Any:
        """sin(x) = sin(x)"""
        if node.op.name != "sin":
            return None
        calls.append(node)
        return make(df.sin, node.inputs[0])

    f = df.function(lambda x: df.sin(x) * 2.0, rewrites=[counted])
    with df.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    np.testing.assert_allclose(tape.gradient(y, X), 2 * np.cos(X.numpy()), rtol=1e-6)
    assert len(calls) == 1


def test_a_rule_replaces_all_outputs_of_a_node() -> None:
    @df.rewrite.rule
    def trivial(node: Any, make: Any) -> Any:
        """qr(x) = 1, x, which is wrong for most x"""
        if node.op.name != "qr":
            return None
        return make(lambda x: (df.eye(3), x), node.inputs[0])

    f = df.function(lambda x: tuple(df.linalg.qr(x)), rewrites=[trivial])
    q, r = f(df.ones([3, 3]))
    np.testing.assert_array_equal(q, np.eye(3))
    np.testing.assert_array_equal(r, np.ones([3, 3]))
    assert "trivial (" in f.explain()
    assert "nothing" not in f.explain()


def test_a_pass_is_called_for_the_graph_and_for_bodies() -> None:
    names = []

    @df.rewrite.graph_pass
    def collect(graph: Any) -> Any:
        """graph = graph"""
        names.append(graph.name)
        return graph

    @df.rewrite.graph_pass(in_bodies=False, name="outermost")
    def collect_outermost(graph: Any) -> Any:
        """graph = graph"""
        names.append("outermost")
        return graph

    def f(x: Any, n: Any) -> Any:
        for _ in df.range(n):
            x = df.sin(x)
        return x

    df.function(f, rewrites=[collect, collect_outermost])(X, df.constant(3))
    assert names.count("outermost") == 1
    assert len(names) > 2


def test_a_pass_may_use_the_rules_of_the_optimiser() -> None:
    @df.rewrite.graph_pass
    def without_cosine(graph: Any) -> Any:
        """cos(x) = x, which is wrong"""
        return apply_rule(graph, lambda node, make: node.inputs if node.op.name == "cos" else None)

    f = df.function(lambda x: df.cos(x) + 1.0, rewrites=[without_cosine])
    np.testing.assert_array_equal(f(X), X.numpy() + 1)
    assert "rewritten by without_cosine" in f.explain()
