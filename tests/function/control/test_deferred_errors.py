"""Branches that aren't taken and loops without iterations, whose ops refuse the sizes of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df

Function = Callable[[Any], Any]


def _first_if_any(x: Any) -> Any:
    total = df.constant(0.0)
    if df.shape(x)[0] > 0:
        total = x[0] * 2.0
    return total


def _second_in_a_loop(x: Any) -> Any:
    total = df.constant(0.0)
    for i in df.range(df.shape(x)[0] - 1):
        total += x[i] * x[1]
    return total


def _second_in_a_branch_of_a_loop(x: Any) -> Any:
    total = df.constant(0.0)
    for i in df.range(df.shape(x)[0]):
        if df.shape(x)[0] > 1:
            total += x[i] * x[1]
        else:
            total += 1.0
    return total


PROGRAMS: dict[str, Function] = {
    "an index in a branch": _first_if_any,
    "an index in a loop": _second_in_a_loop,
    "an index in a branch of a loop": _second_in_a_branch_of_a_loop,
    "a branch by data": lambda x: df.cond(df.reduce_sum(x) > 1.0, lambda: x[1], lambda: df.constant(1.0)),
    "a branch of dynamic size": lambda x: df.cond(
        df.shape(x)[0] % 2 == 0, lambda: df.split(x, 2)[0], lambda: x * 2.0
    ),
    "either branch": lambda x: df.cond(
        df.shape(x)[0] == 3, lambda: x + df.constant([1.0, 2.0, 3.0]), lambda: x[:1] + x[0]
    ),
    "a while loop": lambda x: df.while_loop(
        lambda i, y: i < df.shape(x)[0] - 2,
        lambda i, y: (i + 1, y + x[2]),
        (df.constant(0), df.constant(0.0)),
    )[1],
    "a map": lambda x: df.map_fn(
        lambda row: row[0], x[:, None][:, : df.shape(x)[0]], fn_output_signature=df.TensorSpec([])
    ),
    "a map to a shape": lambda x: df.map_fn(
        lambda row: df.reshape(row, [1]), x[:, None], fn_output_signature=df.TensorSpec([1])
    ),
    "a scan": lambda x: df.scan(lambda total, row: total + row * x[0], x, 0.0),
    "a fold": lambda x: df.foldl(lambda total, row: total + row * x[0], x, 0.0),
    "a size that data decide": lambda x: df.cond(
        df.shape(x[x > 0.5])[0] > 2, lambda: x[x > 0.5][2] * x[2], lambda: df.constant(0.0)
    ),
}


def _gradient(function: Function) -> Function:
    def gradient(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            total = df.reduce_sum(function(x) ** 2)
        return tape.gradient(total, x, unconnected_gradients="zero")

    return gradient


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("change", [lambda f: f, _gradient], ids=["value", "gradient"])
def test_unfetched_ops_do_not_fail(name: str, change: Callable[[Function], Function]) -> None:
    function = change(PROGRAMS[name])
    traced = df.function(function, input_signature=[df.TensorSpec([None])])
    for size in (3, 0, 1, 2, 5):
        x = df.constant(np.random.default_rng(size).uniform(0.1, 1.0, size).astype(np.float32))
        try:
            expected = function(x)
        except df.errors.InvalidArgumentError:
            with pytest.raises(df.errors.InvalidArgumentError):
                traced(x)
        else:
            np.testing.assert_allclose(traced(x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_errors_of_a_run_name_the_line(backend: str) -> None:
    v = df.Variable(0.0)

    def program(x: Any, n: Any) -> Any:
        v.assign_add(1.0)
        if n > 0:
            v.assign_add(x[1])
        return v.value()

    traced = df.function(
        program, input_signature=[df.TensorSpec([None]), df.TensorSpec([], df.int32)], backend=backend
    )
    assert traced(df.ones([1]), df.constant(0)).numpy() == 1.0
    with pytest.raises(df.errors.OutOfRangeError, match="getitem") as caught:
        traced(df.ones([1]), df.constant(1))
    assert any(__file__ in note for note in caught.value.__notes__)
    assert v.numpy() == 2.0
    with pytest.raises(df.errors.OutOfRangeError, match="getitem"):
        traced(df.ones([1]), df.constant(1))


def test_a_cond_of_which_both_branches_refuse_the_sizes_fails() -> None:
    traced = df.function(
        lambda x: df.cond(df.reduce_sum(x) > 0.0, lambda: x[1], lambda: x[2]),
        input_signature=[df.TensorSpec([None])],
    )
    with pytest.raises(df.errors.OutOfRangeError, match="size 1"):
        traced(df.ones([1]))
