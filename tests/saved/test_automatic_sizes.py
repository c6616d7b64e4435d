"""Functions that were traced for all sizes, in saved models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df


class Model(df.Module):
    @df.function
    def mean(self, x: Any) -> Any:
        count = x.shape[0] * x.shape[1]
        return df.reduce_sum(x) / count + df.cast((count + 7) // 4 % 5, df.float32)

    @df.function
    def doubled_if_long(self, x: Any) -> Any:
        return x * 2.0 if x.shape[0] > 3 else x


def test_a_trace_for_all_sizes_serves_all_sizes_after_loading(tmp_path: Path) -> None:
    model = Model()
    for n in (2, 3):
        model.mean(df.ones([n, n]))
    df.saved_model.save(model, tmp_path / "model")
    loaded = df.saved_model.load(tmp_path / "model")
    for shape in ((2, 2), (3, 3), (1, 9), (40, 3)):
        x = df.constant(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
        np.testing.assert_allclose(loaded.mean(x), model.mean(x), rtol=1e-6)


def test_a_trace_of_some_sizes_only_is_refused_with_a_remedy(tmp_path: Path) -> None:
    model = Model()
    for n in (2, 3, 4):
        model.doubled_if_long(df.ones([n]))
    with pytest.raises(df.errors.InvalidArgumentError, match="input_signature") as raised:
        df.saved_model.save(model, tmp_path / "model")
    assert "test_automatic_sizes.py" in str(raised.value)


@pytest.mark.parametrize(("decides", "sizes"), [(False, (2, 5, 1000)), (True, (2,))])
def test_a_trace_for_all_batches_is_saved_if_python_decides_by_none(
    tmp_path: Path, decides: bool, sizes: tuple[int, ...]
) -> None:
    model = df.Module()
    model.f = df.function((lambda x: -x if x.shape[0] > 3 else x) if decides else (lambda x: -x))
    model.f(df.ones([2]))
    df.saved_model.save(model, tmp_path / "model")
    loaded = df.saved_model.load(tmp_path / "model")
    for size in sizes:
        np.testing.assert_array_equal(loaded.f(df.ones([size])), model.f(df.ones([size])))
    if decides:
        with pytest.raises(df.errors.InvalidArgumentError, match="no trace that was saved"):
            loaded.f(df.ones([3]))


def test_a_loaded_function_does_not_take_other_sizes_than_it_was_saved_for(tmp_path: Path) -> None:
    model = Model()
    model.doubled_if_long(df.ones([2]))
    df.saved_model.save(model, tmp_path / "model")
    loaded = df.saved_model.load(tmp_path / "model")
    loaded.doubled_if_long(df.ones([2]))
    for n in (3, 4):
        with pytest.raises(df.errors.InvalidArgumentError, match="no trace that was saved"):
            loaded.doubled_if_long(df.ones([n]))
