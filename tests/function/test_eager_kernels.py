"""Ops on large tensors that run eagerly: the kernel that a compiled function of the op has, to the bit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor
from dualflow.eager.engine import EAGER
from dualflow.ops.op_kinds import Elementwise, Reduce
from dualflow.ops.record import COMPILED_ABOVE, REGISTRY, Op
from dualflow.ops.samples import Sample
from dualflow.ops.testing.cases import draw

pytestmark = pytest.mark.llvm
MORE = COMPILED_ABOVE + 3
RNG = np.random.default_rng(5)
X = df.constant(RNG.standard_normal(MORE).astype(np.float32))
M = df.constant(RNG.standard_normal((190, 180)).astype(np.float32))


@pytest.fixture(autouse=True)
def _kernels() -> Iterator[None]:
    df.config.set_eager_kernels("compiled")
    yield
    df.config.set_eager_kernels(None)


def same(x: Any, y: Any) -> None:
    """Equal to the bit, whatever the signs of zeros and the bits of nan."""
    a, b = np.asarray(x), np.asarray(y)
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert a.tobytes() == b.tobytes()


def large_samples() -> Iterator[tuple[Op, Sample, tuple[int, ...] | None]]:
    """One sample of each elementwise op and fold, and a shape that makes it large."""
    for op in REGISTRY.values():
        sample = next((s for s in op.samples if s.inputs), None)
        if sample is None or any(d.values is not None for d in sample.inputs):
            continue
        if isinstance(op.kind, Elementwise) and all(d.shape is None for d in sample.inputs):
            yield op, sample, (MORE,)
        elif isinstance(op.kind, Reduce):
            own = sample.inputs[0].shape or ()
            yield op, sample, tuple([d * round((2 * COMPILED_ABOVE) ** (1 / len(own)) / d + 1) for d in own])


SAMPLES = list(large_samples())


@pytest.mark.parametrize(("op", "sample", "shape"), SAMPLES, ids=[op.name for op, _, _ in SAMPLES])
def test_a_large_op_gives_the_bits_of_its_compiled_function(
    op: Op, sample: Sample, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(1)
    kinds = [d.kinds[0] for d in sample.inputs]
    arrays = [
        draw(d, rng, {"f": "f4", "i": "i4", "b": "?", "c": "c8", "u": "u1"}[k], shape)
        for d, k in zip(sample.inputs, kinds, strict=True)
    ]
    inputs = op.prepare(arrays, EAGER)
    result = EAGER.apply(op, inputs, sample.attrs)
    compiled = df.function(lambda *xs: dispatch.current().apply(op, xs, sample.attrs))
    same(result, compiled(*inputs))
    if isinstance(op.kind, Elementwise):  # another size, whose kernel is made for any
        longer = [df.constant(np.concatenate([x.numpy(), x.numpy()[:5]])) for x in inputs]
        same(EAGER.apply(op, tuple(longer), sample.attrs)[:MORE], result)


def softmax(x: Any) -> Any:
    return df.nn.softmax(x)


COMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "softmax": softmax,
    "log_softmax": lambda x: df.nn.log_softmax(x, axis=0),
    "gelu": df.nn.gelu,
    "gelu through tanh": lambda x: df.nn.gelu(x, approximate=True),
    "silu": df.nn.silu,
    "elu": df.nn.elu,
    "selu": df.nn.selu,
    "leaky_relu": df.nn.leaky_relu,
    "clip_by_value": lambda x: df.clip_by_value(x, -1, 0.5),
    "logsumexp": lambda x: df.reduce_logsumexp(x, 1, keepdims=True),
    "variance": lambda x: df.math.reduce_variance(x, 0),
    "euclidean_norm": lambda x: df.math.reduce_euclidean_norm(x, 1),
}


@pytest.mark.parametrize("function", COMPOSITIONS.values(), ids=COMPOSITIONS)
def test_a_function_of_several_ops_runs_as_it_does_compiled(function: Callable[[Any], Any]) -> None:
    same(function(M), df.function(function)(M))


ALONG_AN_AXIS: dict[str, Callable[[Any, int], Any]] = {
    "softmax": df.nn.softmax,
    "log_softmax": df.nn.log_softmax,
    "mean": lambda x, axis: df.reduce_mean(x, axis, keepdims=True),
    "sum": lambda x, axis: df.reduce_sum(x, axis, keepdims=True),
    "logsumexp": lambda x, axis: df.reduce_logsumexp(x, axis, keepdims=True),
    "variance": lambda x, axis: df.math.reduce_variance(x, axis, keepdims=True),
    "norm": lambda x, axis: df.math.reduce_euclidean_norm(x, axis, keepdims=True),
    "l2_normalize": df.math.l2_normalize,
    "cumsum": df.cumsum,
    "reverse": lambda x, axis: df.reverse(x, [axis]),
    "tile": lambda x, axis: df.tile(x, [1, 1]),
}
"""Functions of an axis that do nothing, or little, where it has one element."""


@pytest.mark.parametrize("function", ALONG_AN_AXIS.values(), ids=ALONG_AN_AXIS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_an_axis_of_one_element_leaves_no_kernel_for_other_shapes(
    function: Callable[[Any, int], Any], axis: int
) -> None:
    shapes = [(MORE, 1), (1, MORE), (190, 180), (MORE + 7, 1), (1, MORE + 7), (181, 190), (2, MORE)]
    inputs = [df.constant(RNG.standard_normal(shape)) for shape in shapes]
    for x in (*inputs, *inputs[::-1]):  # the second time the kernel is the shape's own
        same(function(x, axis), df.function(lambda x: function(x, axis))(x))


def test_a_scatter_of_one_size_leaves_no_kernel_for_another() -> None:
    for n in (MORE, 8 * MORE, MORE + 1):
        x, rows = RNG.integers(-9, 9, (n, 1)).astype(np.float64), np.arange(n)[:, None] % MORE
        expected = np.zeros((n, 1))
        np.add.at(expected, rows[:, 0], x)
        zeros = df.constant(np.zeros((n, 1)))
        same(df.tensor_scatter_nd_add(zeros, df.constant(rows), df.constant(x)), expected)


def test_a_kernel_that_could_not_be_made_is_tried_again_once_the_user_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_memory(*_: Any) -> Any:
        raise MemoryError("no memory for machine code")

    x = df.constant(RNG.standard_normal((91, 541)).astype(np.float32))
    expected = df.function(df.reduce_sum)(x)
    with monkeypatch.context() as patched:
        patched.setattr("dualflow.backends.llvm.backend.build", no_memory)
        with pytest.warns(match="no memory for machine code"):
            df.reduce_sum(x)
    df.config.set_eager_kernels("compiled")
    same(df.reduce_sum(x), expected)


def test_a_composition_under_a_tape_has_the_gradient_of_its_ops() -> None:
    with df.GradientTape() as tape:
        tape.watch(M)
        result = softmax(M) * M
    small = df.constant(M.numpy()[:3])
    with df.GradientTape() as few:
        few.watch(small)
        rows = softmax(small) * small
    np.testing.assert_allclose(
        tape.gradient(result, M).numpy()[:3], few.gradient(rows, small).numpy(), rtol=1e-4, atol=1e-7
    )


def test_up_to_the_size_and_where_it_is_chosen_numpy_computes() -> None:
    values = RNG.uniform(-5, 5, COMPILED_ABOVE).astype(np.float32)
    same(df.exp(values), np.exp(values))
    df.config.set_eager_kernels("numpy")
    same(df.exp(X), np.exp(X.numpy()))


@pytest.mark.parametrize("attrs", [{}, {"transpose_a": True}, {"transpose_b": True}], ids=str)
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_a_product_of_many_multiplications_has_the_bits_of_its_compiled_function(
    batch: tuple[int, ...], attrs: dict[str, bool]
) -> None:
    a, b = ([140, 40], [40, 190]) if not batch else ([60, 40], [40, 150])
    shapes = (a[::-1] if "transpose_a" in attrs else a), (b[::-1] if "transpose_b" in attrs else b)
    x, y = [df.constant(RNG.standard_normal((*batch, *s)).astype(np.float32)) for s in shapes]
    assert max(x.shape.num_elements(), y.shape.num_elements()) < COMPILED_ABOVE
    same(df.matmul(x, y, **attrs), df.function(lambda x, y: df.matmul(x, y, **attrs))(x, y))


def test_a_product_of_few_multiplications_is_computed_by_numpy() -> None:
    x, y = RNG.standard_normal((180, 180)), RNG.standard_normal((180, 30))
    same(df.constant(x) @ df.constant(y), x @ y)
    same(df.matmul(df.constant(x.reshape(2, 90, 180)), df.constant(y)), x.reshape(2, 90, 180) @ y)


def test_with_another_backend_numpy_computes() -> None:
    df.config.set_backend("numpy")
    try:
        assert df.config.get_eager_kernels() == "numpy"
        same(df.exp(X), np.exp(X.numpy()))
    finally:
        df.config.set_backend(None)


def test_the_environment_chooses_where_the_program_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    df.config.set_eager_kernels(None)
    monkeypatch.setenv("DUALFLOW_EAGER_KERNELS", "numpy")
    assert df.config.get_eager_kernels() == "numpy"
    assert df.show_config(mode="dicts")["eager_kernels"]["chosen_by"] == "DUALFLOW_EAGER_KERNELS"
    monkeypatch.setenv("DUALFLOW_EAGER_KERNELS", "fast")
    with pytest.raises(df.errors.InvalidArgumentError, match="'fast' in DUALFLOW_EAGER_KERNELS"):
        df.config.get_eager_kernels()


LAYOUTS: dict[str, np.ndarray] = {
    "transposed": M.numpy().T,
    "three axes in another order": RNG.standard_normal((30, 40, 50)).astype(np.float32).transpose(2, 0, 1),
    "every other element": RNG.standard_normal(2 * MORE).astype(np.float32)[::2],
    "backwards": X.numpy()[::-1],
    "broadcast": np.broadcast_to(X.numpy()[:200], (200, 200)),
    "one element in all places": np.broadcast_to(np.float32(2.5), (200, 200)),
    "of other bytes": X.numpy().astype(">f4"),
}


@pytest.mark.parametrize("array", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts_change_no_value(array: np.ndarray) -> None:
    x = df.constant(array)
    np.testing.assert_array_equal((x + x).numpy(), array + array)
    np.testing.assert_array_equal((x * df.constant(array.copy())).numpy(), array * array)
    np.testing.assert_array_equal(df.reduce_max(x, 0).numpy(), array.max(0))


def test_an_elementwise_result_has_the_layout_of_its_inputs() -> None:
    x = df.transpose(M)
    assert (x + x).numpy().strides == x.numpy().strides


def test_a_scalar_next_to_a_large_tensor_stays_one_and_the_other_way_round() -> None:
    same(X - df.constant(2.0), X.numpy() - np.float32(2))
    same(2.0 - X, np.float32(2) - X.numpy())
    same(df.where(X > 0, X, 0.0), np.where(X.numpy() > 0, X.numpy(), np.float32(0)))


FAILURES: dict[str, Callable[[Any], Any]] = {
    "a divisor of 0": lambda n: df.range(n) // df.zeros([n], df.int32),
    "a divisor of 0, transposed": lambda n: df.transpose(df.ones([n, 2], df.int32)) // 0,
    "an index beyond the axis": lambda n: df.gather(df.zeros([n]), df.range(1, n + 1)),
    "shapes that don't broadcast": lambda n: df.zeros([n]) + df.zeros([n + 1]),
    "a dtype that the op refuses": lambda n: df.bitwise.bitwise_and(df.zeros([n]), df.zeros([n])),
    "an axis that is not there": lambda n: df.nn.softmax(df.zeros([n]), axis=3),
}


@pytest.mark.parametrize("call", FAILURES.values(), ids=FAILURES)
def test_large_tensors_raise_the_errors_of_small_ones(call: Callable[[int], Any]) -> None:
    with pytest.raises(df.errors.DualflowError) as small:
        call(3)
    with pytest.raises(type(small.value)) as large:
        call(MORE)
    assert type(large.value) is type(small.value)
    shown = str(large.value)
    for beyond in (1, 0, -1):
        shown = shown.replace(str(MORE + beyond), str(3 + beyond))
    assert shown == str(small.value)


def test_an_identity_copies_nothing() -> None:
    assert np.shares_memory(np.asarray(df.identity(X)), np.asarray(X))


def test_pieces_are_put_together_and_rows_are_picked() -> None:
    a, rows = M.numpy(), [3, 1, 189] * 80
    same(df.concat([M, M], 1), np.concatenate([a, a], 1))
    same(df.stack([M, M], 2), np.stack([a, a], 2))
    same(df.gather(M, rows), a[rows])


@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_has_the_bits_of_its_compiled_function(transposed: bool) -> None:
    def product(x: Any) -> Any:
        return df.matmul(x, x, transpose_a=transposed, transpose_b=not transposed)

    same(product(M), df.function(product, sizes="exact")(M))
    np.testing.assert_allclose((df.transpose(M) @ M).numpy(), M.numpy().T @ M.numpy(), rtol=1e-3, atol=1e-3)


def test_a_tape_follows_large_ops() -> None:
    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.tanh(x)
        return tape.gradient(y, x)

    y = df.tanh(X).numpy()
    np.testing.assert_allclose(slope(X).numpy(), 1 - y * y, rtol=1e-5, atol=1e-6)


def test_large_ops_make_tensors_in_traces_and_maps_too() -> None:
    assert isinstance(df.function(lambda x: df.exp(x))(X), AbstractTensor)
    np.testing.assert_array_equal(
        df.vectorized_map(lambda row: row + 1.0, M).numpy(), M.numpy() + np.float32(1)
    )


WITHOUT_LLVM = """
import sys, warnings
sys.modules["llvmlite"] = None
import numpy as np
import dualflow as df
x = df.constant(np.linspace(-3, 3, 40_000, dtype=np.float32))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    results = [df.exp(x), df.exp(x), df.tanh(x)]
(warning,) = seen
assert "no kernel of exp could be made (ModuleNotFoundError" in str(warning.message), warning
assert warning.filename == __file__, warning
assert np.array_equal(results[1], np.exp(x.numpy()))
assert df.config.get_eager_kernels() == "numpy"
"""


def test_without_a_compiler_numpy_computes_and_reports_it_once(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(WITHOUT_LLVM)
    environment = {**os.environ, "DUALFLOW_CACHE_DIR": str(tmp_path / "empty")}
    environment.pop("DUALFLOW_BACKEND", None)
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
