"""Objects that become tensors by a function that a user registers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import dualflow as df
from dualflow.core.registered_conversions import CONVERSIONS


class Held:
    """An object with a tensor, which no protocol gives away."""

    def __init__(self, value: Any) -> None:
        self.value = value


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    before = list(CONVERSIONS)
    df.register_tensor_conversion_function(
        Held, lambda x, dtype=None, name=None, as_ref=False: df.cast(x.value, dtype or df.float32)
    )
    yield
    CONVERSIONS[:] = before


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda x: df.convert_to_tensor(x), [1.0, 2.0]),
        (lambda x: df.constant(x, df.float64), [1.0, 2.0]),
        (lambda x: df.square(x), [1.0, 4.0]),
        (lambda x: df.constant([10.0, 10.0]) + x, [11.0, 12.0]),
        (lambda x: df.reduce_sum(x, axis=0), 3.0),
        (lambda x: df.reshape(x, [1, 2]), [[1.0, 2.0]]),
        (lambda x: df.concat([x, [3.0]], 0), [1.0, 2.0, 3.0]),
        (lambda x: df.shape(x), [2]),
    ],
)
@pytest.mark.parametrize("value", [[1.0, 2.0], df.constant([1.0, 2.0]), df.Variable([1.0, 2.0])], ids=repr)
def test_ops_take_what_a_function_converts(compute: Any, expected: Any, value: Any) -> None:
    value = df.constant(value) if isinstance(value, list) else value
    assert compute(Held(value)).numpy().tolist() == expected
    assert df.function(lambda: compute(Held(value)))().numpy().tolist() == expected


def test_the_dtype_that_is_required_is_passed_on() -> None:
    assert df.convert_to_tensor(Held(1), df.float64).dtype is df.float64


def test_a_subclass_is_converted_and_a_lower_priority_is_tried_first() -> None:
    class Negative(Held):
        pass

    calls: list[str] = []

    def first(x: Any, **options: Any) -> Any:
        calls.append(type(x).__name__)
        return -df.constant(x.value) if isinstance(x, Negative) else NotImplemented

    df.register_tensor_conversion_function(Held, first, priority=10)
    assert [float(df.identity(kind(df.constant(2.0)))) for kind in (Held, Negative)] == [2.0, -2.0]
    assert set(calls) == {"Held", "Negative"}


def test_without_a_function_an_object_is_refused() -> None:
    CONVERSIONS.clear()
    with pytest.raises(TypeError, match="Held can't become a tensor"):
        df.square(Held(1.0))
