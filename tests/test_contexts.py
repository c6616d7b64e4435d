"""Functions that report the current context: eager, traced, or an explicit graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1


def test_tensors_variables_and_composites_are_tensors() -> None:
    for x in (df.constant(1), df.Variable(1), df.SparseTensor([[0]], [1], [2]), df.IndexedSlices([1], [0])):
        assert df.is_tensor(x)
    for y in (1, [1], np.ones(2), None, "a"):
        assert not df.is_tensor(y)


def test_tensors_without_a_value_are_symbolic() -> None:
    answers: list[bool] = []
    df.function(lambda x: answers.append(df.is_symbolic_tensor(x)))(df.constant(1.0))
    with v1.Graph().as_default():
        answers.append(df.is_symbolic_tensor(v1.placeholder(df.float32)))
    assert answers == [True, True]
    assert not df.is_symbolic_tensor(df.constant(1))
    assert not df.is_symbolic_tensor(1.0)


def test_inside_function() -> None:
    answers = []
    df.function(lambda: answers.append(df.inside_function()))()
    with v1.Graph().as_default():
        answers.append(df.inside_function())
    assert [*answers, df.inside_function()] == [True, False, False]


def test_an_init_scope_runs_at_once() -> None:
    created: list[Any] = []

    @df.function
    def f(x: Any) -> Any:
        with df.init_scope():
            assert df.executing_eagerly()
            created.append(df.constant(2.0) * 3.0)
            created.append(df.Variable(5.0))
        assert not df.executing_eagerly()
        return x * created[0]

    assert f(df.constant(2.0)).numpy() == 12.0
    assert created[0].numpy() == 6.0
    assert created[1].numpy() == 5.0


def test_no_tape_records_an_init_scope() -> None:
    x = df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        with df.init_scope():
            y = x * 2.0
    assert tape.gradient(y, x) is None


def test_an_init_scope_in_an_explicit_graph_stays_in_it() -> None:
    with v1.Graph().as_default(), df.init_scope():
        assert df.is_symbolic_tensor(df.constant(1) + 1)


def test_an_init_scope_ends_where_it_fails() -> None:
    @df.function
    def f(x: Any) -> Any:
        with pytest.raises(ZeroDivisionError), df.init_scope():
            raise ZeroDivisionError
        assert not df.executing_eagerly()
        return x

    f(df.constant(1.0))


def test_a_static_value_is_known_before_the_run() -> None:
    static: list[Any] = []

    @df.function
    def f(x: Any) -> Any:
        static.extend([df.get_static_value(x), df.get_static_value(df.constant([1, 2]))])
        return x

    f(df.constant(1.0))
    assert static[0] is None
    assert static[1].tolist() == [1, 2]
    assert df.get_static_value(df.constant(3)) == 3
    assert df.get_static_value([1, 2]) == [1, 2]
    assert df.get_static_value(df.Variable(1)) is None


def test_the_name_scopes_that_are_open() -> None:
    assert df.get_current_name_scope() == ""
    with df.name_scope("a"), df.name_scope("b"):
        assert df.get_current_name_scope() == "a/b"


def test_the_spec_of_a_value() -> None:
    assert df.type_spec_from_value(np.ones((2, 3))) == df.TensorSpec([2, 3], df.float64)
    assert df.type_spec_from_value(df.SparseTensor([[0]], [1], [2])) == df.SparseTensorSpec([2], df.int32)
    slices = df.IndexedSlices([1.0], [0])
    assert df.type_spec_from_value(slices) == df.IndexedSlicesSpec.from_value(slices)
    with pytest.raises(TypeError, match="can't become a tensor"):
        df.type_spec_from_value(object())


def test_dependencies_and_groups_are_the_order_of_lines() -> None:
    v = df.Variable(1.0)

    @df.function
    def f(x: Any) -> Any:
        with df.control_dependencies([v.assign_add(x)]):
            assert df.group(x, df.no_op()) is None
            return df.identity(v)

    assert f(df.constant(2.0)).numpy() == 3.0
    assert df.group(v.assign(0.0)) is None
    assert df.no_op() is None
    with df.control_dependencies([v]):
        assert v.numpy() == 0.0


def test_the_time_is_that_of_each_call() -> None:
    clock = df.function(df.timestamp)
    first, second = float(clock()), float(clock())
    assert 1.6e9 < first <= second
    assert df.timestamp().dtype == df.float64
