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


@pytest.mark.parametrize("name", FUNCTIONS)
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
