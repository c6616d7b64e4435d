"""The names of ``df.numpy``, their arguments, and what runs in place of NumPy's functions."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import dualflow as df
import dualflow.numpy as dnp
from dualflow.numpy.protocols import overrides

SPACES = {"": (dnp, np), "linalg.": (dnp.linalg, np.linalg), "fft.": (dnp.fft, np.fft)}
FUNCTIONS = {
    place + name: (getattr(ours, name), getattr(theirs, name))
    for place, (ours, theirs) in SPACES.items()
    for name in ours.__all__
    if inspect.isfunction(getattr(ours, name)) and callable(getattr(theirs, name, None))
}
"""Our functions and NumPy's of the same names."""
PLAIN = {name: pair for name, pair in FUNCTIONS.items() if not isinstance(pair[1], np.ufunc | type)}


def arguments(function: Any) -> list[tuple[str, Any]]:
    """Names and kinds of arguments, less the stars of options."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind) for p in parameters if p.kind is not p.VAR_KEYWORD and p.name != "ndmax"]


@pytest.mark.skipif(not np.__version__.startswith("2.4."), reason="the arguments are those of NumPy 2.4")
@pytest.mark.parametrize("name", PLAIN)
def test_arguments_have_numpys_names_and_order(name: str) -> None:
    ours, theirs = PLAIN[name]
    try:
        expected = arguments(theirs)
    except ValueError:
        return  # NumPy doesn't list them
    assert arguments(ours) == expected


@pytest.mark.parametrize("name", [name for name, pair in FUNCTIONS.items() if isinstance(pair[1], np.ufunc)])
def test_a_universal_function_is_numpys(name: str) -> None:
    ours, theirs = FUNCTIONS[name]
    if hasattr(ours, "ufunc"):
        assert ours.ufunc is theirs
        with pytest.raises(TypeError, match=f"takes {theirs.nin} inputs"):
            ours()


def test_every_universal_function_of_numbers_is_there() -> None:
    theirs = {name for name in np.__all__ if isinstance(getattr(np, name), np.ufunc)}
    assert theirs - set(dir(dnp)) == {"isnat"}


def test_every_function_that_requests_tensors_is_overridden() -> None:
    """The table is the namespace: nothing else lists functions."""
    for name, (_, theirs) in FUNCTIONS.items():
        if isinstance(theirs, np.ufunc) or hasattr(theirs, "_implementation"):
            assert theirs in overrides(), name


def test_dtypes_and_constants_are_numpys() -> None:
    for name in ("float64", "int8", "complex64", "bool_", "half", "double", "single", "int_"):
        assert getattr(dnp, name) == getattr(np, name)
    for name in ("pi", "e", "inf", "euler_gamma"):
        assert getattr(dnp, name) == getattr(np, name)
    assert dnp.newaxis is None
    assert np.isnan(dnp.nan)
    assert dnp.ndarray is df.Tensor


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: dnp.result_type(df.float32, 3.0), df.float32),
        (lambda: dnp.result_type(df.int32, df.float32), df.float64),
        (lambda: dnp.result_type(np.uint16, np.dtype("int32")), df.int32),
        (lambda: dnp.promote_types("int8", "uint8"), df.int16),
        (lambda: dnp.common_type([1, 2]), df.float64),
        (lambda: dnp.min_scalar_type(300), df.uint16),
        (lambda: dnp.dtype(float), df.float64),
        (lambda: dnp.can_cast(df.int32, df.float64), True),
        (lambda: dnp.issubdtype(df.float32, np.floating), True),
        (lambda: dnp.isdtype(df.float32, "real floating"), True),
        (lambda: dnp.finfo(df.float32).bits, 32),
        (lambda: dnp.iinfo(df.constant([1], df.int8)).max, 127),
    ],
)
def test_questions_about_dtypes(call: Any, expected: Any) -> None:
    assert call() == expected


def test_python_numbers_adapt_and_arrays_promote() -> None:
    x = df.constant([1.0, 2.0])
    assert dnp.add(x, 1.5).dtype == df.float32
    assert dnp.add(x, np.float64(1.5)).dtype == df.float64
    assert dnp.add(x, [1.5, 2.5]).dtype == df.float64
    assert dnp.add(df.constant([1]), 1.5).dtype == df.float64
    assert dnp.add(1, 2.5).dtype == df.float64
    assert not bool(dnp.equal(2, -2))
    assert dnp.mean(df.constant([1, 2])).dtype == df.float64
    assert dnp.sum(df.constant([1, 2], df.int8)).dtype == df.int64


def test_random_numbers() -> None:
    dnp.random.seed(3)
    first = [dnp.random.rand(2, 3), dnp.random.randn(4), dnp.random.randint(5, size=(100,))]
    dnp.random.seed(3)
    again = [dnp.random.rand(2, 3), dnp.random.randn(4), dnp.random.randint(5, size=(100,))]
    for a, b in zip(first, again, strict=True):
        assert a.numpy().tolist() == b.numpy().tolist()
    assert [x.dtype for x in first] == [df.float64, df.float64, df.int64]
    assert set(first[2].numpy().tolist()) == set(range(5))
    drawn = dnp.random.uniform(2.0, 3.0, 1000).numpy()
    assert drawn.min() >= 2.0
    assert drawn.max() < 3.0
    assert dnp.random.normal(10.0, 0.1, (50,)).shape == (50,)
    assert dnp.random.standard_normal().shape == ()
    assert dnp.random.random((2,)).shape == (2,)
    assert dnp.random.poisson(4.0, (3,)).dtype == df.int64


def test_variables_and_lists_of_tensors_are_taken() -> None:
    v = df.Variable([1.0, 2.0])
    assert float(dnp.sum(v)) == 3.0
    assert dnp.array([v, v]).shape == (2, 2)
    assert dnp.stack([[1, 2], v]).dtype == df.float64


def test_tensors_have_numpys_methods_where_a_program_requests_them() -> None:
    program = """
import dualflow as df, numpy as np
x = df.constant([[1.0, 2.0], [3.0, 4.0]])
df.numpy.experimental_enable_numpy_behavior()
print(x.sum(axis=0).numpy().tolist(), x.reshape(4, 1).shape, x.reshape((1, -1)).shape)
print(x.astype(int).dtype.name)
print(x.transpose(1, 0).numpy().tolist(), float(x.mean()), df.Variable(x).max().numpy(), x.flatten().shape)
print(df.function(lambda x: x.clip(2.0, 3.0).std(ddof=1))(x).shape)
v = x[0].copy()
products = [x @ v, v @ x, v @ v, np.ones([2, 2], np.float32) @ v]
products += [df.function(lambda v: x @ v)(v), df.Variable(x) @ v]
print([p.numpy().tolist() for p in products])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == [
        "[4.0, 6.0] (4, 1) (1, 4)",
        "int64",
        "[[1.0, 3.0], [2.0, 4.0]] 2.5 4.0 (4,)",
        "()",
        "[[5.0, 11.0], [7.0, 10.0], 5.0, [3.0, 3.0], [5.0, 11.0], [5.0, 11.0]]",
    ]


def test_importing_the_package_does_not_load_it() -> None:
    program = "import sys, dualflow; print('dualflow.numpy' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "False"
