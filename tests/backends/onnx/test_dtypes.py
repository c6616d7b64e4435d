"""Dtypes as ONNX: results have the dtype of dualflow, also where ONNX Runtime computes in a wider one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_models import exported, run

import dualflow as df

RNG = np.random.default_rng(0)
NAMES = ("float16", "float64", "int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_is_kept(name: str, tmp_path: Path) -> None:
    dtype = df.as_dtype(name)

    @df.function
    def f(x: Any, y: Any) -> Any:
        results = {
            "sum": x + y,
            "product": df.matmul(x * y, df.transpose(y)),
            "chosen": df.where(x < y, df.maximum(x, y), x),
            "totals": df.reduce_sum(x, 0),
            "moved": df.concat([x[::-1], df.pad(y, [[1, 0], [0, 0]])], 0),
            "running": df.cumsum(df.gather(x, [1, 0, 1]), 0),
            "cast": df.cast(df.cast(x, df.float32) * 2.0, dtype),
        }
        if name != "uint64":
            results["largest"] = df.reduce_max(x, 1)
        return results

    x, y = (RNG.integers(0, 5, (3, 4)).astype(dtype.dtype) for _ in range(2))
    concrete = f.get_concrete_function(*[df.TensorSpec([None, 4], dtype, name=k) for k in ("x", "y")])
    computed = run(exported(concrete, tmp_path), [x, y])
    for key, result in f(x, y).items():
        assert computed[key].dtype == dtype.dtype
        np.testing.assert_array_equal(computed[key], np.asarray(result))


def test_bfloat16_between_casts(tmp_path: Path) -> None:
    @df.function
    def f(x: Any) -> Any:
        narrow = df.cast(x, df.bfloat16)
        return df.cast(df.where(narrow > 0, narrow * narrow, df.reduce_sum(narrow)), df.float32)

    x = RNG.normal(size=(3, 4)).astype(np.float32)
    model = exported(f.get_concrete_function(df.TensorSpec([3, 4])), tmp_path)
    np.testing.assert_array_equal(run(model, [x])["output_0"], np.asarray(f(x)))


def test_strings_are_moved_compared_and_joined(tmp_path: Path) -> None:
    @df.function
    def f(words: Any, other: Any) -> Any:
        chosen = df.where(df.equal(words, other), words, words + "-" + other)
        return df.gather(df.concat([chosen, words[::-1]], 0), [3, 0, 1])

    words, other = (np.array(x, object) for x in (["a", "b", "ü"], ["a", "c", "d"]))
    spec = df.TensorSpec([3], df.string)
    model = exported(f.get_concrete_function(spec, spec), tmp_path)
    expected = [x.decode() for x in np.asarray(f(df.constant(words), df.constant(other)))]
    assert run(model, [words, other])["output_0"].tolist() == expected
