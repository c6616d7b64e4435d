"""Pseudo-code of compiled graphs. The strongest test runs it as the Python that it looks like."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pytest

import dualflow as df  # noqa: F401  registers the ops
from dualflow.backends.llvm.backend import build
from dualflow.backends.llvm.executable import Executable
from dualflow.backends.llvm.product.product import routine
from dualflow.backends.llvm.pseudocode import kernels
from dualflow.core.dtypes import ALL
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import Graph, GraphBuilder, Origin, Update, Value
from dualflow.graph.passes.fusion import fuse
from dualflow.ops import maths_reference
from dualflow.ops.cases import Case, cases
from dualflow.ops.forms import Assemble, Element, Fold
from dualflow.ops.record import REGISTRY, Op
from dualflow.schedule.copying import COPY, FILL
from dualflow.schedule.naming import subscript

Apply = Callable[..., Value]


def traced(program: Callable[..., Any], *shapes: tuple[int, ...], dtypes: Sequence[str] = ()) -> Graph:
    """The graph of ``program(op, *inputs)``, where ``op(name, *values, **attrs)`` adds a node."""
    builder = GraphBuilder("graph")
    kinds = dtypes or ["float32"] * len(shapes)
    pairs = enumerate(zip(shapes, kinds, strict=True))
    inputs = [builder.argument(TensorSpec(shape, kind, name="xyz"[i])) for i, (shape, kind) in pairs]

    def op(name: str, *values: Value, **attrs: Any) -> Value:
        return builder.add(REGISTRY[name], values, attrs).output

    results = program(op, *inputs)
    return builder.finish(results if isinstance(results, list) else [results])


def compiled(program: Callable[..., Any], *shapes: tuple[int, ...], dtypes: Sequence[str] = ()) -> Executable:
    return build(fuse(traced(program, *shapes, dtypes=dtypes)))


def softmax(op: Apply, x: Value) -> Value:
    spread = {"axis": (x.spec.rank - 1,), "keepdims": True}
    e = op("exp", op("subtract", x, op("reduce_max", x, **spread)))
    return op("divide", e, op("reduce_sum", e, **spread))


def variance(op: Apply, x: Value) -> list[Value]:
    mean = op("reduce_sum", x, axis=(0, 1), keepdims=True)
    apart = op("square", op("subtract", x, mean))
    return [op("reduce_sum", apart, axis=(0, 1), keepdims=False), op("negative", x)]


class Runnable:
    """An op as a function of numbers: what the names in the pseudo-code stand for."""

    def __init__(self, op: Op) -> None:
        self.op, self.form = op, op.form

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        if self.op is FILL:
            return attrs["number"]
        if isinstance(self.form, Element):
            return self.form.code(maths_reference, *operands, **attrs)
        assert isinstance(self.form, Fold)
        acc, x, *place = operands
        return self._packed(self.form.step(maths_reference, self._tuple(acc), x, *(place or [0])))

    def merge(self, a: Any, b: Any) -> Any:
        return self._packed(self.form.merge(maths_reference, self._tuple(a), self._tuple(b)))  # type: ignore[union-attr]

    def result(self, acc: Any) -> Any:
        return self.form.finish(maths_reference, acc)  # type: ignore[union-attr]

    @staticmethod
    def _tuple(acc: Any) -> tuple[Any, ...]:
        return acc if isinstance(acc, tuple) else (acc,)

    @staticmethod
    def _packed(acc: tuple[Any, ...]) -> Any:
        return acc if len(acc) > 1 else acc[0]


class Names(defaultdict[str, Any]):
    """Buffers that nobody gave are made when they are first written to."""

    def __missing__(self, name: str) -> Any:
        self[name] = {}
        return self[name]


def run_as_python(text: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What the pseudo-code leaves in every buffer, run line by line on flat arrays."""
    names = Names()
    names |= {op.name: Runnable(op) for op in (*REGISTRY.values(), COPY, FILL)}
    names |= {dtype.name: dtype for dtype in ALL}
    names |= {"inf": math.inf, "nan": math.nan, "min": min, "range": range}
    names["lanes"] = lambda *limits: range(*limits[:-1])
    names |= {name: array.reshape(-1) for name, array in arrays.items()}
    body = [line[4:] for line in text.splitlines() if line.startswith("    ")]
    assert body.pop().startswith("return")
    exec("\n".join(body), {}, names)
    return names


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "elementwise": (lambda op, x, y: op("add", op("exp", x), y), [(5, 7), (5, 7)]),
    "broadcast": (lambda op, x, y: op("multiply", op("add", x, y), y), [(5, 1), (1, 40)]),
    "transposed": (lambda op, x: op("add", x, op("transpose", x, perm=(1, 0))), [(6, 6)]),
    "softmax": (softmax, [(3, 37)]),
    "softmax of rows of rows": (softmax, [(2, 3, 5)]),
    "whole reduction": (lambda op, x: op("reduce_sum", x, axis=(0, 1), keepdims=False), [(130, 257)]),
    "a long sum of columns": (lambda op, x: op("reduce_sum", x, axis=(0,), keepdims=False), [(5000, 3)]),
    "a long whole sum": (lambda op, x: op("reduce_sum", x, axis=(0, 1), keepdims=False), [(130, 90)]),
    "columns": (lambda op, x: op("reduce_max", x, axis=(0,), keepdims=False), [(9, 35)]),
    "both ends": (lambda op, x: op("reduce_sum", x, axis=(0, 2), keepdims=True), [(3, 4, 5)]),
    "position": (lambda op, x: op("argmax", x, axis=(1,), keepdims=False), [(4, 35)]),
    "position over two axes": (lambda op, x: op("argmin", x, axis=(0, 2), keepdims=False), [(4, 3, 5)]),
    "two kernels": (variance, [(12, 5)]),
    "joined": (lambda op, x, y: op("exp", op("concat", x, y, axis=1)), [(5, 7), (5, 3)]),
    "rank 0": (lambda op, x, y: op("add", op("exp", x), y), [(), ()]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_computes_what_the_kernels_compute(name: str) -> None:
    program, shapes = PROGRAMS[name]
    executable = compiled(program, *shapes)
    rng = np.random.default_rng(len(name))
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    left = run_as_python(kernels(executable), dict(zip("xyz", arrays, strict=False)))
    outputs = executable.run(arrays)
    labels = ["out"] if len(outputs) == 1 else [f"out{i}" for i in range(len(outputs))]
    for label, output in zip(labels, outputs, strict=True):
        found = [left[label][i] for i in range(output.size)]
        np.testing.assert_allclose(np.reshape(found, output.shape), output, rtol=1e-5, atol=1e-5)


def cases_without_positions() -> Iterator[Case]:
    """One case of every op that loops compute from its inputs' elements."""
    for op in REGISTRY.values():
        if isinstance(op.form, Element | Fold | Assemble):
            yield from islice((c for c in cases(op) if c.inputs and "plain" in c.label), 1)


@pytest.mark.parametrize("case", list(cases_without_positions()), ids=str)
def test_the_text_of_every_op_computes_the_op(case: Case) -> None:
    arrays = [np.ascontiguousarray(array) for array in case.inputs]
    builder = GraphBuilder("graph")
    inputs = [builder.argument(TensorSpec(a.shape, a.dtype, "xyz"[i])) for i, a in enumerate(arrays)]
    node = builder.add(case.op, inputs, case.attrs)
    if not all(v.spec.dtype.kind in "biuf" for v in (*inputs, *node.outputs)):
        pytest.skip("complex numbers have no kernels")
    executable = build(fuse(builder.finish(node.outputs)))
    left = run_as_python(kernels(executable), dict(zip("xyz", arrays, strict=False)))
    (output,) = executable.run(arrays)
    found = np.reshape([left["out"][i] for i in range(output.size)], output.shape)
    np.testing.assert_allclose(found, output, rtol=1e-5, atol=1e-5)


def test_a_gather_reads_the_element_that_its_index_names() -> None:
    program = compiled(
        lambda op, x, y: op("exp", op("gather", x, y, axis=0)), (5, 7), (3,), dtypes=["float32", "int64"]
    )
    text = kernels(program)
    assert "x[7*y[i] + j]" in text
    x, y = np.arange(35, dtype=np.float32).reshape(5, 7) / 9, np.array([4, 0, 4])
    left = run_as_python(text, {"x": x, "y": y})
    np.testing.assert_allclose([left["out"][i] for i in range(21)], np.exp(x[y]).reshape(-1), rtol=1e-6)


def test_a_gather_says_what_may_stop_the_call_and_says_it_once() -> None:
    program = compiled(lambda op, x, y: op("gather", x, y, axis=0), (5, 7), (3,), dtypes=["float32", "int64"])
    assert kernels(program).count("# stops the call if an index is out of range") == 1


def test_rows_that_a_later_pass_reads_back_are_written_once() -> None:
    text = kernels(compiled(softmax, (3, 37)))
    assert text.count("= exp(") == 1
    assert text.count("kept0[j] = ") == 1
    assert text.count("= kept0[j]") == 1
    assert [f"pass {i} of 3" in text for i in (1, 2, 3)] == [True] * 3


def test_products_say_their_operands_as_they_lie_and_their_sizes() -> None:
    program = compiled(
        lambda op, x, y: op("matmul", op("transpose", x, perm=(1, 0)), y, transpose_b=True), (8, 5), (3, 8)
    )
    text = kernels(program)
    assert f"out = {routine('f')}(x.T, y.T)" in text
    assert "# 5x8 @ 8x3" in text
    assert "0 kernels, 1 matrix product, 0 host calls" in text


def test_a_host_call_stands_in_its_place_with_the_reason() -> None:
    program = compiled(
        lambda op, x: op("square", op("argsort", op("exp", x), axis=0, descending=False)), (40,)
    )
    lines = [line.strip() for line in kernels(program).splitlines()]
    before, host, after = (
        next(i for i, line in enumerate(lines) if part in line) for part in ("exp(", "argsort(", "square(")
    )
    assert before < host < after
    assert lines[host].startswith("t1 = numpy.argsort(t0, axis=0, descending=False)")
    assert lines[host].endswith("# NumPy sorts")


class Weight:
    name = "weight:0"


@pytest.fixture(scope="module")
def training_step() -> str:
    """``weight <- weight - 0.5 * x``, as at line 7 of train.py; hands out the change."""
    builder, line = GraphBuilder("step"), Origin("/home/user/train.py", 7, "step")
    x = builder.argument(TensorSpec((4,), "float32", name="x"))
    weight = builder.capture(TensorSpec((4,), "float32"), Weight(), variable=True)
    half = builder.add(REGISTRY["constant"], (), {"value": np.float32(0.5).reshape(())}).output
    change = builder.add(REGISTRY["multiply"], (half, x), {}, line).output
    new = builder.add(REGISTRY["subtract"], (weight, change), {}, line).output
    graph = builder.finish([change], [Update(weight, new)])
    return kernels(build(fuse(graph)))


def test_variables_carry_their_names_and_are_marked_where_updated(training_step: str) -> None:
    lines = training_step.splitlines()
    assert any(line.split() == ["weight:", "float32[4],", "#", "variable,", "updated"] for line in lines)
    stores = [line for line in lines if line.strip().startswith("weight[i] =")]
    assert len(stores) == 1
    assert stores[0].endswith("# in place")


def test_the_users_line_stands_where_it_begins(training_step: str) -> None:
    assert training_step.count("train.py:7") == 1
    assert "multiply(0.5, x[i])" in training_step


def test_every_emitted_kernel_is_listed_in_order() -> None:
    executable = compiled(variance, (12, 5))
    text = kernels(executable)
    places = [text.index(f"# {kernel.name}: ") for kernel in executable.program.kernels]
    assert len(places) > 1
    assert places == sorted(places)


def test_intermediates_have_names_of_their_own_though_they_share_memory() -> None:
    def chain(op: Apply, x: Value) -> Value:
        for _ in range(4):
            x = op("exp", op("matmul", x, x))
        return x

    text = kernels(compiled(chain, (4, 4)))
    assert all(f"v{i} = {routine('f')}(" in text or f"v{i}[i] = " in text for i in range(7))


@pytest.mark.parametrize(
    ("terms", "offset", "text"),
    [
        ([], 0, "0"),
        ([], -3, "-3"),
        ([(1, "i")], 0, "i"),
        ([(-1, "i")], 4, "-i + 4"),
        ([(0, "i"), (7, "j")], -2, "7*j - 2"),
    ],
)
def test_subscripts_read_as_one_writes_them(terms: list[tuple[int, str]], offset: int, text: str) -> None:
    assert subscript(terms, offset) == text
