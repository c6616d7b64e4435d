"""The graph interpreter, which runs node by node."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import InternalError
from dualflow.core.spec import TensorSpec
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.interpret import evaluate, replay
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise


def energy(x, y):
    return df.reduce_sum(df.exp(x) * y), df.matmul(x, y)


X, Y = np.arange(4, dtype=np.float32).reshape(2, 2), np.eye(2, dtype=np.float32)


def test_a_graph_computes_what_its_python_does(traced):
    results = evaluate(traced(energy, [2, 2], [2, 2]), [X, Y])
    for result, eager in zip(results, energy(df.constant(X), df.constant(Y)), strict=True):
        assert np.array_equal(result, eager.numpy())


def test_fused_nodes_run_by_their_bodies(traced):
    graph = traced(energy, [2, 2], [2, 2])
    for fused, plain in zip(
        evaluate(optimise(graph, CompileOptions()), [X, Y]), evaluate(graph, [X, Y]), strict=True
    ):
        assert np.allclose(fused, plain)


def test_results_are_arrays_also_where_numpy_gives_scalars(traced):
    (total,) = evaluate(traced(lambda x: df.reduce_sum(x) + 1.0, [3]), [np.ones(3, np.float32)])
    assert type(total) is np.ndarray
    assert total.dtype == np.float32


def test_updates_follow_the_outputs(traced):
    v = df.Variable([1.0])

    def step(x):
        v.assign_add(x)
        return x * 2.0

    out, new = evaluate(traced(step, [1]), [np.float32([5]), np.float32([1])])
    assert (out.tolist(), new.tolist()) == ([10.0], [6.0])


def test_inputs_are_not_written_to(traced):
    x = X.copy()
    evaluate(traced(energy, [2, 2], [2, 2]), [x, Y])
    assert np.array_equal(x, X)


def test_another_number_of_arrays_is_refused(traced):
    with pytest.raises(InternalError, match="has 2 inputs, but got 1 arrays"):
        evaluate(traced(energy, [2, 2], [2, 2]), [X])


def test_an_error_names_the_users_line(traced):
    graph = traced(lambda x, i: df.gather(x, i), [3], TensorSpec([], "int32"))
    with pytest.raises(df.errors.OutOfRangeError) as caught:
        evaluate(graph, [np.ones(3, np.float32), np.array(7, np.int32)])
    assert any("test_interpret.py" in note for note in caught.value.__notes__)


def test_replay_runs_eagerly_with_tensors(traced):
    total, product = replay(traced(energy, [2, 2], [2, 2]), [df.constant(X), df.constant(Y)])
    assert float(total) == float(energy(df.constant(X), df.constant(Y))[0])
    assert np.array_equal(product.numpy(), X @ Y)


def test_replay_is_seen_by_tapes(traced):
    graph = traced(lambda x: x * x * 3.0, [])
    x = df.constant(2.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        (y,) = replay(graph, [x])
    assert tape.gradient(y, x).numpy() == 12.0


def test_replay_inside_a_trace_keeps_the_lines(traced):
    graph = traced(energy, [2, 2], [2, 2])
    tracer = Tracer("outer")
    arguments = [tracer.argument(TensorSpec([2, 2])) for _ in range(2)]
    with tracing(tracer):
        replay(graph, arguments)
    assert [n.op for n in tracer.builder.nodes] == [n.op for n in graph.nodes]
    assert [n.origin for n in tracer.builder.nodes] == [n.origin for n in graph.nodes]
