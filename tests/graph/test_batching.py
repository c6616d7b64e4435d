"""Products of all iterations of a loop become one product before or after it."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import loop_of
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import verify
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.loop_products import batch_products
from dualflow.graph.passes.pipeline import SIMPLIFICATIONS, optimise
from dualflow.ops.op_kinds import Loop, MatMul

T, B, K = 40, 3, 4
random = np.random.default_rng(7)
ROOM = CompileOptions().stack_budget


def numbers(*shape):
    return (random.standard_normal(shape) * 0.5).astype(np.float32)


XS, W, U, BIAS, H = numbers(T, B, K), numbers(K, K), numbers(K, K), numbers(K), numbers(B, K)


def loops(graph):
    return [n for n in graph.nodes if isinstance(n.op.kind, Loop)]


def products(graph):
    """The products of a graph itself, and those inside its loops."""
    inside = [n for loop in loops(graph) for n in loop_of(loop).body.nodes]
    return [sum(isinstance(n.op.kind, MatMul) for n in nodes) for nodes in (graph.nodes, inside)]


def agree(before, after, arrays):
    verify(after)
    for loop in loops(after):
        verify(loop_of(loop).body)
    for mine, expected in zip(evaluate(after, arrays), evaluate(before, arrays), strict=True):
        assert mine.shape == expected.shape
        np.testing.assert_allclose(mine, expected, rtol=2e-5, atol=2e-5)


def simplified(graph):
    return optimise(graph, CompileOptions(), passes=SIMPLIFICATIONS)


def batched(traced, function, *arrays):
    """The graph of ``function`` after the pass, which agrees with the one before."""
    before = simplified(traced(function, *[TensorSpec(a.shape, a.dtype) for a in arrays]))
    after = batch_products(before, ROOM)
    agree(before, after, arrays)
    return after


def recurrent(xs, w, u, b, h):
    return df.foldl(lambda h, x: df.tanh(h @ w + x @ u + b), xs, h)


def gradients(function):
    def run(*inputs):
        with df.GradientTape() as tape:
            tape.watch(inputs)
            value = function(*inputs)
        return value, *tape.gradient(value, inputs)

    return run


@pytest.mark.parametrize("fold", [df.foldl, df.foldr])
def test_rows_are_multiplied_before_the_loop(traced, fold):
    def f(xs, w, u, h):
        return fold(lambda h, x: df.tanh(h @ w + x @ u), xs, h)

    assert products(batched(traced, f, XS, W, U, H)) == [1, 1]


def test_rows_under_another_shape_and_a_transposed_constant_are_multiplied_too(traced):
    def f(xs, u, h):
        return df.foldl(lambda h, x: df.tanh(h + (x[None] @ df.transpose(u))[0]), xs, h)

    assert products(batched(traced, f, numbers(T, K), U, numbers(K))) == [1, 0]


def test_rows_of_results_are_multiplied_after_the_loop(traced):
    def f(xs, u, h):
        return df.scan(lambda a, x: (df.tanh(a[0] + x), a[0] @ u), xs, (h, h))

    assert products(batched(traced, f, XS, U, H)) == [1, 0]

    def g(xs, u, h):
        states = df.scan(lambda h, x: df.tanh(h + x), xs, h)
        return df.map_fn(lambda h: h @ u, states)

    assert products(batched(traced, g, XS, U, H)) == [1, 0]


def test_the_backward_pass_leaves_gradients_of_weights_to_products_after_it(traced):
    graph = batched(traced, gradients(recurrent), XS, W, U, BIAS, H)
    assert products(graph) == [4, 2], "x @ u, and the gradients of w, u and xs; h @ w and its gradient stay"
    assert [loop_of(loop).carried for loop in loops(graph)] == [1, 1]


def test_vectors_are_rows_as_well(traced):
    def f(xs, w, u, h):
        return df.foldl(lambda h, x: df.tanh(df.linalg.matvec(w, h) + df.linalg.matvec(u, x)), xs, h)

    graph = batched(traced, gradients(f), numbers(T, K), W, U, numbers(K))
    assert products(graph) == [4, 2], "u @ x, and the gradients of w, u and xs; w @ h and its gradient stay"


def test_outer_products_are_products_of_rows(traced):
    def f(xs, ys):
        return df.foldl(lambda s, r: s + r[0][:, None] * 1.0 @ r[1][None], (xs, ys), df.zeros([K, K]))

    graph = batched(traced, f, numbers(T, K), numbers(T, K))
    assert products(graph) == [1, 0]


@pytest.mark.parametrize(("rows", "left"), [(8, 0), (12, 1)])
def test_products_of_many_rows_are_added_iteration_by_iteration(traced, rows, left):
    def f(xs, s):
        return df.foldl(lambda s, x: s + df.matmul(x, x, transpose_a=True), xs, s)

    graph = batched(traced, f, numbers(T, rows, 64), numbers(64, 64))
    assert products(graph)[1] == left


def test_an_addend_of_a_product_stays_in_the_loop(traced):
    def f(xs, w, s):
        return df.foldl(lambda s, x: s + df.matmul(x, x, transpose_a=True) + df.sin(w * x[0]), xs, s)

    graph = batched(traced, f, XS, W, U)
    assert products(graph) == [1, 0]
    assert loop_of(loops(graph)[0]).carried == 1


def test_a_sum_that_an_iteration_reads_stays(traced):
    def f(xs, s):
        return df.foldl(lambda s, x: s + df.matmul(x * s[0, 0], x, transpose_a=True), xs, s)

    assert products(batched(traced, f, XS, W)) == [0, 1]


def test_a_product_of_what_is_carried_stays(traced):
    def f(xs, w, h):
        return df.foldl(lambda h, x: df.tanh(h @ w) + x, xs, h)

    assert products(batched(traced, f, XS, W, H)) == [0, 1]


def test_inner_loops_give_their_products_to_the_outer_one(traced):
    def f(xs, u, h):
        def outer(h, rows):
            return df.foldl(lambda h, x: df.tanh(h + (x[None] @ u)[0]), rows, h)

        return df.foldl(outer, xs, h)

    xs = numbers(T, T, K)
    (loop,) = loops(batched(traced, f, xs, U, numbers(K)))
    assert products(loop_of(loop).body) == [0, 0], "all are made before the outer one"


def test_stacks_that_take_too_much_memory_are_not_made(traced):
    def f(xs, u, h):
        return df.foldl(lambda h, x: df.tanh(h + x @ u), xs, h)

    graph = simplified(traced(f, [T, 1000, 4], [4, 1000], [1000, 1000]))
    assert batch_products(graph, ROOM) is graph


@pytest.mark.parametrize(
    "function",
    [
        lambda xs, u, h: df.while_loop(lambda h: df.reduce_sum(h) < 0.0, lambda h: h @ u + xs[0], (h,)),
        lambda xs, u, h: df.foldl(lambda h, x: h + x @ u + df.random.truncated_normal([B, K]), xs, h),
    ],
    ids=["a condition", "effects"],
)
def test_other_loops_are_left_alone(traced, function):
    graph = simplified(traced(function, XS.shape, U.shape, H.shape))
    assert batch_products(graph, ROOM) is graph


def test_integers_are_left_alone(traced):
    specs = [TensorSpec(a.shape, "int32") for a in (XS, U, H)]
    graph = simplified(traced(lambda xs, u, h: df.foldl(lambda h, x: h + x @ u, xs, h), *specs))
    assert batch_products(graph, ROOM) is graph


def test_compiled_gradients_are_those_of_eager_runs():
    inputs = [df.constant(x) for x in (XS, W, U, BIAS, H)]
    run = gradients(recurrent)
    for mine, expected in zip(df.function(run)(*inputs), run(*inputs), strict=True):
        np.testing.assert_allclose(mine.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
