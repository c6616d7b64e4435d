"""Strip-mined lane loops: which ones, their contents, and that invariant statements leave their loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dualflow as df
from dualflow.schedule.invariants import invariants_first
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_statements import (
    Blocks,
    BoundsCheck,
    Compute,
    For,
    KernelStatement,
    Load,
    LoopKind,
    MaskedLoad,
    ReduceLanes,
    ReduceUpdate,
    ScratchBuffer,
    StackScratch,
    Store,
    StripMinedLoop,
    walk_kernel,
)
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.schedule.strip_mining import in_strips


def kernel(f: Callable[..., Any], *specs: Any) -> Kernel:
    """The one kernel of a function."""
    concrete = df.function(f).get_concrete_function(*specs)
    (launch,) = concrete.compiled.executable.program.kernels
    return kernel_launch(launch.lowered_nest(), 16).kernel


def exact(compute: Compute) -> bool:
    return False


def loops(body: tuple[KernelStatement, ...]) -> Iterator[For]:
    yield from (s for s in walk_kernel(body) if isinstance(s, For))


def strips(mined: Kernel) -> list[StripMinedLoop]:
    return [s for s in walk_kernel(mined.body) if isinstance(s, StripMinedLoop)]


MATRIX = df.TensorSpec([300, 400])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2.0 + df.exp(x),
        lambda x: df.reduce_sum(x, 1),
        df.nn.softmax,
        lambda x: df.reduce_max(x),
    ],
    ids=["elements", "sum of rows", "softmax", "whole maximum"],
)
def test_loops_that_vectors_run_through_stay_as_they_are(f: Callable[..., Any]) -> None:
    before = kernel(f, MATRIX)
    mined = in_strips(before, exact)
    assert [type(s) for s in walk_kernel(mined.body)] == [type(s) for s in walk_kernel(before.body)]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: df.reduce_sum(x, 0),
        lambda x: df.nn.softmax(x, 0),
        lambda x: df.argmax(x, 0),
        lambda x: df.argmax(x, 1),
        lambda x: df.argmin(x + 1.0),
    ],
    ids=["sum of columns", "softmax of columns", "place in columns", "place in rows", "place"],
)
def test_no_lane_loop_has_a_loop_inside_or_folds_into_several_registers(f: Callable[..., Any]) -> None:
    mined = in_strips(kernel(f, MATRIX), exact)
    assert strips(mined)
    lanes = [loop for loop in loops(mined.body) if loop.kind is LoopKind.LANES]
    for loop in lanes:
        assert not any(isinstance(s, For | Blocks) for s in walk_kernel(loop.body))
        scratch = {s.register for s in loop.body if isinstance(s, Load) and s.access.block_starts}
        for step in loop.body:
            if isinstance(step, ReduceUpdate) and len(step.accumulator) > 1:
                assert scratch.issuperset(step.accumulator)


def test_the_rows_of_a_sum_of_columns_are_read_in_memory_order() -> None:
    mined = in_strips(kernel(lambda x: df.reduce_sum(x, 0), MATRIX), exact)
    (rows,) = (loop for loop in loops(mined.body) if loop.kind is LoopKind.SERIAL)
    (lanes,) = rows.body
    assert isinstance(lanes, For)
    assert lanes.kind is LoopKind.LANES
    assert ReduceUpdate in [type(s) for s in lanes.body]


def test_accumulators_side_by_side_are_joined_after_the_strips() -> None:
    mined = in_strips(kernel(lambda x: df.argmax(x, 1), MATRIX), exact)
    kinds = [type(s) for s in walk_kernel(mined.body)]
    assert kinds.index(ReduceLanes) > kinds.index(ReduceUpdate)
    assert kinds.count(ReduceLanes) == 1


def test_code_that_may_run_again_writes_to_slots_only() -> None:
    before = kernel(lambda x: df.sin(x) * 2.0, df.TensorSpec([1000]))
    mined = in_strips(before, lambda compute: compute.node.op.name == "sin")
    scratch = {s.buffer for s in mined.body if isinstance(s, StackScratch)}
    guarded = [loop for loop in loops(mined.body) if loop.kind is LoopKind.GUARDED]
    assert len(guarded) == 1
    written = {s.access.buffer for s in guarded[0].body if isinstance(s, Store)}
    read = {s.access.buffer for s in guarded[0].body if isinstance(s, Load)}
    assert written <= scratch
    assert not written & read
    others = [s for loop in loops(mined.body) if loop is not guarded[0] for s in loop.body]
    assert any(isinstance(s, Store) and s.access.buffer not in scratch for s in others)


@pytest.mark.parametrize(
    ("f", "spec", "scratch"),
    [
        (df.nn.softmax, MATRIX, 0),
        (lambda x: (x * 2.0, df.reduce_sum(x * x, 1)), MATRIX, 1),
        (lambda x: (df.cast(x * 2.0, df.float64), df.reduce_sum(x * 2.0, 1)), MATRIX, 1),
    ],
    ids=["stored", "not stored", "stored as another dtype"],
)
def test_reductions_that_a_compiler_reorders_are_in_loops_without_stores(
    f: Callable[..., Any], spec: Any, scratch: int
) -> None:
    mined = in_strips(kernel(f, spec), exact, lambda update: True)
    reducing = [{type(s) for s in x.body} for x in loops(mined.body) if ReduceUpdate in map(type, x.body)]
    assert reducing
    assert not any(Store in statements for statements in reducing)
    assert sum(isinstance(s, StackScratch) for s in mined.body) == scratch


def test_slots_are_buffers_of_their_own() -> None:
    before = kernel(lambda x: df.nn.softmax(x, 0), MATRIX)
    mined = in_strips(before, exact)
    first = len(before.buffers) + sum(isinstance(s, ScratchBuffer) for s in walk_kernel(before.body))
    numbers = [s.buffer for s in walk_kernel(mined.body) if isinstance(s, StackScratch)]
    assert sorted(numbers) == list(range(first, first + len(numbers)))


def test_positions_are_looked_at_once_outside_of_the_loop_that_reads_there() -> None:
    ids = df.TensorSpec([50], df.int32)
    hoisted = invariants_first(kernel(lambda x, i: df.gather(x, i), MATRIX, ids))
    (rows,) = hoisted.body
    assert isinstance(rows, For)
    *before, columns = rows.body
    assert BoundsCheck in [type(s) for s in before]
    assert isinstance(columns, For)
    assert [type(s) for s in columns.body] == [MaskedLoad, Store]


def test_statements_after_a_loop_stay_inside() -> None:
    hoisted = invariants_first(kernel(lambda x, y: x * y[:, None], MATRIX, df.TensorSpec([300])))
    (rows,) = hoisted.body
    assert isinstance(rows, For)
    kept, columns = rows.body
    assert isinstance(kept, Load)
    assert isinstance(columns, For)
    assert [type(s) for s in columns.body] == [Load, Compute, Store]
