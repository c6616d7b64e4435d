"""Convolutions whose filter sizes are known only at run time, and random draws of such shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.function.calls.size_decisions import CallSizes
from dualflow.function.calls.symbolic_graph import with_symbolic_sizes
from dualflow.graph.options import CompileOptions
from dualflow.sizes.symbolic_sizes import SymInt

RANDOM = np.random.default_rng(3)
OPTIONS: dict[str, dict[str, Any]] = {
    "same": {"stride": 1, "padding": "SAME"},
    "strided": {"stride": 2, "padding": "VALID"},
    "strided, same": {"stride": 2, "padding": "SAME"},
    "dilated": {"stride": 1, "padding": "SAME", "dilations": 2},
}
OPEN = [df.TensorSpec([None, 9, 3]), df.TensorSpec([None, 3, 4])]


def drawn(*shape: int) -> Any:
    return df.constant(RANDOM.normal(size=shape), df.float32)


def convolved(options: dict[str, Any]) -> Callable[[Any, Any], Any]:
    return lambda x, w: df.nn.conv1d(x, w, **options)


def gradients(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return df.autodiff.grad(lambda x, w: df.reduce_sum(df.sin(function(x, w))), argnums=(0, 1))


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("of", [lambda f: f, gradients], ids=["values", "gradients"])
def test_a_filter_of_run_time_size_gives_what_a_known_one_gives(name: str, of: Any):
    function = of(convolved(OPTIONS[name]))
    traced = df.function(function, input_signature=OPEN)
    kept = df.function(lambda x, w: function(x, df.boolean_mask(w, w[:, 0, 0] > -99.0)))
    for length in (1, 2, 4):
        x, w = drawn(2, 9, 3), drawn(length, 3, 4)
        expected = df.nest.flatten(function(x, w))
        for compiled in (traced, kept):
            for actual, desired in zip(df.nest.flatten(compiled(x, w)), expected, strict=True):
                np.testing.assert_allclose(actual, desired, rtol=2e-4, atol=2e-5)
    assert traced.experimental_get_tracing_count() == 1


FILTERED: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "convolution": (lambda x, w: df.nn.conv2d(x, w, 1, "SAME"), (3, 2, 4)),
    "depthwise": (lambda x, w: df.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), (3, 2, 1)),
    "transposed": (lambda x, w: df.nn.conv2d_transpose(x, w, [x.shape[0], 12, 12, 3], 2), (3, 3, 2)),
    "dilation": (lambda x, w: df.nn.dilation2d(x, w, 1, "SAME", "NHWC", 1), (3, 2)),
}


@pytest.mark.parametrize("name", FILTERED)
def test_programs_of_automatic_sizes_have_windows_of_static_size(name: str):
    function, shape = FILTERED[name]
    f = df.function(function)
    for batch, height in ((2, 3), (4, 5), (6, 5), (6, 2), (7, 5), (5, 5)):
        x, w = drawn(batch, 6, 6, 2), drawn(height, *shape)
        np.testing.assert_allclose(f(x, w), function(x, w), rtol=1e-4, atol=1e-5)
    assert "w.shape[0] == 5" in f.explain()
    assert "the op at test_run_time_filters.py" in f.explain()
    assert "Python code needs" not in f.explain()
    trace = next(c for c in f.concrete_functions if c.guards.guards)
    call_sizes = CallSizes({(0, 0): 7, (1, 0): 5})
    sized = with_symbolic_sizes(trace.graph, CompileOptions(), guards=trace.guards, call_sizes=call_sizes)
    assert [type(v.spec.shape[0]) for v in sized.inputs] == [SymInt, int]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_generators_state_of_a_seed_of_run_time_size_is_that_of_a_known_one(count: int):
    specs = [df.TensorSpec([None], df.int64)]
    state = df.function(lambda seed: df.random.create_rng_state(seed, "philox"), input_signature=specs)
    seed = np.arange(7, 7 + count)
    np.testing.assert_array_equal(state(seed), df.random.create_rng_state(seed, "philox"))


def test_a_seed_of_run_time_size_is_compared_with_two():
    f = df.function(
        lambda seed: df.random.stateless_uniform([3], seed), input_signature=[df.TensorSpec([None], df.int32)]
    )
    np.testing.assert_array_equal(f([1, 2]), df.random.stateless_uniform([3], [1, 2]))
    with pytest.raises(df.errors.InvalidArgumentError, match="shape"):
        f([1, 2, 3])


@pytest.mark.parametrize(
    "draw",
    [
        df.random.normal,
        df.random.uniform,
        lambda shape: df.random.gamma(shape, 1.0),
        lambda shape: df.random.poisson(shape, 1.0),
        lambda shape: df.random.stateless_gamma(shape, [1, 2], 1.0),
        df.zeros,
    ],
)
def test_a_matrix_is_no_shape(draw: Callable[[Any], Any], mode: Any):
    with pytest.raises(df.errors.InvalidArgumentError, match="a tensor of one axis, not one of shape"):
        mode(draw)(df.constant([[2, 3], [4, 5]]))
