"""Random programs of loops and branches with gradients: passes keep their values."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import dualflow as df
from dualflow.core.spec import TensorSpec
from dualflow.function.tracing.collect_results import collect
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.interpret import evaluate
from dualflow.graph.ir import verify
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import SIMPLIFICATIONS, optimise

T = 34
random = np.random.default_rng(11)
XS = (random.standard_normal((T, 2, 3)) * 0.5).astype(np.float32)
W = (random.standard_normal((3, 3)) * 0.5).astype(np.float32)
SPECS = [TensorSpec(XS.shape), TensorSpec(W.shape)]

STEPS = [
    lambda a, b, x, w: (df.tanh(a @ w + x), b),
    lambda a, b, x, w: (a, b + df.matmul(x, df.tanh(a), transpose_a=True) * 0.1),
    lambda a, b, x, w: (df.tanh(x @ w + a * df.reduce_sum(df.exp(w))), b),
    lambda a, b, x, w: (df.tanh(a + x @ df.transpose(w)), b * 0.5),
    lambda a, b, x, w: (a, df.tanh(b + df.cos(w))),
    lambda a, b, x, w: (df.cond(a[0, 0] > x[0, 0], lambda: a * 0.5, lambda: a - x), b),
    lambda a, b, x, w: (df.cond(df.constant(False), lambda: a, lambda: df.sin(a)), b),
    lambda a, b, x, w: (df.tanh(a), b + df.matmul(df.sin(a), x, transpose_a=True) * 0.1),
    lambda a, b, x, w: inner(a, x, w, b),
]


def inner(a, x, w, b):
    iteration = lambda i, a: (i + 1, df.tanh(a + df.exp(w[0]) * x))  # noqa: E731
    return df.while_loop(lambda i, a: i < 3, iteration, (0, a))[1], b


def program(kind, picks, count):
    """A loop of this kind, each iteration of which takes these steps."""

    def iteration(a, b, x, w):
        for pick in picks:
            a, b = STEPS[pick](a, b, x, w)
        return a, b

    def run(xs, w):
        start = xs[0] * 0.5, w * 0.1
        if kind == "counted":
            body = lambda i, a, b: (i + 1, *iteration(a, b, xs[1], w))  # noqa: E731
            return df.while_loop(lambda i, a, b: i < count, body, (0, *start))[1:]
        if kind == "tested":
            body = lambda a, b, n: (*iteration(a, b, xs[1], w), n + 1.0)  # noqa: E731
            test = lambda a, b, n: n < df.reduce_sum(df.square(w)) + a[0, 0]  # noqa: E731
            return df.while_loop(test, body, (*start, 0.0))[:2]
        if kind == "scanned":
            return df.scan(lambda c, x: iteration(*c, x, w), xs, start)
        fold = df.foldl if kind == "left" else df.foldr
        return fold(lambda c, x: iteration(*c, x, w), xs, start)

    return run


def with_gradient(function):
    def run(*inputs):
        with df.GradientTape() as tape:
            tape.watch(inputs)
            values = function(*inputs)
            total = df.add_n([df.reduce_sum(v) for v in values])
        return *values, *tape.gradient(total, inputs, unconnected_gradients="zero")

    return run


def record(function):
    tracer = Tracer("program")
    with tracing(tracer):
        result = function(*map(tracer.argument, SPECS))
    return tracer.builder.finish(collect(result, tracer)[1], tracer.updates())


programs = st.builds(
    program,
    st.sampled_from(["left", "right", "scanned", "counted", "tested"]),
    st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=3),
    st.integers(0, 3),
)


@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@given(programs)
def test_passes_keep_values_and_gradients(function):
    graph = record(with_gradient(function))
    expected = evaluate(graph, [XS, W])
    exact = {p.name for p in SIMPLIFICATIONS}

    def check(name, graph):
        verify(graph)
        for mine, before in zip(evaluate(graph, [XS, W]), expected, strict=True):
            assert mine.shape == before.shape
            if name in exact:
                assert mine.tobytes() == before.tobytes(), name
            else:
                np.testing.assert_allclose(mine, before, rtol=1e-4, atol=1e-4, err_msg=name)

    optimise(graph, CompileOptions(), check)
