"""Loop-invariant code motion: what every iteration would recompute is computed before the loop."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.graph.control_spec import loop_of
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.hoist_invariants import hoist_invariants
from dualflow.graph.passes.pipeline import SIMPLIFICATIONS, optimise
from dualflow.ops import maths_reference
from dualflow.ops.op_kinds import Elementwise, Loop
from dualflow.ops.record import REGISTRY

T = 40
random = np.random.default_rng(5)
XS = random.standard_normal((T, 3)).astype(np.float32)
W = random.standard_normal((3, 3)).astype(np.float32)
N = TensorSpec([], "int32")


def names(graph, kind=None):
    """The ops inside the loops of a graph, or those outside."""
    inner = [n for loop in graph.nodes if isinstance(loop.op.kind, Loop) for n in loop_of(loop).body.nodes]
    return {n.op.name for n in (graph.nodes if kind == "outside" else inner)}


def simplified(graph):
    return optimise(graph, CompileOptions(), passes=SIMPLIFICATIONS)


def some_iterations(iteration):
    """A loop of ``n`` iterations over ``iteration``."""
    return lambda n, x, *others: df.while_loop(
        lambda i, x: i < n, lambda i, x: (i + 1, iteration(x, *others)), (0, x)
    )


def test_loop_invariant_nodes_are_hoisted(traced, keeps):
    def f(xs, w):
        return df.foldl(lambda h, x: h * x + df.reduce_sum(df.exp(w) @ w, 0), xs, w[0])

    graph = keeps(simplified, traced(f, XS.shape, W.shape), XS, W)
    assert names(graph) == {"multiply", "add"}
    assert {"exp", "matmul", "reduce_sum"} <= names(graph, "outside")


@pytest.mark.parametrize("n", [0, 1, 3])
def test_any_number_of_iterations_gives_the_same(traced, keeps, n):
    graph = traced(some_iterations(lambda x, w: x @ df.exp(w)), N, [3, 3], [3, 3])
    result = keeps(simplified, graph, np.int32(n), W, W)
    assert names(result) == {"constant", "add", "matmul"}


def test_conditions_are_relieved_too(traced, keeps):
    def f(x, w):
        return df.while_loop(lambda x: df.reduce_sum(x) < df.reduce_sum(w), lambda x: x + 1.0, (x,))

    graph = keeps(simplified, traced(f, [3], [3, 3]), XS[0], W + 3.0)
    (loop,) = [n for n in graph.nodes if isinstance(n.op.kind, Loop)]
    assert sum(n.op.name == "reduce_sum" for n in loop_of(loop).condition.nodes) == 1


def test_values_hoisted_from_an_inner_loop_leave_the_outer_one(traced, keeps):
    def f(xs, w):
        def outer(h, x):
            return df.foldl(lambda h, y: df.sin(h) + df.exp(w[0]) * y + df.cos(x), xs, h)

        return df.foldl(outer, xs, w[0])

    graph = keeps(simplified, traced(f, XS.shape, W.shape), XS, W)
    (loop,) = [n for n in graph.nodes if isinstance(n.op.kind, Loop)]
    assert "exp" in names(graph, "outside")
    assert "cos" in {n.op.name for n in loop_of(loop).body.nodes}
    assert names(loop_of(loop).body) == {"sin", "multiply", "add"}


def test_a_view_alone_stays(traced):
    def f(xs, w):
        return df.foldl(lambda h, x: df.tanh(h[None] @ df.transpose(w))[0] + x, xs, w[0])

    graph = simplified(traced(f, XS.shape, W.shape))
    assert hoist_invariants(graph) is graph
    assert "transpose" in names(graph)


def test_a_repetition_is_not_written_out(traced):
    def f(xs, w):
        return df.foldl(lambda h, x: h * x[0] + (w[:, None] + w[None]), xs, df.zeros([3, 3]))

    graph = simplified(traced(f, XS.shape, [3]))
    assert {"add", "multiply"} <= names(graph)


def test_effects_stay_in_their_iterations(traced):
    def f(xs, w):
        return df.foldl(lambda h, x: h * x + df.random.normal([3]), xs, w)

    graph = simplified(traced(f, XS.shape, [3]))
    assert hoist_invariants(graph) is graph


FAILING = {
    "an index": lambda x, n: x * df.gather(x * 0.0 + 2.0, n),
    "a division": lambda x, n: x * df.cast(5 // n, df.float32),
}


@pytest.mark.parametrize("iteration", FAILING.values(), ids=FAILING)
def test_failing_ops_stay_in_a_loop_that_may_run_zero_times(iteration):
    @df.function
    def f(x, n, bad):
        return df.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, iteration(x, bad)), (0, x))[1]

    x = df.constant(XS[0])
    assert np.array_equal(f(x, df.constant(0), df.constant(0)), XS[0])
    f(x, df.constant(0), df.constant(99))


def test_failing_ops_move_before_a_loop_that_certainly_runs(traced, keeps):
    def f(xs, w, n):
        return df.foldl(lambda h, x: h * x + df.gather(w, n), xs, w[0])

    assert "gather" not in names(keeps(simplified, traced(f, XS.shape, [3, 3], N), XS, W, np.int32(1)))


def test_gradients_of_what_moves_are_those_of_eager_runs():
    def run(xs, w):
        with df.GradientTape() as tape:
            tape.watch([xs, w])
            y = df.foldl(lambda h, x: df.tanh(h[None] @ df.exp(w))[0] + x, xs, w[0])
        return y, *tape.gradient(y, [xs, w])

    inputs = df.constant(XS), df.constant(W * 0.1)
    for mine, expected in zip(df.function(run)(*inputs), run(*inputs), strict=True):
        np.testing.assert_allclose(mine.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


class Checks:
    """The maths of element code, which notes its checks."""

    def __init__(self):
        self.count = 0

    def check(self, ok, message):
        self.count += 1

    def __getattr__(self, name):
        return getattr(maths_reference, name)


@pytest.mark.parametrize(
    "op",
    [op for op in REGISTRY.values() if isinstance(op.kind, Elementwise) and op.kind.error is None],
    ids=lambda op: op.name,
)
def test_element_code_without_an_error_of_its_own_checks_no_floats(op):
    """So what computes with floats never fails, and may leave a loop that has no iteration."""
    sample = op.samples[0]
    try:
        op.specs([TensorSpec([2])] * len(sample.inputs), sample.attrs)
    except (InvalidArgumentError, DTypeError):
        return
    m = Checks()
    if sample.inputs:
        with np.errstate(all="ignore"):
            op.kind.code(m, *[np.float32([0.25, 0.5])] * len(sample.inputs), **sample.attrs)
    assert not m.count
