"""Objects that describe themselves as arguments: ``__tf_tracing_type__``."""

from __future__ import annotations

import dualflow as df


class FruitType(df.types.experimental.TraceType):
    """The type of a fruit: a general one has no name."""

    def __init__(self, kind, name):
        self.kind, self.name = kind, name

    def is_subtype_of(self, other):
        return isinstance(other, FruitType) and self.kind is other.kind and other.name in (None, self.name)

    def most_specific_common_supertype(self, others):
        return self if all(self == other for other in others) else FruitType(self.kind, None)

    def placeholder_value(self, placeholder_context):
        return self.kind(self.name)

    def __eq__(self, other):
        return isinstance(other, FruitType) and (self.kind, self.name) == (other.kind, other.name)

    def __hash__(self):
        return hash((self.kind, self.name))


class Fruit:
    def __init__(self, name):
        self.name = name

    def __tf_tracing_type__(self, context):
        return FruitType(type(self), self.name)


class Apple(Fruit):
    flavor = 2.0


class Any(Apple):
    def __tf_tracing_type__(self, context):
        return FruitType(Any, None)


class Weighted:
    """An object with a tensor, which is an input of the trace."""

    def __init__(self, weight, unit):
        self.weight, self.unit = weight, unit

    def __tf_tracing_type__(self, context):
        return WeightedType(self.weight.shape, self.unit)


class WeightedType(FruitType):
    def __init__(self, shape, unit):
        super().__init__(Weighted, (shape, unit))

    def placeholder_value(self, placeholder_context):
        raise AssertionError("from_tensors creates it")

    def to_tensors(self, value):
        return [value.weight]

    def from_tensors(self, tensors):
        return Weighted(next(tensors), self.name[1])


def test_objects_of_equal_types_share_a_trace() -> None:
    f = df.function(lambda x, fruit: x * fruit.flavor)
    assert [f(1.0, Apple(name)).numpy() for name in ("a", "a", "b")] == [2.0, 2.0, 2.0]
    assert f.experimental_get_tracing_count() == 2
    assert isinstance(Apple("a"), df.types.experimental.SupportsTracingProtocol)


def test_a_trace_serves_objects_of_subtypes() -> None:
    class Sub(Any):
        def __tf_tracing_type__(self, context):
            return FruitType(Any, self.name)

    f = df.function(lambda x, fruit: x * fruit.flavor)
    assert [f(1.0, fruit).numpy() for fruit in (Any(None), Sub("a"), Sub("b"))] == [2.0, 2.0, 2.0]
    assert f.experimental_get_tracing_count() == 1


def test_the_tensors_of_an_object_are_inputs_of_the_trace() -> None:
    f = df.function(lambda x: x.weight * 2)
    assert [f(Weighted(df.constant(w), "kg")).numpy() for w in (1.0, 2.0)] == [2.0, 4.0]
    assert f.experimental_get_tracing_count() == 1
    assert df.nest.flatten([Apple("a")])[0].name == "a"
