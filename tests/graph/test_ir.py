"""The graph IR's own rules: what the verifier accepts and rejects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dualflow.core.errors import InternalError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.graph.ir import GraphBuilder, Node, Update, Value, verify
from dualflow.ops.record import REGISTRY

ADD, MATMUL = REGISTRY["add"], REGISTRY["matmul"]


def chain(length: int) -> GraphBuilder:
    builder = GraphBuilder("chain")
    value = builder.argument(TensorSpec([3], name="x"))
    for _ in range(length):
        value = builder.add(ADD, (value, value), {}).output
    return builder


def test_a_built_graph_is_legal():
    builder = chain(3)
    verify(builder.finish([builder.nodes[-1].output]))


def test_a_node_must_be_made_before_it_is_read():
    builder = chain(2)
    graph = builder.finish([builder.nodes[-1].output])
    with pytest.raises(InternalError, match="before it is computed"):
        verify(replace(graph, nodes=graph.nodes[::-1]))


def test_a_node_must_have_the_specs_that_its_op_infers():
    builder = chain(0)
    (x,) = builder.inputs
    wrong = Node(ADD, (x, x), {}, [TensorSpec([4])])
    builder.nodes.append(wrong)
    with pytest.raises(InternalError, match="should have specs"):
        verify(builder.finish([wrong.output]))


def test_a_result_must_come_from_the_graph():
    with pytest.raises(InternalError, match="computed by no node"):
        verify(chain(1).finish([Value(TensorSpec([3]))]))


def test_an_update_keeps_its_variables_spec():
    builder = GraphBuilder("update")
    v = builder.capture(TensorSpec([3]), object(), variable=True)
    total = builder.add(ADD, (v, builder.argument(TensorSpec([2, 3]))), {}).output
    with pytest.raises(InternalError, match="changes its spec"):
        verify(builder.finish([], [Update(v, total)]))


def test_the_builder_refuses_what_the_op_refuses():
    builder = GraphBuilder("product")
    x = builder.argument(TensorSpec([2, 3]))
    with pytest.raises(InvalidArgumentError, match="inner sizes 3 and 2 differ"):
        builder.add(MATMUL, (x, x), {})
    assert builder.nodes == []


def test_equal_specs_of_one_graph_are_one_object():
    builder = chain(5)
    assert len({id(n.output.spec) for n in builder.nodes}) == 1


def test_users_names_each_reader_once():
    builder = chain(2)
    graph = builder.finish([builder.nodes[-1].output])
    first, second = graph.nodes
    assert graph.users() == {graph.inputs[0]: [first], first.output: [second]}
