"""The parser of printed graphs: a parsed graph prints the same and computes the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graph_texts import read_back

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.eager.engine import EAGER
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import Graph, verify
from dualflow.graph.parser import Resolver, parse, parse_all
from dualflow.graph.printer import Storage, complete_text
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import REGISTRY
from dualflow.ops.testing.cases import Case, cases

Traced = Callable[..., Graph]
TWICE = """graph twice(%x: float32[2])
    %0: float32[2] = add(%x, %x)
    return %0"""


def check_same(graph: Graph, *arrays: Any) -> None:
    """Assert that a graph and its copy through text print and compute the same."""
    again = read_back(graph)
    verify(again)
    assert str(again) == str(graph)
    for mine, expected in zip(evaluate(again, arrays), evaluate(graph, arrays), strict=True):
        assert mine.dtype == expected.dtype
        assert mine.shape == expected.shape
        if expected.dtype.hasobject:
            assert mine.tolist() == expected.tolist()
        else:
            assert mine.tobytes() == expected.tobytes()


OPS = [
    op for op in REGISTRY.values() if op.samples and op.effect is None and not isinstance(op.kind, Literal)
]


def case_graph(case: Case) -> tuple[Graph, list[Any]]:
    """The graph of one op for the inputs of a case, and the inputs as arrays."""
    tensors = case.op.prepare(case.inputs, EAGER)
    tracer = Tracer("case")
    with tracing(tracer):
        results = dispatch.current().apply(
            case.op, [tracer.argument(TensorSpec.of(x.shape, x.dtype)) for x in tensors], case.attrs
        )
    outputs = results if isinstance(results, tuple) else (results,)
    return tracer.builder.finish([x._value for x in outputs]), [x._array for x in tensors]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_with_each_of_its_sample_attributes_is_read_back(op):
    visited = set()
    for case in cases(op):
        sample = case.label.split("-")[0]
        if sample not in visited:
            visited.add(sample)
            graph, arrays = case_graph(case)
            check_same(graph, *arrays)


@pytest.mark.parametrize(
    "value",
    [
        0.1,
        -0.0,
        float("inf"),
        float("nan"),
        np.float64(1 / 3),
        np.arange(12.0).reshape(3, 4),
        np.array([[]]),
        np.array([1 << 62, -1]),
        np.array(1 + 2j),
        np.array([0.1, 65504], np.float16),
        np.array([True, False]),
        np.arange(1000.0),
        np.array(np.uint32(0xFFC00001)).view(np.float32),
        ["x", "y, (z]", "\u00e4'\"\\", ""],
    ],
    ids=repr,
)
def test_constants_keep_their_bits(traced, value):
    check_same(traced(lambda: df.constant(value)))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_constants_of_narrow_floats_keep_their_bits(traced, name):
    check_same(traced(lambda: df.cast(df.constant([0.5, 3.0, 1e-3]), name)))


def test_a_graph_prints_the_same_without_any_storage(traced):
    v = df.Variable([1.0, 2.0], name="weight")

    def step(x):
        y = df.cond(x[0] > 0.0, lambda: x * v, lambda: df.exp(x))
        v.assign_add(y)
        df.print("sum", df.reduce_sum(y))
        return df.while_loop(lambda i: i[0] < 10.0, lambda i: (i * 2.0,), (y,))

    text = str(traced(step, [2]))
    assert str(parse(text)) == text


def test_control_flow_is_read_back_with_its_bodies(traced):
    def count(x):
        return df.while_loop(
            lambda i, n: i < 10.0,
            lambda i, n: (df.cond(i > x, lambda: i + 1.0, lambda: i + 2.0), n + 1),
            (x, df.constant(0)),
        )

    check_same(traced(count, []), np.float32(3.0))


def test_maps_and_scans_are_read_back(traced):
    check_same(
        traced(lambda x: df.map_fn(lambda row: df.reduce_sum(row) * row, x), [3, 4]),
        np.arange(12, dtype=np.float32).reshape(3, 4),
    )


def test_dynamic_sizes_are_read_back(traced):
    graph = traced(lambda x: df.nn.conv2d(x, df.ones([3, 3, 1, 2]), 1, "SAME"), [None, 8, 8, 1])
    check_same(graph, np.ones([2, 8, 8, 1], np.float32))


def sized_by_python(x):
    n, m = x.shape
    return df.reduce_sum(x) * (2 * n * m + n // 2 - m % 3)


def test_numbers_of_sizes_are_printed_as_arithmetic_and_read_back():
    function = df.function(sized_by_python)
    for shape in ([3, 4], [5, 6]):
        function(df.ones(shape))
    graph = function.concrete_functions[-1].graph
    formula = "(in0.shape[0] // 2) + -1*(in0.shape[1] % 3) + 2*in0.shape[0]*in0.shape[1]"
    assert f"size_formula(size='{formula}')" in str(graph)
    check_same(graph, np.ones([7, 8], np.float32))


SIZED = """graph f(%x: float32[?])
    %0: int32[] = size_formula(%x, formula=size_formula(size='in0.shape[0] + 1'), dtype=int32)
    return %0"""


@pytest.mark.parametrize(
    "formula",
    [
        "",
        "1",
        "in0.shape[0] - 1",
        "in0.shape[-1]",
        "in0.rank[0]",
        "x.shape[0]",
        "in0.shape[0] + True",
        "max(in0.shape[0])",
        "print(in0.shape[0], 1)",
        "(in0.shape[0] + 1)*(in0.shape[1] + 1)",
        "in0.shape[0] + " + "9" * 5000,
        "(" * 500 + "in0.shape[0]" + ")" * 500,
        "in0.shape[0] + " * 5000 + "1",
    ],
)
def test_an_invalid_formula_of_sizes_is_an_error(formula):
    assert str(parse(SIZED)) == SIZED
    with pytest.raises(InvalidArgumentError, match="no formula of sizes"):
        parse(SIZED.replace("in0.shape[0] + 1", formula))


def test_captures_are_read_back_as_the_same_objects(traced):
    v, x = df.Variable(2.0, name="v"), df.ones([30])
    graph = traced(lambda: v * x)
    assert [c.source for c in read_back(graph).captures] == [v, x]


def test_the_work_of_reading_captures_back_grows_with_their_number_and_no_faster(traced, lines_run):
    def reading(count):
        variables = {f"v{i}": df.Variable(1.0) for i in range(count)}
        names = {id(v): name for name, v in variables.items()}
        graph = traced(lambda: df.add_n([*variables.values()]))
        text = complete_text(graph, Storage(lambda v: names[id(v)], lambda v: names[id(v)]))
        resolver = Resolver(source=lambda *captured: variables[captured[-1]], constant=str)
        return lambda: parse(text, resolver)

    few, many = (lines_run(reading(count)) for count in (50, 500))
    assert many < 11 * few


def test_random_streams_are_read_back(traced):
    graph = traced(lambda: (df.random.normal([3], seed=4), df.random.normal([3])))
    again = read_back(graph)
    assert str(again) == str(graph)
    assert "stream(seed=4)" in str(graph)


def test_lines_of_the_user_are_read_back(traced):
    (node,) = read_back(traced(lambda x: df.exp(x), [2])).nodes
    assert str(node.origin).startswith('File "test_parser.py", line ')


@pytest.mark.parametrize("name", ["a b", "d['c']", 'q"', "x:y", "1", "\u00e4", "a,b", "%", "#"])
def test_any_name_is_read_back(traced, name):
    graph = traced(lambda x: x + 1.0, TensorSpec([2], name=name))
    assert str(parse(str(graph))) == str(graph)


def test_several_graphs_are_separated_by_empty_lines():
    assert [g.name for g in parse_all(f"{TWICE}\n\n{TWICE.replace('twice', 'again')}\n")] == [
        "twice",
        "again",
    ]


def test_a_python_function_has_no_text(traced):
    graph = traced(lambda x: df.py_function(lambda v: v, [x], df.float32), [2])
    with pytest.raises(InvalidArgumentError, match=r"py_function can't be saved.*\n.*test_parser.py"):
        read_back(graph)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("add", "sub_tract", "line 2, column 31: there is no op sub_tract"),
        ("(%x, %x)", "(%x, %y)", "%y is not defined before"),
        ("(%x, %x)", "(%x)", "add does not take these operands"),
        ("(%x, %x)", "(%x, %x, speed=3)", "add does not take these operands"),
        ("(%x, %x)", "(%x, %x", r"expected '\)'"),
        ("%0: float32[2] = ", "%0: float32[3] = ", r"add gives \(float32\[2\]\)"),
        ("%0: float32[2] = ", "%x: float32[2] = ", "%x is defined twice"),
        ("%0: float32[2] = ", "", r"add gives \(float32\[2\]\)"),
        ("    return %0", "", "expected a line with 4 spaces"),
        ("    return %0", "     return %0", "expected a line with 4 spaces"),
        ("    return %0", "    return %0\n    return %0", "line 4"),
        ("float32[2])", "float32[-2])", "a size is negative"),
        ("float32[2])", f"float32[{10**18}, {10**18}])", "no tensor has the shape"),
        ("float32[2])", "float99[2])", "float99 is no dtype"),
        ("graph", "grpah", "expected 'graph '"),
    ],
)
def test_a_mistake_is_an_error_with_its_place(old, new, message):
    with pytest.raises(InvalidArgumentError, match=message):
        parse(TWICE.replace(old, new))


def test_a_constant_that_is_cut_short_is_an_error(traced):
    with pytest.raises(InvalidArgumentError, match="cut short"):
        parse(str(traced(lambda x: x + np.arange(20.0), [20])))


def test_deep_parentheses_are_an_error():
    text = TWICE.replace("add(%x, %x)", f"add(%x, %x, a={'(' * 5000})")
    with pytest.raises(InvalidArgumentError, match="64 parentheses"):
        parse(text)
