"""A gradient does not flow through NumPy: a tape whose tensor goes there says so, at the user's line."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import dualflow as df

X = df.constant([1.0, 2.0])


def heard(function, *values, **options):
    """The warnings of ``function`` under a tape that watches ``values``."""
    with warnings.catch_warnings(record=True) as caught, df.GradientTape(**options) as tape:
        warnings.simplefilter("always")
        for x in values:
            tape.watch(x)
        function(*values)
    return caught


@pytest.mark.parametrize(
    "use",
    [
        np.sin,
        np.mean,
        np.asarray,
        lambda x: np.add(np.ones(2), x),
        lambda x: np.concatenate([x, x]),
        lambda x: np.linalg.norm(x * 2.0),
    ],
    ids=["ufunc", "function", "array", "beside an array", "in a list", "of a result"],
)
def test_numpy_on_a_watched_tensor_warns(use):
    (warning,) = {str(w.message): w for w in heard(use, X)}.values()
    assert warning.category is UserWarning
    assert "no gradient flows" in str(warning.message)
    assert "df.sin for np.sin" in str(warning.message)


def test_the_warning_names_the_users_line():
    def use(x):
        y = x * 2.0
        return np.linalg.norm(np.sin(y))

    (warning,) = heard(use, X)
    assert warning.filename == __file__
    assert warning.lineno == inspect.getsourcelines(use)[1] + 2


def test_a_line_warns_once():
    with warnings.catch_warnings(record=True) as caught, df.GradientTape() as tape:
        warnings.simplefilter("default")
        tape.watch(X)
        for _ in range(3):
            np.sin(X)
    assert len(caught) == 1


def test_variables_warn_as_tensors_do():
    v = df.Variable([1.0])
    assert len(heard(lambda: np.sin(v))) == 1
    assert not heard(lambda: np.sin(v), watch_accessed_variables=False)
    assert not heard(lambda: np.sin(df.Variable([1.0], trainable=False)))


@pytest.mark.parametrize(
    "use",
    [
        lambda x: np.sin(x.numpy()),
        lambda x: np.sin(df.stop_gradient(x)),
        lambda x: np.sin(df.constant([3.0])),
        lambda x: np.take([5, 6], df.argmax(x)),
        lambda x: x * np.array([1.0, 2.0]),
        lambda x: (float(x[0]), 1.0 in x, x.tolist(), str(x), f"{x}"),
        lambda x: df.numpy_function(np.sin, [x], df.float32),
    ],
    ids=["numpy()", "stop_gradient", "unwatched", "integers", "operators", "Python", "numpy_function"],
)
def test_what_says_or_needs_no_gradient_does_not_warn(use):
    assert not heard(use, X)


def test_nothing_is_said_outside_of_a_tape():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert type(np.sin(X)) is np.ndarray
