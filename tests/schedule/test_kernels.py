"""Loop nests as statements: in the order in which they run, and the same for every size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dualflow as df
from dualflow.schedule.kernel import KernelLaunch
from dualflow.schedule.kernel_statements import (
    Blocks,
    Chunks,
    For,
    KernelStatement,
    Load,
    LoopKind,
    ReduceCombine,
    ReduceFinalize,
    ReduceHorizontal,
    ReduceInit,
    ReduceUpdate,
    Register,
    Store,
    TransposedTile,
    walk_kernel,
)
from dualflow.schedule.select_kernel import kernel_launch


def run(f: Callable[..., Any], *shapes: list[int]) -> KernelLaunch:
    """The one kernel of a function of float32 tensors, and what it is given."""
    concrete = df.function(f).get_concrete_function(*[df.TensorSpec(s) for s in shapes])
    (kernel,) = concrete.compiled.executable.program.kernels
    return kernel_launch(kernel.lowered_nest(), 16)


def kinds(statements: tuple[KernelStatement, ...]) -> list[type]:
    return [type(s) for s in walk_kernel(statements)]


def written(statements: tuple[KernelStatement, ...]) -> Iterator[Register]:
    for statement in walk_kernel(statements):
        register = getattr(statement, "register", None)
        if isinstance(register, Register):
            yield register


def test_a_reduction_starts_steps_and_finishes_around_its_loop() -> None:
    (rows,) = run(lambda x: df.reduce_max(x, 1), [4, 100]).kernel.body
    assert isinstance(rows, For)
    start, columns, across, finish, store = rows.body
    assert isinstance(start, ReduceInit)
    assert isinstance(columns, For)
    assert columns.kind is LoopKind.LANES
    assert [type(s) for s in columns.body] == [Load, ReduceUpdate]
    assert isinstance(across, ReduceHorizontal)
    assert isinstance(finish, ReduceFinalize)
    assert isinstance(store, Store)
    assert store.value == finish.register


def test_a_value_is_loaded_once_per_iteration() -> None:
    launch = run(lambda x: x * x + x, [100])
    assert kinds(launch.kernel.body).count(Load) == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x: df.nn.softmax(x),
        lambda x: df.reduce_sum(x * x),
        lambda x: df.reduce_mean(x, 0),
        lambda x: df.gather(x, [0, 1]),
    ],
    ids=["softmax", "whole sum", "mean of columns", "gather"],
)
def test_every_register_is_written_by_one_statement(f: Callable[..., Any]) -> None:
    launch = run(f, [600, 700])
    registers = list(written(launch.kernel.body))
    assert len(registers) == len(set(registers))


@pytest.mark.parametrize("f", [df.nn.softmax, lambda x: df.exp(x) + 1.0, lambda x: df.reduce_sum(x, 0)])
def test_sizes_are_numbers_that_are_given(f: Callable[..., Any]) -> None:
    small, large = run(f, [300, 301]), run(f, [500, 777])
    assert kinds(small.kernel.body) == kinds(large.kernel.body)
    assert small.kernel.parameters == large.kernel.parameters == len(small.parameters)
    assert (small.total, small.parameters) != (large.total, large.parameters)


def test_a_whole_reduction_leaves_partial_results_that_are_joined_in_order() -> None:
    launch = run(lambda x: df.reduce_sum(x), [1_000_000])
    (outer,) = launch.kernel.body
    assert isinstance(outer, Chunks)
    assert launch.partials == (df.float32,)
    assert launch.total > 1
    assert launch.join is not None
    assert ReduceCombine in kinds(launch.join.kernel.body)
    assert launch.join.total == 1


def test_a_long_sum_runs_by_blocks_and_a_maximum_does_not() -> None:
    assert Blocks in kinds(run(lambda x: df.reduce_sum(x, 1), [4, 100_000]).kernel.body)
    assert Blocks not in kinds(run(lambda x: df.reduce_max(x, 1), [4, 100_000]).kernel.body)


def test_transposed_reads_are_transposed_tile_by_tile() -> None:
    launch = run(lambda x, y: df.transpose(x) + y, [40, 50], [50, 40])
    *_, outer = launch.kernel.body
    assert isinstance(outer, Chunks)
    (chunks,) = outer.body
    assert isinstance(chunks, Blocks)
    turned, rows = chunks.body
    assert isinstance(turned, TransposedTile)
    assert isinstance(rows, For)
    (lanes,) = rows.body
    assert isinstance(lanes, For)
    assert lanes.kind is LoopKind.LANES
    own, other = (s.access.buffer for s in lanes.body if isinstance(s, Load))
    assert own == turned.tile
    assert other < len(launch.kernel.buffers)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + 1.0,
        lambda x: df.transpose(x[:, :8]) + 1.0,
        lambda x: df.transpose(x, [1, 0])[:8] + 1.0,
        lambda x: x[:, ::2] + 1.0,
        lambda x: df.reduce_sum(df.transpose(x), 1),
    ],
)
def test_short_rows_and_their_strides_are_read_in_memory_order(f: Callable[..., Any]) -> None:
    assert TransposedTile not in kinds(run(f, [40, 50]).kernel.body)
