"""NumPy functions on watched tensors run as ops; a function without an op warns at the user's line."""

from __future__ import annotations

import functools
import inspect
import operator
import warnings

import numpy as np
import pytest

import dualflow as df

X = df.constant([1.0, 2.0])
OTHER = df.constant([3.0, 4.0])


def heard(function, *values, **options):
    """The warnings of ``function`` under a tape that watches ``values``."""
    with warnings.catch_warnings(record=True) as caught, df.GradientTape(**options) as tape:
        warnings.simplefilter("always")
        for x in values:
            tape.watch(x)
        function(*values)
    return caught


def gradient(function, x=X):
    """The gradient of the sum of ``function``'s results, without a warning about NumPy."""
    with warnings.catch_warnings(), df.GradientTape() as tape:
        warnings.simplefilter("error")
        tape.watch(x)
        y = function(x)
        assert isinstance(y, df.Tensor)
    return tape.gradient(y, x).numpy()


# What runs as ops


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (np.sin, lambda x: np.cos(x)),
        (lambda x: np.add(np.ones(2), x), lambda x: np.ones(2)),
        (lambda x: np.ones(2) * 3.0 * x, lambda x: np.full(2, 3.0)),
        (lambda x: np.sum(x**2), lambda x: 2 * x),
        (lambda x: np.concatenate([x, np.ones(1), x]), lambda x: np.full(2, 2.0)),
        (lambda x: np.linalg.norm(x), lambda x: x / np.linalg.norm(x)),
        (lambda x: np.where(x > 1.5, x, 0.0), lambda x: np.array([0.0, 1.0])),
        (lambda x: np.fft.irfft(np.fft.rfft(x)), lambda x: np.ones(2)),
        (lambda x: np.mean(np.stack([x, x])), lambda x: np.full(2, 0.5)),
        (lambda x: np.multiply(x, x, dtype=np.float64), lambda x: 2 * x),
    ],
    ids=["ufunc", "with-array", "operator", "sum", "list", "linalg", "where", "fft", "nested", "dtype"],
)
def test_the_gradient_flows_through_numpy(function, slope):
    np.testing.assert_allclose(gradient(function), slope(X.numpy()), rtol=1e-6)


def test_variables_are_watched_as_tensors_are():
    v = df.Variable([0.0, 1.0])
    with df.GradientTape() as tape:
        y = np.sum(np.exp(v))
    np.testing.assert_allclose(tape.gradient(y, v).numpy(), np.exp([0.0, 1.0]), rtol=1e-6)


def test_higher_orders_flow_too():
    with df.GradientTape() as outer:
        outer.watch(X)
        slope = df.convert_to_tensor(0.0)
        with df.GradientTape() as inner:
            inner.watch(X)
            y = np.sum(np.power(X, 3.0))
        slope = inner.gradient(y, X)
    np.testing.assert_allclose(outer.gradient(slope, X).numpy(), 6 * X.numpy(), rtol=1e-6)


@pytest.mark.parametrize("unit", [np.float64, np.float32, np.int64])
def test_an_array_next_to_a_tensor_takes_its_precision(unit):
    array = np.ones(2, unit)
    with df.GradientTape() as tape:
        tape.watch(X)
        results = [array + X, np.add(array, X), np.maximum(array, X), np.arctan2(X, array)]
        if unit is not np.int64:
            results += [np.dot(array, X), np.concatenate([array, X])]
    assert {y.dtype for y in results} == {df.float32}


def test_an_update_in_place_binds_the_name_to_a_tensor():
    with df.GradientTape() as tape:
        tape.watch(X)
        y = before = np.ones(2, np.float32)
        y += X
    assert isinstance(y, df.Tensor)
    assert before.tolist() == [1.0, 1.0]
    assert tape.gradient(y, X).numpy().tolist() == [1.0, 1.0]


def test_an_update_in_place_binds_the_name_to_a_tensor_watched_or_not():
    with df.GradientTape() as tape:
        tape.watch(X)
        y = before = np.ones(2, np.float32)
        y += OTHER
    assert isinstance(y, df.Tensor)
    assert before.tolist() == [1.0, 1.0]


def test_an_out_that_is_the_left_operand_is_no_update_in_place():
    """NumPy passes both on with the same arguments; here the caller expects the array to be written."""
    array = np.ones(2, np.float32)
    with df.GradientTape() as tape:
        tape.watch(X)
        assert np.add(array, OTHER, out=array) is array
        assert array.tolist() == [4.0, 5.0]
        with pytest.raises(TypeError, match="takes no out="):
            np.add(array, X, out=array)
    assert array.tolist() == [4.0, 5.0]


def test_operators_called_as_functions_are_operators():
    with df.GradientTape() as tape:
        tape.watch(X)
        y = functools.reduce(operator.mul, [np.array([2.0, 2.0]), X, np.array([1.0, 1.0])])
    assert y.dtype == df.float32
    assert tape.gradient(y, X).numpy().tolist() == [2.0, 2.0]


