"""Dtypes from names, numbers and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1
from dualflow.core.dtypes import ALL


@pytest.mark.parametrize("dtype", ALL, ids=lambda t: t.name)
def test_a_dtype_has_all_names_with_its_size(dtype: df.DType) -> None:
    wide = dtype.dtype.newbyteorder(">")
    for name in (dtype, dtype.name, dtype.as_datatype_enum, dtype.dtype, wide, dtype.as_numpy_dtype):
        assert df.as_dtype(name) is dtype
        assert dtype == name
        assert [t for t in ALL if t == name] == [dtype]
    assert dtype.is_numpy_compatible


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("float", df.float32),
        ("double", df.float64),
        ("half", df.float16),
        (float, df.float32),
        (int, df.int32),
        (bool, df.bool),
        (complex, df.complex128),
        (np.half, df.float16),
        (np.intc, df.int32),
        (1, df.float32),
        (3, df.int32),
        (9, df.int64),
        ("string", df.string),
        (7, df.string),
        (object, df.string),
        (np.dtype("S3"), df.string),
        (np.dtype("<U3"), df.string),
        (np.dtypes.StringDType(), df.string),
    ],
)
def test_a_name_means_what_it_means_to_tensorflow(name: Any, dtype: df.DType) -> None:
    assert df.as_dtype(name) is dtype
    assert dtype == name


@pytest.mark.parametrize(
    "name",
    [
        *["int", "uint", "long", "complex", "f4", "<f8", "hello", "", "a,b"],
        *[0, 21, -1, True, None, str, bytes, list, np.ndarray, np.datetime64, [1], {}, ("f4", -1), 1.5],
    ],
    ids=repr,
)
def test_an_invalid_dtype_is_refused_and_unequal_to_all(name: Any) -> None:
    with pytest.raises(TypeError, match="not a dtype that tensors can have; use one of bool, int8"):
        df.as_dtype(name)
    assert [t for t in ALL if t == name] == []


def test_functions_take_the_names() -> None:
    assert df.constant(1.0, "float").dtype is df.float32
    assert df.cast([1, 2], "float").dtype is df.float32
    assert df.zeros([1], 9).dtype is df.int64
    with v1.Graph().as_default():
        assert v1.placeholder("float", [2]).dtype is df.float32


def test_the_base_of_a_dtype_is_itself() -> None:
    assert df.float32.base_dtype is df.float32


def test_dtypes_have_a_real_one_and_have_their_names():
    assert (df.complex64.real_dtype, df.float64.real_dtype, df.int8.base_dtype) == (
        df.float32,
        df.float64,
        df.int8,
    )
    assert df.float32.is_compatible_with("float32")
    assert not df.float32.is_compatible_with(np.float64)


def test_a_dtype_shows_tensorflows_name() -> None:
    assert [repr(t) for t in (df.float32, df.bool, df.string)] == ["tf.float32", "tf.bool", "tf.string"]
