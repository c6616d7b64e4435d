"""Equal launches: those of equal layers share their kernels, each with its own buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.schedule.equal_launches import launch_key, with_buffers_of
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.lower import lower
from dualflow.schedule.program_statements import LaunchNest
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.schedule.structure import structure

Function = Callable[..., Any]


def launches(f: Function, *specs: df.TensorSpec) -> list[LaunchNest]:
    """The launches of a function, in order."""
    concrete = df.function(f, backend="llvm").get_concrete_function(*specs)
    return [k.statement for k in concrete.compiled.executable.program.kernels]


def layers(layer: Function) -> list[tuple[LaunchNest, LaunchNest]]:
    """The launches of a layer, each with that of the next layer."""
    square = df.TensorSpec([40, 40])
    both = launches(lambda x, w: layer(layer(x @ w) @ w), square, square)
    half = len(both) // 2
    return list(zip(both[:half], both[half:], strict=True))


def as_data(launch: KernelLaunch) -> Any:
    """A kernel and its arguments without the nodes that it computes."""
    scalars = [(x.dtype, x.tobytes()) for x in launch.scalars]
    fields = (
        launch.buffers,
        launch.parameters,
        launch.total,
        launch.work,
        launch.partials,
        launch.partial_size,
    )
    return structure(launch.kernel), scalars, fields, None if launch.join is None else as_data(launch.join)


def test_kernels_with_loops_in_reverse_have_their_own_offsets() -> None:
    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.math.cumprod(df.math.cumprod(x, 1, reverse=True), 1, reverse=True)
            z = df.math.cumprod(x * 0.5, 1, reverse=True)
        return tape.gradient([y, z], x)

    x = df.constant(np.random.default_rng(0).uniform(0.9, 1.1, (3, 7)))
    np.testing.assert_allclose(df.function(slope)(x), slope(x), rtol=1e-6)


@pytest.mark.parametrize(
    "layer",
    [
        df.tanh,
        df.nn.softmax,
        lambda x: x * 2.0 + 1.0,
        lambda x: x / df.reduce_sum(x),
        lambda x: x - df.reduce_mean(x, 0),
        lambda x: df.cumsum(x, 1),
        lambda x: df.transpose(x) + x,
        lambda x: df.concat([x[:, 20:], x[:, :20] * 2.0], 1) + 1.0,
        lambda x: df.gather(x, np.arange(40)[::-1].copy()) + x,
    ],
    ids=["tanh", "softmax", "numbers", "whole sum", "columns", "scan", "transposed", "pieces", "gather"],
)
def test_the_kernel_of_an_equal_launch_is_its_own_with_its_own_buffers(layer: Function) -> None:
    pairs = layers(layer)
    assert pairs
    for one, other in pairs:
        assert launch_key(one) == launch_key(other) is not None
        shared = with_buffers_of(other, one, kernel_launch(lower(*one), 16, 1))
        assert as_data(shared) == as_data(kernel_launch(lower(*other), 16, 1))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (df.tanh, df.sin),
        (lambda x: x * 2.0, lambda x: x * 3.0),
        (lambda x: x * 0.0, lambda x: x * -0.0),
        (lambda x: x - 1.0, lambda x: 1.0 - x),
        (lambda x: df.reduce_sum(x, 0), lambda x: df.reduce_sum(x, 1)),
        (lambda x: df.reduce_sum(x, 0), lambda x: df.reduce_max(x, 0)),
        (lambda x: x[:30] + 1.0, lambda x: x[:20] + 1.0),
        (lambda x: x[::2] + 1.0, lambda x: x[:20] + 1.0),
        (lambda x: x[:20] * x[20:], lambda x: x[:20] * x[:20]),
    ],
    ids=["op", "number", "sign of zero", "order", "axis", "reduction", "size", "stride", "operands"],
)
def test_launches_that_differ_in_more_than_buffers_are_not_equal(one: Function, other: Function) -> None:
    (first,), (second,) = (launches(f, df.TensorSpec([40, 40])) for f in (one, other))
    assert launch_key(first) != launch_key(second)


def test_a_launch_with_a_negative_stride_equals_none() -> None:
    (launch,) = launches(lambda x: x[::-1] + 1.0, df.TensorSpec([40]))
    assert launch_key(launch) is None


def test_a_failed_check_names_the_line_of_its_own_launch() -> None:
    @df.function
    def rows(x: Any, i: Any, j: Any) -> Any:
        first = df.gather(x, i) @ x
        return df.gather(first, j) @ x

    x, inside, outside = np.eye(4, dtype=np.float32), np.arange(4), np.full(4, 9)
    line = rows.python_function.__code__.co_firstlineno
    for indices, failing in (((outside, inside), line + 2), ((inside, outside), line + 3)):
        with pytest.raises(df.errors.OutOfRangeError, match=f"line {failing}"):
            rows(x, *indices)
