"""``df.verify``: a function computes the same eagerly and compiled, or the first differing op is named."""

from __future__ import annotations

import dataclasses
import inspect
import itertools

import numpy as np
import pytest

import dualflow as df
from dualflow.core import dispatch
from dualflow.graph.cost_model import CostModel
from dualflow.graph.ir import Graph
from dualflow.graph.passes import fusion_check
from dualflow.graph.passes.build_fused import Group
from dualflow.ops.op_kinds import Elementwise
from dualflow.ops.record import REGISTRY, Op

EXP = REGISTRY["exp"]


def broken(name: str, **kind: object) -> Op:
    """``exp`` whose compiled form is another function than its NumPy kernel."""
    return dataclasses.replace(EXP, name=name, kind=EXP.kind._replace(**kind))


WRONG = broken("wrong_exp", code=lambda m, x: m.exp(x) * 1.01)
WRONG_ABOVE_TWO = broken("exp_wrong_above_two", code=lambda m, x: m.where(x > 2.0, x, m.exp(x)))


def run(op: Op, x: object) -> object:
    return dispatch.current().unary(op, x)


def line_of(function: object, part: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if part in line)


def test_equal_results_name_no_op() -> None:
    report = df.verify(lambda x: df.nn.softmax(x * 2.0), df.random.normal([8, 100]))
    assert report.agrees
    assert report.culprit is None
    assert report.difference.relative < 1e-5
    assert str(report).startswith("<lambda>(x: float32[8, 100]) agrees: ")


def test_random_numbers_agree_as_they_are_drawn_again() -> None:
    assert df.verify(lambda x: df.random.uniform([3]) * x, df.ones([3])).agrees


def test_random_numbers_inside_of_branches_and_loops_are_drawn_again() -> None:
    generator = df.random.Generator.from_seed(3)

    @df.function
    def f(n):
        total = df.constant(0.0)
        while n > 0:
            if n % 2 == 0:
                total += generator.uniform([])
            n -= 1
        return total

    assert df.verify(f, df.constant(6)).agrees
    drawn = generator.uniform([2])
    np.testing.assert_array_equal(drawn, df.random.Generator.from_seed(3).uniform([2]))


def test_the_op_that_is_compiled_wrongly_is_found_among_many() -> None:
    def f(x):
        for _ in range(20):
            x = df.tanh(x) + 0.5
        x = run(WRONG, x)
        for _ in range(20):
            x = x * 1.5 - 0.25
        return df.reduce_sum(x) + x

    culprit = df.verify(f, df.ones([5])).culprit
    assert (culprit.stage, culprit.op) == ("compile", "wrong_exp")


def test_the_report_reports_line_element_and_distance() -> None:
    def f(x):
        y = x + 1.0
        z = run(WRONG_ABOVE_TWO, y)
        return z * 2.0

    report = df.verify(f, df.constant([[0.0, 0.5], [1.5, 0.5]]))
    culprit = report.culprit
    assert (culprit.stage, culprit.op, culprit.index) == ("compile", "exp_wrong_above_two", (1, 0))
    assert culprit.origin.file == __file__
    assert culprit.expected == pytest.approx(np.exp(2.5))
    assert culprit.actual == pytest.approx(2.5)
    assert culprit.difference.largest == pytest.approx(np.exp(2.5) - 2.5)
    assert culprit.alone
    text = str(report)
    assert "the first op to differ is exp_wrong_above_two" in text
    assert f'File "{__file__}", line ' in text
    assert "at [1, 0]" in text


def test_equal_results_are_reported_as_equal() -> None:
    assert str(df.verify(lambda x: x * 2.0, df.ones([3]))).endswith(" agrees: eager and compiled are equal")


def test_an_op_hidden_after_one_that_agrees_is_found() -> None:
    def f(x):
        y = run(WRONG, x)
        flat = y * 0.0
        return flat + df.exp(y)

    assert df.verify(f, df.ones([3])).culprit.op == "wrong_exp"


def test_an_op_that_differs_only_by_what_came_before_is_distinguished() -> None:
    """An error of 1e-6 is within rounding, until a difference of almost equal numbers magnifies it."""
    almost = broken("almost_exp", code=lambda m, x: m.exp(x) * (1 + 1e-6))

    def f(x):
        return df.math.log(run(almost, x) - 1.0)

    culprit = df.verify(f, df.constant([1e-4, 2e-4])).culprit
    assert culprit.op == "subtract"
    assert not culprit.alone
    assert "compiled with the ops before it, but not by itself" in str(df.verify(f, df.constant([1e-4])))


