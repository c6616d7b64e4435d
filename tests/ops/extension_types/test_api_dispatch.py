"""What functions of tensors compute of extension types: targets and handlers."""

from __future__ import annotations

from typing import Any, List, Union  # noqa: UP035  # as TensorFlow's programs write it

import pytest

import dualflow as df
from dualflow.core.api_dispatch import ACTIVE

REGISTER = df.experimental


class Masked(df.experimental.ExtensionType):
    values: df.Tensor
    mask: df.Tensor


def masked(x: Any) -> Masked:
    return x if isinstance(x, Masked) else Masked(x, df.ones_like(x, df.bool))


X = Masked([1.0, -2.0], [True, False])
ANY = Union[Masked, df.Tensor]  # noqa: UP007


@pytest.fixture(autouse=True)
def nothing_stays_registered():
    yield
    for function in list(ACTIVE):
        REGISTER.unregister_dispatch_for(function)


def of_one(function, x):
    return Masked(function(x.values), x.mask)


def of_two(function, x, y):
    x, y = masked(x), masked(y)
    return Masked(function(x.values, y.values), x.mask & y.mask)


UNARY = {
    "an op": (df.abs, [1.0, 2.0]),
    "a cast": (lambda x: df.cast(x, df.int32), [1, -2]),
    "a function of several ops": (df.nn.relu, [1.0, 0.0]),
    "one with a gradient of its own": (df.nn.elu, df.nn.elu(X.values).numpy().tolist()),
    "clip_by_value": (lambda x: df.clip_by_value(x, -1.0, 0.5), [0.5, -1.0]),
    "ones_like": (lambda x: df.ones_like(x, dtype=df.int32), [1, 1]),
    "an operator's function": (df.negative, [-1.0, 2.0]),
}


@pytest.mark.parametrize("case", UNARY)
def test_a_handler_computes_elementwise_functions_of_one_argument(case) -> None:
    function, expected = UNARY[case]
    with pytest.raises(TypeError, match="dispatch_for_api"):
        function(X)
    REGISTER.dispatch_for_unary_elementwise_apis(Masked)(of_one)
    for run in (function, df.function(function)):
        result = run(X)
        assert result.values.numpy().tolist() == expected
        assert result.mask.numpy().tolist() == [True, False]


def test_a_handler_computes_elementwise_functions_of_two_arguments() -> None:
    REGISTER.dispatch_for_binary_elementwise_apis(ANY, ANY)(of_two)
    tensor = df.constant([10.0, 20.0])
    for result in (df.add(X, tensor), tensor + X, df.add(tensor, y=X)):
        assert result.values.numpy().tolist() == [11.0, 18.0]
        assert result.mask.numpy().tolist() == [True, False]
    assert df.add(tensor, tensor).numpy().tolist() == [20.0, 40.0]


def test_the_function_of_a_handler_is_that_of_the_op() -> None:
    called = []
    REGISTER.dispatch_for_unary_elementwise_apis(Masked)(lambda function, x: called.append(function) or x)
    df.sin(X)
    assert called == [df.sin]


def test_a_handler_computes_assertions() -> None:
    @REGISTER.dispatch_for_binary_elementwise_assert_apis(Masked, ANY)
    def compare(assertion, x, y):
        return assertion(df.boolean_mask(x.values, x.mask), df.boolean_mask(masked(y).values, x.mask))

    df.debugging.assert_equal(X, df.constant([1.0, 5.0]))
    with pytest.raises(df.errors.InvalidArgumentError, match="x == y"):
        df.debugging.assert_equal(X, y=df.constant([2.0, -2.0]))
    with pytest.raises(df.errors.InvalidArgumentError, match="atol"):
        df.debugging.assert_near(X, df.constant([2.0, -2.0]))


