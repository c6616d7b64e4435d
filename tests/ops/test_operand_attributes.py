"""Attributes with operands: an op computes the same for integers in its attributes and in scalars."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.graph.parser import parse
from dualflow.ops.batching_rules import PER_ELEMENT
from dualflow.ops.operand_attributes import apply_sized, has_operands, operand_form
from dualflow.ops.record import REGISTRY, Op
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.testing.cases import draw

RANDOM = np.random.default_rng(3)
MATRIX = (Domain(-50, 50, "f", (4, 5)),)
KEYS = (
    ((1, 3, 1), (0, 5, 2)),
    ((-4, 9, 2), (7, None, -2)),
    ((3, 1, 1), (None, 2, 1)),
    ((0, 4, 1), (4, -90, -1)),
)


def sliced_rank(sample: Sample) -> int:
    return len(sample.attrs.get("shape", sample.inputs[0].shape))


def may_have_operands(sample: Sample) -> bool:
    """Whether a sample has no key of an index, or a key with a slice for each axis."""
    key = sample.attrs.get("key")
    return key is None or (len(key) == sliced_rank(sample) and all(type(entry) is tuple for entry in key))


SAMPLES = [
    *[
        (op, sample)
        for op in REGISTRY.values()
        if op.operand_attributes is not None
        for sample in op.samples
        if may_have_operands(sample)
    ],
    *[(REGISTRY["getitem"], Sample(MATRIX, {"key": key})) for key in KEYS],
]


@pytest.fixture(params=SAMPLES, ids=lambda case: case[0].name)
def case(request: pytest.FixtureRequest) -> tuple[Op, list[Any], dict[str, Any]]:
    """An op, its inputs and its attributes."""
    op, sample = request.param
    dtypes = ["float32" if "f" in d.kinds else "int64" for d in sample.inputs]
    arrays = [draw(d, RANDOM, t, d.shape) for d, t in zip(sample.inputs, dtypes, strict=True)]
    return op, list(map(df.constant, arrays)), sample.attrs


def integers(op: Op, attrs: dict[str, Any], change: Callable[[int], Any]) -> dict[str, Any]:
    """``attrs`` after ``change`` of each integer that may come from an operand."""

    def changed(item: Any, in_key: bool) -> Any:
        if isinstance(item, tuple) and in_key and len(item) == 3 and not isinstance(item[0], tuple):
            return (*[changed(end, False) for end in item[:2]], item[2])
        if isinstance(item, tuple):
            return tuple([changed(part, in_key) for part in item])
        return item if item is None else change(item)

    declared = op.operand_attributes
    assert declared is not None
    names = [(name, False) for name in declared.sizes] + [(name, True) for name in declared.bounds]
    return {**attrs, **{name: changed(attrs[name], in_key) for name, in_key in names}}


def numbers_of(op: Op, attrs: dict[str, Any]) -> list[Any]:
    """The integers of the attributes as tensors."""
    numbers: list[Any] = []
    integers(op, attrs, lambda n: numbers.append(df.constant(n)))
    return numbers


def applied(op: Op, attrs: dict[str, Any], inputs: Any, numbers: Any) -> Any:
    """The result of ``op`` for attributes whose integers are ``numbers``."""
    left = iter(numbers)
    return apply_sized(op, inputs, integers(op, attrs, lambda _: next(left)))


def with_dynamic_integers(op: Op, attrs: dict[str, Any], inputs: Any) -> Any:
    """The concrete function of the inputs and the integers of the attributes."""
    numbers = numbers_of(op, attrs)
    function = df.function(lambda inputs, numbers: applied(op, attrs, inputs, numbers))
    return function.get_concrete_function(list(inputs), numbers)


def test_scalars_give_what_integers_give(case: Any) -> None:
    op, inputs, attrs = case
    concrete = with_dynamic_integers(op, attrs, inputs)
    expected = op.kernel(*[x.numpy() for x in inputs], **attrs)
    assert any(has_operands(node.attrs) for node in concrete.graph.nodes) or not numbers_of(op, attrs)
    np.testing.assert_array_equal(concrete(inputs, numbers_of(op, attrs)), expected)


def test_the_kernel_reads_scalars(case: Any) -> None:
    op, inputs, attrs = case
    concrete = with_dynamic_integers(op, attrs, inputs)
    for node in concrete.graph.nodes:
        if node.op is operand_form(op):
            numbers = [x.numpy() for x in numbers_of(op, attrs)]
            arrays = [x.numpy() for x in inputs]
            np.testing.assert_array_equal(
                node.op.kernel(*arrays, *numbers, **node.attrs), op.kernel(*arrays, **attrs)
            )


def test_gradients_are_those_of_the_op(case: Any) -> None:
    op, inputs, attrs = case
    numbers = numbers_of(op, attrs)
    if not inputs or not inputs[0].dtype.is_floating:
        return
    weights = df.constant(
        RANDOM.normal(size=op.kernel(*[x.numpy() for x in inputs], **attrs).shape), df.float32
    )

    @df.function
    def gradient(inputs: Any, numbers: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(inputs)
            loss = df.reduce_sum(applied(op, attrs, inputs, numbers) ** 2 * weights)
        return tape.gradient(loss, inputs)

    with df.GradientTape() as tape:
        tape.watch(inputs)
        loss = df.reduce_sum(applied(op, attrs, inputs, numbers) ** 2 * weights)
    expected = tape.gradient(loss, inputs)
    for flow, exact in zip(gradient(inputs, numbers), expected, strict=True):
        np.testing.assert_allclose(flow, exact, rtol=1e-6)


def test_the_rule_for_batches_is_that_of_the_op(case: Any) -> None:
    op, inputs, attrs = case
    numbers = numbers_of(op, attrs)
    if not inputs or op.batching_rule in (None, PER_ELEMENT):
        return
    batches = [df.stack([x, x + 1.0, x * 2.0]) for x in inputs]
    batched = df.function(
        lambda batches, numbers: df.vectorized_map(lambda xs: applied(op, attrs, xs, numbers), batches)
    )
    elements = [applied(op, attrs, [x[i] for x in batches], numbers) for i in range(3)]
    np.testing.assert_array_equal(batched(batches, numbers), df.stack(elements))


def test_batch_elements_with_numbers_of_their_own_are_computed_one_by_one() -> None:
    with pytest.warns(UserWarning, match="may differ between batch elements"):
        result = df.function(lambda counts: df.vectorized_map(lambda n: df.broadcast_to(1.0, [n]), counts))(
            df.constant([2, 2])
        )
    np.testing.assert_array_equal(result, np.ones([2, 2]))


def test_the_text_of_a_node_is_read_back() -> None:
    function = df.function(lambda x, a, b: df.pad(df.broadcast_to(x, [a, 3]), [[b, 0], [1, a]])[b:, :a])
    number = df.TensorSpec([], df.int32)
    graph = function.get_concrete_function(df.TensorSpec([3]), number, number).graph
    assert "broadcast_to(%x, %a, shape=(operand(input=1), 3))" in str(graph)
    assert str(parse(str(graph))) == str(graph)


def test_an_op_with_operands_is_pickled() -> None:
    form = operand_form(REGISTRY["pad"])
    assert pickle.loads(pickle.dumps(form)) is form
