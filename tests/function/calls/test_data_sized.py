"""Functions with data-dependent sizes: results, gradients and state after failures equal eager ones."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.tree import leaves

X = df.constant([1.0, 2.0, 3.0])


def positive(x):
    return df.boolean_mask(x, x > 1.5)


def summed(x):
    y = positive(x)
    return df.reduce_sum(y * y + 1.0), df.shape(y)


def in_a_branch(x):
    if df.reduce_sum(x) > 5.0:
        return df.reduce_sum(df.boolean_mask(x, x > 1.5))
    return df.reduce_sum(x)


@pytest.mark.parametrize("program", [positive, summed, in_a_branch, lambda x: df.where(x > 1.5)])
@pytest.mark.parametrize("x", [X, X * 0.0, X * 2.0])
def test_results_are_those_of_eager(program, x):
    result, expected = df.function(program)(x), program(x)
    for a, b in zip(leaves(result), leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def test_gradients_flow_through():
    f = df.function(lambda x: summed(x)[0])
    with df.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    assert tape.gradient(y, X).numpy().tolist() == [0.0, 4.0, 6.0]

    @df.function
    def slope(x):
        with df.GradientTape() as inner:
            inner.watch(x)
            y = summed(x)[0]
        return inner.gradient(y, x)

    assert slope(X).numpy().tolist() == [0.0, 4.0, 6.0]


def test_variables_hold_what_eager_would_have_left_after_an_error():
    v, w = df.Variable(1.0), df.Variable(5.0)

    @df.function
    def f(x):
        v.assign_add(1.0)
        w.assign(df.gather(positive(x), 1))

    f(X)
    assert (v.numpy(), w.numpy()) == (2.0, 3.0)
    with pytest.raises(IndexError):
        f(X * 0.0)
    assert (v.numpy(), w.numpy()) == (3.0, 3.0)


def test_results_share_no_memory():
    v = df.Variable(X)

    @df.function
    def f(x):
        return positive(x), x, v.value(), df.reshape(x, [3, 1])

    first = f(X)
    v.assign(X * 10.0)
    assert [t.numpy().ravel().tolist() for t in first[1:]] == [[1.0, 2.0, 3.0]] * 3


def sorted_in_a_branch(x):
    if df.reduce_sum(x) > 5.0:
        return df.sort(df.boolean_mask(x, x > 1.5))
    return x


@pytest.mark.llvm
def test_status_reports_why_numpy_runs_a_branch_and_strict_refuses():
    f = df.function(sorted_in_a_branch)
    f(X)
    assert "numpy: cond (it runs sort" in f.status()
    with pytest.raises(df.errors.FailedPreconditionError, match="it runs sort"):
        df.function(sorted_in_a_branch, strict=True)(X)


@pytest.mark.llvm
def test_a_branch_that_sorts_rows_of_a_size_from_data_is_the_only_part_that_numpy_runs():
    @df.function
    def largest_or_sum(x):
        if df.reduce_sum(x) > 5.0:
            return df.reduce_max(df.sort(df.boolean_mask(x, x > 1.5)))
        return df.reduce_sum(x)

    assert [float(largest_or_sum(X * by)) for by in (1.0, 0.5, 2.0)] == [3.0, 3.0, 6.0]
    assert "all_ops" not in largest_or_sum.status()
    assert "it runs sort" in largest_or_sum.status()


@pytest.mark.llvm  # the one backend that compiles data-dependent sizes
def test_strict_takes_what_is_machine_code():
    assert df.function(in_a_branch, strict=True)(X).numpy() == in_a_branch(X).numpy()


@pytest.mark.llvm
def test_a_short_mask_has_one_size_and_not_one_for_each_element():
    """A program of a sum of 64 sizes, each bound by a node, takes seconds to compile for 40 masks."""
    compiled = df.function(lambda x, mask: df.boolean_mask(x, mask) * 2.0)
    x = df.range(64.0)
    for count in (0, 1, 9, 64):
        np.testing.assert_array_equal(compiled(x, df.range(64) < count), np.arange(count) * 2.0)
    (trace,) = compiled.concrete_functions
    nodes = trace.compiled.graph_with_symbolic_sizes.nodes
    assert sum(node.op.name == "bind_size" for node in nodes) <= 3


@pytest.mark.llvm
def test_random_numbers_for_the_rows_of_an_argument_have_its_size():
    @df.function(input_signature=[df.TensorSpec([None, 3], df.float32)])
    def dropout(x):
        return df.where(df.random.stateless_uniform(df.shape(x), (1, 2)) < 0.5, x, 0.0)

    for count in (0, 1, 7):
        x = np.ones((count, 3), np.float32)
        kept = df.random.stateless_uniform([count, 3], (1, 2)).numpy() < 0.5
        np.testing.assert_array_equal(dropout(x), kept)
    nodes = dropout.concrete_functions[0].compiled.graph_with_symbolic_sizes.nodes
    assert [n.op.name for n in nodes if n.op.name in ("bind_size", "require_size")] == ["bind_size"]


@pytest.mark.llvm
def test_values_that_are_broadcast_again_and_again_have_one_size():
    """As in a recurrent layer; with a size for each step, a program of 12 steps takes 10 s to compile."""

    @df.function(input_signature=[df.TensorSpec([None], df.float32), df.TensorSpec([None], df.bool)])
    def scanned(x, mask):
        rows = df.boolean_mask(x, mask)
        state = df.zeros_like(x)
        for _ in range(8):
            state = rows * x + state
        return state

    x = np.arange(1.0, 4.0, dtype=np.float32)
    for mask in ([True, True, True], [False, True, False]):
        np.testing.assert_array_equal(scanned(x, df.constant(mask)), 8 * x * (x if all(mask) else 2.0))
    nodes = scanned.concrete_functions[0].compiled.graph_with_symbolic_sizes.nodes
    assert len({n.output.spec.shape for n in nodes if n.op.name in ("add", "multiply")}) == 1
