"""Conditionals and loops as nodes: one op each, whose attribute holds their graphs."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, replace

import pytest

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_ops import COND, LOOP
from dualflow.graph.control_spec import CondSpec, LoopSpec, effect_of
from dualflow.graph.ir import GraphBuilder
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise
from dualflow.ops.record import Effect


def draws(x):
    return x + df.random.normal([])


def prints(x):
    df.print(x)
    return x


def same(array):
    return array


def calls(x):
    return df.numpy_function(same, [x], df.float32)


def checks(x):
    assert x < 1000.0
    return x * 2.0


def adds(x):
    return x + 1.0


EFFECTS = {
    Effect.RANDOM: draws,
    Effect.PRINT: prints,
    Effect.PYTHON: calls,
    Effect.CHECK: checks,
    None: adds,
}
with_each_effect = pytest.mark.parametrize(
    ("effect", "step"), EFFECTS.items(), ids=[str(effect) for effect in EFFECTS]
)


def graph_of(step):
    return df.function(step).get_concrete_function(TensorSpec([])).graph


def recorded(op, attrs, *specs):
    """The graph of one node."""
    builder = GraphBuilder("one")
    inputs = [builder.argument(s) for s in specs]
    return builder.finish(builder.add(op, inputs, attrs).outputs)


def loop(body, *, iterations=3):
    return recorded(LOOP, {"loop": LoopSpec(body, 1, 0, iterations)}, TensorSpec([]))


def cond(*branches):
    attrs = {"cond": CondSpec(branches)}
    return recorded(COND, attrs, TensorSpec([], "int32"), TensorSpec([]))


@with_each_effect
def test_a_node_has_the_effect_of_what_its_graphs_do(effect, step):
    body = graph_of(step)
    for graph in (
        loop(body),
        cond(graph_of(adds), body),
        loop(loop(body)),
        loop(loop(loop(body))),
    ):
        assert [n.effect for n in graph.nodes] == [effect]


@with_each_effect
def test_there_is_one_op_whatever_the_graphs_do(effect, step):
    def iteration(i, x):
        return i + 1, df.cond(x > 100.0, lambda: x, lambda: step(x))

    @df.function
    def f(x, n):
        return df.while_loop(lambda i, x: i < n, iteration, (0, x))[1]

    graph = f.get_concrete_function(TensorSpec([]), TensorSpec([], "int32")).graph
    (outer,) = [n for n in graph.nodes if n.op.name == "loop"]
    (inner,) = [n for _, body in outer.bodies for n in body.nodes if n.op.name == "cond"]
    assert outer.op is LOOP
    assert inner.op is COND
    assert outer.effect is inner.effect is effect


@pytest.mark.parametrize("weaker", [Effect.PRINT, Effect.RANDOM, Effect.CHECK])
def test_of_several_effects_python_counts_most(weaker):
    graphs = [graph_of(EFFECTS[weaker]), graph_of(calls)]
    assert effect_of(graphs) is effect_of(graphs[::-1]) is Effect.PYTHON


def test_a_node_whose_graphs_lose_an_effect_loses_it():
    drawing = graph_of(draws)
    graph = loop(drawing)
    assert optimise(graph, CompileOptions()).nodes[-1].effect is None, "the numbers are drawn before the loop"


def test_a_loop_that_draws_in_a_checked_loop_has_a_gradient():
    @df.function
    def f(x):
        def inner(j, y):
            assert y < 1000.0
            return j + 1, y * df.random.normal([])

        def iteration(i, y):
            return i + 1, df.while_loop(lambda j, y: j < 2, inner, (0, y))[1]

        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.while_loop(lambda i, y: i < 2, iteration, (0, x))[1]
        return y / x, tape.gradient(y, x)

    expected, gradient = f(df.constant(2.0))
    assert gradient.numpy() == pytest.approx(expected.numpy())


@pytest.mark.parametrize("step", [draws, prints, adds])
def test_a_graph_with_a_loop_is_pickled(step):
    graph = loop(graph_of(step))
    (result,) = pickle.loads(pickle.dumps(graph)).nodes
    assert result.op is LOOP
    assert result.effect is graph.nodes[0].effect
    assert result.settings == graph.nodes[0].settings


def test_specs_do_not_change():
    spec = LoopSpec(graph_of(adds), 1, 0, 3)
    for field in fields(spec):
        with pytest.raises(FrozenInstanceError):
            setattr(spec, field.name, None)


def test_the_same_fields_are_the_same_loop():
    body = graph_of(adds)
    spec = LoopSpec(body, 1, 0, 3)
    assert spec == replace(spec)
    assert hash(spec) == hash(replace(spec))
    assert spec != replace(spec, length=4)
    assert spec != spec.as_new_loop(), "its results are taken for another's"


def test_a_loop_extends_itself_and_those_it_was_made_of():
    body = graph_of(adds)
    first = LoopSpec(body, 1, 0, 3)
    second = first.with_more_stacks(body)
    third = second.with_more_stacks(body)
    assert third.has_outputs_of(first)
    assert third.has_outputs_of(second)
    assert first.has_outputs_of(first)
    assert not first.has_outputs_of(second)
    assert not first.with_more_stacks(body).has_outputs_of(second), "they keep different rows"
    assert not first.as_new_loop().has_outputs_of(first)


def test_the_inputs_of_a_loop_come_in_three_parts(traced):
    body = traced(lambda i, row, n: (i + n, row), [], [], [])
    spec = LoopSpec(body, 1, 1, None)
    assert spec.split_inputs("abc") == ("a", "b", "c")
    assert (spec.end, spec.stacked, spec.iterations) == (2, (body.outputs[1],), None)
    test = traced(lambda i, n: i < n, [], [])
    assert LoopSpec(traced(lambda i, n: i, [], []), 1, 0, 5, condition=test).iterations is None, "at most 5"


def test_bodies_that_stay_leave_the_spec_as_it_is(traced):
    body, test = graph_of(adds), traced(lambda x: x < 3.0, [])
    for spec in (CondSpec((body, body)), LoopSpec(body, 1, 0, 3), LoopSpec(body, 1, 0, 3, condition=test)):
        assert spec.with_bodies(lambda graph: graph) is spec
        changed = spec.with_bodies(lambda graph: replace(graph, name="new"))
        assert {graph.name for _, graph in changed.bodies} == {"new"}
        assert [name for name, _ in changed.bodies] == [name for name, _ in spec.bodies]
