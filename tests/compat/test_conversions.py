"""``df.compat``: text, bytes, paths and sizes for programs of several versions."""

from __future__ import annotations

from pathlib import PurePosixPath

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

compat = df.compat


@pytest.mark.parametrize("text", ["", "abc", "\u00e9\u4e2d", "\0"])
def test_text_and_bytes_are_converted_both_ways(text: str) -> None:
    data = text.encode()
    assert compat.as_bytes(text) == compat.as_bytes(data) == compat.as_bytes(bytearray(data)) == data
    assert compat.as_text(data) == compat.as_text(text) == compat.as_str(data) == text
    assert compat.as_str_any(data) == compat.as_str_any(text) == text


def test_other_objects_are_text_only_where_any_may_be() -> None:
    assert compat.as_str_any(1.5) == "1.5"
    for convert in (compat.as_bytes, compat.as_text):
        with pytest.raises(TypeError, match="Expected binary or unicode string, got 5; take str"):
            convert(5)


def test_paths_are_text_or_bytes() -> None:
    assert compat.path_to_str(PurePosixPath("a/b")) == compat.path_to_str(b"a/b") == "a/b"
    assert compat.path_to_bytes(PurePosixPath("a/b")) == compat.path_to_bytes("a/b") == b"a/b"


def test_sizes_are_numbers_or_none() -> None:
    for size in (3, None):
        assert compat.dimension_value(size) == compat.dimension_value(v1.Dimension(size)) == size
    assert compat.dimension_at_index(df.TensorShape([3, None]), 0).value == 3
    assert compat.dimension_at_index(df.TensorShape(None), 7).value is None


def test_groups_of_types_are_for_isinstance() -> None:
    assert isinstance(np.int8(1), compat.integral_types)
    assert isinstance(np.float16(1), compat.real_types)
    assert not isinstance(1.5, compat.integral_types)
    assert isinstance(1j, compat.complex_types)
    assert isinstance(b"", compat.bytes_or_text_types)
