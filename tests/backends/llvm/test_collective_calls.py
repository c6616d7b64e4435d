"""Collectives in machine code: what the called function gets, and what happens if it or the program fails.

The function is one of this process, in place of MPI's; tests/distribute runs real workers.
"""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.backends.runtime import switches
from dualflow.distribute.collective_progress import Progress
from dualflow.ops.collectives.collective_ops import (
    block_sums_over,
    blocks_joined_over,
    gather_over,
    sum_over,
)
from dualflow.ops.op_kinds import Collective, CollectiveCall

pytestmark = [
    pytest.mark.llvm,
    pytest.mark.skipif(bool(switches.off("collectives")), reason="they are off"),
]
ALL_REDUCE = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int64,
)
"""The signature of MPI_Allreduce, with handles of 8 bytes."""


ALL_GATHER = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_int64,
    ctypes.c_int64,
)
"""The signature of MPI_Allgather."""
ALL_GATHER_ROWS = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_int),
    ctypes.POINTER(ctypes.c_int),
    ctypes.c_int64,
    ctypes.c_int64,
)
"""The signature of MPI_Allgatherv."""
PART_BYTES = 1 << 22


class TwoEqualWorkers:
    """A group of two workers with the same float32 values: a sum is twice the own value.

    Attributes:
        calls: the count and the handles of each call from machine code.
        in_python: the number of sums that Python has computed.
        code: the return code of calls from machine code.
        rows: the number of rows of each worker that machine code receives; None for this worker's.
    """

    size = 2
    rank = 1

    def __init__(self) -> None:
        self.progress = Progress()
        self.calls: list[tuple[int, ...]] = []
        self.in_python = 0
        self.code = 0
        self.rows: int | None = None
        self._function = ALL_REDUCE(self._sum)
        self._functions: dict[Collective, Any] = {
            Collective.ALL_GATHER: ALL_GATHER(self._gather),
            Collective.ALL_GATHER_ROWS: ALL_GATHER_ROWS(self._gather_rows),
            Collective.ROW_COUNTS: ALL_GATHER(self._count),
        }

    def _sum(self, source: int, target: int, count: int, *handles: int) -> int:
        self.calls.append((count, *handles))
        if not self.code:
            kind = ctypes.c_float * count
            np.multiply(kind.from_address(source), np.float32(2), out=np.asarray(kind.from_address(target)))
        return self.code

    def _gather(self, source: int, count: int, kind: int, target: int, counts: int, *handles: int) -> int:
        self.calls.append((count, kind, counts, *handles))
        own = np.asarray((ctypes.c_float * count).from_address(source))
        np.asarray((ctypes.c_float * (2 * count)).from_address(target))[:] = np.tile(own, 2)
        return self.code

    def _gather_rows(
        self, source: int, count: int, kind: int, target: int, counts: Any, positions: Any, *handles: int
    ) -> int:
        self.calls.append((count, kind, *counts[:2], *positions[:2], *handles))
        own = np.asarray((ctypes.c_float * count).from_address(source))
        np.asarray((ctypes.c_float * (2 * count)).from_address(target))[:] = np.tile(own, 2)
        return self.code

    def _count(self, source: int, count: int, kind: int, target: int, counts: int, *handles: int) -> int:
        rows = ctypes.c_int64.from_address(source).value
        np.asarray((ctypes.c_int64 * 2).from_address(target))[:] = rows if self.rows is None else self.rows
        return self.code

    def all_reduce(self, array: Any) -> Any:
        self.in_python += 1
        return 2 * array

    def reduce_scatter_block(self, array: Any) -> Any:
        raise NotImplementedError

    def all_gather_block(self, array: Any) -> Any:
        raise NotImplementedError

    def native(self, collective: Collective, dtype: Any, shape: tuple[int | None, ...]) -> CollectiveCall:
        number: Any = self.progress.template if None in shape else self.progress.signature
        signature = number(collective.name.lower(), dtype.dtype, shape)
        function = self._functions.get(collective, self._function)
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        return CollectiveCall(
            collective,
            address,
            11,
            22,
            33,
            self.progress.address,
            signature,
            PART_BYTES,
            44,
            self._error,
            self.progress.native_spans,
        )

    def row_counts(self, own: Any, rows: Any) -> Any:
        self.in_python += 1
        return np.repeat(own, 2)

    def all_gather(self, array: Any, counts: Any) -> Any:
        self.in_python += 1
        return np.concatenate([array, array])

    def _error(self) -> Exception:
        return df.errors.AbortedError(None, None, f"{self.progress.description()}: {self.progress.code}")


