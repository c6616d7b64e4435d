"""Depthwise convolutions, summed window by window without a copy, zero padding included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.backend import build
from dualflow.backends.llvm.product import gemm_or_blas
from dualflow.graph.capabilities import CacheBytes, Capabilities
from dualflow.graph.options import CompileOptions
from dualflow.schedule.operands import CallKind
from dualflow.schedule.sliding import WINDOW_SUM

pytestmark = pytest.mark.skipif(
    not gemm_or_blas.uses_own_gemm(), reason="NumPy's BLAS reads no windows, so neither do sums"
)

Array = np.ndarray[Any, Any]
GEOMETRIES = [
    # image, size, strides, dilations, padding
    ((2, 9, 15, 16), (3, 3), (1, 1), (1, 1), "SAME"),  # windows side by side, and some left over
    ((2, 9, 21, 35), (3, 3), (1, 1), (1, 1), "SAME"),  # channels that no vector divides
    ((1, 15, 40, 32), (5, 3), (2, 2), (1, 1), "SAME"),
    ((2, 15, 30, 16), (3, 3), (1, 1), (2, 2), "SAME"),
    ((3, 5, 23, 19), (2, 4), (1, 1), (1, 1), "VALID"),
    ((1, 2, 2, 16), (5, 5), (1, 1), (1, 1), "SAME"),  # no window lies inside
    ((1, 1, 3, 16), (1, 3), (1, 1), (1, 1), "VALID"),
    ((1, 4, 25, 20), (2, 13), (1, 1), (1, 2), "SAME"),  # a row of the filter that goes by element by element
    ((1, 9, 17, 16), (2, 2), (3, 3), (1, 1), "VALID"),  # rows and columns that no window sees
]


def integers(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """Numbers whose products and sums are exact in any order."""
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype(dtype)


def depthwise(strides: Any, dilations: Any, padding: str) -> Any:
    return df.function(
        lambda x, w: df.nn.depthwise_conv2d(x, w, [1, *strides, 1], padding, dilations=dilations)
    )


def kinds(f: Any, *inputs: Array) -> list[CallKind]:
    concrete = f.get_concrete_function(*[df.TensorSpec(x.shape, x.dtype) for x in inputs])
    return [call.kind for call in concrete.compiled.executable.plan.calls]


def by_position(x: Array, w: Array, strides: Any, dilations: Any, padding: str) -> Array:
    """The sums by NumPy: each element of the filter times all places that it meets."""
    (height, width), around = w.shape[:2], []
    spans = [(n - 1) * d + 1 for n, d in zip((height, width), dilations, strict=True)]
    for size, span, stride in zip(x.shape[1:3], spans, strides, strict=True):
        count = -(-size // stride) if padding == "SAME" else (size - span) // stride + 1
        missing = max(0, (count - 1) * stride + span - size)
        around.append((missing // 2, missing - missing // 2, count))
    wide = np.pad(x, [(0, 0), *[pair[:2] for pair in around], (0, 0)]).astype(np.float64)
    rows, columns = [a[2] for a in around]
    total = np.zeros((len(x), rows, columns, x.shape[3]))
    for i in range(height):
        for j in range(width):
            down, across = i * dilations[0], j * dilations[1]
            met = wide[:, down:, across:][:, :: strides[0], :: strides[1]][:, :rows, :columns]
            total += met * w[i, j, :, 0]
    return total


@pytest.mark.parametrize(("shape", "size", "strides", "dilations", "padding"), GEOMETRIES)
def test_sums_are_those_of_each_place(
    shape: Any, size: Any, strides: Any, dilations: Any, padding: str
) -> None:
    f, x, w = depthwise(strides, dilations, padding), integers(shape), integers((*size, shape[3], 1))
    assert kinds(f, x, w) == [CallKind.WINDOW_SUM]
    np.testing.assert_array_equal(f(x, w), by_position(x, w, strides, dilations, padding))


def test_doubles_and_grouped_convolutions_along_one_axis() -> None:
    x, w = integers((2, 30, 24), np.float64), integers((3, 1, 24), np.float64)
    f = df.function(lambda x, w: df.nn.conv1d(x, w, 1, "SAME"))
    assert kinds(f, x, w) == [CallKind.WINDOW_SUM]
    expected = by_position(x[:, None], w[None, :, 0, :, None], (1, 1), (1, 1), "SAME")
    np.testing.assert_array_equal(f(x, w), expected[:, 0])


@pytest.mark.parametrize("channels", [64, 40])
def test_results_larger_than_half_of_the_last_cache_are_stored_past_it(channels: int) -> None:
    """Whole vectors of them are; what other threads read next is there."""
    last = 1 << 24
    columns = last // 8 // channels + 5
    x, w = integers((1, 2, columns + 2, channels)), integers((1, 3, channels, 1))
    f = df.function(lambda x, w: (y := df.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "VALID"), df.reduce_max(y)))
    graph = f.get_concrete_function(x, w).optimised_graph
    streaming, storing = (
        build(graph, CompileOptions(capabilities=Capabilities(cache_bytes=CacheBytes(1 << 15, size))))
        for size in (last, 8 * last)
    )
    assert streaming.image.params.tolist() != storing.image.params.tolist()
    first, second, third = w[0, ..., 0]
    expected = x[:, :, :-2] * first + x[:, :, 1:-1] * second + x[:, :, 2:] * third
    assert last // 2 <= expected.nbytes < 4 * last
    for executable in (streaming, storing):
        sums, largest = executable.run([x, w])
        np.testing.assert_array_equal(sums, expected)
        assert largest == expected.max()


def test_zero_padding_is_multiplied_by_the_filter() -> None:
    """Zero times infinity is nan at the border, as in a copy with zeros around."""
    w = np.zeros((3, 3, 16, 1), np.float32)
    w[0, 0] = np.inf
    result = depthwise((1, 1), (1, 1), "SAME")(np.ones((1, 4, 9, 16), np.float32), w).numpy()
    inside = np.zeros((4, 9), bool)
    inside[1:, 1:] = True
    np.testing.assert_array_equal(np.isnan(result).any((0, 3)), ~inside)
    assert (result[:, inside] == np.inf).all()


def test_its_bits_are_those_of_the_loops() -> None:
    """The largest window that a routine supports, and one with one more factor, which only loops support."""
    x = np.random.default_rng(0).standard_normal((2, 12, 30, 16)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((8, 8, 16, 1)).astype(np.float32)
    sums = depthwise((1, 1), (1, 1), "SAME")
    loops = df.function(lambda x, w, one: df.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME") * one)
    one = np.ones((2, 12, 30, 16), np.float32)
    assert CallKind.WINDOW_SUM not in kinds(loops, x, w, one)
    assert kinds(sums, x, w) == [CallKind.WINDOW_SUM]
    np.testing.assert_array_equal(sums(x, w), loops(x, w, one))


def test_one_program_sums_the_windows_of_a_batch_of_any_size() -> None:
    f = df.function(
        lambda x, w: df.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
        input_signature=[df.TensorSpec([None, 9, 9, 16]), df.TensorSpec([3, 3, 16, 1])],
    )
    w = integers((3, 3, 16, 1))
    for batch in (3, 0, 1, 70):
        x = integers((batch, 9, 9, 16))
        np.testing.assert_array_equal(f(x, w), by_position(x, w, (1, 1), (1, 1), "SAME"))
    calls = f.concrete_functions[0].compiled.executable.plan.calls
    assert [call.kind for call in calls if call.kind is not CallKind.MEASURE] == [CallKind.WINDOW_SUM]


def test_gradients_are_such_sums_too() -> None:
    def data_gradient(x: Any, w: Any, ct: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME")
        return tape.gradient(y, x, ct)

    x, w, ct = (integers(s) for s in ((1, 9, 15, 16), (3, 3, 16, 1), (1, 9, 15, 16)))
    f = df.function(data_gradient)
    assert kinds(f, x, w, ct).count(CallKind.WINDOW_SUM) == 1
    turned = w[::-1, ::-1]
    np.testing.assert_array_equal(f(x, w, ct), by_position(ct, turned, (1, 1), (1, 1), "SAME"))


@pytest.mark.parametrize(("shape", "size", "strides", "dilations", "padding"), GEOMETRIES[:3])
def test_the_numpy_kernel_of_a_node_gives_the_same(
    shape: Any, size: Any, strides: Any, dilations: Any, padding: str
) -> None:
    """Its NumPy kernel gives the same result."""
    f, x, w = depthwise(strides, dilations, padding), integers(shape), integers((*size, shape[3], 1))
    concrete = f.get_concrete_function(df.TensorSpec(x.shape), df.TensorSpec(w.shape))
    (call,) = concrete.compiled.executable.plan.calls
    meant = WINDOW_SUM.kernel(x, w, **call.node.attrs)
    np.testing.assert_array_equal(meant, by_position(x, w, strides, dilations, padding))
