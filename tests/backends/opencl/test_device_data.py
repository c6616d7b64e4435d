"""Datasets whose elements are copied to the device, and functions of batch elements there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from required_tools import require_module

import dualflow as df

require_module("pyopencl")

from dualflow.backends.opencl.devices import current_device  # noqa: E402  # it imports pyopencl

CPU, GPU = "CPU:0", "GPU:0"


def numbers(device: str, **options: Any) -> Any:
    dataset = df.data.Dataset.from_tensor_slices(np.arange(6, dtype=np.float32)).batch(2)
    return dataset.apply(df.data.experimental.prefetch_to_device(device, **options))


@pytest.mark.parametrize("options", [{}, {"buffer_size": 0}, {"buffer_size": 3}])
def test_elements_are_on_the_device(options: dict[str, int]) -> None:
    elements = list(numbers("/gpu:0", **options))
    assert [x.device[-5:] for x in elements] == [GPU] * 3
    assert [x.numpy().tolist() for x in elements] == [[0, 1], [2, 3], [4, 5]]
    assert [x.device[-5:] for x in numbers("/cpu:0", **options)] == [CPU] * 3


def test_a_step_transfers_nothing() -> None:
    double = df.function(lambda x: x * 2.0)
    for x in list(numbers("/gpu:0")):
        before = current_device().transferred
        assert double(x).device[-5:] == GPU
        assert current_device().transferred == before


def test_strings_stay_on_the_host() -> None:
    dataset = df.data.Dataset.from_tensor_slices(([1.0, 2.0], ["a", "b"]))
    (x, s), _ = dataset.apply(df.data.experimental.copy_to_device("/gpu:0"))
    assert (x.device[-5:], s.device[-5:], s.numpy()) == (GPU, CPU, b"a")


def test_other_transformations_and_traced_loops_read_the_copies() -> None:
    @df.function
    def total(dataset: Any) -> Any:
        total = 0.0
        for x in dataset:
            total += df.reduce_sum(x)
        return total

    dataset = numbers("/gpu:0")
    assert total(dataset).numpy() == 15.0
    assert [x.numpy().tolist() for x in dataset.map(lambda x: x + 1.0).take(1)] == [[1, 2]]
    assert [x.tolist() for x in dataset.as_numpy_iterator()] == [[0, 1], [2, 3], [4, 5]]


def test_an_iterator_continues_from_its_state() -> None:
    dataset = numbers("/gpu:0")
    iterator = iter(dataset)
    next(iterator)
    state = iterator.get_state()
    again = iter(dataset)
    again.set_state(state)
    assert [x.numpy().tolist() for x in again] == [x.numpy().tolist() for x in iterator] == [[2, 3], [4, 5]]


def test_wrong_arguments() -> None:
    with pytest.raises(df.errors.InvalidArgumentError, match="'/fast:0' is not the name of a device"):
        df.data.experimental.prefetch_to_device("/fast:0")
    with pytest.raises(df.errors.InvalidArgumentError, match="buffer_size must be >= 0"):
        df.data.experimental.prefetch_to_device("/gpu:0", buffer_size=-2)


# Functions of batch elements


def test_a_function_of_batch_elements_and_a_jacobian_are_computed_on_the_device() -> None:
    x = df.constant(np.arange(6, dtype=np.float32).reshape(3, 2)).gpu()
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.vectorized_map(lambda row: df.reduce_sum(row * row), x)
    slopes = tape.jacobian(y, x)
    assert (y.device[-5:], slopes.device[-5:]) == (GPU, GPU)
    assert y.numpy().tolist() == [1.0, 13.0, 41.0]
    np.testing.assert_array_equal(slopes.numpy(), 2 * np.eye(3)[:, :, None] * x.numpy())
