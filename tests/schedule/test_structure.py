"""Structural equality of kernels, whatever their graphs, sizes and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.graph.ir import Node
from dualflow.schedule.kernel import Kernel
from dualflow.schedule.kernel_statements import BoundsCheck, Compute, For, Register, carried, walk_kernel
from dualflow.schedule.select_kernel import kernel_launch
from dualflow.schedule.structure import structure


def kernels(f: Callable[..., Any], *specs: df.TensorSpec) -> list[Kernel]:
    """The kernels of a function, in order."""
    concrete = df.function(f, backend="llvm").get_concrete_function(*specs)
    return [kernel_launch(k.lowered_nest(), 16).kernel for k in concrete.compiled.executable.program.kernels]


def kernel(f: Callable[..., Any], *shape: int, dtype: Any = df.float32) -> Kernel:
    """The kernel of a function of one tensor."""
    (only,) = kernels(f, df.TensorSpec(shape, dtype))
    return only


def twice(x: Any, y: Any) -> Any:
    """Two kernels with a product between."""
    return df.tanh((df.tanh(x @ y) + 1.0) @ y) + 2.0


@pytest.mark.parametrize(
    "f",
    [
        df.nn.softmax,
        df.nn.gelu,
        df.reduce_sum,
        lambda x: df.reduce_mean(x, 0),
        lambda x: df.transpose(x) + 1.0,
        lambda x: df.gather(x, [1, 0]),
    ],
    ids=["softmax", "gelu", "whole sum", "mean of columns", "transposed", "gather"],
)
def test_kernels_of_other_sizes_are_the_same(f: Callable[..., Any]) -> None:
    assert structure(kernel(f, 300, 301)) == structure(kernel(f, 500, 777))


def test_kernels_with_other_numbers_are_the_same() -> None:
    one, other = (kernel(lambda x, n=n: x * n + n, 100) for n in (2.0, 3.0))
    assert structure(one) == structure(other)


def test_kernels_of_one_graph_are_equal_for_any_buffers() -> None:
    first, second = kernels(twice, df.TensorSpec([8, 8]), df.TensorSpec([8, 8]))
    assert structure(first) == structure(second)


def test_where_a_buffer_begins_is_no_part_of_a_kernel() -> None:
    slices = [kernel(lambda x, i=i: x[i : i + 50] * 2.0, 100) for i in (0, 7)]
    assert structure(slices[0]) == structure(slices[1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (kernel(df.exp, 100), kernel(df.sin, 100)),
        (kernel(df.exp, 100), kernel(df.exp, 100, dtype=df.float64)),
        (kernel(lambda x: df.cast(x, df.int32), 100), kernel(lambda x: df.cast(x, df.int64), 100)),
        (kernel(lambda x: df.reduce_max(x, 1), 9, 9), kernel(lambda x: df.reduce_min(x, 1), 9, 9)),
        (kernel(lambda x: df.reduce_sum(x, 1), 9, 9), kernel(lambda x: df.reduce_sum(x, 0), 9, 9)),
        (kernel(lambda x: x[::2] + 1.0, 100), kernel(lambda x: x[::-2] + 1.0, 100)),
        (kernel(lambda x: x - 1.0, 100), kernel(lambda x: 1.0 - x, 100)),
    ],
    ids=["op", "dtype", "attribute", "fold", "axis", "direction", "order"],
)
def test_kernels_are_distinguished_by_what_they_do(one: Kernel, other: Kernel) -> None:
    assert structure(one) != structure(other)


def test_the_nodes_that_errors_name_are_no_part_of_a_kernel() -> None:
    exp = kernel(df.exp, 100)
    (loop,) = exp.body
    assert isinstance(loop, For)
    changed = [s._replace(node=with_attribute(s.node)) if isinstance(s, Compute) else s for s in loop.body]
    assert structure(exp._replace(body=(loop._replace(body=tuple(changed)),))) == structure(exp)


def with_attribute(node: Node) -> Node:
    return Node(node.op, node.inputs, {"table": np.zeros(3)}, node.specs)


def test_ops_that_compute_the_same_make_the_same_kernel() -> None:
    bits, truths = df.bitwise.bitwise_and, df.logical_and
    one, other = (kernel(lambda x, f=f: f(x, df.logical_not(x)), 100, dtype=df.bool) for f in (bits, truths))
    assert structure(one) == structure(other)


def test_a_failing_statement_has_its_own_node() -> None:
    gather = kernel(lambda x: df.gather(x, [1, 0]), 10)
    (bounds,) = [s for s in walk_kernel(gather.body) if isinstance(s, BoundsCheck)]
    assert bounds.node.op.name == "gather"


def test_a_loop_carries_the_accumulators_that_were_begun_before_it() -> None:
    (rows,) = kernel(lambda x: df.reduce_sum(x, 1), 4, 100_000).body
    assert isinstance(rows, For)
    start, blocks, *_ = rows.body
    (accumulator,) = start.accumulator  # type: ignore[union-attr]  # the fold begins the row
    assert isinstance(accumulator, Register)
    assert carried(blocks.body) == (accumulator,)  # type: ignore[union-attr]  # a long sum has blocks
    assert carried(rows.body) == ()
