"""Work and span of graphs with known results."""

from __future__ import annotations

import pytest

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.graph.analysis import Workload, critical_path, workload
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise
from dualflow.graph.work import bytes_moved, work
from dualflow.ops.record import REGISTRY


def test_the_critical_path_takes_the_dear_branch(traced):
    def f(x):
        dear = df.matmul(df.matmul(x, x), x)
        cheap = x + x
        return dear + cheap

    path = critical_path(traced(f, [64, 64]))
    assert [n.op.name for n in path] == ["matmul", "matmul", "add"]


def test_the_critical_path_of_nothing_is_empty(traced):
    assert critical_path(traced(lambda x: x, [3])) == []


def test_any_cost_will_do(traced):
    graph = traced(lambda x: df.exp(df.exp(x)) + df.sin(x), [3])
    path = critical_path(graph, lambda n: 100.0 if n.op.name == "sin" else 1.0)
    assert [n.op.name for n in path] == ["sin", "add"]


def test_effects_wait_for_each_other(traced):
    def f(x, y):
        df.print(df.exp(x))
        df.print(df.exp(y))

    graph = traced(f, [3], [3])
    assert sum(n.effect is not None for n in critical_path(graph)) == 2


# Work and span


def test_a_chain_has_no_parallelism(traced):
    cost = workload(traced(lambda x: df.negative(df.negative(df.negative(x))), [10]))
    assert cost == Workload(30.0, 240, 3, 30.0, ("negative",) * 3, complete=True)
    assert cost.parallelism == 1.0


def test_independent_steps_run_side_by_side(traced):
    """Eight equal branches and nothing else."""
    cost = workload(traced(lambda x: [x + float(i) for i in range(8)], [10]))
    assert (cost.operations, cost.span, cost.parallelism) == (80.0, 10.0, 8.0)


def test_a_tree_of_sums_has_a_span_of_its_height(traced):
    def tree(xs):
        return xs[0] if len(xs) == 1 else tree(xs[: len(xs) // 2]) + tree(xs[len(xs) // 2 :])

    cost = workload(traced(lambda *xs: tree(xs), *[[5]] * 8))
    assert (cost.operations, cost.span, cost.steps) == (35.0, 15.0, 7)


def test_elements_cost_what_their_record_has(traced):
    (exp,) = traced(lambda x: df.exp(x), [7]).nodes
    assert work(exp) == 7 * REGISTRY["exp"].kind.cost


@pytest.mark.parametrize("flags", [{}, {"transpose_a": True}, {"transpose_b": True}])
def test_products_count_two_for_each_pair_of_numbers(traced, flags):
    shapes = [[2, 3, 4][:: -1 if flags.get("transpose_a") else 1][-2:], [4, 5]]
    if flags.get("transpose_a"):
        shapes[0] = [4, 3]
    elif flags.get("transpose_b"):
        shapes[1] = [5, 4]
    (product,) = traced(lambda a, b: df.matmul(a, b, **flags), *shapes).nodes
    assert work(product) == 2 * 3 * 4 * 5


def test_reductions_cost_what_they_read_and_views_nothing(traced):
    graph = traced(lambda x: df.reduce_sum(df.transpose(x), 0), [3, 4])
    assert [work(n) for n in graph.nodes] == [0.0, 12.0]
    assert workload(graph).steps == 1


def test_a_kernel_costs_what_its_ops_do_and_moves_what_it_reads_and_writes(traced):
    graph = traced(lambda x: df.exp(x) * x + 1.0, [100])
    fused = optimise(graph, CompileOptions())
    (kernel,) = fused.nodes
    assert work(kernel) == workload(graph).operations
    assert bytes_moved(kernel) == 2 * 400
    assert bytes_moved(kernel) < workload(graph).bytes_moved
    assert workload(fused).path == (kernel.attrs["body"].name,)


def test_picking_rows_moves_these_and_not_the_table(traced):
    table, rows = TensorSpec([10_000, 4]), TensorSpec([3], df.int32)
    for graph in (
        traced_graph := traced(lambda x, i: df.gather(x, i), table, rows),
        optimise(traced_graph, CompileOptions()),
    ):
        assert workload(graph).bytes_moved == 3 * 4 + 2 * 3 * 4 * 4


def test_adding_rows_moves_these_and_not_the_table(traced):
    table, rows, new = TensorSpec([10_000, 4]), TensorSpec([3, 1], df.int32), TensorSpec([3, 4])
    graph = traced(df.tensor_scatter_nd_add, table, rows, new)
    assert workload(graph).bytes_moved == 3 * 4 + 3 * 3 * 4 * 4
    assert workload(graph).operations == 12.0


def test_a_broadcast_value_is_read_once(traced):
    graph = traced(lambda x, y: df.broadcast_to(x, [100, 10]) * y, [10], [100, 10])
    assert workload(graph).bytes_moved == 4 * (10 + 1000 + 1000)


def test_a_loop_of_known_length_costs_all_its_iterations(traced):
    cost = workload(traced(lambda xs: df.scan(lambda s, x: s + x, xs, df.zeros([4])), [25, 4]))
    assert cost.complete
    assert cost.operations >= 25 * 4


def test_a_loop_whose_iterations_only_the_run_determines_counts_as_one(traced):
    def split_forward_backward(x):
        return df.while_loop(lambda y: df.reduce_sum(y) > 1.0, lambda y: (y * 0.5,), (x,))

    cost = workload(traced(split_forward_backward, [10]))
    assert not cost.complete
    assert cost.operations == 10 + 2 + 10  # the sum; the comparison, as a bool; the product


def test_a_cond_costs_its_dearest_branch(traced):
    def pick(x):
        return df.cond(x[0] > 0.0, lambda: x + 1.0, lambda: df.exp(x))

    graph = traced(pick, [50])
    assert max(work(n) for n in graph.nodes) == 50 * REGISTRY["exp"].kind.cost
    assert workload(graph).complete


def test_sizes_known_only_at_run_time_count_as_none(traced):
    cost = workload(traced(lambda x: df.boolean_mask(x, x > 0.0), [50]))
    assert not cost.complete
    assert cost.operations >= 50


def test_no_steps_are_no_work(traced):
    cost = workload(traced(lambda x: x, [3]))
    assert cost == Workload(0.0, 0, 0, 0.0, (), complete=True)
    assert cost.parallelism == 1.0


def test_a_long_chain_is_analysed_without_recursion(traced):
    def chain(x):
        for _ in range(3000):
            x = x + 1.0
        return x

    cost = workload(traced(chain, [2]))
    assert (cost.operations, cost.span) == (6000.0, 6000.0)
