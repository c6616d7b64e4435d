"""Every op, sample, dtype and shape as ONNX: ONNX Runtime computes what it does, or it is refused."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx_models import onnx, session
from op_cases import check_each, named

import dualflow as df
from dualflow.backends.onnx.export import onnx_model
from dualflow.core import dispatch
from dualflow.core.errors import DualflowError, InvalidArgumentError
from dualflow.function.calls.exported_graph import simplified_graph
from dualflow.ops.conversion import CAST
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import REGISTRY, Op
from dualflow.ops.testing.cases import Case, cases

OPS = [op for op in REGISTRY.values() if not isinstance(op.kind, Literal)]
STRIDES = ("transposed", "strided", "backwards")
"""The layouts of equal values in another order of memory, which ONNX Runtime gets as contiguous copies."""
TOLERANCES = {np.float32: (2e-5, 1e-6), np.float64: (1e-11, 1e-13)}


def exported(case: Case) -> Any:
    """The model of a call of an op, and the results of its kernel; None if the call is an error."""

    def call(*tensors: Any) -> Any:
        return dispatch.current().apply(case.op, tensors, case.attrs)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = call(*map(df.constant, case.inputs))
        specs = [df.TensorSpec(x.shape, x.dtype) for x in case.inputs]
        concrete = df.function(call, autograph=False).get_concrete_function(*specs)
    except DualflowError:
        return None
    graph = simplified_graph(concrete.graph, concrete.options)
    names = [f"output_{i}" for i in range(len(graph.outputs))]
    model = onnx_model(graph, names, ["captured"] * len(graph.captures), [])
    onnx.checker.check_model(model, full_check=True)
    return model, expected if isinstance(expected, tuple) else (expected,)


def as_text(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Bytes decoded to str, which ONNX Runtime expects."""
    return np.array([x.decode() for x in array.reshape(-1)], object).reshape(array.shape)


def compare(case: Case) -> bool:
    """Whether ``case`` can be exported to ONNX; then the results must equal those of the kernel."""
    try:
        pair = exported(case)
    except InvalidArgumentError as error:
        if "can't be exported" not in str(error):
            raise
        return False
    if pair is None:
        return False
    model, expected = pair
    running = session(model)
    arrays = [as_text(x) if x.dtype == object else x for x in case.inputs]
    feeds = dict(zip([i.name for i in running.get_inputs()], arrays, strict=True))
    for computed, tensor in zip(running.run(None, feeds), expected, strict=True):
        result = np.asarray(tensor)
        result = as_text(result) if result.dtype == object else result
        assert computed.shape == result.shape
        assert computed.dtype == result.dtype
        if result.dtype.type in TOLERANCES:
            rtol, atol = TOLERANCES[result.dtype.type]
            np.testing.assert_allclose(computed, result, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(computed, result)
    return True


def is_defined(case: Case) -> bool:
    """Whether ONNX defines the result: not for floats cast out of range, nor for bytes that aren't text."""
    if case.op is CAST and case.label.endswith("special values"):
        return False
    return all(_is_text(x) for x in case.inputs)


def _is_text(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype != object or all(
        x.decode(errors="replace").encode() == x and b"\0" not in x for x in array.reshape(-1)
    )


def cases_of(op: Op) -> Iterator[Case]:
    return (case for case in cases(op) if case.label.split("-")[-1] not in STRIDES and is_defined(case))


def first_of_each_dtype(op: Op) -> Iterator[Case]:
    """The first case of each sample and dtype."""
    visited = set[str]()
    for case in cases_of(op):
        key = "-".join(case.label.split("-")[:2])
        if key not in visited:
            visited.add(key)
            yield case


@pytest.mark.parametrize("kind", sorted({type(op.kind).__name__ for op in OPS}))
def test_ops_of_each_kind(kind: str) -> None:
    """One case of each op of a kind; some kind has more ops than others that ONNX lacks."""
    ops = [op for op in OPS if type(op.kind).__name__ == kind]
    written = []
    for op in ops:
        case = next(first_of_each_dtype(op), None)
        if case is not None:
            with named(case):
                written.append(compare(case))
    assert all(written) or kind in ("Opaque", "Decompose", "Elementwise", "Scatter")
    assert any(written)


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_each_op_sample_dtype_and_shape(op: Op) -> None:
    check_each(cases_of(op), compare)
