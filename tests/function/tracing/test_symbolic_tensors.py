"""What a symbolic tensor can't do, and its errors."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import dualflow as df

X = df.constant([1.0, 2.0])


def traced(function):
    return df.function(function, autograph=False)(X)


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda x: bool(x), "Python `bool`"),
        (lambda x: 1 if x[0] > 0 else 0, "Python `bool`"),
        (lambda x: not x, "Python `bool`"),
        (lambda x: list(x), "Iterating over a symbolic `df.Tensor`"),
        (lambda x: int(x[0]), "Python `int`"),
        (lambda x: float(x[0]), "Python `float`"),
        (lambda x: complex(x[0]), "Python `complex`"),
        (lambda x: range(df.cast(x[0], "int32")), "index or size"),
        (lambda x: [1, 2][df.cast(x[0], "int32")], "index or size"),
        (lambda x: 1.0 in x, "`in`"),
        (lambda x: f"{x[0]:.3f}", "'.3f'"),
    ],
)
def test_python_cannot_read_a_value(use, words):
    with pytest.raises(TypeError) as caught:
        traced(use)
    assert words in str(caught.value)
    assert isinstance(caught.value, df.errors.OperatorNotAllowedInGraphError)


def test_the_error_names_the_users_lines_and_a_remedy():
    def f(x):
        y = x * 2.0
        return y if y[0] > 0 else x

    with pytest.raises(TypeError) as caught:
        traced(f)
    first = f.__code__.co_firstlineno
    assert f'test_symbolic_tensors.py", line {first + 2}' in str(caught.value)
    assert "df.where" in str(caught.value)


@pytest.mark.parametrize(
    "use", [np.asarray, np.array, lambda x: np.linalg.norm(np.asarray(x)), lambda x: np.asarray([x])]
)
def test_conversion_to_numpy_raises(use):
    with pytest.raises(NotImplementedError, match="Cannot convert a symbolic"):
        traced(use)


def test_there_is_no_numpy_method():
    with pytest.raises(AttributeError, match="Return it and call"):
        traced(lambda x: x.numpy())
    assert traced(lambda x: df.constant(hasattr(x, "numpy"))).numpy() == False  # noqa: E712  # a NumPy bool


def test_shape_dtype_rank_and_length_are_known():
    def f(x):
        assert (x.shape, x.dtype, x.ndim, len(x)) == ((2,), df.float32, 1, 2)
        return x

    traced(f)


def test_the_repr_has_the_op_the_spec_and_the_line():
    texts = []

    def f(x):
        y = df.exp(x)
        texts.extend([repr(y), str(y), x.name])
        return y

    traced(f)
    assert texts[0].startswith("<tf.Tensor 'exp:0' shape=(2,) dtype=float32 created in File")
    assert texts[1] == 'Tensor("exp:0", shape=(2,), dtype=float32)'
    assert texts[2] == "x:0"


@pytest.fixture
def leaked():
    kept = []

    @df.function
    def leak(x):
        kept.append(x * 2.0)
        return x

    leak(X)
    return kept[0]


def test_a_leaked_tensor_is_refused_eagerly(leaked):
    with pytest.raises(TypeError, match=r"multiply:0.*leak"):
        leaked + 1.0


def test_a_leaked_tensor_is_refused_in_another_trace(leaked):
    with pytest.raises(df.errors.InaccessibleTensorError, match=r"out of scope.*'leak'"):
        traced(lambda x: x + leaked)


def test_a_leaked_tensor_is_refused_as_an_argument(leaked):
    with pytest.raises(TypeError, match="multiply:0"):
        df.function(lambda x: x + 1.0)(leaked)


def test_a_leaked_tensor_is_refused_as_an_argument_under_a_tape(leaked):
    with df.GradientTape(), pytest.raises(TypeError, match="multiply:0"):
        df.function(lambda x: x + 1.0)(leaked)


def test_a_leaked_tensor_is_refused_as_a_result(leaked):
    with pytest.raises(df.errors.InaccessibleTensorError, match="out of scope"):
        traced(lambda x: leaked)


def test_a_tensor_of_an_inner_function_is_refused_by_the_outer():
    kept = []
    inner = df.function(lambda x: kept.append(x * 3.0) or x)

    def outer(x):
        inner(x)
        return kept[0]

    with pytest.raises(df.errors.InaccessibleTensorError, match="out of scope"):
        traced(outer)


def test_numpy_operands_and_symbolic_tensors_mix():
    def f(x):
        return np.float64(2.0) * x + np.arange(2) * x

    assert traced(f).numpy().tolist() == [2.0, 6.0]
    assert traced(f).dtype == df.float32


def test_a_copied_symbolic_tensor_is_the_same_value():
    assert traced(lambda x: copy.deepcopy(x) + copy.copy(x)).numpy().tolist() == [2.0, 4.0]


def test_static_values_follow_from_constants():
    def f(x):
        n = df.constant(2) * 3
        return df.zeros([n - 4, df.shape(x)[0]])

    assert traced(f).shape == (2, 2)


def test_a_symbolic_tensor_can_not_be_hashed():
    with pytest.raises(TypeError, match="hash"):
        traced(lambda x: {x: 1})
