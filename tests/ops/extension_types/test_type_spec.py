"""Composite tensors of a program's own: a class with a ``_type_spec``, and its TypeSpec."""

from __future__ import annotations

import pytest

import dualflow as df
from dualflow.core.composite_tensor import CompositeTensor


class Diagonal(CompositeTensor):
    """A square matrix with a diagonal; scaled by a Python number."""

    def __init__(self, diagonal, scale=1):
        self.diagonal, self.scale = df.convert_to_tensor(diagonal), scale

    @property
    def _type_spec(self):
        return DiagonalSpec(self.diagonal.shape, self.diagonal.dtype, self.scale)


class DiagonalSpec(df.TypeSpec):
    def __init__(self, shape, dtype, scale):
        self.shape, self.dtype, self.scale = df.TensorShape(shape), dtype, scale

    value_type = Diagonal

    def _serialize(self):
        return self.shape, self.dtype, self.scale

    @property
    def _component_specs(self):
        return {"diagonal": df.TensorSpec(self.shape, self.dtype)}

    def _to_components(self, value):
        return {"diagonal": value.diagonal}

    def _from_components(self, components):
        return Diagonal(components["diagonal"], self.scale)


D = Diagonal([1.0, 2.0], 3)


def test_a_function_takes_and_returns_it() -> None:
    f = df.function(lambda x: Diagonal(x.diagonal * x.scale, x.scale))
    result = f(D)
    assert (result.scale, result.diagonal.numpy().tolist()) == (3, [3.0, 6.0])
    f(Diagonal([5.0, 6.0], 3))
    assert f.experimental_get_tracing_count() == 1
    f(Diagonal([5.0, 6.0], 4))
    f(Diagonal([5.0], 4))
    assert f.experimental_get_tracing_count() == 3


def test_a_trace_for_a_more_general_spec_serves_it() -> None:
    f = df.function(lambda x: df.reduce_sum(x.diagonal))
    f.get_concrete_function(DiagonalSpec([None], df.float32, 3))
    assert [f(x).numpy() for x in (D, Diagonal([1.0, 2.0, 4.0], 3))] == [3.0, 7.0]
    assert f.experimental_get_tracing_count() == 1
    signed = df.function(
        lambda x: x.diagonal * x.scale, input_signature=[DiagonalSpec([None], df.float32, 3)]
    )
    assert signed(D).numpy().tolist() == [3.0, 6.0]


def test_branches_loops_and_gradients_carry_it() -> None:
    @df.function
    def f(x, n):
        for _ in df.range(n):
            x = Diagonal(x.diagonal * 2, x.scale)
        return x if n > 1 else Diagonal(-x.diagonal, x.scale)

    assert f(D, df.constant(2)).diagonal.numpy().tolist() == [4.0, 8.0]
    assert f(D, df.constant(1)).diagonal.numpy().tolist() == [-2.0, -4.0]
    with df.GradientTape() as tape:
        tape.watch(D)
        loss = df.reduce_sum(df.square(D.diagonal))
    gradient = tape.gradient(loss, D)
    assert (gradient.scale, gradient.diagonal.numpy().tolist()) == (3, [2.0, 4.0])


def test_specs_compare_what_they_serialize_to() -> None:
    spec = df.type_spec_from_value(D)
    assert spec == DiagonalSpec([2], df.float32, 3)
    assert hash(spec) == hash(DiagonalSpec([2], df.float32, 3))
    assert spec != DiagonalSpec([2], df.float32, 3.0)
    general = spec.most_specific_common_supertype([DiagonalSpec([5], df.float32, 3)])
    assert general == DiagonalSpec([None], df.float32, 3)
    assert spec.most_specific_common_supertype([DiagonalSpec([2], df.float32, 4)]) is None
    assert spec.is_subtype_of(general)
    assert not general.is_subtype_of(spec)
    assert general.is_compatible_with(D)
    with pytest.raises(ValueError, match="No TypeSpec is compatible"):
        spec.most_specific_compatible_type(df.TensorSpec([2]))


def test_a_spec_has_no_other_tensors_than_its_own() -> None:
    spec = df.type_spec_from_value(D)
    with pytest.raises(TypeError, match=r"describes tensors of .* give values of one shape"):
        df.nest.map_structure(lambda x: df.TensorSpec([9]), spec, expand_composites=True)
    assert df.nest.flatten(spec, expand_composites=True) in ([spec], [df.TensorSpec([2])])


@pytest.mark.parametrize(
    "value",
    [
        df.ragged.constant([[1], [2, 3]]),
        df.SparseTensor([[0, 1]], [1.0], [2, 2]),
        df.IndexedSlices([[1.0]], [0], [2, 1]),
    ],
    ids=["ragged", "sparse", "slices"],
)
def test_specs_of_dualflow_take_values_apart_and_rebuild_them(value) -> None:
    spec = df.type_spec_from_value(value)
    assert isinstance(spec, df.TypeSpec)
    assert isinstance(value, spec.value_type)
    assert spec.is_compatible_with(value)
    assert spec.is_subtype_of(spec)
    rebuilt = spec._from_components(spec._to_components(value))
    assert df.type_spec_from_value(rebuilt) == spec
    assert len(df.nest.flatten(rebuilt, expand_composites=True)) == len(spec._component_specs)


def test_it_is_dispatched_as_an_extension_type_is() -> None:
    handler = df.experimental.dispatch_for_unary_elementwise_apis(Diagonal)(
        lambda function, x: Diagonal(function(x.diagonal), x.scale)
    )
    try:
        assert df.square(D).diagonal.numpy().tolist() == [1.0, 4.0]
    finally:
        df.experimental.unregister_dispatch_for(handler)


def test_a_dataset_has_its_values_but_no_batches_of_them() -> None:
    dataset = df.data.Dataset.from_tensors(D)
    assert next(iter(dataset)).scale == 3
    with pytest.raises(ValueError, match="Diagonal"):
        dataset.batch(1)