class UntouchedMemory(TwoEqualWorkers):
    """A group whose function returns at once."""

    def _sum(self, source: int, target: int, count: int, *handles: int) -> int:
        self.calls.append((count, target))
        return 0


@pytest.fixture
def group() -> TwoEqualWorkers:
    return TwoEqualWorkers()


def test_the_function_gets_the_elements_and_handles_and_is_counted(group: TwoEqualWorkers) -> None:
    f = df.function(lambda x: sum_over(x * 3.0, group) + 1.0)
    for calls in (1, 2, 3):  # by ctypes, then by the C fast call
        assert f(df.ones([2, 3])).numpy().tolist() == [[7.0] * 3] * 2
        assert group.calls == [(6, 11, 22, 33)] * calls
        assert group.progress.begun == group.progress.finished == calls
    (signature,) = group.progress.descriptions
    assert group.progress.signatures(0, 3) == [signature] * 3
    assert group.progress.descriptions[signature] == "all_reduce of float32[2, 3]"
    assert group.in_python == 0


@pytest.mark.parametrize("shape", [[], [0], [0, 2], [1], [70_000]])
def test_any_static_shape(group: TwoEqualWorkers, shape: list[int]) -> None:
    x = df.random.normal(shape)
    y = df.function(lambda x: sum_over(x, group))(x)
    assert np.array_equal(y.numpy(), 2 * x.numpy())
    assert len(group.calls) == 1


def test_operands_that_are_views_are_copied(group: TwoEqualWorkers) -> None:
    x = df.constant([[1.0, 2.0], [3.0, 4.0]])
    f = df.function(lambda x: (sum_over(df.transpose(x), group), sum_over(x[1:], group)))
    transposed, row = f(x)
    assert transposed.numpy().tolist() == [[2.0, 6.0], [4.0, 8.0]]
    assert row.numpy().tolist() == [[6.0, 8.0]]
    assert [count for count, *_ in group.calls] == [4, 2]


def test_large_sums_are_exchanged_in_parts() -> None:
    group, limit = UntouchedMemory(), PART_BYTES
    df.function(lambda x: sum_over(x, group))(df.zeros([limit + 5], df.int8))
    (first, begin), (second, after) = group.calls
    assert (first, second, after - begin) == (limit, 5, limit)
    assert group.progress.begun == group.progress.finished == 1


