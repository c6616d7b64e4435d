"""``IndexedSlices``: slices with their places, and the tensor that ops take for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df


def sample(at: Any = (0, 2)) -> Any:
    return df.IndexedSlices([[1.0, 2.0], [3.0, 4.0]], list(at), [4, 2])


WHOLE = np.array([[1, 2], [0, 0], [3, 4], [0, 0]], np.float32)


def test_it_has_its_parts() -> None:
    x = sample()
    assert (x.shape, x.dtype, x.indices.dtype) == ((4, 2), df.float32, df.int32)
    assert x.dense_shape.numpy().tolist() == [4, 2]
    assert df.IndexedSlices([[1.0, 2.0]], [0]).dense_shape is None
    assert df.IndexedSlices([[1.0, 2.0]], [0]).shape == (None, 2)


def test_ops_take_the_whole_tensor(mode: Any) -> None:
    assert np.array_equal(mode(df.convert_to_tensor)(sample()), WHOLE)
    assert np.array_equal(mode(lambda x: df.multiply(x, 2.0))(sample()), 2 * WHOLE)
    assert np.array_equal(mode(lambda x: df.add_n([x, x]))(sample()), 2 * WHOLE)


def test_slices_of_one_index_are_added() -> None:
    assert df.convert_to_tensor(sample([1, 1])).numpy().tolist() == [[0, 0], [4, 6], [0, 0], [0, 0]]


def test_a_variable_takes_the_whole_tensor() -> None:
    v = df.Variable(df.ones([4, 2]))
    v.assign_sub(sample())
    assert np.array_equal(v, 1 - WHOLE)


def test_its_negative_has_the_same_places(mode: Any) -> None:
    result = mode(lambda x: -x)(sample())
    assert isinstance(result, df.IndexedSlices)
    assert np.array_equal(df.convert_to_tensor(result), -WHOLE)


def test_gradients_flow_to_its_slices(mode: Any) -> None:
    def slope(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(df.multiply(x, df.constant(WHOLE)))
        return tape.gradient(y, x)

    gradient = mode(slope)(sample())
    assert isinstance(gradient, df.IndexedSlices)
    assert gradient.values.numpy().tolist() == [[1, 2], [3, 4]]


def test_a_mask_drops_indices(mode: Any) -> None:
    result = mode(lambda x: df.sparse.mask(x, [2, 3]))(sample())
    assert result.indices.numpy().tolist() == [0]
    assert result.values.numpy().tolist() == [[1, 2]]


def test_it_prints_as_tensorflows() -> None:
    assert str(df.IndexedSlices([1.0], [0])) == (
        "IndexedSlices(indices=tf.Tensor([0], shape=(1,), dtype=int32), values=tf.Tensor([1.], shape=(1,), "
        "dtype=float32))"
    )


def test_a_spec_reports_what_fits() -> None:
    spec = df.IndexedSlicesSpec.from_value(sample())
    assert spec == df.IndexedSlicesSpec([4, 2], df.float32, df.int32, df.int32, [2])
    assert hash(spec) == hash(df.IndexedSlicesSpec([4, 2], df.float32, df.int32, df.int32, [2]))
    assert spec.is_compatible_with(sample())
    assert not spec.is_compatible_with(df.IndexedSlices([[1.0, 2.0]], [0]))
    assert df.IndexedSlicesSpec([None, 2], indices_dtype="int32").is_compatible_with(
        df.IndexedSlices([[1.0, 2.0]], [0])
    )


@pytest.mark.parametrize("spec", [df.IndexedSlicesSpec([4, 2], df.float32, df.int32, df.int32, [None])])
def test_an_input_signature_describes_it(spec: Any) -> None:
    whole = df.function(df.convert_to_tensor, input_signature=[spec])
    assert np.array_equal(whole(sample()), WHOLE)
