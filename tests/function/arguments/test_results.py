"""What a function may return, and how compiled results agree with eager ones."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df

X = df.constant([1.0, 2.0])
Pair = namedtuple("Pair", "first second")


@dataclass
class Point:
    x: object
    y: object


def test_structures_come_back_as_they_were_returned():
    @df.function
    def f(x):
        return {"a": [x, (x * 2.0, None)], "b": Pair(x, x + 1.0), "c": Point(x, None)}

    out = f(X)
    assert list(out) == ["a", "b", "c"]
    assert type(out["a"]) is list
    assert out["a"][1][1] is None
    assert isinstance(out["b"], Pair)
    assert out["b"].second.numpy().tolist() == [2.0, 3.0]
    assert isinstance(out["c"], Point)
    assert out["c"].y is None


@pytest.mark.parametrize("value", [3, 2.5, True, 1j, np.float64(2), np.arange(3)], ids=repr)
def test_numbers_and_arrays_become_tensors(value):
    out = df.function(lambda: value)()
    assert isinstance(out, df.Tensor)
    assert out.dtype == df.constant(value).dtype
    assert np.array_equal(out.numpy(), value)


def test_strings_become_tensors():
    assert df.function(lambda: ("é", b"\xff"))()[0].numpy() == b"\xc3\xa9"


def test_none_and_empty_structures_stay():
    assert df.function(lambda: None)() is None
    assert df.function(lambda: ())() == ()
    assert df.function(lambda: {"a": []})() == {"a": []}


@pytest.mark.parametrize("value", [object(), {1, 2}, len], ids=["object", "set", "function"])
def test_other_results_are_refused(value):
    with pytest.raises(TypeError, match="returns tensors, numbers, strings, arrays, None"):
        df.function(lambda: value)()


def test_an_argument_a_variable_and_a_captured_tensor_can_be_results():
    v, big = df.Variable(7.0), df.constant(np.ones(50, np.float32))
    x, value, captured = df.function(lambda x: (x, v, big))(X)
    assert x.numpy().tolist() == [1.0, 2.0]
    assert isinstance(value, df.Tensor)
    assert float(value) == 7.0
    assert captured.numpy().sum() == 50.0


def test_a_result_keeps_its_value_when_the_argument_array_changes():
    array = np.float32([1.0, 2.0])
    out = df.function(lambda x: x)(array)
    array[:] = 9.0
    assert out.numpy().tolist() == [1.0, 2.0]


def test_views_and_columns_are_arguments_like_others():
    matrix = df.constant(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    f = df.function(lambda x: df.reduce_sum(x * x))
    for view in (df.transpose(matrix), matrix[:, 1:3], matrix[::-1]):
        assert float(f(view)) == float(df.reduce_sum(view * view))


def test_empty_tensors_are_arguments_like_others():
    f = df.function(lambda x: (df.reduce_sum(x), x + 1.0))
    total, out = f(df.zeros([0, 3]))
    assert float(total) == 0.0
    assert out.shape == (0, 3)


def test_ops_that_nothing_reads_do_not_run():
    @df.function
    def f(x):
        df.gather(x, 99)
        df.constant(1) // df.constant(0)
        return x

    assert f(X).numpy().tolist() == [1.0, 2.0]


def test_a_check_inside_names_the_op_and_the_users_line():
    @df.function
    def f(x, i):
        return df.gather(x, i)

    assert float(f(X, df.constant(1))) == 2.0
    with pytest.raises(IndexError, match=r"gather(.|\n)*test_results.py"):
        f(X, df.constant(7))


UNARY = [df.exp, df.tanh, df.abs, df.square, df.sqrt, lambda x: df.reduce_mean(x, 1, keepdims=True)]
UNARY += [
    lambda x: df.transpose(df.reshape(x, [3, 2])),
    lambda x: df.nn.softmax(x),
    lambda x: x[::-1],
    df.sigmoid,
]
BINARY = [
    df.add,
    df.subtract,
    df.multiply,
    df.maximum,
    lambda x, y: df.where(x > y, x, y),
    lambda x, y: x / (1.0 + y * y),
]
BINARY += [lambda x, y: df.matmul(x, y, transpose_b=True)[:, :1] * x, lambda x, y: df.concat([x, y], 0)[1:3]]
steps = st.lists(
    st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=15
)
numbers = st.lists(st.floats(-2, 2, width=32), min_size=6, max_size=6)


def program(choices):
    """A straight-line program of these choices: each step takes earlier values of shape (2, 3)."""

    def run(x, v):
        values = [x, v * 0.5, df.constant([[0.5, -1.0, 2.0]] * 2)]
        for op, a, b in choices:
            ops = UNARY if op % 2 else BINARY
            arguments = [values[i % len(values)] for i in (a, b)]
            out = ops[op // 2 % len(ops)](*arguments[: 1 if op % 2 else 2])
            values.append(df.broadcast_to(out, [2, 3]) if out.shape[-1] != 2 else out[:2] @ values[1])
        return df.reduce_sum(values[-1] * 0.1), values[-1], values[len(values) // 2]

    return run


@settings(max_examples=30, deadline=None)
@given(steps, numbers)
def test_a_compiled_program_computes_what_the_eager_one_does(choices, values):
    x = df.constant(np.array(values, np.float32).reshape(2, 3))
    v = df.Variable([[1.0, 2.0, 3.0]] * 2)
    run = program(choices)
    for mine, eager in zip(df.function(lambda x: run(x, v))(x), run(x, v), strict=True):
        assert np.allclose(mine.numpy(), eager.numpy(), rtol=2e-5, atol=1e-5, equal_nan=True)


@settings(max_examples=20, deadline=None)
@given(steps, numbers)
def test_a_compiled_programs_gradient_is_the_eager_ones(choices, values):
    x = df.constant(np.array(values, np.float32).reshape(2, 3))
    v = df.Variable([[1.0, 2.0, 3.0]] * 2)
    run = program(choices)
    compiled = df.function(lambda x: run(x, v)[0])

    def gradients(f):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, [x, v], unconnected_gradients="zero")

    inside = df.function(lambda: gradients(lambda x: run(x, v)[0]))
    expected = gradients(lambda x: run(x, v)[0])
    for result in (gradients(compiled), inside()):
        for mine, eager in zip(result, expected, strict=True):
            assert np.allclose(mine.numpy(), eager.numpy(), rtol=1e-4, atol=1e-4, equal_nan=True)
