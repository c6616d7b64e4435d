"""Every op, sample and dtype: mapped over rows it gives what it gives for each row by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from op_cases import named

import dualflow as df
from dualflow.core import dispatch
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import wrap
from dualflow.function.batching.vmap import vmap
from dualflow.ops.op_kinds import Decompose, Literal, Opaque
from dualflow.ops.record import REGISTRY, Op
from dualflow.ops.testing.cases import Case, cases

ROWS = 3
OPS = [op for op in REGISTRY.values() if not isinstance(op.kind, Literal | Decompose) and op.effect is None]
"""The results of sized ops may differ in size from row to row; what has an effect is tested by itself."""


def rows_of(op: Op) -> Iterator[list[Case]]:
    """Cases that differ in their values only."""
    for alike in zip(*[cases(op, seed) for seed in range(ROWS)], strict=True):
        layout = alike[0].label.split("-")[-1]
        usual = layout in ("contiguous", "plain", "broadcast", "empty")
        if usual and alike[0].inputs and all(is_static(case) for case in alike):
            yield list(alike)


def is_static(case: Case) -> bool:
    """Whether shapes decide the sizes of the results; else rows differ in them."""
    inputs = case.op.prepare(case.inputs, EAGER)
    return all(spec.shape.is_static for spec in case.op.specs([x.spec for x in inputs], case.attrs))


def outputs(case: Case, inputs: Sequence[Any]) -> list[Any]:
    result = dispatch.current().apply(case.op, tuple(inputs), case.attrs)
    return list(result) if isinstance(result, tuple) else [result]


def check(rows: Sequence[Case], differing: Sequence[bool], compiled: bool = False) -> None:
    """With the inputs that ``differ`` taken from each row, the others from the first."""
    columns = [
        np.stack([case.inputs[i] for case in rows]) if differs else rows[0].inputs[i]
        for i, differs in enumerate(differing)
    ]
    mapped = vmap(lambda *xs: outputs(rows[0], xs), [0 if differs else None for differs in differing])
    results = (df.function(mapped) if compiled else mapped)(*map(wrap, columns))
    for r in range(ROWS):
        one = [x[r, ...] if differs else x for x, differs in zip(columns, differing, strict=True)]
        for whole, expected in zip(results, outputs(rows[0], [wrap(x) for x in one]), strict=True):
            agree(rows[0].op, np.asarray(whole)[r, ...], np.asarray(expected), columns)


def agree(op: Op, row: Any, expected: Any, columns: Sequence[Any]) -> None:
    assert row.dtype == expected.dtype
    assert row.shape == expected.shape
    if row.dtype.kind not in "fc" or not row.size:
        np.testing.assert_array_equal(row, expected)
        return
    eps = np.finfo(row.dtype).eps
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=1)
    terms = 8 + max(x.size for x in columns)
    if isinstance(op.kind, Opaque):
        terms *= 256  # a library may go other ways, and iterate another number of times, for more rows
    np.testing.assert_allclose(row, expected, rtol=terms * eps, atol=terms * eps * scale)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_rows_are_computed_as_each_by_itself(op: Op) -> None:
    for rows in rows_of(op):
        count = len(rows[0].inputs)
        every = [True] * count
        alone = [[i == k for i in range(count)] for k in range(count)] if count > 1 else []
        for differing in [every, *alone]:
            with named(f"{rows[0]}, where inputs {differing} differ from row to row"):
                check(rows, differing)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_compiled_rows_are_computed_as_each_by_itself(op: Op) -> None:
    rows = next(rows_of(op), None)
    if rows is not None:
        check(rows, [True] * len(rows[0].inputs), compiled=True)
