"""Results on a device: what the default backend computes, and for most kernels to the bit."""

from __future__ import annotations

import re
import runpy
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.function.errors import NotNativeError

PAGE = Path(__file__).parents[3] / "docs" / "devices.md"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(37, 50)).astype(np.float32)
COLUMN = RNG.normal(size=(37, 1)).astype(np.float32)
INTEGERS = RNG.integers(-100, 100, (6, 7)).astype(np.int32)


def on_device(f: Callable[..., Any]) -> Any:
    return df.function(f, backend="opencl", autograph=False)


def arrays(result: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in df.nest.flatten(result)]


def check_same_bits(f: Callable[..., Any], *inputs: Any) -> None:
    """On the device ``f`` has the bits of the default backend."""
    expected = df.function(f, backend="llvm", autograph=False)(*inputs)
    for a, b in zip(arrays(on_device(f)(*inputs)), arrays(expected), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)


def elementwise(x: Any, y: Any) -> Any:
    return df.tanh(x) * y + df.where(x > 0.0, df.exp(x), df.sin(100.0 * y))


def reductions(x: Any) -> Any:
    return (
        df.nn.softmax(x),
        df.reduce_sum(x),
        df.reduce_sum(x, 0),
        df.reduce_max(x, 1),
        df.argmax(x, 1),
        df.reduce_mean(x * x, 1, keepdims=True),
    )


def layouts(x: Any) -> Any:
    return (
        df.transpose(x) + 1.0,
        x[::-1, 3:20:2] * 2.0,
        df.concat([x, x * 2.0], 0),
        df.tile(x, [2, 1]),
        df.reshape(df.transpose(x), [-1]) - 1.0,
    )


def positions(x: Any, i: Any) -> Any:
    return (
        df.gather(x, i) * 2.0,
        df.cumsum(x, 1),
        df.cumsum(x, 0, reverse=True, exclusive=True),
        df.tensor_scatter_nd_add(x, i[:, None], df.ones([3, 50])),
        df.tensor_scatter_nd_update(x, i[:, None], df.ones([3, 50])),
        df.one_hot(i, 5),
    )


def pairs(x: Any, y: Any) -> Any:
    """Complex numbers of both sizes: computed, moved, reduced and put in place."""
    z, w = df.complex(x, y * x), df.cast(df.complex(y, y), df.complex128)
    return (
        z * (2.0 + 1j) / (z + 3.0),
        df.abs(z),
        df.transpose(df.math.conj(z))[::-1],
        df.concat([z[:2], z[3:4]], 0),
        df.reduce_sum(z, 1),
        df.gather(w, [3, 1]) * w[:2],
        df.tensor_scatter_nd_update(w, [[1]], w[:1]),
        df.where(x > 0.0, z, 1j * z),
        df.fill([3], 1.5 + 2j),
    )


def halves(x: Any, y: Any) -> Any:
    """float16: computed in float32 and rounded, cast from and to other dtypes, moved and reduced."""
    h, exact = df.cast(x, df.float16), df.constant([65504.0, 65520.0, 6e-8, np.nan, -np.inf], df.float64)
    return (
        df.nn.softmax(h * df.cast(y, df.float16)),
        df.reduce_sum(h, 1),
        df.argmax(h, 1),
        df.pad(df.transpose(h), [[1, 0], [0, 2]], constant_values=df.constant(1.5, df.float16)),
        df.gather(h, [36, 0]),
        df.cast(exact, df.float16),
        df.cast(df.cast(df.constant([7, 2049, 2**40, -70000], df.int64), df.float16), df.int32),
        df.cast(h * 100.0, df.int8),
        df.cast(h, df.bool),
        df.cast(h, df.complex64),
        df.cast(exact / 3.0, df.float16),
    )


@pytest.mark.parametrize(
    ("f", "inputs"),
    [
        (elementwise, (X, COLUMN)),
        (reductions, (X,)),
        (layouts, (X,)),
        (positions, (X, np.array([3, 36, 3]))),
        (lambda x: (x // 7, x % 7, x << 3, -x, df.cast(x, df.uint8), x > 2), (INTEGERS,)),
        (lambda x: df.logical_and(x, df.logical_not(x[::-1])), (INTEGERS > 0,)),
        (lambda: df.random.stateless_normal([1000], [1, 2]), ()),
        (lambda x: df.exp(x) * x + df.cast(df.sqrt(x), df.float64), (np.linspace(0, 9, 11),)),
        (pairs, (X, COLUMN)),
        (halves, (X, COLUMN)),
    ],
    ids=[
        "elementwise",
        "reductions",
        "layouts",
        "positions",
        "integers",
        "booleans",
        "random",
        "float64",
        "complex",
        "float16",
    ],
)
def test_kernels_have_the_bits_of_the_default_backend(f: Callable[..., Any], inputs: Any) -> None:
    check_same_bits(f, *inputs)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (31, 33, 17), (64, 32, 16), (3, 0, 4), (0, 2, 3), (40, 7, 65)])
def test_products_of_any_size(sizes: tuple[int, int, int]) -> None:
    rows, inner, columns = sizes
    x, y = RNG.normal(size=(rows, inner)), RNG.normal(size=(inner, columns))
    result = PRODUCT(df.constant(x, df.float32), df.constant(y, df.float32))
    np.testing.assert_allclose(result, x @ y, rtol=1e-4, atol=1e-5)


PRODUCT = df.function(
    lambda x, y: x @ y,
    input_signature=[df.TensorSpec([None, None]), df.TensorSpec([None, None])],
    backend="opencl",
)


