"""Row addresses that depend on several loops are computed once, also for the masked remainder."""

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


@pytest.mark.parametrize("axes", [3, 4])
def test_rows_of_many_loops_are_counted_once(axes: int) -> None:
    text = kernel_text(axes)
    assert text.count(" = freeze ") == 2  # of what is read, and of what is written
    assert text.count(" = mul ") == 2 * axes


def test_few_row_offsets_are_left_to_llvm() -> None:
    assert " = freeze " not in kernel_text(2)


@pytest.mark.parametrize("axes", [2, 3, 4])
@pytest.mark.parametrize("row", [1, 16, 31, 32, 33, 70])
def test_rows_of_every_length_are_copied(axes: int, row: int) -> None:
    x = df.reshape(df.range(4**axes * (row + 1), dtype=df.float32), [4] * axes + [row + 1])
    part = tuple([slice(0, 3)] * axes + [slice(0, row)])
    result = df.function(lambda x: x[part] + 1.0)(x)
    np.testing.assert_array_equal(result, x.numpy()[part] + 1.0)
