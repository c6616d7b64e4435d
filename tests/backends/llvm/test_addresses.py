"""Addresses of rows are computed before the loop over a row, once for it and its masked tail."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.llvm.executable import Executable

pytestmark = pytest.mark.llvm


def windows(x: df.Tensor, axes: int) -> df.Tensor:
    """A copy whose rows depend on ``axes`` loops, no two of which can be merged."""
    return x[tuple([slice(0, 3)] * axes + [slice(0, 5)])] + 1.0


def kernel_text(axes: int) -> str:
    f = df.function(lambda x: windows(x, axes))
    shape = [4] * axes + [6]
    executable = f.get_concrete_function(df.TensorSpec(shape)).compiled.executable
    assert isinstance(executable, Executable)
    (text,) = [s.text for s in executable.program.sources if s.exports[0].startswith("kernel")]
    return text


@pytest.mark.parametrize("axes", [1, 2, 3, 4])
def test_the_address_of_a_row_is_computed_once(axes: int) -> None:
    text = kernel_text(axes)
    assert text.count(" = freeze ptr ") == 2  # of what is read, and of what is written
    assert text.count(" = mul ") == 2 * axes


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_loop_over_a_row_adds_its_index_to_addresses(axes: int) -> None:
    (body,) = [block for block in kernel_text(axes).split("loop")[1:] if "fadd" in block.split("br i1")[0]]
    loop = body.split("br i1")[0]
    assert loop.count("getelementptr") == 2
    assert " mul " not in loop
    assert loop.count(" add ") == 1  # the next index


@pytest.mark.parametrize("rows", [1, 2, 17, 40])
@pytest.mark.parametrize("columns", [1, 15, 33, 70])
def test_transposed_blocks_begin_anywhere(rows: int, columns: int) -> None:
    x = df.reshape(df.range(3 * rows * columns, dtype=df.float32), [3, rows, columns])
    result = df.function(lambda x: df.transpose(x, [0, 2, 1]) * 2.0 + 1.0)(x)
    np.testing.assert_array_equal(result, x.numpy().transpose(0, 2, 1) * 2 + 1)


@pytest.mark.parametrize("row", [1, 16, 31, 33, 70])
def test_rows_are_read_backwards_with_steps_and_by_broadcasting(row: int) -> None:
    x = df.reshape(df.range(5 * row, dtype=df.float32), [5, row])
    b = df.range(row, dtype=df.float64)
    result = df.function(lambda x, b: df.cast(x[::-1, ::-1] - x[:, :1], df.float64) * b + b[::-1])(x, b)
    expected = (x.numpy()[::-1, ::-1] - x.numpy()[:, :1]).astype(np.float64) * b.numpy() + b.numpy()[::-1]
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("axes", [2, 3, 4])
@pytest.mark.parametrize("row", [1, 16, 31, 32, 33, 70])
def test_rows_of_every_length_are_copied(axes: int, row: int) -> None:
    x = df.reshape(df.range(4**axes * (row + 1), dtype=df.float32), [4] * axes + [row + 1])
    part = tuple([slice(0, 3)] * axes + [slice(0, row)])
    result = df.function(lambda x: x[part] + 1.0)(x)
    np.testing.assert_array_equal(result, x.numpy()[part] + 1.0)


def column_loops(arrays: int) -> list[str]:
    """The bodies of the serial loops of a kernel that sums the columns of several arrays."""
    f = df.function(lambda *xs: df.reduce_sum(df.add_n([x * x for x in xs]), 0))
    specs = [df.TensorSpec([40, 33]) for _ in range(arrays)]
    executable = f.get_concrete_function(*specs).compiled.executable
    assert isinstance(executable, Executable)
    (text,) = [s.text for s in executable.program.sources if s.exports[0].startswith("kernel")]
    return [body.split("br i1")[0] for body in text.split("\nloop")[1:] if "fmul" in body.split("br i1")[0]]


@pytest.mark.parametrize("arrays", [1, 3, 6])
def test_a_serial_loop_increments_the_addresses_of_few_accesses(arrays: int) -> None:
    bodies = column_loops(arrays)
    assert bodies
    for body in bodies:
        assert " = mul i64" not in body
        assert body.count(" = phi ptr") == arrays


def test_llvm_improves_the_addresses_of_many_accesses() -> None:
    for body in column_loops(7):
        assert " = phi ptr" not in body
        assert body.count(" = mul i64") == 7


@pytest.mark.parametrize("rows", [0, 1, 2, 37])
@pytest.mark.parametrize("columns", [1, 16, 21])
def test_columns_are_summed_backwards_with_steps_and_by_broadcasting(rows: int, columns: int) -> None:
    x = df.reshape(df.range(2 * rows * columns, dtype=df.float64), [2 * rows, columns])
    b = df.range(rows, dtype=df.float64)[:, None]
    result = df.function(lambda x, b: df.reduce_sum(x[::-2] * b + df.cumsum(x[::2], 0), 0))(x, b)
    expected = (x.numpy()[::-2] * b.numpy() + np.cumsum(x.numpy()[::2], 0)).sum(0)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
