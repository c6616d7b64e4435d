"""NumPy's functions, and the methods of arrays, on tensors without a value: the error names what to use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy import sum as total
from numpy.linalg import norm

import dualflow as df
from dualflow.function import SymbolicValueError
from dualflow.function.tracing.numpy_use import replacement


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: np.sum(x), "instead of np.sum use df.reduce_sum,"),
        (lambda x: np.mean(x, axis=0), "instead of np.mean use df.reduce_mean,"),
        (lambda x: np.sin(x), "instead of np.sin use df.sin,"),
        (lambda x: np.absolute(x), "instead of np.absolute use df.abs,"),
        (lambda x: np.dot(x, x), "instead of np.dot use df.tensordot,"),
        (lambda x: np.stack([x, x]), "instead of np.stack use df.stack,"),
        (lambda x: total(x), "instead of np.sum use df.reduce_sum,"),
        (lambda x: norm(x), "instead of np.norm use df.norm,"),
        (lambda x: np.percentile(x, 50), "instead of np.percentile hand the values to NumPy"),
        (lambda x: np.sum(x) if x[0] > 0.0 else x, "instead of np.sum use df.reduce_sum,"),
        (lambda x: np.exp(x) if x[0] > 0.0 else x, "instead of np.exp use df.exp,"),
    ],
)
def test_the_error_names_the_function_to_use(function, words):
    with pytest.raises(SymbolicValueError) as caught:
        df.function(function)(df.ones([2]))
    assert words in str(caught.value)
    assert "df.numpy_function" in str(caught.value)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "prod", "all", "absolute", "power", "concatenate"])
def test_what_is_named_exists(name):
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


def test_code_without_source_is_told_what_is_known(tmp_path: Path):
    code = "exec('import dualflow as df, numpy as np\\ndf.function(lambda x: np.sin(x))(df.ones([2]))')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "use df's functions, or hand the values to NumPy with df.numpy_function" in done.stderr


def test_python_runs_once_before_the_error():
    ran = []

    @df.function
    def f(x):
        ran.append(1)
        return np.sum(x)

    with pytest.raises(SymbolicValueError):
        f(df.ones([2]))
    assert ran == [1]
