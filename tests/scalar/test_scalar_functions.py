"""Scalar functions: what tracing records, when two are equal, and that they compute what their code does."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from op_cases import named

from dualflow.core.dtypes import DType, bool_, float32, float64, int32, int64
from dualflow.eager.engine import EAGER
from dualflow.graph.fused import reduction_kind_of
from dualflow.graph.ir import Node, Value
from dualflow.graph.scalar_functions import reduction_of
from dualflow.ops import maths_reference
from dualflow.ops.op_kinds import Elementwise, Reduce
from dualflow.ops.record import REGISTRY
from dualflow.ops.testing.cases import Case, cases
from dualflow.scalar import NotTraceable, ScalarFunction, ScalarOp, evaluate, trace


def ops(function: ScalarFunction) -> list[ScalarOp]:
    return [instruction.op for instruction in function.instructions]


def is_real(case: Case) -> bool:
    specs = [x.spec for x in case.op.prepare(case.inputs, EAGER)]
    return not any(
        s.dtype.is_complex or s.dtype.is_string for s in (*specs, *case.op.specs(specs, case.attrs))
    )


def element_cases() -> Iterator[Case]:
    """Each sample of an elementwise op of real numbers, but for those that read their position."""
    for op in REGISTRY.values():
        if isinstance(op.kind, Elementwise) and not op.kind.parts:
            yield from (c for c in cases(op) if c.inputs and is_real(c))


def by_op(op_cases: Iterable[Case]) -> list[Any]:
    """The cases of each op, as the parameter of one test."""
    groups = groupby(op_cases, key=lambda case: case.op.name)
    return [pytest.param(list(group), id=name) for name, group in groups]


class TestTracing:
    """What a trace records."""

    def test_a_common_subexpression_is_one_instruction(self) -> None:
        function = trace(lambda m, x: m.exp(x) + m.exp(x), (float32,))
        assert ops(function) == [ScalarOp.EXP, ScalarOp.ADD]

    def test_unneeded_nodes_are_left_out(self) -> None:
        def code(m: Any, x: Any) -> Any:
            m.sin(x)
            return m.cos(x)

        assert ops(trace(code, (float32,))) == [ScalarOp.COS]

    def test_a_check_stays_though_no_result_needs_it(self) -> None:
        def code(m: Any, x: Any) -> Any:
            m.check(x > 0, "positive")
            return x

        function = trace(code, (int32,))
        assert function.uses(ScalarOp.CHECK)
        assert function.instructions[-1].attribute == "positive"

    def test_a_number_becomes_a_constant_of_the_other_operands_dtype(self) -> None:
        constant, product = trace(lambda m, x: 2 * x, (float64,)).instructions
        assert (constant.attribute, constant.dtype, product.dtype) == (2.0, float64, float64)

    def test_zeros_of_both_signs_are_two_constants(self) -> None:
        function = trace(lambda m, x: (x * 0.0) + (x * -0.0), (float32,))
        assert ops(function).count(ScalarOp.CONSTANT) == 2

    def test_a_comparison_is_a_bool(self) -> None:
        assert trace(lambda m, x, y: x < y, (float32, float32)).dtypes == (bool_,)

    def test_results_are_cast_to_the_dtypes_that_are_requested(self) -> None:
        function = trace(lambda m, x: x, (int32,), (int64,))
        assert ops(function) == [ScalarOp.CAST]
        assert function.dtypes == (int64,)

    def test_a_number_alone_is_a_result_of_the_dtype_that_is_requested(self) -> None:
        assert trace(lambda m, x: 1, (float32,), (float32,)).dtypes == (float32,)
        with pytest.raises(NotTraceable, match="give the dtypes"):
            trace(lambda m, x: 1, (float32,))

    def test_operands_of_two_dtypes_are_refused(self) -> None:
        with pytest.raises(NotTraceable, match="add takes scalars of one dtype, not float32, int32"):
            trace(lambda m, x, y: x + y, (float32, int32))

    def test_a_choice_by_pythons_if_is_refused(self) -> None:
        with pytest.raises(NotTraceable, match=r"has no truth value .* use m\.where"):
            trace(lambda m, x: x if x > 0 else -x, (float32,))


class TestEquality:
    """Two functions are equal if their instructions are."""

    def test_the_same_code_traced_twice_is_equal(self) -> None:
        one, other = (trace(lambda m, x: m.exp(x) * 2.0, (float32,)) for _ in range(2))
        assert one == other
        assert hash(one) == hash(other)

    @pytest.mark.parametrize(
        ("code", "dtype"),
        [
            (lambda m, x: m.exp(x) * 3.0, float32),
            (lambda m, x: m.exp(x) * 2.0, float64),
            (lambda m, x: m.log(x) * 2.0, float32),
            (lambda m, x: m.exp(x) * -2.0, float32),
        ],
        ids=["constant", "dtype", "op", "sign"],
    )
    def test_other_code_is_not(self, code: Any, dtype: DType) -> None:
        assert trace(lambda m, x: m.exp(x) * 2.0, (float32,)) != trace(code, (dtype,))

    def test_nan_is_nan(self) -> None:
        one, other = (trace(lambda m, x: m.maximum(x, float("nan")), (float32,)) for _ in range(2))
        assert one == other

    def test_zeros_of_two_signs_are_not_equal(self) -> None:
        one, other = (trace(lambda m, x, z=z: x * z, (float32,)) for z in (0.0, -0.0))
        assert one != other


def test_a_function_prints_as_its_instructions() -> None:
    function = trace(lambda m, x, y: m.where(x < y, m.exp(x), 0), (float32, float32))
    assert str(function) == (
        "(v0: float32, v1: float32) -> v5\n"
        "    v2: bool = less(v0, v1)\n"
        "    v3: float32 = exp(v0)\n"
        "    v4: float32 = constant 0.0\n"
        "    v5: float32 = where(v2, v3, v4)"
    )


def test_instructions_are_plain_data_that_can_be_stored() -> None:
    function = trace(lambda m, x: m.log1p(m.exp(x)) * 2.0, (float32,))
    inputs, instructions, results = pickle.loads(
        pickle.dumps((function.inputs, function.instructions, function.results))
    )
    assert ScalarFunction(inputs, instructions, results) == function


def test_one_of_several_results_keeps_what_it_needs() -> None:
    both = trace(lambda m, x, y: (m.exp(x), m.log(y)), (float32, float64))
    assert both.reads() == {0, 1}
    assert both.returning([1]).reads() == {1}
    assert both.returning([1]) == trace(lambda m, x, y: m.log(y), (float32, float64))


@pytest.mark.parametrize("op_cases", by_op(element_cases()))
def test_a_traced_op_computes_what_its_code_does(op_cases: list[Case]) -> None:
    for case in op_cases:
        with named(case):
            check_element(case)


def check_element(case: Case) -> None:
    kind = case.op.kind
    assert isinstance(kind, Elementwise)
    arrays = [np.asarray(x) for x in case.op.prepare(case.inputs, EAGER)]
    specs = case.op.specs([x.spec for x in case.op.prepare(case.inputs, EAGER)], case.attrs)
    dtypes = [x.spec.dtype for x in case.op.prepare(case.inputs, EAGER)]
    function = trace(kind.code, dtypes, [specs[0].dtype], case.attrs)
    positions = np.indices(tuple(specs[0].shape))
    m = SimpleNamespace(**{**vars(maths_reference), "index": lambda axis: positions[axis]})
    with np.errstate(all="ignore"):
        (result,) = evaluate(function, m, arrays)
        expected = maths_reference.cast(kind.code(m, *arrays, **case.attrs), specs[0].dtype)
    assert np.asarray(result).dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def fold_cases() -> Iterator[Case]:
    for op in REGISTRY.values():
        if isinstance(op.kind, Reduce):
            yield from (c for c in cases(op) if is_real(c))


@pytest.mark.parametrize("op_cases", by_op(fold_cases()))
def test_a_traced_reduction_computes_what_its_fold_does(op_cases: list[Case]) -> None:
    for case in op_cases:
        with named(case):
            check_fold(case)


def check_fold(case: Case) -> None:
    """Over all elements in two parts, which are combined."""
    (x,) = case.op.prepare(case.inputs, EAGER)
    node = Node(case.op, [Value(x.spec)], case.attrs, case.op.specs([x.spec], case.attrs))
    fold, reduction = reduction_kind_of(node), reduction_of(node)
    elements = [np.asarray(e) for e in np.asarray(x).reshape(-1)]

    halves = range(len(elements) // 2), range(len(elements) // 2, len(elements))

    def by_reduction() -> Any:
        both = []
        for half in halves:
            accumulator = evaluate(reduction.init, maths_reference, ())
            for i in half:
                position = [np.int64(i)] if reduction.needs_position else []
                operands = [*accumulator, elements[i], *position]
                accumulator = evaluate(reduction.update, maths_reference, operands)
            both += accumulator
        combined = evaluate(reduction.combine, maths_reference, both)
        return evaluate(reduction.finalize, maths_reference, combined)[0]

    def by_fold() -> Any:
        m, parts = maths_reference, []
        for half in halves:
            accumulator = fold.start(m, x.dtype)
            for i in half:
                accumulator = fold.step(m, accumulator, elements[i], np.int64(i))
            parts.append(accumulator)
        return fold.finish(m, fold.merge(m, *parts))

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(by_reduction(), by_fold())
