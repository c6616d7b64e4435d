"""Extension types: fields, constructors, equality, immutability, and where dualflow takes them."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref
from collections.abc import Mapping
from typing import Any, Optional, Union

import numpy as np
import pytest

import dualflow as df


class MaskedTensor(df.experimental.BatchableExtensionType):
    values: df.Tensor
    mask: df.Tensor

    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)

    def with_values(self, values):
        return MaskedTensor(values, self.mask)

    def __validate__(self):
        self.values.shape.assert_is_compatible_with(self.mask.shape)

    class Spec:
        def __init__(self, shape, dtype=df.float32):
            self.values = df.TensorSpec(shape, dtype)
            self.mask = df.TensorSpec(shape, df.bool)

        shape = property(lambda self: self.values.shape)


class Node(df.experimental.ExtensionType):
    value: df.Tensor
    children: tuple["Node", ...] = ()  # noqa: UP037


class Network(df.experimental.BatchableExtensionType):
    shape: df.TensorShape
    work: df.Tensor

    def __init__(self, work):
        self.work = df.convert_to_tensor(work)
        self.shape = self.work.shape[:-1]


class Everything(df.experimental.ExtensionType):
    number: int
    ratio: float
    name: str
    dtype: df.DType
    size: df.TensorShape
    table: Mapping[str, df.Tensor]
    pair: tuple[int, df.Tensor]
    optional: Optional[df.Tensor] = None  # noqa: UP045
    either: Union[int, df.Tensor] = 3  # noqa: UP007
    rows: df.RaggedTensor | None = None
    fixed: df.TensorSpec([2], df.float64) = (0.0, 1.0)


masked = MaskedTensor([1.0, -2.0, 3.0], [True, False, True])


def everything(**others):
    fields = {
        "number": 1,
        "ratio": 0.5,
        "name": "x",
        "dtype": "float32",
        "size": [2, None],
        "table": {"b": 1.0, "a": [2.0]},
        "pair": [2, 4.0],
    }
    return Everything(**{**fields, **others})


# Fields


def test_fields_are_converted_to_their_types() -> None:
    x = everything(rows=df.ragged.constant([[1], [2, 3]]))
    assert (x.dtype, x.size, x.pair[0], x.optional, x.either) == (df.float32, (2, None), 2, None, 3)
    assert x.table["a"].numpy().tolist() == [2.0]
    assert x.fixed.dtype is df.float64
    assert x.rows.to_list() == [[1], [2, 3]]


@pytest.mark.parametrize(
    "fields",
    [
        {"number": 1.5},
        {"name": b"x"},
        {"table": [1.0]},
        {"table": {1: 1.0}},
        {"pair": [1]},
        {"dtype": "no dtype"},
        {"optional": object()},
        {"rows": [[1]]},
        {"fixed": [1.0]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_value_of_another_type_is_an_error(fields) -> None:
    with pytest.raises(TypeError, match=f"the field '{next(iter(fields))}'"):
        everything(**fields)


def test_the_reason_of_a_conversion_ends_with_one_full_stop() -> None:
    with pytest.raises(TypeError, match=r"object at 0x\w+>\. Pass"):
        Node(object())


def test_a_union_takes_a_value_of_one_of_its_types_as_it_is() -> None:
    assert everything(either=4).either == 4
    assert everything(either=df.constant(4)).either.numpy() == 4
    assert everything(either=np.float32(4)).either.numpy() == 4


def test_a_constructor_of_the_class_sets_the_fields() -> None:
    class Toy(df.experimental.ExtensionType):
        name: str
        price: df.Tensor

        def __init__(self, name, price, discount=0.0):
            self.price = price * (1 - discount)
            self.name = name

    toy = Toy("ball", 5.0, discount=0.2)
    assert list(df.experimental.extension_type.as_dict(toy)) == ["name", "price"]
    assert toy.price.numpy() == 4.0
    assert list(inspect.signature(Toy).parameters) == ["name", "price", "discount"]
    assert list(inspect.signature(Toy.Spec).parameters) == ["name", "price"]


def test_a_subclass_adds_fields() -> None:
    class Labelled(Node):
        label: str = "none"

    x = Labelled(1, [Node(2)], "root")
    assert (x.children[0].value.numpy(), x.label) == (2, "root")
    assert isinstance(x, Node)
    assert Labelled.Spec is not Node.Spec


def test_validate_runs_after_the_conversion() -> None:
    with pytest.raises(ValueError, match="incompatible"):
        MaskedTensor([1.0, 2.0], [True])


def test_instances_are_immutable() -> None:
    for name in ("mask", "x"):
        with pytest.raises(AttributeError, match="Cannot mutate"):
            setattr(masked, name, 1)
    with pytest.raises(AttributeError, match="Cannot mutate"):
        del masked.mask
    assert masked.mask.numpy().tolist() == [True, False, True]


def test_equality_is_of_type_shape_and_elements() -> None:
    same, other = masked.with_values([1.0, -2.0, 3.0]), masked.with_values([1.0, -2.0, 4.0])
    assert bool(masked == same)
    assert not bool(masked != same)
    assert not bool(masked == other)
    assert (masked == MaskedTensor([1.0], [True])) is False
    assert (masked == masked.values) is False
    assert (everything() == everything(name="y")) is False


def test_copies_and_pickles_are_equal() -> None:
    nested = Node(1, [Node(2), Node(3, [Node(4)])])
    for x in (masked, nested, everything()):
        assert bool(copy.deepcopy(x) == x)
        assert bool(pickle.loads(pickle.dumps(x)) == x)
        spec = df.type_spec_from_value(x)
        assert pickle.loads(pickle.dumps(spec)) == spec


def test_repr_has_the_fields() -> None:
    text = repr(everything())
    assert text.startswith("Everything(number=1, ratio=0.5, name='x'")
    assert "pair=(2, <tf.Tensor" in text


# Specs


def test_a_spec_has_specs_in_place_of_tensors() -> None:
    spec = df.type_spec_from_value(everything())
    assert isinstance(spec, df.TypeSpec)
    assert spec.value_type is Everything
    assert spec.table["a"] == df.TensorSpec([1])
    assert (spec.number, spec.pair) == (1, (2, df.TensorSpec([])))
    assert df.type_spec_from_value(masked) == MaskedTensor.Spec([3])
    assert MaskedTensor.Spec([3]).shape == (3,)


def test_specs_are_ordered_by_generality() -> None:
    exact, wide = MaskedTensor.Spec([3]), MaskedTensor.Spec([None])
    assert exact.is_subtype_of(wide)
    assert not wide.is_subtype_of(exact)
    assert wide.is_compatible_with(masked)
    assert not MaskedTensor.Spec([3], df.int32).is_compatible_with(masked)
    assert exact.most_specific_common_supertype([MaskedTensor.Spec([5])]) == wide
    assert exact.most_specific_common_supertype([df.TensorSpec([3])]) is None


# Functions


def test_a_function_takes_and_returns_it_without_another_trace() -> None:
    f = df.function(lambda x: x.with_values(x.values * 2))
    for factor in (1.0, 2.0):
        doubled = f(masked.with_values(masked.values * factor))
        assert type(doubled) is MaskedTensor
        assert doubled.values.numpy().tolist() == (masked.values.numpy() * 2 * factor).tolist()
    assert f.experimental_get_tracing_count() == 1
    f(MaskedTensor([1.0], [True]))
    assert f.experimental_get_tracing_count() == 2


def test_other_python_values_have_traces_of_their_own() -> None:
    f = df.function(lambda x: x.number + x.pair[1])
    assert [f(everything(number=n)).numpy() for n in (1, 2, 1)] == [5.0, 6.0, 5.0]
    assert f.experimental_get_tracing_count() == 2


def test_sizes_that_differ_become_dynamic() -> None:
    f = df.function(lambda x: df.reduce_sum(x.values), reduce_retracing=True)
    assert [f(MaskedTensor(df.ones([n]), df.ones([n], df.bool))).numpy() for n in (2, 3, 4, 5)] == [
        2,
        3,
        4,
        5,
    ]
    assert f.experimental_get_tracing_count() == 2


def test_a_spec_is_an_input_signature() -> None:
    f = df.function(lambda x: df.reduce_sum(x.values), input_signature=[MaskedTensor.Spec([None])])
    assert [f(x).numpy() for x in (masked, MaskedTensor([1.0], [True]))] == [2.0, 1.0]
    assert f.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError, match="Binding inputs"):
        f(MaskedTensor([1], [True]))
    concrete = df.function(lambda x: x.values + 1).get_concrete_function(MaskedTensor.Spec([3]))
    assert concrete(masked).numpy().tolist() == [2.0, -1.0, 4.0]


def test_a_spec_with_a_shape_of_unknown_rank_takes_all_shapes() -> None:
    spec = Network.Spec(shape=None, work=df.TensorSpec(None))
    f = df.function(lambda x: x.work * 2, input_signature=[spec])
    assert f(Network([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    assert f(Network([[1.0], [2.0]])).shape == (2, 1)


def test_a_captured_value_is_read_at_each_trace() -> None:
    weight = df.Variable(2.0)
    f = df.function(lambda x: masked.with_values(masked.values * weight * x).values)
    assert f(1.0).numpy().tolist() == [2.0, -4.0, 6.0]
    weight.assign(3.0)
    assert f(1.0).numpy().tolist() == [3.0, -6.0, 9.0]


def test_branches_and_loops_carry_it() -> None:
    @df.function
    def f(x, flag, n):
        m = MaskedTensor(x, x < 0)
        if not flag:
            m = MaskedTensor(-x, x > 0)
        for _ in df.range(n):
            m = m.with_values(m.values + 1.0)
        return m

    x = df.constant([1.0, -2.0])
    positive, negative = f(x, True, df.constant(2)), f(x, False, df.constant(0))
    assert positive.values.numpy().tolist() == [3.0, 0.0]
    assert positive.mask.numpy().tolist() == [False, True]
    assert negative.values.numpy().tolist() == [-1.0, 2.0]
    _, looped = df.while_loop(
        lambda i, m: i < 3, lambda i, m: (i + 1, m.with_values(m.values * 2)), [0, masked]
    )
    assert looped.values.numpy().tolist() == [8.0, -16.0, 24.0]
    assert df.cond(df.constant(True), lambda: masked, lambda: MaskedTensor([1.0], [True])).shape == (3,)


def test_gradients_flow_to_its_tensors() -> None:
    for run in (lambda f: f, df.function):
        with df.GradientTape() as tape:
            tape.watch(masked)
            loss = run(lambda m: df.reduce_sum(df.square(m.values)))(masked)
        gradient = tape.gradient(loss, masked)
        assert gradient.values.numpy().tolist() == [2.0, -4.0, 6.0]
        assert gradient.mask is None


def test_it_is_nested_if_composites_are_expanded() -> None:
    assert df.nest.flatten([masked]) == [masked] or df.nest.flatten([masked])[0] is masked
    assert len(df.nest.flatten({"m": masked}, expand_composites=True)) == 2
    tripled = df.nest.map_structure(lambda x: x + x, Node(1, [Node(2)]), expand_composites=True)
    assert (tripled.value.numpy(), tripled.children[0].value.numpy()) == (2, 4)
    assert df.is_tensor(masked)


def test_variables_in_fields_become_tensors() -> None:
    variable = df.Variable([1.0])
    x = MaskedTensor(variable, [True])
    variable.assign([5.0])
    assert x.values.numpy().tolist() == [1.0]


# Batches


def test_datasets_slice_batch_and_unbatch_it() -> None:
    networks = Network([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    dataset = df.data.Dataset.from_tensor_slices(networks)
    assert [x.shape for x in dataset] == [()] * 3
    batches = dataset.batch(2, drop_remainder=True)
    assert [(x.shape, x.work.shape) for x in batches] == [((2,), (2, 2))]
    assert batches.element_spec.shape == (2,)
    assert [x.work.numpy().tolist() for x in batches.unbatch()] == [[1.0, 2.0], [3.0, 4.0]]
    mapped = dataset.map(lambda x: Network(x.work * 10))
    assert next(iter(mapped)).work.numpy().tolist() == [10.0, 20.0]


def test_each_shape_in_a_field_gets_and_loses_the_axis_of_a_batch() -> None:
    class Cropped(df.experimental.BatchableExtensionType):
        pixels: df.Tensor
        sizes: tuple[df.TensorShape, ...]
        by_name: Mapping[str, df.TensorShape]
        any_size: df.TensorShape

    stacked = Cropped(df.ones([3, 2]), [[3, 4], [3]], {"whole": [3, 5]}, None)
    dataset = df.data.Dataset.from_tensor_slices(stacked)
    for x in dataset:
        assert (x.sizes, x.by_name["whole"], x.any_size.rank) == (((4,), ()), (5,), None)
    (batch,) = dataset.batch(3, drop_remainder=True)
    assert (batch.sizes, batch.by_name["whole"], batch.any_size.rank) == (((3, 4), (3,)), (3, 5), None)


def test_a_dataset_of_one_value_needs_no_batches() -> None:
    dataset = df.data.Dataset.from_tensors(Node(3, [Node(4)]))
    assert next(iter(dataset)).children[0].value.numpy() == 4
    with pytest.raises(ValueError, match="BatchableExtensionType"):
        dataset.batch(2)


def test_a_generator_yields_it() -> None:
    dataset = df.data.Dataset.from_generator(
        lambda: (masked.with_values(masked.values * n) for n in range(3)),
        output_signature=MaskedTensor.Spec([3]),
    )
    assert [x.values.numpy()[0] for x in dataset] == [0.0, 1.0, 2.0]


def test_map_fn_computes_slices_of_it() -> None:
    networks = Network([[1.0, 2.0], [3.0, 4.0]])
    doubled = df.map_fn(lambda x: Network(x.work * 2), networks)
    assert (doubled.shape, doubled.work.numpy().tolist()) == ((2,), [[2.0, 4.0], [6.0, 8.0]])
    sums = df.map_fn(lambda x: df.reduce_sum(x.work), networks, fn_output_signature=df.float32)
    assert sums.numpy().tolist() == [3.0, 7.0]


def test_a_name_in_an_annotation_is_that_of_its_block_rather_than_of_a_later_type() -> None:
    class Edge(df.experimental.ExtensionType):
        weight: df.Tensor

    other = type("Edge", (df.experimental.ExtensionType,), {"__annotations__": {"name": str}})

    class Path(df.experimental.ExtensionType):
        first: Edge

    first = Edge(1.0)
    assert Path(first).first is first
    with pytest.raises(TypeError, match="first"):
        Path(other("a"))


def test_annotations_keep_nothing_of_their_block_alive_when_they_are_resolved_late() -> None:
    def types(value: object) -> tuple[Any, Any]:
        class Path(df.experimental.ExtensionType):
            first: Step

        class Step(df.experimental.ExtensionType):
            length: int

        return Path, Step

    class Value:
        pass

    value = Value()
    alive = weakref.ref(value)
    path, step = types(value)
    del value
    assert path(step(1)).first.length == 1
    gc.collect()
    assert alive() is None


def test_a_subclass_has_the_types_that_its_base_has_resolved() -> None:
    def base_class() -> Any:
        Number = df.Tensor  # the annotation names it

        class Base(df.experimental.ExtensionType):
            x: Number

        return Base

    base: Any = base_class()

    class Sub(base):
        y: int

    assert Sub(1.0, 2).x.numpy() == 1.0


def test_the_type_of_a_field_is_that_of_the_first_class_in_the_order_of_the_bases() -> None:
    class Base(df.experimental.ExtensionType):
        x: int

    class Left(Base):
        y: int

    class Right(Base):
        x: str  # type: ignore[assignment]  # another type

    class Both(Left, Right):
        pass

    assert Both("a", 1).x == "a"


@pytest.mark.parametrize("name", ["ExtensionType", "BatchableExtensionType", "ExtensionTypeSpec"])
def test_the_constructor_of_a_base_of_extension_types_takes_nothing(name) -> None:
    assert not inspect.signature(getattr(df.experimental, name)).parameters


def test_keys_of_a_mapping_are_converted_to_their_type() -> None:
    class Table(df.experimental.ExtensionType):
        cells: Mapping[tuple[int, df.DType | None], df.Tensor]

    table = Table({(1, None): 2.0, (0, df.int8): 3.0})
    assert list(table.cells) == [(1, None), (0, df.int8)]
    doubled = df.function(lambda t: Table({key: 2 * x for key, x in t.cells.items()}))(table)
    assert [float(x) for x in doubled.cells.values()] == [4.0, 6.0]
    with pytest.raises(TypeError, match="other keys"):
        Table({(1.5, None): 2.0})
