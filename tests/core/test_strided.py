"""Row-major copies of arrays of any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualflow.core.strided import row_major


@given(
    shape=st.sampled_from([(300, 200), (2, 257, 129), (129, 400), (70000, 1), (1, 70000), (3, 5), (7,), ()]),
    order=st.permutations(range(3)),
    backwards=st.booleans(),
    dtype=st.sampled_from(["f4", "f8", "c16", "i1"]),
)
def test_a_copy_has_the_elements_in_order_and_memory_of_its_own(
    shape: tuple[int, ...], order: list[int], backwards: bool, dtype: str
) -> None:
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    x = x.transpose([axis for axis in order if axis < x.ndim])
    if backwards and x.ndim:
        x = x[::-1]
    copy = row_major(x)
    np.testing.assert_array_equal(copy, x, strict=True)
    assert copy.flags.c_contiguous
    assert not np.may_share_memory(copy, x)


@pytest.mark.parametrize("dtype", [object, "U3"])
def test_strings_and_objects_are_copied(dtype: Any) -> None:
    x = np.full((200, 300), "abc", dtype).T
    np.testing.assert_array_equal(row_major(x), x, strict=True)