# What is not watched is left to NumPy


@pytest.mark.parametrize(
    "function",
    [
        np.sin,
        np.mean,
        lambda x: np.add(x, 1),
        lambda x: np.concatenate([x, x]),
        lambda x: np.add.reduce(x),
        lambda x: np.multiply.outer(x, x),
        lambda x: np.add(x, x, out=np.zeros(2, np.float32)),
        lambda x: np.lexsort([x]),
    ],
)
def test_a_tensor_that_is_not_watched_gives_arrays(function):
    outside = function(OTHER)
    with df.GradientTape() as tape:
        tape.watch(X)
        inside = function(OTHER)
    assert type(inside) is type(outside)
    assert not isinstance(inside, df.Tensor)
    np.testing.assert_array_equal(inside, outside)


def test_an_operator_gives_a_tensor_watched_or_not():
    with df.GradientTape() as tape:
        tape.watch(X)
        assert isinstance(np.ones(2) + OTHER, df.Tensor)
        assert isinstance(np.ones(2) < OTHER, df.Tensor)


# What no op stands for


@pytest.mark.parametrize(
    "use",
    [np.asarray, np.array2string, lambda x: np.packbits(np.asarray(x) > 1), lambda x: np.asarray(x * 2.0)],
    ids=["array", "without equivalent", "converted", "of a result"],
)
def test_a_function_that_numpy_computes_warns(use):
    (warning,) = {str(w.message): w for w in heard(use, X)}.values()
    assert warning.category is UserWarning
    assert "has no gradient" in str(warning.message)


def test_the_warning_names_the_users_line():
    def use(x):
        y = x * 2.0
        return np.array2string(y)

    (warning,) = heard(use, X)
    assert warning.filename == __file__
    assert warning.lineno == inspect.getsourcelines(use)[1] + 2


def test_a_line_warns_once():
    with warnings.catch_warnings(record=True) as caught, df.GradientTape() as tape:
        warnings.simplefilter("default")
        tape.watch(X)
        for _ in range(3):
            np.asarray(X)
    assert len(caught) == 1


def test_variables_warn_as_tensors_do():
    v = df.Variable([1.0])
    assert len(heard(lambda: np.asarray(v))) == 1
    assert not heard(lambda: np.asarray(v), watch_accessed_variables=False)
    assert not heard(lambda: np.asarray(df.Variable([1.0], trainable=False)))


@pytest.mark.parametrize(
    "use",
    [
        lambda x: np.sin(x.numpy()),
        lambda x: np.asarray(df.stop_gradient(x)),
        lambda x: np.asarray(df.constant([3.0])),
        lambda x: np.take([5, 6], df.argmax(x)),
        lambda x: x * np.array([1.0, 2.0]),
        lambda x: (float(x[0]), 1.0 in x, x.tolist(), str(x), f"{x}"),
        lambda x: df.numpy_function(np.sin, [x], df.float32),
    ],
    ids=["numpy()", "stop_gradient", "unwatched", "integers", "operators", "Python", "numpy_function"],
)
def test_explicit_conversion_and_integers_do_not_warn(use):
    assert not heard(use, X)


def test_nothing_changes_outside_of_a_tape():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert type(np.sin(X)) is np.ndarray
        assert type(np.mean(X)) is np.float32
        assert type(np.concatenate([X, X])) is np.ndarray
        assert not hasattr(type(X), "__array_ufunc__")


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda x: np.add.reduce(x), "use a reduction such as np.sum"),
        (lambda x: np.add.accumulate(x), "use np.cumsum or np.cumprod"),
        (lambda x: np.multiply.outer(x, x), "np.newaxis"),
        (lambda x: np.add.at(np.zeros(2), [0], x[:1]), "use df.tensor_scatter_nd_add"),
        (lambda x: np.add.reduceat(x, [0]), "segment_sum"),
        (lambda x: np.add(x, 1.0, out=np.zeros(2, np.float32)), "takes no out="),
        (lambda x: np.add(x, 1.0, np.zeros(2, np.float32)), "takes no out="),
        (lambda x: np.add(np.ones(2), np.ones(2), out=x), "takes no out="),
        (lambda x: np.sum(x, out=np.zeros((), np.float32)), "takes no out="),
        (lambda x: np.add(x, 1.0, where=x > 1.0), "takes no where="),
        (lambda x: np.sin(x, order="F"), "takes no order="),
        (lambda x: np.bitwise_and(x, x), "does not take"),
    ],
)
def test_unsupported_attributes_name_an_alternative(use, words):
    with df.GradientTape() as tape:
        tape.watch(X)
        with pytest.raises(TypeError, match=words):
            use(X)