def test_updates_of_variables_are_verified_and_put_back() -> None:
    v = df.Variable([1.0, 3.0])

    @df.function
    def f():
        v.assign(run(WRONG, v))

    before = v.numpy().copy()
    report = df.verify(f)
    assert not report.agrees
    assert report.culprit.op == "wrong_exp"
    np.testing.assert_array_equal(v, before)


def test_a_python_value_that_the_trace_has_kept_is_found() -> None:
    count = itertools.count(1)

    def f(x):
        y = df.exp(x)
        y = y * float(next(count))
        return df.reduce_sum(y)

    report = df.verify(f, df.ones([2]))
    assert (report.culprit.stage, report.culprit.op) == ("trace", "multiply")
    assert report.culprit.origin.line == line_of(f, "next(count)")
    assert "its values in the trace are not those of another run in Python" in str(report)


def test_a_python_value_inside_of_a_loop_over_tensors_is_found() -> None:
    count = itertools.count(1)

    @df.function
    def f(x):
        total = x * 0.0
        while total < 10.0:
            total = total + x * float(next(count))
        return total

    report = df.verify(f, df.constant(1.0))
    assert (report.culprit.stage, report.culprit.op) == ("trace", "multiply")


def test_results_of_another_structure_differ_without_an_op() -> None:
    toggle = itertools.count()

    def f(x):
        return [x] if next(toggle) % 2 else [x, x]

    report = df.verify(f, df.ones([2]))
    assert not report.agrees
    assert report.culprit.op == ""
    assert "no single op differs" in str(report)


def test_a_loop_that_is_compiled_wrongly_is_named_as_a_whole() -> None:
    @df.function
    def f(x):
        while x < 10.0:
            x = run(WRONG, x)
        return x

    culprit = df.verify(f, df.constant(0.5)).culprit
    assert (culprit.stage, culprit.op) == ("compile", "loop")


def test_methods_are_verified() -> None:
    class Layer(df.Module):
        def __init__(self) -> None:
            self.w = df.Variable(df.ones([3, 2]))

        @df.function
        def __call__(self, x):
            return df.matmul(x, self.w)

    assert df.verify(Layer().__call__, df.ones([4, 3])).agrees


def test_dynamic_sizes_are_those_of_the_call() -> None:
    f = df.function(lambda x: run(WRONG, x), input_signature=[df.TensorSpec([None])])
    assert df.verify(f, df.ones([4])).culprit.op == "wrong_exp"


def test_verify_refuses_unsupported_functions() -> None:
    with pytest.raises(df.errors.DTypeError, match="can't be called"):
        df.verify(3)
    with df.GradientTape(), pytest.raises(df.errors.FailedPreconditionError, match="outside"):
        df.verify(lambda x: x, df.ones([2]))


def test_the_report_is_frozen() -> None:
    report = df.verify(lambda x: x + 1.0, df.ones([2]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.name = "other"


def in_one_kernel(graph: Graph, _: CostModel) -> list[Group]:
    """All elementwise nodes as one group, whatever they read."""
    group = Group(0, (4,))
    for node in graph.nodes:
        if isinstance(node.op.kind, Elementwise):
            group.add(node, (0,))
    return [group]


def test_kernels_that_wait_for_each_other_are_named_with_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels of the check are cut wrongly on purpose, which fusion doesn't do."""

    def f(x):
        y = df.exp(x)
        return y * df.sort(y)

    monkeypatch.setattr(fusion_check, "partition", in_one_kernel)
    report = df.verify(f, df.ones([4]))
    assert report.difference.agrees
    assert not report.agrees
    (fault,) = report.faults
    assert f"exp+multiply (test_verify.py:{line_of(f, 'exp')}, test_verify.py:{line_of(f, 'sort')})" in fault
    assert str(report).startswith(
        "f(x: float32[4]) is divided into invalid kernels: these depend on each other: "
    )


def test_a_function_whose_sizes_depend_on_data_is_verified() -> None:
    report = df.verify(lambda x: df.boolean_mask(x, x > 1.0) * 2.0, df.constant([1.0, 2.0, 3.0]))
    assert report.agrees
    assert report.faults == ()
