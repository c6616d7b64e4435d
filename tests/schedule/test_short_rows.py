"""Rows that fit into one vector: their statements, and that no row depends on its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import Load, Once, RowGroups, ScratchBuffer, Store, walk_kernel
from dualflow.schedule.select_kernel import kernel_launch

Function = Callable[[Any], Any]


def layer_norm(x: Any) -> Any:
    centred = x - df.reduce_mean(x, -1, keepdims=True)
    return centred * df.rsqrt(df.reduce_mean(centred * centred, -1, keepdims=True) + 1e-3)


def with_noise(x: Any) -> Any:
    noise = df.random.stateless_uniform(x.shape, [1, 2], dtype=x.dtype)
    return x * noise - df.reduce_sum(x + noise, -1, keepdims=True)


def of_one_row(x: Any) -> Any:
    """Reads a row that all rows share, and a column of which each row has an element."""
    return df.nn.softmax(x * x[:1]) + x[:, :1]


FUNCTIONS: dict[str, Function] = {
    "softmax": df.nn.softmax,
    "layer norm": layer_norm,
    "largest": lambda x: df.reduce_max(x, -1),
    "position of the largest": lambda x: df.argmax(x, -1),
    "all positive": lambda x: df.reduce_all(x > 0, -1),
    "counts": lambda x: df.cast(x > 0, "int32") + df.math.count_nonzero(x > 0, -1, True, "int32"),
    "logarithm of a sum": lambda x: df.reduce_logsumexp(x, -1),
    "noise": with_noise,
    "a row for all": of_one_row,
    "gradient": df.autodiff.grad(lambda x: df.reduce_sum(df.nn.softmax(x) ** 2)),
    "three axes": lambda x: df.nn.softmax(df.stack([x, x * 2.0], 1) + x[:, None]),
    "columns of a matrix": lambda x: layer_norm(df.transpose(x)),
}


def run(f: Function, *shape: int, rows: int) -> KernelLaunch:
    """The one kernel of a function of a float32 tensor, with `rows` rows side by side."""
    concrete = df.function(f).get_concrete_function(df.TensorSpec(shape))
    (kernel,) = concrete.compiled.executable.program.kernels
    return kernel_launch(kernel.lowered_nest(), 16, rows)


def values(rows: int, columns: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(rows * 100 + columns).uniform(-2, 2, (rows, columns)).astype(dtype)


@pytest.mark.parametrize("rows", [1, 4])
def test_stages_of_a_short_row_share_registers(rows: int) -> None:
    body = run(df.nn.softmax, 64, 10, rows=rows).kernel.body
    kinds = [type(s) for s in walk_kernel(body)]
    assert ScratchBuffer not in kinds
    assert (kinds.count(Load), kinds.count(Store), kinds.count(Once)) == (1, 1, 3)


def test_rows_run_side_by_side_in_the_last_of_the_loops_over_rows() -> None:
    (outer,) = run(lambda x: df.reduce_sum(df.transpose(x, [1, 0, 2]), -1), 6, 7, 10, rows=4).kernel.body
    (group,) = [s for s in walk_kernel((outer,)) if isinstance(s, RowGroups)]
    assert group.width == 4
    assert not any(isinstance(s, RowGroups) for s in walk_kernel(group.body))


def test_a_vector_that_a_row_fills_has_no_mask() -> None:
    (full,) = {
        s.full for s in walk_kernel(run(df.nn.softmax, 64, 16, rows=2).kernel.body) if isinstance(s, Once)
    }
    (masked,) = {
        s.full for s in walk_kernel(run(df.nn.softmax, 64, 15, rows=2).kernel.body) if isinstance(s, Once)
    }
    assert (full, masked) == (True, False)


@pytest.mark.parametrize("rows", [0, 2])
def test_longer_rows_have_a_loop(rows: int) -> None:
    kinds = [type(s) for s in walk_kernel(run(df.nn.softmax, 64, 17, rows=rows).kernel.body)]
    assert Once not in kinds
    assert RowGroups not in kinds


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_short_rows_of_any_number_are_what_eager_code_computes(name: str, dtype: str) -> None:
    f = FUNCTIONS[name]
    tolerance = 2e-2 if dtype == "float16" else 1e-5
    for rows, columns in ((2, 8), (3, 16), (8, 5), (9, 8), (33, 2), (70, 13)):
        x = df.constant(values(rows, columns, dtype))
        np.testing.assert_allclose(df.function(f)(x), f(x), rtol=tolerance, atol=tolerance, strict=True)


@given(st.integers(2, 40), st.integers(2, 16), st.data())
@settings(deadline=None, max_examples=40)
def test_a_row_does_not_depend_on_those_next_to_it(rows: int, columns: int, data: st.DataObject) -> None:
    """Rows of nan and infinity around a row leave its bits as they are."""
    f = df.function(FUNCTIONS[data.draw(st.sampled_from(["softmax", "layer norm", "logarithm of a sum"]))])
    row = data.draw(st.integers(0, rows - 1))
    x = values(rows, columns)
    others = np.full_like(x, data.draw(st.sampled_from([np.nan, np.inf, 0.0])))
    others[row] = x[row]
    assert f(df.constant(x)).numpy()[row].tobytes() == f(df.constant(others)).numpy()[row].tobytes()


@pytest.mark.parametrize("columns", [5, 8])
def test_a_check_reads_only_the_elements_of_its_rows(columns: int) -> None:
    """Lanes past the end of a row hold zeros, whose inverses fail no check."""

    @df.function
    def inverses(x: Any) -> Any:
        return df.reduce_sum(df.debugging.check_numerics(1.0 / x, "a zero"), -1)

    x = np.ones((11, columns), np.float32)
    np.testing.assert_array_equal(inverses(df.constant(x)), np.full(11, columns, np.float32))
    x[10, columns - 1] = 0
    with pytest.raises(df.errors.InvalidArgumentError, match="a zero"):
        inverses(df.constant(x))


def test_a_variable_of_short_rows_is_updated_in_place() -> None:
    weights = df.Variable(values(11, 6))
    expected = weights.numpy()

    @df.function
    def normalise() -> None:
        weights.assign(weights / (df.norm(weights, axis=1, keepdims=True) + 1.0))

    for _ in range(3):
        normalise()
        expected = expected / (np.linalg.norm(expected, axis=1, keepdims=True) + 1)
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
