"""Functions with dynamic sizes on the Numba backend: one program for all sizes of arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df

SIZES = (6, 0, 1, 33, 4)


def rows(n: int) -> Any:
    return df.constant(np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32))


def test_kernels_and_host_calls_read_the_sizes_of_each_call() -> None:
    def ordered(x: Any) -> Any:
        return df.concat([df.sort(x, 0)[::-1], df.tile(x * 2.0, [2, 1])], 0)

    compiled = df.function(ordered, input_signature=[df.TensorSpec([None, 3])], backend="numba")
    for n in SIZES:
        np.testing.assert_array_equal(compiled(rows(n)), ordered(rows(n)))
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1


def test_a_tape_around_a_call_has_one_forward_and_one_backward_program() -> None:
    def loss(x: Any) -> Any:
        return df.reduce_sum(df.math.top_k(x, 2)[0] * x[:, :2])

    def slope(function: Any, x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    compiled = df.function(loss, input_signature=[df.TensorSpec([None, 3])], backend="numba")
    for n in SIZES:
        np.testing.assert_allclose(slope(compiled, rows(n)), slope(loss, rows(n)), rtol=1e-6)
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1


def test_a_guard_selects_the_program() -> None:
    def ordered(x: Any) -> Any:
        return df.sort(x, 0) if x.shape[0] > 3 else df.sort(x, 1)

    compiled = df.function(ordered, backend="numba")
    for n in (4, 5, 6, 2, 3, 9, 1):
        np.testing.assert_array_equal(compiled(rows(n)), ordered(rows(n)))
    assert compiled.experimental_get_tracing_count() == 3


def test_sizes_that_do_not_fit_raise_the_error_of_the_op() -> None:
    signature = [df.TensorSpec([None]), df.TensorSpec([None])]
    product = df.function(lambda x, y: df.sort(x) * y, input_signature=signature, backend="numba")
    for n in (2, 3, 1):
        np.testing.assert_array_equal(product(df.ones([n]), df.ones([3 * n])[:n]), np.ones(n))
        with pytest.raises(df.errors.InvalidArgumentError, match="multiply"):
            product(df.ones([n + 1]), df.ones([n + 2]))
