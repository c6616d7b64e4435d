"""Subgraphs, and the partition of a graph with its gradient into forward and backward graphs."""

from __future__ import annotations

import numpy as np

import dualflow as df
from dualflow.graph.extract import extract
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import verify
from dualflow.graph.split_forward_backward import SourceKind, split_forward_backward

A, B = np.float32([1, 2, 3]), np.float32([4, 5, 6])


def model(x, g):
    h = df.tanh(df.sin(x) * 2.0)
    return df.reduce_sum(h), g * (1.0 - h * h) * df.cos(x)


def test_a_part_computes_what_it_did_in_the_whole(traced):
    whole = traced(model, [3], [3])
    part = extract(whole, whole.inputs, whole.outputs[1:])
    verify(part)
    assert np.array_equal(evaluate(part, [A, B])[0], evaluate(whole, [A, B])[1])
    assert "reduce_sum" not in {n.op.name for n in part.nodes}


def test_an_inner_value_can_be_an_input(traced):
    whole = traced(model, [3], [3])
    tanh = next(n for n in whole.nodes if n.op.name == "tanh")
    part = extract(whole, [tanh.output], whole.outputs[:1])
    verify(part)
    assert part.inputs[0].node is None
    assert [n.op.name for n in part.nodes] == ["reduce_sum"]
    assert evaluate(part, [A])[0] == 6


def test_other_arguments_follow_if_they_are_needed(traced):
    whole = traced(model, [3], [3])
    part = extract(whole, [], whole.outputs)
    assert part.arguments == whole.arguments
    assert extract(whole, [], whole.outputs[:1]).arguments == whole.arguments[:1]


def test_forward_and_backward_compose(traced):
    joint = traced(model, [3], [3])
    split = split_forward_backward(joint, inputs=1, outputs=1, effects=0)
    verify(split.forward)
    verify(split.backward)
    first, *residuals = evaluate(split.forward, [A])
    pick = {SourceKind.INPUT: [A, B], SourceKind.OUTPUT: [first], SourceKind.RESIDUAL: residuals}
    (last,) = evaluate(split.backward, [pick[kind][i] for kind, i in split.sources])
    expected = evaluate(joint, [A, B])
    assert np.array_equal(first, expected[0])
    assert np.array_equal(last, expected[1])


def test_inputs_constants_and_views_are_not_saved(traced):
    def f(x, g):
        y = df.reshape(x, [3, 1])
        return df.exp(y), df.reshape(g, [3, 1]) * y * 2.0

    split = split_forward_backward(traced(f, [3], [3]), inputs=1, outputs=1, effects=0)
    assert len(split.forward.outputs) == 1
    assert [kind for kind, _ in split.sources] == [SourceKind.INPUT] * 2


def test_an_output_is_not_saved_twice(traced):
    def f(x, g):
        y = df.exp(x)
        return y, g * y

    split = split_forward_backward(traced(f, [3], [3]), inputs=1, outputs=1, effects=0)
    assert len(split.forward.outputs) == 1
    assert (SourceKind.OUTPUT, 0) in split.sources
