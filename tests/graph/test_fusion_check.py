"""The checker of fusion groups: fusion's own groups pass, and faults of illegal groups are named."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.function.calls.compiled_graph import CompiledGraph
from dualflow.graph.ir import Graph, Node
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes import fusion_check
from dualflow.graph.passes.build_fused import Group
from dualflow.graph.passes.fusion import partition
from dualflow.graph.passes.fusion_check import check_fusion, faults


def group(graph: Graph, *ops: str, position: int | None = None) -> Group:
    """The first nodes of these names as one group over vectors, at the place of the last."""
    nodes = [node_of(graph, op) for op in ops]
    last = graph.nodes.index(nodes[-1]) if position is None else position
    fused = Group(last, (nodes[-1].output.spec.shape[0],))
    for node in nodes:
        fused.add(node, (0,))
    return fused


def node_of(graph: Graph, op: str) -> Node:
    return next(node for node in graph.nodes if node.op.name == op)


def line_of(function: Callable[..., object], part: str) -> str:
    lines, first = inspect.getsourcelines(function)
    number = first + next(i for i, line in enumerate(lines) if part in line)
    return f"test_fusion_check.py:{number}"


@pytest.fixture
def chain(traced) -> Graph:
    return traced(lambda x: df.exp(df.tanh(df.sin(x))), [5])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: df.nn.softmax(x),
        lambda x: df.reduce_sum(df.exp(x)) + df.transpose(x) @ x,
        lambda x: df.sort(df.exp(x)) + df.exp(x),
        lambda x: df.gather(df.exp(x), [1, 0, 1]) + df.reduce_max(x, 0),
        lambda x: df.reshape(df.exp(x), [-1]) * df.reshape(df.sin(x), [-1]),
        lambda x: df.while_loop(lambda y: df.reduce_sum(y) < 9.0, lambda y: (df.exp(y) + x,), (x,)),
        lambda x: df.cond(x[0, 0] > 1.0, lambda: df.nn.softmax(x) * 2.0, lambda: df.sort(x) * 3.0),
    ],
)
def test_groups_of_fusion_are_legal(traced, function) -> None:
    assert check_fusion(traced(function, [4, 4]), CompileOptions()) == []


def test_groups_that_wait_for_each_other_are_reported_with_their_lines(traced) -> None:
    def program(x, y):
        a = df.exp(x)
        b = df.sin(y)
        c = df.tanh(a) * b
        return a + c

    graph = traced(program, [5], [5])
    one, other = group(graph, "exp", "add"), group(graph, "sin", "tanh", "multiply")
    (fault,) = faults(graph, [one, other])
    first = f"exp+add ({line_of(program, 'exp')}, {line_of(program, 'a + c')})"
    second = f"sin+tanh+multiply ({line_of(program, 'sin')}, {line_of(program, 'tanh')})"
    assert fault.startswith("these depend on each other: ")
    assert f"{first} reads from {second}" in fault
    assert f"{second} reads from {first}" in fault


def test_a_group_that_waits_for_itself_through_a_node_outside_is_reported(traced) -> None:
    def program(x):
        a = df.exp(x)
        return a + df.sort(a)

    graph = traced(program, [5])
    names = " ".join(faults(graph, [group(graph, "exp", "add")]))
    assert f"sort ({line_of(program, 'sort')}) reads from exp+add" in names


def test_a_view_depends_on_the_writer_of_its_buffer(traced) -> None:
    graph = traced(
        lambda x, y: df.sin(x) * df.exp(df.reshape(df.sort(df.reshape(x * y, [5])), [5])), [5], [5]
    )
    assert "depend on each other" in faults(graph, [group(graph, "multiply", "exp")])[0]


def test_failing_ops_do_not_move_across_a_side_effect(traced) -> None:
    """It is printed before the first division, and not after the second, whichever fails."""

    def program(x, y):
        first = x // y
        df.print("between")
        return first + y // (x - 1)

    whole = TensorSpec([5], df.int32)
    graph = traced(program, whole, whole)
    divisions = [node for node in graph.nodes if node.op.name == "floordiv"]
    assert len(divisions) == 2
    both = Group(graph.nodes.index(divisions[1]), (5,))
    for node in divisions:
        both.add(node, (0,))
    (fault,) = faults(graph, [both])
    assert f"print ({line_of(program, 'print')}) must stay after floordiv" in fault
    assert faults(graph, partition(graph)) == []


def test_a_group_in_front_of_what_it_reads_is_reported(chain: Graph) -> None:
    groups = [group(chain, "sin", position=2), group(chain, "tanh", "exp", position=1)]
    (fault,) = faults(chain, groups)
    assert "tanh+exp" in fault
    assert "runs before it" in fault


def test_a_node_in_two_groups_is_reported(chain: Graph) -> None:
    (fault,) = faults(chain, [group(chain, "sin", "tanh"), group(chain, "tanh", "exp")])
    assert fault.startswith("tanh (test_fusion_check.py:")
    assert fault.endswith("is computed 2 times")


def test_a_node_of_another_graph_is_reported(chain: Graph, traced) -> None:
    other = traced(lambda x: df.cos(x), [5])
    (fault,) = faults(chain, [group(other, "cos")])
    assert fault.endswith("is a node of another graph")


def test_nodes_out_of_order_inside_of_a_group_are_reported(chain: Graph) -> None:
    (fault,) = faults(chain, [group(chain, "exp", "sin", position=2)])
    assert "is computed after" in fault


def matrix_group(graph: Graph, **axes: tuple[int | None, ...]) -> Group:
    """All nodes that ``axes`` names, over loops of 3 and 4 iterations, with the axes of their index."""
    fused = Group(len(graph.nodes) - 1, (3, 4))
    for op, own in axes.items():
        fused.add(node_of(graph, op), own)
    return fused


def test_an_index_that_does_not_fit_the_loops_is_reported(traced) -> None:
    graph = traced(lambda x: df.exp(x), [3, 4])
    (fault,) = faults(graph, [matrix_group(graph, exp=(1, 0))])
    assert "exp" in fault
    assert "of shape [3, 4] has the loops (1, 0) of (3, 4)" in fault


def test_a_value_read_along_other_loops_than_it_is_made_on_is_reported(traced) -> None:
    graph = traced(lambda x: df.exp(df.sin(x)), [4, 4])
    wrong = Group(1, (4, 4))
    wrong.add(node_of(graph, "sin"), (0, 1))
    wrong.add(node_of(graph, "exp"), (1, 0))
    (fault,) = faults(graph, [wrong])
    assert "along other loops than it is computed on" in fault


def test_a_view_that_hides_the_order_of_elements_is_reported(traced) -> None:
    graph = traced(lambda x: df.exp(df.reverse(df.sin(x), [0])), [3, 4])
    (fault,) = faults(graph, [matrix_group(graph, sin=(0, 1), exp=(0, 1))])
    assert "out of order, in one kernel with it" in fault


def test_elements_picked_from_a_value_of_the_same_kernel_are_reported(traced) -> None:
    graph = traced(lambda x: df.gather(df.sin(x), [2, 1, 0]), [3, 4])
    (fault,) = faults(graph, [matrix_group(graph, sin=(0, 1), gather=(0, 1))])
    assert "out of order, in one kernel with it" in fault


def test_reductions_over_different_loops_in_one_kernel_are_reported(traced) -> None:
    graph = traced(lambda x: (df.reduce_sum(x, 0), df.reduce_max(x, 1)), [3, 4])
    result = faults(graph, [matrix_group(graph, reduce_sum=(0, 1), reduce_max=(0, 1))])
    assert len(result) == 2
    assert all("its kernel [0, 1]" in fault for fault in result)


def test_a_value_on_some_of_the_loops_that_are_not_kept_is_reported(traced) -> None:
    graph = traced(lambda x, y: (df.reduce_sum(x, 1), df.exp(y)), [3, 4], [4])
    (fault,) = faults(graph, [matrix_group(graph, reduce_sum=(0, 1), exp=(1,))])
    assert "neither all of its kernel nor the parallel ones" in fault


def test_compiles_that_check_their_passes_refuse_wrong_kernels(chain: Graph, monkeypatch) -> None:
    """The check is given a node twice, which fusion does to none."""
    twice = [group(chain, "sin", "tanh"), group(chain, "tanh", "exp")]
    monkeypatch.setattr(fusion_check, "partition", lambda graph, costs: twice)
    assert CompiledGraph(chain, CompileOptions()).optimised.nodes
    with pytest.raises(df.errors.InternalError, match=r"tanh \(test_fusion_check.py:.*computed 2 times"):
        _ = CompiledGraph(chain, CompileOptions(checking=True)).optimised
    monkeypatch.undo()
    assert CompiledGraph(chain, CompileOptions(checking=True)).optimised.nodes
