"""The canonical encoding of graphs: equal exactly if graphs compile to the same program."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.records import replace
from dualflow.graph.encoding import NotEncodable, encoded_graph, encoded_value
from dualflow.graph.ir import Graph, Node

VECTOR = df.TensorSpec([3])


def graph_of(function: Callable[..., Any], *specs: df.TensorSpec) -> Graph:
    graph: Graph = df.function(function, name="f").get_concrete_function(*specs or [VECTOR]).graph
    return graph


def encoded(function: Callable[..., Any], *specs: df.TensorSpec) -> bytes:
    return encoded_graph(graph_of(function, *specs))


# What a program depends on is part of the encoding.

variable, other = df.Variable([1.0, 2.0, 3.0]), df.Variable([1.0, 2.0, 3.0])
tensor = df.constant([1.0, 2.0, 3.0])


def swap(x: df.Tensor) -> None:
    first, second = df.identity(other), df.identity(variable)
    variable.assign(first)
    other.assign(second)


def both(x: df.Tensor) -> None:
    first = df.identity(other)
    variable.assign(first)
    other.assign(first)


def printed(*texts: str) -> Callable[[df.Tensor], df.Tensor]:
    def function(x: df.Tensor) -> df.Tensor:
        for text in texts:
            df.print(text)
        return x + 1.0

    return function


def repeated(count: int, step: Callable[[Any], Any] = lambda x: x * 2.0) -> Callable[[df.Tensor], Any]:
    return lambda x: df.while_loop(lambda i, y: i < count, lambda i, y: (i + 1, step(y)), (0, x))


def chosen(true: float, false: float) -> Callable[[df.Tensor], Any]:
    return lambda x: df.cond(df.reduce_sum(x) > 0.0, lambda: x * true, lambda: x * false)


DIFFERENT = {
    "op": (lambda x: x + 2.0, lambda x: x * 2.0),
    "attribute": (lambda x: df.reduce_sum(x), lambda x: df.reduce_sum(x, keepdims=True)),
    "constant": (lambda x: x + 2.0, lambda x: x + 3.0),
    "sign of zero": (lambda x: x * 0.0, lambda x: x * -0.0),
    "bits of a NaN": (
        lambda x: x + df.constant(np.array(0x7FC00000, np.uint32).view(np.float32)),
        lambda x: x + df.constant(np.array(0x7FC00001, np.uint32).view(np.float32)),
    ),
    "dtype of a constant": (lambda x: df.zeros([3], "int32"), lambda x: df.zeros([3], "int64")),
    "shape of a constant": (lambda x: df.zeros([1, 3]), lambda x: df.zeros([3, 1])),
    "order of operands": (lambda x: x - df.exp(x), lambda x: df.exp(x) - x),
    "order of outputs": (lambda x: (x, df.exp(x)), lambda x: (df.exp(x), x)),
    "number of outputs": (lambda x: df.exp(x), lambda x: (df.exp(x), df.exp(x))),
    "alias": (lambda x: (y := df.exp(x), y), lambda x: (df.exp(x), df.exp(x))),
    "order of effects": (printed("a", "b"), printed("b", "a")),
    "number of effects": (printed("a"), printed("a", "a")),
    "assignment": (lambda x: variable + x, lambda x: variable.assign_add(x)),
    "assigned value": (swap, both),
    "captured variable or tensor": (lambda x: x + variable, lambda x: x + tensor),
    "trip count": (repeated(3), repeated(4)),
    "loop body": (repeated(3), repeated(3, lambda x: x * 3.0)),
    "order of branches": (chosen(2.0, 3.0), chosen(3.0, 2.0)),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_graphs_of_different_programs_differ(what: str) -> None:
    one, two = DIFFERENT[what]
    assert encoded(one) != encoded(two)


@pytest.mark.parametrize("what", DIFFERENT)
def test_a_graph_that_is_traced_again_has_the_same_encoding(what: str) -> None:
    for function in DIFFERENT[what]:
        assert encoded(function) == encoded(function)


@pytest.mark.parametrize(
    "specs",
    [
        (df.TensorSpec([3]), df.TensorSpec([4])),
        (df.TensorSpec([3]), df.TensorSpec([3], "float64")),
        (df.TensorSpec([3, 1]), df.TensorSpec([1, 3])),
        (df.TensorSpec([3]), df.TensorSpec([None])),
    ],
)
def test_graphs_of_different_arguments_differ(specs: tuple[df.TensorSpec, df.TensorSpec]) -> None:
    one, two = (encoded(lambda x: x * x, spec) for spec in specs)
    assert one != two


def test_values_of_captures_and_lines_of_the_program_are_no_part_of_it() -> None:
    one = encoded(lambda x: x + variable + tensor)
    captured = df.Variable([9.0, 9.0, 9.0]), df.constant([8.0, 8.0, 8.0])
    assert encoded(lambda x: x + captured[0] + captured[1]) == one


# Equal encodings are equal graphs.

OPS: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.mul,
    lambda x, y: df.reduce_sum(x, axis=0, keepdims=True) - y,
    lambda x, y: df.reduce_max(df.stack([x, y]), axis=0),
    lambda x, y: df.where(x > y, x, 0.5),
    lambda x, y: df.reverse(x, [0]),
    lambda x, y: df.cumsum(y, exclusive=True),
]
steps = st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 2), st.integers(0, 2)), max_size=3)


def program(chosen_steps: list[tuple[Callable[[Any, Any], Any], int, int]]) -> Callable[..., Any]:
    def function(x: df.Tensor, y: df.Tensor) -> Any:
        values = [x, y, df.constant([2.0, 1.0, 0.0])]
        for op, i, j in chosen_steps:
            values.append(op(values[-1 - i % 2], values[j]))
        return values[-1]

    return function


@given(steps, steps)
def test_encodings_are_equal_exactly_if_the_texts_of_graphs_are(one: Any, two: Any) -> None:
    graphs = [graph_of(program(x), VECTOR, VECTOR) for x in (one, two)]
    assert (encoded_graph(graphs[0]) == encoded_graph(graphs[1])) == (str(graphs[0]) == str(graphs[1]))


scalars = st.one_of(st.booleans(), st.integers(-2, 2), st.floats(), st.text(max_size=1), st.none())
settings_values = st.recursive(scalars, lambda x: st.tuples(x, x), max_leaves=3)


@given(settings_values, settings_values)
def test_settings_have_equal_encodings_exactly_if_they_print_alike(one: Any, two: Any) -> None:
    assert (encoded_value(one) == encoded_value(two)) == (repr(one) == repr(two))


# What has no encoding is refused.


@pytest.mark.parametrize(
    "function",
    [
        lambda x: df.py_function(lambda y: y, [x], df.float32),
        lambda x: df.numpy_function(np.sin, [x], df.float32),
    ],
)
def test_a_graph_with_a_python_function_has_no_encoding(function: Callable[..., Any]) -> None:
    with pytest.raises(NotEncodable, match="function has an attribute of the type"):
        encoded(function)


def test_an_op_that_has_but_the_name_of_another_is_refused() -> None:
    graph = graph_of(df.exp)
    (node,) = graph.nodes
    same_name = Node(replace(node.op, doc="another op"), node.inputs, node.attrs, node.specs)
    with pytest.raises(NotEncodable, match="the op exp, which is not an op of this package with that name"):
        encoded_graph(replace(graph, nodes=(same_name,), outputs=same_name.outputs))


def test_an_op_that_reads_operands_differs_from_one_with_numbers() -> None:
    def shifted(shift: Any) -> Callable[..., Any]:
        return lambda x, n: df.roll(x, n if shift is None else shift, 0)

    specs = VECTOR, df.TensorSpec([], "int32")
    assert encoded(shifted(None), *specs) != encoded(shifted(1), *specs)


def test_a_large_constant_is_not_read() -> None:
    large = np.zeros(5 << 20, np.float32)
    with pytest.raises(NotEncodable, match="constant has an array of 20971520 bytes"):
        encoded(lambda x: df.constant(large) + x[0])


def test_an_object_without_an_encoding_is_refused() -> None:
    with pytest.raises(NotEncodable, match="an attribute of the type object"):
        encoded_value((1, object()))


def test_the_expression_of_an_exception_is_not_evaluated() -> None:
    created = []

    def error(x: df.Tensor) -> ValueError:
        created.append(x)
        return ValueError("no")

    def f(x: df.Tensor) -> df.Tensor:
        if df.reduce_sum(x) > 3.0:
            raise error(x)
        return x

    assert encoded(f)
    assert not created


def test_conds_in_conds_are_encoded_at_any_depth() -> None:
    def nested(depth: int, x: df.Tensor, p: df.Tensor) -> df.Tensor:
        return df.cond(p, lambda: nested(depth - 1, x * 2.0, p), lambda: x) if depth else x

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        assert encoded(lambda x, p: nested(200, x, p), VECTOR, df.TensorSpec([], df.bool))
    finally:
        sys.setrecursionlimit(before)
