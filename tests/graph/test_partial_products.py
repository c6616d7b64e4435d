"""Slices of matrix products: only the rows and columns that are read are computed."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import verify
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.partial_products import cut_products
from dualflow.graph.passes.pipeline import SIMPLIFICATIONS, optimise
from dualflow.ops.op_kinds import MatMul

A = np.arange(24, dtype=np.float32).reshape(4, 6) - 11
B = np.arange(30, dtype=np.float32).reshape(6, 5) - 14


def product_sizes(graph):
    return [tuple(n.output.spec.shape) for n in graph.nodes if isinstance(n.op.kind, MatMul)]


def cut(traced, function, *arrays):
    """The sizes of the products after the pass, which changes no bit of the results."""
    graph = optimise(
        traced(function, *[TensorSpec(a.shape, a.dtype) for a in arrays]),
        CompileOptions(),
        passes=SIMPLIFICATIONS,
    )
    verify(graph)
    expected = function(*[df.constant(a) for a in arrays])
    for mine, eager in zip(evaluate(graph, arrays), df.nest.flatten(expected), strict=True):
        np.testing.assert_array_equal(mine, eager)
    return product_sizes(graph)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("key", [np.s_[1:3], np.s_[:, 2:], np.s_[1:4, 1:3], np.s_[-2:, :-1]])
def test_unread_parts_are_not_computed(traced, transpose_a, transpose_b, key):
    def part(a, b):
        return df.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)[key]

    a, b = A.T if transpose_a else A, B.T if transpose_b else B
    assert cut(traced, part, a.copy(), b.copy()) == [(A @ B)[key].shape]


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: ((a @ b)[1:], df.reduce_sum(a @ b)),  # something else reads the product
        lambda a, b: (a @ b, (a @ b)[1:]),  # it is a result
        lambda a, b: (a @ b)[::2],  # not neighbours
        lambda a, b: (a @ b)[1],  # one row adds in another order, as a vector
        lambda a, b: (a @ b)[1:2],
        lambda a, b: (a @ b)[:, :1],
        lambda a, b: (a @ b)[:, None, 1:],
        lambda a, b: (a @ b)[2:2],
    ],
)
def test_products_that_stay(traced, function):
    assert cut(traced, function, A, B) == [(4, 5)]


def test_integers_and_batches_stay(traced):
    assert cut(traced, lambda a, b: (a @ b)[1:3], A.astype(np.int32), B.astype(np.int32)) == [(4, 5)]
    assert cut(traced, lambda a, b: (a @ b)[:, 1:3], np.stack([A, A]), np.stack([B, B])) == [(2, 4, 5)]


def test_graphs_without_parts_are_left_alone(traced):
    graph = traced(lambda a, b: a @ b, TensorSpec(A.shape), TensorSpec(B.shape))
    assert cut_products(graph) is graph


def test_the_gradient_of_a_recurrent_net_multiplies_by_the_state_s_part_alone():
    """The gradient by the inputs, the other part of ``concat``, isn't used."""

    def loss(xs, w):
        with df.GradientTape() as tape:
            tape.watch(w)
            h = df.zeros([4, 3])
            for x in xs:
                h = df.tanh(df.concat([x, h], 1) @ w)
            total = df.reduce_sum(h)
        return tape.gradient(total, w)

    random = np.random.default_rng(3)
    xs, w = (df.constant(random.standard_normal(s), df.float32) for s in ((6, 4, 5), (8, 3)))
    f = df.function(loss)
    np.testing.assert_allclose(
        f(df.constant(xs), df.constant(w)), loss(df.constant(xs), df.constant(w)), 1e-5, 1e-6
    )
    text = str(f.get_concrete_function(xs, w).optimised_graph)
    assert "float32[4, 3] = matmul" in text
    assert "float32[4, 8] = matmul" not in text
