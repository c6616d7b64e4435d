"""Branches and loops as If, Loop and Scan; checks and sizes that depend on data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_models import errors, exported, op_types, run

import dualflow as df

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def check(function: Any, *calls: tuple[np.ndarray, ...], folder: Path, dynamic_sizes: bool = True) -> Any:
    """The model of ``function``, which agrees with it for each call."""
    traced = df.function(function)
    specs = [
        df.TensorSpec([None] * x.ndim if dynamic_sizes else x.shape, x.dtype, name=f"x{i}")
        for i, x in enumerate(calls[0])
    ]
    concrete = traced.get_concrete_function(*specs)
    model = exported(concrete, folder)
    for arrays in calls:
        results = traced(*arrays)
        listed = results if isinstance(results, tuple) else (results,)
        for computed, result in zip(run(model, arrays).values(), listed, strict=True):
            np.testing.assert_allclose(computed, np.asarray(result), rtol=1e-5, atol=1e-6)
    return model


def test_a_condition_is_an_if(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return x + 1.0 if df.reduce_sum(x) > 0 else df.exp(x)

    model = check(f, (X,), (-abs(X),), folder=tmp_path)
    assert op_types(model)[-1] == "If"


def test_one_of_several_branches_is_chosen_by_nested_ifs(tmp_path: Path) -> None:
    def f(i: Any, x: Any) -> Any:
        return df.switch_case(i, [lambda: x, lambda: x * 2.0, lambda: -x, lambda: x * 0.0])

    check(f, *[(np.array(i, np.int32), X) for i in (0, 1, 2, 3, 9, -1)], folder=tmp_path)


def test_a_loop_with_a_known_count_is_a_loop(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        for _ in df.range(3):
            x = x * 2.0 + 1.0
        return x

    model = check(f, (X,), folder=tmp_path)
    assert op_types(model) == ["Loop"]


def test_a_loop_whose_count_depends_on_data(tmp_path: Path) -> None:
    def f(x: Any, n: Any) -> Any:
        i = df.constant(0)
        while df.reduce_sum(x) < 100.0 and i < n:
            x = x * x + 1.0
            i += 1
        return x, i

    calls = [(abs(X), np.array(n, np.int32)) for n in (0, 1, 5)]
    assert "Loop" in op_types(check(f, *calls, folder=tmp_path))


def test_rows_are_scanned_forwards_and_backwards(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        state = df.zeros_like(x[0])
        return (
            df.scan(lambda a, row: df.tanh(a + row), x, state),
            df.scan(lambda a, row: a * 0.5 + row, x, state, reverse=True),
            df.map_fn(lambda row: df.reduce_sum(row) * row, x),
        )

    model = check(f, (X,), (X[:1],), (np.tile(X, (5, 1)),), folder=tmp_path)
    assert op_types(model).count("Scan") >= 2


def test_rows_of_no_tensor_are_stacked_in_order(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        rows = df.TensorArray(df.float32, 0, dynamic_size=True)
        i = df.constant(0)
        while i < 4:
            rows = rows.write(i, x * df.cast(i, df.float32))
            i += 1
        return rows.stack()

    check(f, (X,), folder=tmp_path, dynamic_sizes=False)


def test_gradients_of_loops(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y, i = x, df.constant(0)
            while i < 3:
                y = df.sin(y) * x
                i += 1
            loss = df.reduce_sum(y)
        return tape.gradient(loss, x)

    check(f, (X,), folder=tmp_path)


def test_a_branch_inside_of_a_loop_reads_values_around_both(tmp_path: Path) -> None:
    def f(x: Any, limit: Any) -> Any:
        scale = df.exp(limit)
        for _ in df.range(4):
            x = x - scale if df.reduce_sum(x) > limit else x + scale * 2.0
        return x

    check(f, (X, np.array(1.0, np.float32)), folder=tmp_path)


def test_sizes_that_depend_on_data(tmp_path: Path) -> None:
    def f(x: Any, counts: Any) -> Any:
        return (
            df.boolean_mask(x, x > 0),
            df.where(x > 0),
            df.repeat(counts, counts),
            df.range(df.reduce_sum(counts)),
        )

    check(f, (X, np.array([0, 2, 3], np.int32)), (-abs(X), np.array([0], np.int32)), folder=tmp_path)


def test_a_check_that_fails_ends_the_run_with_its_message_and_line(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        df.debugging.assert_positive(x, message="x is positive")
        return df.sqrt(x)

    model = check(f, (abs(X) + 1,), folder=tmp_path)
    with pytest.raises(errors(), match=r"check failed: .*x is positive.*\(test_control_flow.py:\d+\)"):
        run(model, [X])


def test_shapes_that_must_agree_are_compared(tmp_path: Path) -> None:
    model = check(lambda x, y: x + y, (X, X), (X, X[:1]), (X[:, :1], X), folder=tmp_path)
    assert op_types(model) == ["Add"]
    with pytest.raises(errors(), match="broadcast an axis"):
        run(model, [X, X[:, :3]])
    product = check(df.matmul, (X, X.T.copy()), folder=tmp_path)
    with pytest.raises(errors(), match="matmul"):
        run(product, [X, X])
