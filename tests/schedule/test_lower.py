"""Loop nests with several stages: the values that one run of the reduction loops leaves for the next."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.backend import build
from dualflow.graph.options import CompileOptions

SHAPE = (5, 37)


def exp_beside_a_sum(x):
    """The sum's own stage has no use for the exponential."""
    return df.exp(x) + df.reduce_sum(x, axis=1, keepdims=True)


def exp_within_a_sum(x):
    """The second stage reads back what the first one summed."""
    e = df.exp(x)
    return e / df.reduce_sum(e, axis=1, keepdims=True)


def exp_after_two_sums(x):
    """The last of three stages is the first that needs the exponential."""
    mean = df.reduce_mean(x, axis=1, keepdims=True)
    variance = df.reduce_mean((x - mean) ** 2, axis=1, keepdims=True)
    return df.exp(x) * variance


@pytest.mark.parametrize("function", [exp_beside_a_sum, exp_within_a_sum, exp_after_two_sums])
def test_a_costly_value_is_read_back_only_where_an_earlier_stage_kept_it(function):
    x = np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)
    executable = build(df.function(function).get_concrete_function(x).optimised_graph, CompileOptions())
    assert len(executable.program.kernels) == 1
    np.testing.assert_allclose(executable.run([x])[0], function(df.constant(x)).numpy(), rtol=1e-5)


@pytest.mark.parametrize("shape", [(5, 3), (40, 16), (9, 100), (7, 2, 33), (2, 30, 5)])
def test_a_costly_value_of_a_fold_of_columns_is_stored_a_vector_at_a_time(shape):
    """The lane loop, a kept one, may be the outermost or have others around it, and be cut short."""

    def chain(x):
        y = df.tanh(x)
        for _ in range(2):
            y = df.exp(y - df.reduce_mean(y, axis=-2, keepdims=True))
        return y

    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    executable = build(df.function(chain).get_concrete_function(x).optimised_graph, CompileOptions())
    (kernel,) = executable.program.kernels
    assert [v.node.op.name for v in kernel.lowered_nest().scratch_values] == ["tanh", "exp"]
    np.testing.assert_allclose(executable.run([x])[0], chain(df.constant(x)).numpy(), rtol=1e-5)
