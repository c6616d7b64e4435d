"""``tfe``: transformations of functions into functions that compute gradients."""

import numpy as np
import pytest

import dualflow as df
import dualflow.eager as tfe


def test_gradients_for_all_arguments_or_some():
    f = lambda x, y: x * x * y  # noqa: E731  # as the guides write it
    assert [float(g) for g in tfe.gradients_function(f)(3.0, 2.0)] == [12.0, 9.0]
    assert [float(g) for g in tfe.gradients_function(f, params=[1])(3.0, 2.0)] == [9.0]


def test_integers_have_integer_gradients():
    (result,) = tfe.gradients_function(lambda x: x * x)(3)
    assert result.dtype is df.int32
    assert int(result) == 6


def test_orders_nest():
    f = lambda x: x**3  # noqa: E731  # as the guides write it
    first = tfe.gradients_function(f)
    second = tfe.gradients_function(lambda x: first(x)[0])
    third = tfe.gradients_function(lambda x: second(x)[0])
    assert [float(g(2.0)[0]) for g in (first, second, third)] == [12.0, 12.0, 6.0]


def test_a_weight_for_the_value():
    value, (g,) = tfe.value_and_gradients_function(lambda x: x * x)(
        df.constant([1.0, 2.0]), dy=df.constant([1.0, 10.0])
    )
    assert value.numpy().tolist() == [1.0, 4.0]
    assert g.numpy().tolist() == [2.0, 40.0]


def test_an_argument_may_be_a_variable():
    v = tfe.Variable(3.0)
    assert float(tfe.gradients_function(lambda x: x * x)(v)[0]) == 6.0


def test_implicit_gradients_pair_with_their_variables():
    a, b = tfe.Variable(2.0), tfe.Variable(3.0)
    fixed = tfe.Variable(5.0, trainable=False)
    value, pairs = tfe.implicit_value_and_gradients(lambda x: a * b * x * fixed)(10.0)
    assert float(value) == 300.0
    assert float(pairs[0][0]) == 150.0
    assert pairs[0][1] is a
    assert pairs[1][1] is b
    assert len(tfe.implicit_gradients(lambda: a * b)()) == 2


def test_misuse_is_explained():
    with pytest.raises(ValueError, match="0 arguments"):
        tfe.gradients_function(lambda: 1.0)()
    with pytest.raises(ValueError, match=r"params is \[3\]"):
        tfe.gradients_function(lambda x: x, params=[3])(1.0)
    with pytest.raises(ValueError, match="No trainable variables"):
        tfe.implicit_gradients(lambda: df.constant(1.0))()
    with pytest.raises(ValueError, match="returns None"):
        tfe.implicit_gradients(lambda: None)()


def test_python_functions_of_arrays():
    result = tfe.py_func(lambda a, b: (a + b, a.shape), [df.ones([2]), 1.0], [df.float64, df.int64])
    assert result[0].dtype is df.float64
    assert result[0].numpy().tolist() == [2.0, 2.0]
    assert result[1].numpy().tolist() == [2]
    arrays = []
    tfe.py_func(lambda a: arrays.append(a) or a, [df.ones([2])], df.float32)
    arrays[0][0] = 5.0
    assert type(arrays[0]) is np.ndarray


def test_arguments_to_differentiate_for_have_names():
    gradients = tfe.gradients_function(lambda x, y: x * x * y, params=["y"])
    assert [float(g) for g in gradients(3.0, 4.0)] == [9.0]
    both = tfe.value_and_gradients_function(lambda x, y: x * x * y, params=["y", 0])(3.0, 4.0)
    assert [float(g) for g in both[1]] == [9.0, 24.0]


def test_the_first_eager_names_reach_what_later_ones_do():
    assert tfe.custom_gradient is df.custom_gradient
    assert tfe.make_template is df.compat.v1.make_template
    assert tfe.Variable(1.0).initializer is None


@pytest.mark.parametrize("make", [df.constant, df.Variable])
def test_an_argument_that_is_given_twice_has_a_gradient_for_each_place(make):
    c = make(3.0)
    result = tfe.gradients_function(lambda x, y: x * x * y)(c, c)
    assert [float(g) for g in result] == [18.0, 9.0]


def test_implicit_gradients_are_in_the_order_of_creation():
    a, b = df.Variable(1.0, name="a"), df.Variable(2.0, name="b")
    assert [v.name for _, v in tfe.implicit_gradients(lambda: b * b * a)()] == ["a:0", "b:0"]
