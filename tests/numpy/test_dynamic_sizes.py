"""NumPy's functions that create arrays of the size of an argument: two traces serve all sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
import dualflow.numpy as dnp

FUNCTIONS: dict[str, Callable[[Any, Any, int], Any]] = {
    "eye": lambda xp, x, n: xp.eye(n),
    "eye of a diagonal": lambda xp, x, n: xp.eye(n, 3, k=1, dtype="int32"),
    "identity": lambda xp, x, n: xp.identity(n),
    "tri": lambda xp, x, n: xp.tri(n),
    "tri of a diagonal": lambda xp, x, n: xp.tri(3, n, k=-1, dtype="float32"),
    "indices": lambda xp, x, n: xp.indices((2, n))[1],
    "sparse indices": lambda xp, x, n: xp.indices((n, 2), sparse=True)[0],
    "fromfunction": lambda xp, x, n: xp.fromfunction(lambda i, j: i - j, (n, 2)),
    "linspace": lambda xp, x, n: xp.linspace(0.5, 2.0, n),
    "linspace without its end": lambda xp, x, n: xp.linspace(0.5, 2.0, n, endpoint=False),
    "linspace of arrays": lambda xp, x, n: xp.linspace(xp.zeros(2), xp.ones(2), n, axis=1),
    "linspace of integers": lambda xp, x, n: xp.linspace(0, 9, n, dtype="int64"),
    "arange": lambda xp, x, n: xp.arange(n),
    "arange of floats": lambda xp, x, n: xp.arange(0.5, n),
}
SIZES = (3, 0, 1, 2, 31, 32, 33)
SIZED_BY_DATA = {name for name in FUNCTIONS if name.startswith("linspace")} | {"arange of floats"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.llvm) if name in SIZED_BY_DATA else name for name in FUNCTIONS],
)  # Numba has no programs for sizes that depend on data
def test_two_traces_give_what_numpy_gives_for_all_sizes(name: str) -> None:
    function = FUNCTIONS[name]
    compiled = df.function(lambda x: function(dnp, x, x.shape[0]))
    for n in SIZES:
        x = np.ones(n, np.float32)
        expected = function(np, x, n)
        np.testing.assert_allclose(compiled(df.constant(x)).numpy(), expected, rtol=1e-6, strict=True)
    assert compiled.experimental_get_tracing_count() == 2
    assert sum(len(trace._specialisations) for trace in compiled.concrete_functions) <= 4


def test_random_numbers_have_the_size_of_the_call() -> None:
    compiled = df.function(lambda x: dnp.random.rand(x.shape[0], 2))
    assert [compiled(df.ones([n])).shape[0] for n in SIZES] == [*SIZES]
    assert compiled.experimental_get_tracing_count() == 2


def test_the_step_of_few_numbers_is_nan_as_in_numpy() -> None:
    step = df.function(lambda x: dnp.linspace(0.0, 1.0, x.shape[0], retstep=True)[1])
    for n in (3, 4, 1, 0):
        np.testing.assert_equal(float(step(df.ones([n]))), float(np.linspace(0.0, 1.0, n, retstep=True)[1]))


def test_the_size_that_a_signature_leaves_open_is_no_end_of_a_range() -> None:
    compiled = df.function(lambda x: dnp.arange(x.shape[0]), input_signature=[df.TensorSpec([None])])
    with pytest.raises(df.errors.DTypeError, match=r"not None\. .*use len\(x\)"):
        compiled(df.ones([3]))


MATRIX_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "diagonal": lambda xp, x: xp.diagonal(x, 1),
    "diagonal below": lambda xp, x: xp.diagonal(x, -2),
    "trace": lambda xp, x: xp.trace(x),
    "diag of a vector": lambda xp, x: xp.diag(x[0], -2),
    "einsum of a diagonal": lambda xp, x: xp.einsum("ii->i", x),
    "insert": lambda xp, x: xp.insert(x, [0, -1], 9, axis=1),
    "insert of a row": lambda xp, x: xp.insert(x, 1, x[0], axis=0),
    "delete": lambda xp, x: xp.delete(x, [0, -1], axis=1),
    "delete of a slice": lambda xp, x: xp.delete(x, slice(None, None, 2)),
    "pad with the edge": lambda xp, x: xp.pad(x, 2, mode="edge"),
    "pad by reflection": lambda xp, x: xp.pad(x, ((0, 5), (3, 0)), mode="reflect"),
    "pad by symmetry": lambda xp, x: xp.pad(x, 7, mode="symmetric"),
    "pad by repetition": lambda xp, x: xp.pad(x, (4, 5), mode="wrap"),
    "take_along_axis": lambda xp, x: xp.take_along_axis(x, xp.zeros((1, 1), int), axis=1),
    "resize": lambda xp, x: xp.resize(x, (4, 5)),
    "gradient": lambda xp, x: xp.gradient(x)[1],
    "convolve": lambda xp, x: xp.convolve(x[0], [1.0, 2.0, 0.5], mode="same"),
    "correlate": lambda xp, x: xp.correlate([1.0, 2.0, 0.5], x[0], mode="same"),
    "polyval": lambda xp, x: xp.polyval(x[0], 0.5),
    "polyadd": lambda xp, x: xp.polyadd(x[0], [1.0, 2.0, 3.0]),
    "polyder": lambda xp, x: xp.polyder(x[0]),
    "polyint": lambda xp, x: xp.polyint(x[0]),
    "unique rows": lambda xp, x: xp.unique(xp.round(x[0]), axis=0, return_counts=True)[1],
    "fftshift": lambda xp, x: xp.fft.fftshift(x),
    "matrix_power": lambda xp, x: xp.linalg.matrix_power(x, 0),
    "matrix_rank": lambda xp, x: xp.linalg.matrix_rank(x),
}


@pytest.mark.llvm  # Numba has no programs for sizes that depend on data
@pytest.mark.parametrize("name", MATRIX_FUNCTIONS)
def test_one_program_gives_what_numpy_gives_for_matrices_of_all_sizes(name: str) -> None:
    function = MATRIX_FUNCTIONS[name]
    compiled = df.function(
        lambda x: function(dnp, x), input_signature=[df.TensorSpec([None, None], df.float64)]
    )
    for n in (3, 2, 4, 31, 33):
        x = np.random.default_rng(n).standard_normal((n, n))
        np.testing.assert_allclose(compiled(df.constant(x)), function(np, x), rtol=1e-9, atol=1e-9)
    (trace,) = compiled.concrete_functions
    assert len(trace._specialisations) == 1


def test_a_size_that_is_too_small_is_an_error_of_the_call() -> None:
    signature = [df.TensorSpec([None])]
    for function, size in (
        (lambda x: dnp.gradient(x), 1),
        (lambda x: dnp.gradient(x), 0),
        (lambda x: dnp.gradient(x, df.constant([0.0, 1.0, 4.0])), 2),
        (lambda x: dnp.convolve(x, [1.0]), 0),
        (lambda x: dnp.pad(x, 1, mode="edge"), 0),
        (lambda x: dnp.pad(x, 1, mode="mean"), 0),
        (lambda x: dnp.insert(x, 3, 1.0), 2),
        (lambda x: dnp.delete(x, -3), 2),
        (lambda x: dnp.delete(x, [True, False, True]), 2),
    ):
        compiled = df.function(function, input_signature=signature)
        with pytest.raises(df.errors.InvalidArgumentError):
            compiled(df.ones([size]))


@pytest.mark.parametrize("power", [0, 1, 2])
def test_matrices_of_dynamic_sizes_have_powers_if_they_are_square(power: int) -> None:
    signature = [df.TensorSpec([None, 3])]
    compiled = df.function(lambda x: dnp.linalg.matrix_power(x, power), input_signature=signature)
    matrix = np.arange(9, dtype=np.float32).reshape(3, 3)
    np.testing.assert_array_equal(compiled(matrix), np.linalg.matrix_power(matrix, power))
    for rows in (0, 2):
        with pytest.raises(df.errors.InvalidArgumentError):
            compiled(matrix[:rows])


def test_a_deferred_call_may_have_inner_sizes_that_depend_on_data() -> None:
    counts = df.function(
        lambda x: dnp.unique(x, axis=0, return_counts=True)[1],
        input_signature=[df.TensorSpec([None, None])],
    )
    for x in ([[1.0, 2.0], [1.0, 2.0], [0.0, 2.0]], [[1.0], [1.0], [1.0]]):
        np.testing.assert_array_equal(counts(x), np.unique(x, axis=0, return_counts=True)[1])


def test_a_function_is_applied_along_an_axis_among_axes_of_any_sizes() -> None:
    compiled = df.function(
        lambda x: dnp.apply_along_axis(dnp.cumsum, 1, x), input_signature=[df.TensorSpec([None, None, 2])]
    )
    for rows, columns in ((3, 4), (1, 2), (5, 3), (2, 0)):
        x = np.arange(rows * columns * 2, dtype=np.float32).reshape(rows, columns, 2)
        np.testing.assert_array_equal(compiled(df.constant(x)), np.cumsum(x, 1))
    with pytest.raises(df.errors.InvalidArgumentError, match="There is no vector"):
        compiled(df.ones([0, 3, 2]))
