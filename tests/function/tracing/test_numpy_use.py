"""NumPy functions on symbolic tensors run as ops; for one without an op the error names a replacement."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy import asarray as as_array

import dualflow as df
from dualflow.function import SymbolicValueError
from dualflow.function.tracing.numpy_use import replacement


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sin(x),
        np.sum,
        lambda x: np.mean(x, axis=0),
        lambda x: np.dot(np.ones((3, 2)), x),
        lambda x: np.stack([x, np.zeros(2)]),
        lambda x: np.linalg.norm(x),
        lambda x: np.percentile(x, 50.0),
        lambda x: np.ones(2) - x,
        lambda x: np.where(x > 1.0, np.log(x), -x),
        lambda x: np.reshape(x, (np.size(x), np.ndim(x))),
    ],
)
def test_a_numpy_function_compiles(function):
    x = np.array([1.0, 2.0], np.float64)
    result = df.function(function)(df.constant(x))
    np.testing.assert_allclose(result.numpy(), function(x), rtol=1e-12)


def test_variables_and_updates_in_place_compile():
    v = df.Variable([1.0, 2.0])

    @df.function
    def f(x):
        total = np.zeros(2, np.float32)
        total += np.exp(v)
        total += x
        return np.sum(total)

    assert float(f(df.ones([2]))) == pytest.approx(float(np.exp([1.0, 2.0]).sum() + 2), rel=1e-6)


def test_conditions_of_numpy_functions_are_converted():
    @df.function
    def f(x):
        if np.sum(x) > 0.0:
            return np.sqrt(x)
        return np.zeros(2, np.float32) - x

    assert f(df.constant([1.0, 4.0])).numpy().tolist() == [1.0, 2.0]
    assert f(df.constant([-1.0, -4.0])).numpy().tolist() == [1.0, 4.0]


def test_numpy_functions_of_constants_run_while_tracing():
    constant = df.constant([1.0, 2.0])
    types = []

    @df.function
    def f(x):
        types.append(type(np.sin(constant)))
        return x + np.sin(constant)

    f(df.ones([2]))
    assert types == [np.ndarray]


def test_tensors_of_a_graph_take_numpy_functions():
    with df.compat.v1.Graph().as_default():
        x = df.compat.v1.placeholder(df.float32, [2])
        y = np.sum(np.exp(x))
        with df.compat.v1.Session() as session:
            assert session.run(y, {x: [0.0, 0.0]}) == 2.0


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: np.asarray(x), "instead of np.asarray use df.convert_to_tensor,"),
        (lambda x: as_array(x), "instead of np.asarray use df.convert_to_tensor,"),
        (lambda x: np.array(x) if x[0] > 0.0 else x, "instead of np.array use df.constant,"),
        (lambda x: np.array2string(x), "np.array2string has no equivalent in df.numpy"),
        (lambda x: np.packbits(x), "np.packbits has no equivalent in df.numpy"),
    ],
)
def test_the_error_names_the_function_to_use(function, words):
    with pytest.raises(SymbolicValueError) as caught:
        df.function(function)(df.ones([2]))
    assert words in str(caught.value)
    assert "df.numpy_function" in str(caught.value)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "prod", "all", "absolute", "power", "concatenate"])
def test_named_files_exist(name):
    _, _, path = str(replacement(name)).partition("df.")
    assert callable(getattr(df, path))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("item", r"has no \.item\(\) while"),
        ("tolist", r"has no \.tolist\(\) while"),
        ("sum", "no attribute 'sum': use df.reduce_sum"),
        ("astype", "no attribute 'astype': use df.cast"),
        ("tobytes", "no attribute 'tobytes'"),
        ("nothing", "no attribute 'nothing'"),
    ],
)
def test_the_methods_of_arrays_are_refused_with_advice(name, words):
    with pytest.raises(AttributeError, match=words):
        df.function(lambda x: getattr(x, name)())(df.ones([2]))


def test_code_without_source_is_reported_what_is_known(tmp_path: Path):
    code = "exec('import dualflow as df, numpy as np\\ndf.function(lambda x: np.asarray(x))(df.ones([2]))')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "use df's functions, or hand the values to NumPy with df.numpy_function" in done.stderr


def test_python_runs_once_before_the_error():
    ran = []

    @df.function
    def f(x):
        ran.append(1)
        return np.asarray(x)

    with pytest.raises(SymbolicValueError):
        f(df.ones([2]))
    assert ran == [1]


@pytest.mark.parametrize("ufunc", [np.exp, np.add, np.matmul, np.hypot, np.divmod])
def test_a_ufunc_compiles_as_it_is(ufunc):
    x = df.constant([[1.0, 2.0], [3.0, 5.0]])
    compiled = df.function(ufunc)(*[x] * ufunc.nin)
    np.testing.assert_allclose(compiled, ufunc(*[x.numpy()] * ufunc.nin), rtol=1e-6)


def test_transforms_take_ufuncs():
    x = df.constant(0.5)
    expected = 1.0 - np.tanh(0.5) ** 2
    assert float(df.autodiff.grad(np.tanh)(x)) == pytest.approx(expected)
    assert float(df.function(df.autodiff.grad(np.tanh))(x)) == pytest.approx(expected)
    np.testing.assert_allclose(df.vectorized_map(np.exp, df.ones([3])), np.exp(np.ones(3)), rtol=1e-6)


def test_a_tensor_written_into_an_array_reports_what_to_do():
    y = np.zeros(3)

    @df.function
    def f(x):
        for i in range(3):
            y[i] = x[i]  # this line
        return y

    line = f.python_function.__code__.co_firstlineno + 3
    with pytest.raises(NotImplementedError, match=r"written into a NumPy array.*df\.stack") as caught:
        f(df.ones([3]))
    assert f'File "{__file__}", line {line}, in ' in str(caught.value)


def test_a_value_error_of_the_users_stays_as_it_is():
    @df.function
    def f(x):
        raise ValueError("setting an array element with a sequence.")

    with pytest.raises(ValueError, match=r"^setting an array element with a sequence\.$"):
        f(df.ones([3]))
