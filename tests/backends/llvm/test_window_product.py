"""Products with sliding windows of a tensor equal those with the matrix of windows, zero padding included."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from linked_products import linked
from numpy.lib.stride_tricks import sliding_window_view

import dualflow as df
from dualflow.backends.llvm.product import gemm_or_blas
from dualflow.backends.llvm.product.gemm import Gemm, MatrixStrides, gemm
from dualflow.backends.llvm.product.gemm_kernel import Field
from dualflow.backends.llvm.runtime import jit
from dualflow.schedule.operands import CallKind
from dualflow.schedule.sliding import WINDOW_PRODUCT, SlidingAxis, SlidingWindows
from dualflow.sizes.symbolic_sizes import SizeVariable, evaluate_size, size_variable, size_variables

Array = np.ndarray[Any, Any]
reads_windows = pytest.mark.skipif(
    not gemm_or_blas.uses_own_gemm(), reason="NumPy's BLAS multiplies a copy of the windows"
)


def rows_of(x: Array, lie: SlidingWindows) -> Array:
    """A row for each window, by NumPy."""
    axes = lie.axes
    behind = [
        max(0, (a.windows - 1) * a.stride + (a.length - 1) * a.dilation + 1 - a.size - a.before) for a in axes
    ]
    around = [(a.before, n) for a, n in zip(axes, behind, strict=True)]
    wide = np.pad(x, [(0, 0), *around, (0, 0)])
    spans = [(a.length - 1) * a.dilation + 1 for a in axes]
    view = sliding_window_view(wide, spans, tuple(range(1, 1 + len(axes))))
    view = view[(slice(None), *[slice(None, a.windows * a.stride, a.stride) for a in axes])]
    view = np.moveaxis(view, 1 + len(axes), -1)
    view = view[(*[slice(None)] * (1 + len(axes)), *[slice(None, None, a.dilation) for a in axes])]
    return np.ascontiguousarray(view).reshape(len(x) * math.prod(a.windows for a in axes), -1)


@functools.cache
def library(product: Gemm) -> jit.Library:
    """The machine code."""
    return jit.compile_sources([product.source()], {})


def multiply(
    x: Array, y: Array, c: Array, lie: SlidingWindows, *, by_window: bool, blocks_for: int = 1, **options: Any
) -> None:
    """Run ``c = scale * (windows @ y) + accumulate * c``, or with the windows as columns, in machine code."""
    product = gemm(c.dtype.char, windows=True)
    b, out = (MatrixStrides(*(stride // c.itemsize for stride in array.strides)) for array in (y, c))
    sizes = (c.shape[0], c.shape[1], y.shape[0])
    ((_, table),) = product.window_tables(
        sizes, (b, out), lie, by_window=by_window, threads=blocks_for, **options
    )
    needed = product.scratch_bytes(table, 1)
    scratch = np.full(needed + 128, 7, np.uint8)
    integers = linked(product, table)
    before = -scratch.ctypes.data % 64
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 7)(library(product).address(product.routine))
    pointers = [array.ctypes.data for array in (integers, x, y, c)]
    function(*pointers, scratch.ctypes.data + before, None, None)
    assert (scratch[before + needed :] == 7).all(), "it writes past the scratch memory that it requested"


@st.composite
def axes(draw: Callable[..., Any]) -> SlidingAxis:
    """An axis with at least one window, zeros before and after it."""
    length, dilation, stride = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    reach = (length - 1) * dilation + 1
    before, behind = draw(st.integers(0, reach + 1)), draw(st.integers(0, reach + 1))
    size = draw(st.integers(max(1, reach - before - behind), 11))
    return SlidingAxis(size, before, (size + before + behind - reach) // stride + 1, stride, length, dilation)


def lying(*rows: tuple[int, ...], channels: int) -> SlidingWindows:
    return SlidingWindows(tuple(SlidingAxis(*row) for row in rows), channels)


@settings(max_examples=60, deadline=None)
@given(
    lie=st.builds(SlidingWindows, st.lists(axes(), min_size=1, max_size=3).map(tuple), st.integers(1, 40)),
    batch=st.integers(1, 3),
    columns=st.integers(1, 70),
    by_window=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    accumulate=st.booleans(),
    blocks_for=st.sampled_from([1, 5]),
)
@example(lying((9, 1, 9, 1, 3, 1), (9, 1, 9, 1, 3, 1), channels=300), 2, 5, True, np.float32, False, 2)
@example(lying((9, 1, 9, 1, 3, 1), (9, 1, 9, 1, 3, 1), channels=300), 2, 5, False, np.float32, True, 2)
@example(lying((40, 0, 40, 1, 1, 1), (40, 0, 20, 2, 1, 1), channels=3), 1, 1, False, np.float64, False, 2)
@example(lying((9, 1, 9, 1, 3, 1), (9, 1, 9, 1, 3, 1), channels=70), 2, 1, True, np.float32, False, 2)
@example(lying((9, 1, 9, 1, 3, 1), (9, 1, 9, 1, 3, 1), channels=70), 2, 1, False, np.float32, False, 2)
@example(lying((30, 30, 3, 30, 3, 15), (5, 0, 5, 1, 1, 1), channels=99), 2, 40, True, np.float32, True, 1)
def test_windows_multiply_as_the_matrix_of_them(
    lie: SlidingWindows,
    batch: int,
    columns: int,
    by_window: bool,
    dtype: Any,
    accumulate: bool,
    blocks_for: int,
) -> None:
    rng = np.random.default_rng(columns)
    x = rng.normal(size=(batch, *[a.size for a in lie.axes], lie.channels)).astype(dtype)
    left = rows_of(x, lie) if by_window else rows_of(x, lie).T
    y = rng.normal(size=(left.shape[1], columns)).astype(dtype)
    c = rng.normal(size=(left.shape[0], columns)).astype(dtype)
    wide = np.longdouble
    old = c.astype(wide) * accumulate
    multiply(x, y, c, lie, by_window=by_window, blocks_for=blocks_for, scale=2.0, accumulate=accumulate)
    exact = 2 * (left.astype(wide) @ y.astype(wide)) + old
    size = 2 * (abs(left).astype(wide) @ abs(y).astype(wide)) + abs(old)
    assert (abs(c - exact) <= (left.shape[1] + 2) * np.finfo(dtype).eps * size + np.finfo(dtype).tiny).all()


@settings(max_examples=40, deadline=None)
@given(
    static_axes=st.lists(axes(), min_size=1, max_size=3),
    channels=st.integers(1, 40),
    scale=st.sampled_from([1, 40]),
    columns=st.integers(1, 70),
    by_window=st.booleans(),
    symbolic=st.sets(st.sampled_from(["size", "before", "windows"]), min_size=1),
)
@example([SlidingAxis(28, 1, 28, 1, 3, 1)] * 2, 1, 1, 8, True, {"size", "windows"})
@example([SlidingAxis(900, 1, 900, 1, 3, 1)] * 2, 64, 1, 8, True, {"windows"})
def test_symbolic_sizes_select_the_layout_of_static_sizes(
    static_axes: list[SlidingAxis],
    channels: int,
    scale: int,
    columns: int,
    by_window: bool,
    symbolic: set[str],
) -> None:
    static_axes = [wider(axis, scale) for axis in static_axes]
    rows = math.prod(axis.windows for axis in static_axes)
    inner = channels * math.prod(axis.length for axis in static_axes)
    sizes = (rows, columns, inner) if by_window else (inner, columns, rows)
    numbers: dict[SizeVariable, int] = {}

    def variable(number: int) -> int:
        size = size_variable(least=0)
        (name,) = size_variables(size)
        numbers[name] = number
        return size

    open_axes = [a._replace(**{name: variable(getattr(a, name)) for name in symbolic}) for a in static_axes]
    (static,), tables = (
        gemm("f", windows=True).window_tables(
            sizes,
            (MatrixStrides(columns, 1),) * 2,
            SlidingWindows(tuple(a), channels),
            by_window=by_window,
            scale=1.0,
            accumulate=False,
            threads=1,
        )
        for a in (static_axes, open_axes)
    )
    bound = [(evaluate_size(used, numbers), table) for used, table in tables]
    assert sorted(used for used, _ in bound) == [0, 1][-len(bound) :]
    selected = [evaluate_size(n, numbers) for n in dict(bound)[1]]
    assert selected[Field.THREAD_SCRATCH] >= static[1][Field.THREAD_SCRATCH]
    selected[Field.THREAD_SCRATCH] = static[1][Field.THREAD_SCRATCH]
    assert selected == static[1]


def wider(axis: SlidingAxis, scale: int) -> SlidingAxis:
    """``axis`` with more windows on a larger tensor."""
    more = (scale - 1) * axis.windows
    return axis._replace(size=axis.size + more * axis.stride, windows=axis.windows + more)


@settings(max_examples=40, deadline=None)
@given(
    lie=st.builds(SlidingWindows, st.lists(axes(), min_size=1, max_size=2).map(tuple), st.integers(1, 20)),
    turned=st.booleans(),
)
def test_the_nodes_numpy_kernel_multiplies_by_the_same_matrix(lie: SlidingWindows, turned: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, *[a.size for a in lie.axes], lie.channels))
    left = rows_of(x, lie).T if turned else rows_of(x, lie)
    y, onto = rng.normal(size=(left.shape[1], 3)), rng.normal(size=(left.shape[0], 3))
    attrs = {"windows": lie, "transpose_a": turned, "transpose_b": True, "scale": -0.5}
    result = WINDOW_PRODUCT.kernel(x, y.T, onto, **attrs)
    np.testing.assert_allclose(result, onto - 0.5 * (left @ y), rtol=1e-9, atol=1e-9)


def conv(stride: int) -> Callable[..., Any]:
    return lambda x, w: df.nn.conv2d(x, w, stride, "SAME")


def with_gradients(stride: int) -> Callable[..., Any]:
    def both(x: Any, w: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch([x, w])
            y = conv(stride)(x, w)
            loss = df.reduce_sum(y * y)
        return [y, *tape.gradient(loss, [x, w])]

    return both


def calls(function: Callable[..., Any], *specs: df.TensorSpec) -> list[Any]:
    executable: Any = df.function(function).get_concrete_function(*specs).compiled.executable
    steps: list[Any] = list(executable.plan.calls)
    return steps


IMAGES, FILTER = df.TensorSpec((4, 14, 14, 16)), df.TensorSpec((3, 3, 16, 8))


@reads_windows
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_is_one_product_without_zeros_around_or_windows_in_memory(stride: int) -> None:
    assert [call.kind for call in calls(conv(stride), IMAGES, FILTER)] == [CallKind.PRODUCT]


@reads_windows
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_convolution_of_few_channels_reads_windows_from_lines(channels: int, stride: int) -> None:
    images, weights = (4, 14, 14, channels), (3, 3, channels, 5)
    planned = calls(conv(stride), df.TensorSpec(images), df.TensorSpec(weights))
    assert [call.kind for call in planned] == [CallKind.PRODUCT]
    rng = np.random.default_rng(0)
    x, w = (df.constant(rng.integers(-8, 8, shape), df.float32) for shape in (images, weights))
    np.testing.assert_array_equal(df.function(conv(stride))(x, w), conv(stride)(x, w))


def test_one_column_of_few_channels_multiplies_copied_windows() -> None:
    planned = calls(conv(1), df.TensorSpec((4, 14, 14, 1)), df.TensorSpec((3, 3, 1, 1)))
    assert len(planned) > 1


@reads_windows
@pytest.mark.parametrize(("stride", "outputs"), [(1, 8), (2, 32)])
def test_its_gradients_copy_no_windows_either(stride: int, outputs: int) -> None:
    planned = calls(with_gradients(stride), IMAGES, df.TensorSpec((3, 3, 16, outputs)))
    assert sum(call.kind is CallKind.PRODUCT for call in planned) == 3
    windows = 4 * (14 // stride) ** 2 * 9 * 16
    assert max(math.prod(v.spec.shape) for call in planned for v in call.node.outputs) < windows


def test_zeros_that_something_else_reads_stay() -> None:
    def f(x: Any, w: Any) -> Any:
        wide = df.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
        return df.nn.conv2d(wide, w, 1, "VALID"), wide

    x, w = np.ones((1, 4, 4, 16), np.float32), np.ones((3, 3, 16, 2), np.float32)
    y, wide = df.function(f)(x, w)
    assert y.numpy()[0, 0, 0, 0] == 4 * 16
    assert y.numpy()[0, 1, 1, 0] == 9 * 16
    np.testing.assert_array_equal(wide.numpy(), np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)]))


def test_other_numbers_around_a_tensor_are_not_zeros() -> None:
    def f(x: Any, w: Any) -> Any:
        return df.nn.conv2d(df.pad(x, [(0, 0), (1, 0), (1, 0), (0, 0)], constant_values=2.0), w, 1, "VALID")

    result = df.function(f)(np.ones((1, 4, 4, 16), np.float32), np.ones((2, 2, 16, 1), np.float32))
    assert result.numpy()[0, 0, 0, 0] == (3 * 2 + 1) * 16


def test_blocks_for_other_numbers_of_threads_do_not_change_a_bit() -> None:
    lie = lying((20, 1, 20, 1, 3, 1), (20, 1, 20, 1, 3, 1), channels=16)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 20, 20, 16)).astype(np.float32)
    for by_window, rows, inner in ((True, 1600, 144), (False, 144, 1600)):
        y = rng.normal(size=(inner, 40)).astype(np.float32)
        results = []
        for blocks_for in (1, 2, 7):
            c = np.empty((rows, 40), np.float32)
            multiply(x, y, c, lie, by_window=by_window, blocks_for=blocks_for, scale=1.0, accumulate=False)
            results.append(c)
        assert all((c == results[0]).all() for c in results)


def test_a_size_known_at_run_time() -> None:
    @df.function(input_signature=[df.TensorSpec((None, 6, 6, 16)), df.TensorSpec((3, 3, 16, 4))])
    def f(x: Any, w: Any) -> Any:
        kept = df.boolean_mask(x, df.reduce_sum(x, [1, 2, 3]) > 0)
        return df.nn.conv2d(kept, w, 1, "SAME")

    w = np.ones((3, 3, 16, 4), np.float32)
    x = np.stack([np.full((6, 6, 16), n, np.float32) for n in (-1, 1, 2, -3, 4)])
    np.testing.assert_array_equal(f(x, w), df.nn.conv2d(x[[1, 2, 4]], w, 1, "SAME"))
    assert f(x[:1], w).shape == (0, 6, 6, 4)


@pytest.mark.parametrize("filters", [(3, 3, 1, 8), (5, 3, 3, 5), (2, 2, 1, 1)])
@pytest.mark.parametrize(("stride", "padding"), [(1, "SAME"), (2, "SAME"), (2, "VALID")])
def test_dynamic_heights_and_widths_change_no_bit(
    filters: tuple[int, int, int, int], stride: int, padding: str
) -> None:
    rng = np.random.default_rng(0)
    weights = df.constant(rng.standard_normal(filters), df.float32)

    def compiled(*shape: int | None) -> Any:
        return df.function(
            lambda x: df.nn.conv2d(x, weights, stride, padding), input_signature=[df.TensorSpec(shape)]
        )

    every_size = compiled(None, None, None, filters[2])
    for height, width in ((33, 33), (0, 0), (1, 1), (2, 2), (31, 6), (5, 32)):
        shape = 2, height, width, filters[2]
        x = df.constant(rng.standard_normal(shape), df.float32)
        computed, expected = every_size(x).numpy(), compiled(*shape)(x).numpy()
        assert computed.shape == expected.shape
        assert computed.tobytes() == expected.tobytes()


@reads_windows
@pytest.mark.parametrize("channels", [1, 3, 16])
def test_a_convolution_of_dynamic_sizes_copies_no_windows_to_memory(channels: int) -> None:
    weights = np.ones((3, 3, channels, 5), np.float32)
    compiled = df.function(
        lambda x: df.nn.conv2d(x, weights, 1, "SAME"),
        input_signature=[df.TensorSpec((None, None, None, channels))],
    )
    compiled(np.ones((2, 8, 8, channels), np.float32))
    (concrete,) = compiled.concrete_functions
    (trace,) = concrete._specialisations
    executable: Any = trace.compiled.executable
    kinds = [call.kind for call in executable.plan.calls]
    assert [kind for kind in kinds if kind is not CallKind.MEASURE] == [CallKind.PRODUCT]