def test_a_target_computes_one_function() -> None:
    @REGISTER.dispatch_for_api(df.stack)
    def stack(values: List[Masked], axis=0):  # noqa: UP006
        return Masked(df.stack([v.values for v in values], axis), df.stack([v.mask for v in values], axis))

    @REGISTER.dispatch_for_api(df.matmul, {"a": Masked})
    def matmul(a, b, transpose_a=False, transpose_b=False, **others):
        return df.matmul(a.values, b, transpose_a, transpose_b)

    @REGISTER.dispatch_for_api(df.subtract, {0: Masked, 1: Masked})
    def subtract(x, y):
        return Masked(x.values - y.values, x.mask)

    stacked = df.stack([X, X], name="both")
    assert stacked.values.shape == (2, 2)
    assert df.matmul(stacked, [[1.0], [0.0]]).numpy().tolist() == [[1.0], [1.0]]
    assert df.subtract(X, X).values.numpy().tolist() == [0.0, 0.0]
    assert df.stack([[1.0], [2.0]]).shape == (2, 1)
    with pytest.raises(TypeError, match="where a tensor is required"):
        df.stack([X, df.constant([1.0, 2.0])])
    with pytest.raises(TypeError, match="where a tensor is required"):
        df.concat([X, X], 0)


def test_a_target_computes_a_function_that_would_take_the_value_itself() -> None:
    @REGISTER.dispatch_for_api(df.identity)
    def identity(input: Masked):
        return "the target"

    assert df.identity(X) == "the target"


def test_the_first_target_that_matches_computes_a_call() -> None:
    @REGISTER.dispatch_for_api(df.reduce_sum)
    def first(input_tensor: Masked, axis=None, keepdims=False):
        return "first"

    @REGISTER.dispatch_for_api(df.reduce_sum)
    def second(input_tensor: Masked, axis=None, keepdims=False):
        return "second"

    assert df.reduce_sum(X) == "first"
    REGISTER.unregister_dispatch_for(first)
    assert df.reduce_sum(X) == "second"
    REGISTER.unregister_dispatch_for(second)
    with pytest.raises(TypeError, match="where a tensor is required"):
        df.reduce_sum(X)


def test_a_decorator_that_raises_an_error_registers_nothing() -> None:
    decorate = REGISTER.dispatch_for_api(df.reduce_max, {"input_tensor": Masked}, {"other": Masked})
    with pytest.raises(df.errors.InvalidArgumentError, match="'other'"):
        decorate(lambda input_tensor, axis=None, keepdims=False: "the target")
    REGISTER.dispatch_for_unary_elementwise_apis(Masked)(of_one)  # from here on, targets are looked for
    with pytest.raises(TypeError, match="where a tensor is required"):
        df.reduce_max(X)


@pytest.mark.parametrize("is_inherited", [False, True])
def test_the_error_of_a_property_of_the_program_is_raised_as_it_is(is_inherited) -> None:
    class Measured(df.experimental.ExtensionType):
        values: df.Tensor

        @property
        def shape(self):
            raise AttributeError("no shape yet")

    class Inheriting(Measured):
        pass

    with pytest.raises(AttributeError, match="no shape yet"):
        df.reduce_max((Inheriting if is_inherited else Measured)([1.0]))


def test_ragged_tensors_are_dispatched_too() -> None:
    @REGISTER.dispatch_for_api(df.nn.softmax)
    def softmax(logits: df.RaggedTensor, axis=None):
        return df.ragged.map_flat_values(df.exp, logits)

    assert df.nn.softmax(df.ragged.constant([[0.0], []])).to_list() == [[1.0], []]


def test_a_registered_conversion_makes_it_a_tensor() -> None:
    class Boxed(df.experimental.ExtensionType):
        content: df.Tensor

    df.register_tensor_conversion_function(Boxed, lambda x, dtype=None, name=None, as_ref=False: x.content)
    assert df.add(Boxed(1.0), 2.0).numpy() == 3.0
    assert df.reduce_sum(Boxed([1.0, 2.0])).numpy() == 3.0