def test_a_profile_has_a_span_of_each_collective_in_that_of_its_call(
    group: TwoEqualWorkers, tmp_path: Path
) -> None:
    f = df.function(lambda x: sum_over(sum_over(x, group) + 1.0, group))
    x = df.ones([3])
    f(x)
    with df.profiler.trace(tmp_path) as file:
        f(x)
        f(x)
    events = json.loads(file.path.read_text(encoding="utf-8"))["traceEvents"]
    spans = [e for e in events if e.get("cat") == "collective"]
    native = [e for e in events if e.get("cat") == "native"]
    assert [e["name"] for e in spans] == ["all_reduce of float32[3]"] * 4
    for i, span in enumerate(spans):
        call = native[i // 2]
        assert call["ts"] <= span["ts"] <= span["ts"] + span["dur"] <= call["ts"] + call["dur"]


def test_blocks_are_scattered_and_gathered_by_machine_code(group: TwoEqualWorkers) -> None:
    def exchanged(x: Any) -> Any:
        (own,) = block_sums_over([x], group, 1 << 20)
        return own, blocks_joined_over([own], [[5]], group, 1 << 20)[0]

    own, whole = df.function(exchanged)(df.constant([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert own.numpy().tolist() == [2.0, 4.0, 6.0]  # the first block: MPI would return that of the rank
    assert whole.numpy().tolist() == [2.0, 4.0, 6.0, 2.0, 4.0]
    assert group.calls == [(3, 11, 22, 33), (3, 11, 3, 11, 33)]


def test_an_update_uses_the_sum(group: TwoEqualWorkers) -> None:
    v = df.Variable([1.0, 2.0])

    @df.function
    def step(x: Any) -> None:
        v.assign_sub(0.5 * sum_over(x, group))

    for _ in range(3):
        step(df.ones([2]))
    assert v.numpy().tolist() == [-2.0, -1.0]
    assert group.in_python == 0


def test_a_failed_collective_raises_its_error_and_assigns_nothing(group: TwoEqualWorkers) -> None:
    group.code = 15
    v = df.Variable(1.0)

    @df.function
    def step(x: Any) -> None:
        first = sum_over(x, group)
        v.assign(sum_over(first, group))

    for _ in range(2):
        with pytest.raises(df.errors.AbortedError, match=r"all_reduce of float32\[\]: 15"):
            step(df.constant(1.0))
    assert v.numpy() == 1.0
    assert len(group.calls) == 2  # neither the failed one nor a later one is run again
    assert group.in_python == 0
    assert group.progress.finished == 0


def test_assignments_before_a_failed_collective_stay(group: TwoEqualWorkers) -> None:
    group.code = 1
    v = df.Variable(0.0)

    @df.function
    def step(x: Any) -> None:
        v.assign(5.0)
        v.assign_add(sum_over(x, group))

    with pytest.raises(df.errors.AbortedError):
        step(df.constant(1.0))
    assert v.numpy() == 5.0
    assert len(group.calls) == 1


def test_nothing_is_exchanged_after_a_failed_check(group: TwoEqualWorkers) -> None:
    v = df.Variable(0.0)

    @df.function
    def step(x: Any, i: Any) -> Any:
        v.assign(3.0)
        return sum_over(df.gather(x, i), group)

    assert step(df.constant([1.0, 2.0]), df.constant([1])).numpy().tolist() == [4.0]
    v.assign(0.0)
    with pytest.raises(df.errors.OutOfRangeError):
        step(df.constant([1.0, 2.0]), df.constant([7]))
    assert v.numpy() == 3.0
    assert len(group.calls) == 1
    assert group.in_python == 0


def test_before_a_node_that_may_fail_python_exchanges_and_a_replay_reads_its_record(
    group: TwoEqualWorkers,
) -> None:
    v = df.Variable(0.0)

    @df.function
    def step(x: Any, i: Any) -> Any:
        v.assign(df.reduce_sum(sum_over(x, group)))
        return df.gather(x, i)

    with pytest.raises(df.errors.OutOfRangeError):
        step(df.constant([1.0, 2.0]), df.constant([7]))
    assert v.numpy() == 6.0
    assert (len(group.calls), group.in_python) == (0, 1)


def test_tensors_of_dynamic_sizes_are_recorded_with_their_sizes(group: TwoEqualWorkers) -> None:
    """Sizes of arguments, and one that depends on data."""
    signature = [df.TensorSpec([None, 2, None])]
    of_arguments = df.function(lambda x: sum_over(x * 2.0, group) + 1.0, input_signature=signature)
    of_data = df.function(lambda x: sum_over(df.boolean_mask(x, x > 0.0), group))
    for shape in ([3, 2, 1], [4, 2, 2], [0, 2, 5]):
        assert np.array_equal(of_arguments(df.ones(shape)).numpy(), np.full(shape, 5.0))
    for x, positive in (([1.0, -1.0, 3.0], [2.0, 6.0]), ([-1.0, -1.0, -1.0], [])):
        assert of_data(df.constant(x)).numpy().tolist() == positive
    progress = group.progress
    recorded = progress.signatures(0, progress.begun)
    shapes = ["3, 2, 1", "4, 2, 2", "0, 2, 5", "2", "0"]
    assert [progress.descriptions[s] for s in recorded] == [f"all_reduce of float32[{s}]" for s in shapes]
    assert [count for count, *_ in group.calls] == [6, 16, 0, 2, 0]
    assert group.in_python == 0


def test_collectives_of_each_iteration_are_native(group: TwoEqualWorkers) -> None:
    v = df.Variable(0.0)

    @df.function
    def steps(x: Any, count: Any) -> Any:
        for i in df.range(count):
            x = sum_over(x, group)
            if i % 2 == 0:
                x += sum_over(df.ones([2]), group)
            v.assign_add(df.reduce_sum(x))
        return sum_over(x, group)

    @df.function
    def until(x: Any) -> Any:
        while df.reduce_sum(sum_over(x, group)) < 100.0:
            for _ in df.range(2):
                x = sum_over(x, group)
        return x

    for count in (0, 1, 3, 40):  # 2 x + 2, then 2 x, and so on
        group.calls.clear()
        v.assign(0.0)
        x, total = np.float32([1.0, 0.5]), np.float32(0)
        for i in range(count):
            x = 2 * x + 2 * (i % 2 == 0)
            total += x.sum()
        assert np.array_equal(steps(df.constant([1.0, 0.5]), count).numpy(), 2 * x)
        assert v.numpy() == total
        assert len(group.calls) == count + (count + 1) // 2 + 1
    group.calls.clear()
    assert until(df.constant([1.0])).numpy().tolist() == [64.0]
    assert len(group.calls) == 4 + 3 * 2
    assert group.in_python == 0


def test_collectives_of_a_branch_are_native_unless_a_node_that_may_fail_is_next(
    group: TwoEqualWorkers,
) -> None:
    def chosen(x: Any, i: Any) -> Any:
        return df.cond(i > 0, lambda: sum_over(x, group), lambda: x - 1.0)

    last = df.function(chosen)
    gathered = df.function(lambda x, i: df.gather(chosen(x, i), i))
    x = df.constant([1.0, 3.0])
    assert [last(x, i).numpy().tolist() for i in (0, 1)] == [[0.0, 2.0], [2.0, 6.0]]
    assert (len(group.calls), group.in_python) == (1, 0)
    assert [gathered(x, i).numpy() for i in (0, 1)] == [0.0, 6.0]
    assert (len(group.calls), group.in_python) == (1, 1)


def test_variables_keep_what_was_assigned_before_the_first_collective_of_a_loop_that_fails(
    group: TwoEqualWorkers,
) -> None:
    """Neither the failed call nor its replay exchanges more than the iterations before the failure."""
    v, w = df.Variable(0.0), df.Variable(0.0)

    @df.function
    def steps(x: Any, indices: Any) -> Any:
        v.assign(5.0)
        for i in indices:
            w.assign_add(df.gather(x, i))
            w.assign(sum_over(w, group))
        return w + 0.0

    x = df.constant([1.0, 2.0])
    for _ in range(2):  # by ctypes, then by the C fast call
        v.assign(0.0)
        w.assign(0.0)
        group.calls.clear()
        assert steps(x, df.constant([0, 1])).numpy() == 8.0
        v.assign(0.0)
        w.assign(0.0)
        with pytest.raises(df.errors.OutOfRangeError):
            steps(x, df.constant([0, 7]))
        assert (v.numpy(), w.numpy()) == (5.0, 1.0)
        assert len(group.calls) == 3
    group.code = 7
    w.assign(0.0)
    with pytest.raises(df.errors.AbortedError, match=r"all_reduce of float32\[\]: 7"):
        steps(x, df.constant([1, 0]))
    assert w.numpy() == 2.0
    assert group.in_python == 0


def test_a_gradient_is_exchanged_by_machine_code(group: TwoEqualWorkers) -> None:
    @df.function
    def gradient(x: Any) -> Any:
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.reduce_sum(sum_over(x, group) ** 2)
        return tape.gradient(y, x)

    assert gradient(df.constant([1.0, 3.0])).numpy().tolist() == [8.0, 24.0]
    assert (len(group.calls), group.in_python) == (2, 0)


def test_rows_are_gathered_by_machine_code(group: TwoEqualWorkers) -> None:
    """Outside of loops Python exchanges their numbers, as memory for all rows may be missing."""
    f = df.function(
        lambda x: gather_over([x * 2.0], group)[0] + 1.0, input_signature=[df.TensorSpec([None, 3])]
    )
    for rows in (2, 0, 5):
        assert np.array_equal(f(df.ones([rows, 3])).numpy(), np.full([2 * rows, 3], 3.0))
    assert group.calls == [(3 * n, 11, 3 * n, 3 * n, 0, 3 * n, 11, 33) for n in (2, 0, 5)]
    assert group.in_python == 3


def test_rows_are_gathered_by_machine_code_in_loops(group: TwoEqualWorkers) -> None:
    @df.function
    def total(x: Any, count: Any) -> Any:
        result = 0.0
        for i in df.range(count):
            result += df.reduce_sum(gather_over([x[: i + 1]], group)[0])
        return result

    for count, expected in ((0, 0.0), (1, 2.0), (3, 2.0 + 4.0 + 6.0)):
        assert total(df.ones([5, 1]), count).numpy() == expected
    assert [count for count, *_ in group.calls] == [1, 1, 2, 3]
    assert group.in_python == 0


def test_more_elements_than_mpi_counts_are_its_error(group: TwoEqualWorkers) -> None:
    """Of memory that is allocated and not touched."""
    group.rows = 1 << 30

    @df.function
    def gathered(x: Any) -> Any:
        count = 0
        for _ in df.range(1):
            count += df.shape(gather_over([x], group)[0])[0]
        return count

    with pytest.raises(df.errors.AbortedError, match="44"):
        gathered(df.ones([1, 1], df.int8))
    assert group.calls == []


def test_a_replay_reads_the_record_of_gathered_rows(group: TwoEqualWorkers) -> None:
    v = df.Variable(0.0)

    @df.function
    def step(x: Any, i: Any) -> Any:
        v.assign(df.reduce_sum(gather_over([x], group)[0]))
        return df.gather(x, i)

    assert step(df.constant([1.0, 2.0]), df.constant([1])).numpy().tolist() == [2.0]
    v.assign(0.0)
    calls = group.in_python
    with pytest.raises(df.errors.OutOfRangeError):
        step(df.constant([1.0, 2.0]), df.constant([7]))
    assert v.numpy() == 6.0
    assert group.in_python == calls + 2
