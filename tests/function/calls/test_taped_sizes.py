"""Calls under an eager tape: one forward and one backward program for all sizes of the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.function.calls.compiled_graph import CompiledGraph

SIZES = (0, 1, 2, 31, 32, 33, 64, 257, 1000, 5)
WEIGHTS = np.random.default_rng(0).standard_normal((8, 3))
Shapes = tuple[tuple[int | None, ...], ...]
N = None


def scan(x: Any) -> Any:
    total = df.zeros([8], df.float64)
    for row in x:
        total = df.tanh(total) * 0.5 + row
    return total


def written_rows(x: Any) -> Any:
    rows = df.TensorArray(df.float64, size=df.shape(x)[0], element_shape=[8])
    total = df.zeros([8], df.float64)
    for i in df.range(df.shape(x)[0]):
        total = df.tanh(total) * 0.5 + x[i]
        rows = rows.write(i, total)
    return rows.stack()


def ones_of_written_rows(x: Any) -> Any:
    """The result has the size of the rows, and reads none of their elements."""
    rows = df.TensorArray(df.float64, size=0, dynamic_size=True, element_shape=[8])
    for i in df.range(df.shape(x)[0]):
        rows = rows.write(i, x[i])
    return df.ones_like(rows.stack()) * df.reduce_sum(x)


@df.custom_gradient
def doubled_gradient(x: Any) -> Any:
    y = df.exp(x * 0.1)
    return y, lambda g: 2.0 * g * y


CASES: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "elementwise": (lambda x: df.tanh(x) * x, ((N,),)),
    "a sum, whose gradient reads no element": (df.reduce_sum, ((N, 8),)),
    "a mean of rows": (lambda x: df.reduce_mean(x, 0), ((N, 8),)),
    "softmax of rows": (lambda x: df.nn.softmax(x)[:, :3], ((N, 8),)),
    "a matrix product": (lambda x: df.tanh(x @ WEIGHTS), ((N, 8),)),
    "a product of dynamic sizes": (lambda x, y: df.tanh(x @ y), ((N, 4), (4, N))),
    "broadcast rows": (lambda x, y: (x + 1.0) * y, ((N, 3), (N, 1))),
    "slices and concatenation": (lambda x: df.concat([x[::2], x[:3] ** 2, -x], 0), ((N, 3),)),
    "sizes of results of their own": (lambda x: df.pad(df.repeat(df.sin(x), 2), [[1, 2]]), ((N,),)),
    "a reshape": (lambda x: df.reshape(x * x, [-1]) * 2.0, ((N, 3),)),
    "a host call": (lambda x: df.sort(x, 0) ** 2, ((N, 3),)),
    "gathered rows": (
        lambda x: df.gather(df.constant(WEIGHTS), df.cast(df.abs(x), df.int32) % 8) ** 2 * x[:, None],
        ((N,),),
    ),
    "a loop over rows": (scan, ((N, 8),)),
    "rows that a loop writes one by one": (written_rows, ((N, 8),)),
    "a size that a loop computes": (ones_of_written_rows, ((N, 8),)),
    "a branch": (lambda x: df.cond(df.reduce_sum(x) > 0.0, lambda: x * x, lambda: df.sin(x)), ((N,),)),
    "a number of rows": (
        lambda x: df.reduce_sum(x, 0) / (df.cast(df.shape(x)[0], df.float64) + 1.0),
        ((N, 3),),
    ),
    "a custom gradient": (lambda x: doubled_gradient(x) * x, ((N,),)),
    "several results": (lambda x: (df.exp(x * 0.1), df.reduce_sum(x), x[:, 0]), ((N, 3),)),
}


def arguments(shapes: Shapes, n: int) -> list[df.Tensor]:
    rng = np.random.default_rng(n)
    return [df.constant(rng.standard_normal([n if d is None else d for d in shape])) for shape in shapes]


def gradients(function: Callable[..., Any], inputs: list[df.Tensor]) -> tuple[Any, Any]:
    with df.GradientTape() as tape:
        tape.watch(inputs)
        values = function(*inputs)
        total = df.add_n([df.reduce_sum(df.sin(value)) for value in df.nest.flatten(values)])
    return values, tape.gradient(total, inputs, unconnected_gradients="zero")


def assert_close(computed: Any, expected: Any) -> None:
    for x, y in zip(df.nest.flatten(computed), df.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_eager_calls(name: str) -> None:
    function, shapes = CASES[name]
    compiled = df.function(function, input_signature=[df.TensorSpec(s, df.float64) for s in shapes])
    for n in SIZES:
        inputs = arguments(shapes, n)
        assert_close(gradients(compiled, inputs), gradients(function, inputs))


def test_a_custom_training_loop_has_one_program_for_all_batches() -> None:
    def trained(step: Callable[..., Any]) -> tuple[list[float], Any]:
        weights, count = df.Variable(WEIGHTS), df.Variable(0, dtype=df.int64)
        losses = []
        for n in SIZES:
            (x,) = arguments(((N, 8),), n)
            with df.GradientTape() as tape:
                loss = step(x, weights, count)
            gradient = tape.gradient(loss, weights)
            weights.assign_sub(0.1 * gradient)
            losses.append(float(loss))
        assert int(count) == sum(SIZES)
        return losses, weights.numpy()

    def step(x: Any, weights: Any, count: Any) -> Any:
        count.assign_add(df.cast(x.shape[0], df.int64))
        return df.reduce_sum(df.tanh(x @ weights) ** 2) / (x.shape[0] + 1)

    traced = df.function(step)
    assert_close(trained(traced), trained(step))
    assert traced.experimental_get_tracing_count() == 2


def test_second_derivatives_are_those_of_eager_calls() -> None:
    def second(function: Callable[..., Any], x: Any) -> Any:
        with df.GradientTape() as outer:
            outer.watch(x)
            with df.GradientTape() as inner:
                inner.watch(x)
                y = df.reduce_sum(function(x))
            slope = inner.gradient(y, x)
        return outer.gradient(slope, x, unconnected_gradients="zero")

    function, shapes = CASES["softmax of rows"]
    compiled = df.function(function, input_signature=[df.TensorSpec(s, df.float64) for s in shapes])
    for n in SIZES[:5]:
        (x,) = arguments(shapes, n)
        assert_close(second(compiled, x), second(function, x))


def test_sizes_that_do_not_fit_raise_the_error_of_the_op_and_assign_nothing() -> None:
    calls = df.Variable(0)

    def product(x: Any, y: Any) -> Any:
        calls.assign_add(1)
        return df.exp(x) @ y

    compiled = df.function(product, input_signature=[df.TensorSpec([None, None], df.float64)] * 2)
    gradients(compiled, [df.ones([2, 4], df.float64), df.ones([4, 3], df.float64)])
    for _ in range(2):
        with pytest.raises(df.errors.InvalidArgumentError, match="matmul"):
            gradients(compiled, [df.ones([2, 4], df.float64), df.ones([5, 3], df.float64)])
    assert int(calls) == 1


@pytest.mark.llvm  # Numba has no programs for sizes that depend on data
@pytest.mark.parametrize("name", CASES)
def test_calls_after_the_first_compile_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, shapes = CASES[name]
    compiled = df.function(function, input_signature=[df.TensorSpec(s, df.float64) for s in shapes])
    gradients(compiled, arguments(shapes, 7))
    created: list[df.Graph] = []
    create = CompiledGraph.__init__

    def noted(self: CompiledGraph, graph: df.Graph, *args: Any, **kwargs: Any) -> None:
        created.append(graph)
        create(self, graph, *args, **kwargs)

    monkeypatch.setattr(CompiledGraph, "__init__", noted)
    for n in SIZES:
        gradients(compiled, arguments(shapes, n))
    assert not created