def test_batched_and_transposed_products_with_an_addend() -> None:
    x, y = (RNG.normal(size=s).astype(np.float32) for s in ((2, 3, 5, 4), (3, 5, 6)))

    def f(x: Any, y: Any, z: Any) -> Any:
        return 0.5 * df.matmul(x, y, transpose_a=True) + z

    z = RNG.normal(size=(6,)).astype(np.float32)
    np.testing.assert_allclose(
        on_device(f)(x, y, z), 0.5 * np.swapaxes(x, -1, -2) @ y + z, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("n", [0, 1, 70])
def test_loops_with_gradients_of_any_number_of_iterations(n: int) -> None:
    x = df.constant(X[:6, :6] * 0.1)
    np.testing.assert_allclose(SLOPE(x, n), slope(x, df.constant(n)), rtol=1e-4, atol=1e-6)


def slope(x: Any, n: Any) -> Any:
    """The gradient of a while loop, which keeps a row for each iteration."""
    with df.GradientTape() as tape:
        tape.watch(x)
        _, y = df.while_loop(
            lambda i, h: i < n, lambda i, h: (i + 1, df.tanh(h @ h) + 0.5 * x), (df.constant(0), x)
        )
        total = df.reduce_sum(y)
    return tape.gradient(total, x)


SLOPE = df.function(
    slope, backend="opencl", input_signature=[df.TensorSpec([6, 6]), df.TensorSpec([], df.int32)]
)


def test_scans_read_and_write_the_rows_of_stacks() -> None:
    check_same_bits(lambda x: df.scan(lambda a, row: a * 0.5 + row, x), X)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_conditional_runs_the_branch_of_its_value(sign: float) -> None:
    def f(x: Any) -> Any:
        return 2.0 * df.cond(df.reduce_sum(x) > 0.0, lambda: df.sort(x), lambda: df.exp(x))

    x = np.abs(X) * np.float32(sign)
    np.testing.assert_allclose(CONDITIONAL.setdefault("f", on_device(f))(x), f(df.constant(x)), rtol=1e-6)


CONDITIONAL: dict[str, Any] = {}


def test_one_program_serves_all_sizes() -> None:
    f = df.function(
        lambda x: df.nn.softmax(x) * 2.0, input_signature=[df.TensorSpec([None, 4])], backend="opencl"
    )
    for n in (0, 1, 300):
        x = RNG.normal(size=(n, 4)).astype(np.float32)
        np.testing.assert_allclose(f(x), 2.0 * df.nn.softmax(x), rtol=1e-6)
    (concrete,) = f.concrete_functions
    assert concrete.structured_input_signature[0][0].shape == [None, 4]


def test_variables_are_updated_as_by_the_default_backend() -> None:
    values = []
    for backend in ("llvm", "opencl"):
        v = df.Variable(X)
        step = df.function(
            lambda x, v=v: v.assign_sub(0.1 * x) + df.sort(v), backend=backend, autograph=False
        )
        values.append([step(X), step(X), v])
    for a, b in zip(*values, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_results_are_equal_to_the_bit_on_each_run() -> None:
    f = on_device(lambda x: (df.reduce_sum(x), df.reduce_sum(x, 0), x @ df.transpose(x)))
    first = arrays(f(X))
    for _ in range(20):
        for a, b in zip(arrays(f(X)), first, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda x: df.sort(x), "NumPy sorts"),
        (lambda x: df.exp(df.cast(x, df.bfloat16)), "no OpenCL kernel for bfloat16"),
        (lambda x: df.math.nextafter(df.cast(x, df.float16), df.cast(x, df.float16) + 1.0), "precision"),
        (lambda x: df.scatter_nd([[0]], df.cast(x[:1], df.float16), [3, 50]), "float16 in a scatter"),
    ],
    ids=["sort", "bfloat16", "precision of float16", "sum of float16"],
)
def test_what_runs_on_the_host_is_reported_with_its_reason(f: Callable[..., Any], reason: str) -> None:
    function = on_device(f)
    np.testing.assert_allclose(function(X), f(df.constant(X)), rtol=1e-3)
    assert reason in str(function.status())
    strict = df.function(f, backend="opencl", strict=True)
    with pytest.raises(NotNativeError, match=reason):
        strict(X)


def test_the_status_has_the_transfers_of_a_call() -> None:
    f = on_device(lambda x, y: (x + y, df.reduce_sum(x)))
    f(X, COLUMN)
    moved = "2 transfers to the device (7,548 bytes), 2 transfers to the host (7,404 bytes)"
    assert moved in str(f.status())


def test_the_programs_of_the_page_print_the_statuses_that_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, section = PAGE.read_text("utf-8").partition("## What a call transfers\n")
    section, _, _ = section.partition("\nA transfer crosses")
    examples = [textwrap.dedent(block) for block in re.findall(r"(?:^(?: {4}.*)?\n)+", section, re.MULTILINE)]
    programs, statuses = zip(*(e.strip().split("\n\n<") for e in examples if e.strip()), strict=True)
    script = tmp_path / "page.py"
    script.write_text("import dualflow as df\n" + "\n".join(programs), "utf-8")
    runpy.run_path(str(script))
    device = re.compile(r"on [^;\n]+;")
    printed = device.sub("on D;", capsys.readouterr().out)
    assert len(statuses) == 2
    for status in statuses:
        shown, end = device.sub("on D;", f"<{status}").split("\n...")
        assert (shown in printed, end) == (True, "")
