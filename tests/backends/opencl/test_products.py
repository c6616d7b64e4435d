"""Matrix products, convolutions and pooling on the device, and the tiles that are selected for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from required_tools import require_module

import dualflow as df

require_module("pyopencl")

from dualflow.backends.opencl.devices import current_device  # noqa: E402  # they import pyopencl
from dualflow.backends.opencl.executable import OpenCLExecutable  # noqa: E402
from dualflow.backends.opencl.products import LARGE, NARROW, SMALL, ProductTile  # noqa: E402
from dualflow.backends.opencl.steps import HostCall, Launch, walk_steps  # noqa: E402
from dualflow.backends.opencl.tile_selection import LARGE_SIDE, select_tile, tile_for  # noqa: E402
from dualflow.core.dtypes import float32, float64  # noqa: E402
from dualflow.graph.fused import FUSED_PRODUCT  # noqa: E402

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def launches(function: Any) -> list[Launch]:
    """The launches of the one trace of a function, none of whose ops runs on the host."""
    (concrete,) = function.concrete_functions
    executable = concrete.compiled.executable
    assert isinstance(executable, OpenCLExecutable)
    steps = list(walk_steps(executable.program.steps))
    assert not any(isinstance(step, HostCall) for step in steps)
    return [step for step in steps if isinstance(step, Launch)]


def check_close(f: Callable[..., Any], *inputs: Any) -> list[Launch]:
    """On the device ``f`` has the results of the default backend up to rounding; returns its launches."""
    on_device = df.function(f, backend="opencl", autograph=False)
    expected = df.function(f, backend="llvm", autograph=False)(*inputs)
    for a, b in zip(df.nest.flatten(on_device(*inputs)), df.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-4)
    return launches(on_device)


# Tiles


@pytest.fixture
def tiles() -> Iterator[dict[str, ProductTile]]:
    """The selected tiles of the device, which a test may set."""
    selected = current_device().tiles
    before = dict(selected)
    selected.clear()
    yield selected
    selected.clear()
    selected.update(before)


def test_each_tile_has_the_same_bits(tiles: dict[str, ProductTile]) -> None:
    side = LARGE_SIDE + 7
    x, y, z = normal(side, 37), normal(37, side), normal(side)
    results = []
    for tile in (SMALL, *LARGE):
        tiles["f"] = tile
        f = df.function(
            lambda x, y, z: (0.5 * (x @ y) + z, df.matmul(y, x), df.transpose(y) @ y), backend="opencl"
        )
        results.append([r.numpy() for r in f(x, y, z)])
        sizes = {launch.group_size for launch in launches(f) if launch.is_product}
        assert sizes == {tile.group_size, SMALL.group_size}
    np.testing.assert_allclose(results[0][0], 0.5 * x @ y + z, rtol=1e-4, atol=1e-4)
    for others in results[1:]:
        for a, b in zip(results[0], others, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_measured_tile_is_kept_on_disk(
    tiles: dict[str, ProductTile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(tmp_path))
    device = current_device()
    assert tile_for(device, float32, 8, 1 << 20) == SMALL
    assert tile_for(device, float32, LARGE_SIDE - 1, 4096) == NARROW
    assert list(tmp_path.iterdir()) == []
    tile = tile_for(device, float32, LARGE_SIDE, LARGE_SIDE)
    assert tile in LARGE
    assert tiles == {"f": tile}
    (entry,) = tmp_path.iterdir()
    intact, index = entry.read_bytes(), str(LARGE.index(tile)).encode()
    assert intact.endswith(index)
    entry.write_bytes(intact[:-1] + b"9")  # damaged: it is measured again
    assert select_tile(device, float32) in LARGE
    assert len(entry.read_bytes()) == len(intact)
    assert entry.read_bytes()[-1:].isdigit()
    assert [path.name for path in tmp_path.iterdir()] == [entry.name]


def test_each_dtype_has_a_measured_tile_of_its_own(
    tiles: dict[str, ProductTile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUALFLOW_CACHE_DIR", str(tmp_path))
    device = current_device()
    for dtype in (float32, float64):
        tile_for(device, dtype, LARGE_SIDE, LARGE_SIDE)
    assert {*tiles} == {float32.char, float64.char}
    assert len(list(tmp_path.iterdir())) == 2


# Operands


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y, z: df.matmul(x, y, transpose_a=True) + z,
        lambda x, y, z: df.matmul(x, y, transpose_a=True) * 0.5 - z[:, :1],
        lambda x, y, z: df.matmul(y, x[..., ::-1, 1:], transpose_a=True),
        lambda x, y, z: df.matmul(x[:1], y, transpose_a=True),
        lambda x, y, z: df.matmul(x[0], df.transpose(y, [0, 2, 1]), transpose_a=True, transpose_b=True),
    ],
    ids=["bias", "scaled", "strided", "broadcast", "of one matrix"],
)
def test_operands_in_any_layout(f: Callable[..., Any]) -> None:
    products = [
        step
        for step in check_close(f, normal(2, 40, 35), normal(2, 40, 33), normal(35, 33))
        if step.is_product
    ]
    assert len(products) == 1


def test_an_addend_is_read_by_the_product() -> None:
    (launch,) = check_close(lambda x, w, b: x @ w + b, normal(20, 30), normal(30, 40), normal(20, 40))
    assert launch.is_product


def test_a_product_is_added_to_a_variable_in_place() -> None:
    x, start, values = normal(33, 33), normal(33, 33), []
    for backend in ("llvm", "opencl"):
        v = df.Variable(start)
        step = df.function(lambda x, v=v: v.assign_add(2.0 * (x @ x)), backend=backend, autograph=False)
        step(x), step(x)
        values.append(v.numpy())
    np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-4)


# Epilogues


EPILOGUES: dict[str, Callable[..., Any]] = {
    "a bias and several outputs": lambda x, w, c: (df.nn.relu(x @ w + c[0]), x @ w + c[0] > 0.5),
    "scaled rows and a residual": lambda x, w, c: c + df.exp(c[:, :1]) * (0.5 * (x @ w) - c),
    "transposed operands": lambda x, w, c: df.sqrt(df.abs(df.matmul(w, x, True, transpose_b=True))),
    "strided operands": lambda x, w, c: df.abs(x[::2, ::-1] @ w),
    "batches of two axes": lambda x, w, c: df.abs(df.reshape(x, [3, 2, 3, 8]) @ w + 1.0),
    "axes of a row": lambda x, w, c: df.reshape(x @ w, [6, 3, 5]) - c[:6, None, :],
    "an element": lambda x, w, c: df.abs(x[:1] @ w[:, :1]),
}


@pytest.mark.parametrize("name", EPILOGUES)
def test_a_product_computes_the_elementwise_ops_that_read_it(name: str) -> None:
    computed = check_close(EPILOGUES[name], normal(18, 8), normal(8, 5), normal(18, 5))
    assert computed[-1].node.op is FUSED_PRODUCT


STORED: dict[str, tuple[Callable[..., Any], int]] = {
    "it is a result": (lambda x, w: (df.tanh(x @ w), x @ w), 1),
    "a product reads it": (lambda x, w: (df.tanh(x @ w), (x @ w) @ w), 2),
    "another view of it is read": (lambda x, w: df.tanh(x @ w) + df.transpose(x @ w), 2),
}


@pytest.mark.parametrize("why", STORED)
def test_a_product_is_stored_if_anything_but_its_epilogue_reads_it(why: str) -> None:
    f, kernels = STORED[why]
    assert len(check_close(f, normal(9, 9), normal(9, 9))) == kernels


def test_an_update_is_an_epilogue_in_the_memory_of_its_variable() -> None:
    x, start, values = normal(9, 9) / 9, normal(9, 9), []
    for backend in ("llvm", "opencl"):
        v, w = df.Variable(start), df.Variable(start)

        @df.function(backend=backend, autograph=False)
        def step(x: Any, v: Any = v, w: Any = w) -> None:
            v.assign(0.5 * v + df.tanh(x @ x))
            w.assign(df.tanh(w @ x) + w)  # the product reads all elements of the old value

        step(x), step(x)
        values.append(np.stack([v.numpy(), w.numpy()]))
    np.testing.assert_allclose(*values, rtol=1e-4, atol=1e-4)


def test_an_epilogue_in_a_loop_and_for_all_sizes() -> None:
    signature = [df.TensorSpec([None, 6]), df.TensorSpec([6, 6])]

    @df.function(input_signature=signature, backend="opencl")
    def f(x: Any, w: Any) -> Any:
        for _ in df.range(3):
            x = df.tanh(x @ w)
        return x

    w = normal(6, 6)
    for rows in (5, 0, 40):
        x = expected = normal(rows, 6)
        for _ in range(3):
            expected = np.tanh(expected @ w)
        np.testing.assert_allclose(f(x, w), expected, rtol=1e-4, atol=1e-4)


# Complex products


@pytest.mark.parametrize("dtype", [np.complex64, pytest.param(np.complex128, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x @ y,
        lambda x, y: df.matmul(x, y, adjoint_a=True) * 2j,
        lambda x, y: df.abs(df.stack([x, y]) @ x[::-1, ::2]),
    ],
    ids=["plain", "adjoint", "batch of strided matrices"],
)
def test_products_of_complex_matrices(f: Callable[..., Any], dtype: type) -> None:
    x, y = [(normal(9, 9) + 1j * normal(9, 9)).astype(dtype) for _ in range(2)]
    assert sum(launch.is_product for launch in check_close(f, x, y)) == 4


# Convolutions


def with_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    def both(*inputs: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(inputs)
            y = f(*inputs)
            loss = df.reduce_sum(y * y)
        return y, tape.gradient(loss, inputs)

    return both


CONVOLUTIONS = {
    "same": (lambda x, k: df.nn.conv2d(x, k, 1, "SAME"), (2, 9, 8, 16), (3, 3, 16, 20)),
    "many channels": (lambda x, k: df.nn.conv2d(x, k, 1, "SAME"), (2, 24, 24, 16), (3, 3, 16, 64)),
    "strided": (lambda x, k: df.nn.conv2d(x, k, 2, "SAME"), (2, 9, 8, 16), (3, 2, 16, 5)),
    "dilated": (lambda x, k: df.nn.conv2d(x, k, 1, "SAME", dilations=2), (1, 9, 8, 16), (3, 3, 16, 5)),
    "line": (lambda x, k: df.nn.conv1d(x, k, 1, "SAME"), (2, 30, 16), (5, 16, 3)),
    "volume": (lambda x, k: df.nn.conv3d(x, k, [1] * 5, "SAME"), (1, 5, 4, 6, 16), (3, 2, 3, 16, 4)),
    "with an epilogue": (
        lambda x, k: df.nn.relu(df.nn.conv2d(x, k, 1, "SAME") + x),
        (2, 5, 4, 16),
        (3, 3, 16, 16),
    ),
    "one pixel": (lambda x, k: df.nn.conv2d(x, k, 1, "VALID"), (2, 4, 4, 16), (1, 1, 16, 3)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_is_one_product_that_reads_its_tensor(name: str) -> None:
    f, tensor, kernel = CONVOLUTIONS[name]
    (launch,) = check_close(f, normal(*tensor), normal(*kernel))
    assert launch.is_product


@pytest.mark.parametrize("name", ["same", "strided"])
def test_gradients_of_convolutions_are_products_of_windows(name: str) -> None:
    f, tensor, kernel = CONVOLUTIONS[name]
    check_close(with_gradients(f), normal(*tensor), normal(*kernel))


def test_a_depthwise_convolution_is_one_kernel() -> None:
    f = lambda x, k: df.nn.depthwise_conv2d(x, k, [1, 2, 2, 1], "SAME")  # noqa: E731
    assert len(check_close(f, normal(2, 9, 8, 16), normal(3, 3, 16, 1))) == 1


def test_one_program_convolves_images_of_any_size() -> None:
    signature = [df.TensorSpec([None, None, None, 16]), df.TensorSpec([3, 3, 16, 4])]
    f = df.function(lambda x, k: df.nn.conv2d(x, k, 1, "SAME"), input_signature=signature, backend="opencl")
    kernel = normal(3, 3, 16, 4)
    for shape in ((1, 5, 7), (2, 8, 3), (0, 4, 4)):
        x = normal(*shape, 16)
        np.testing.assert_allclose(f(x, kernel), df.nn.conv2d(x, kernel, 1, "SAME"), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("pool", [df.nn.max_pool2d, df.nn.avg_pool2d])
def test_pooling_is_one_kernel_with_gradients_on_the_device(pool: Callable[..., Any]) -> None:
    f = lambda x: pool(x, 3, 2, "SAME")  # noqa: E731
    x = normal(2, 9, 8, 5)
    check_close(with_gradients(f), x)
    assert len(check_close(lambda x: pool(x, 2, 2, "VALID"), x)) == 1


# Integers


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
@pytest.mark.parametrize(
    "shapes", [((7, 33), (33, 5)), ((2, 3, 4), (4, 6)), ((2, 0), (0, 3)), ((0, 2), (2, 3))]
)
def test_products_of_integers_wrap_as_those_of_numpy(
    dtype: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    info = np.iinfo(dtype)
    x, y = (RNG.integers(info.min, info.max, shape, dtype, endpoint=True) for shape in shapes)
    f = df.function(
        lambda x, y: (df.matmul(x, y), df.matmul(x, y) // 3 + 1), backend="opencl", autograph=False
    )
    product, epilogue = f(x, y)
    assert any(launch.is_product for launch in launches(f)) is bool(product.numpy().size)
    np.testing.assert_array_equal(product.numpy(), x @ y)
    np.testing.assert_array_equal(epilogue.numpy(), (x @ y) // 3 + 1)
