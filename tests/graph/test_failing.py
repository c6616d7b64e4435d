"""Which nodes can raise an error at run time."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.graph.failing import may_fail
from dualflow.graph.options import CompileOptions
from dualflow.graph.passes.pipeline import optimise

X, N, FLAG = df.TensorSpec([4]), df.TensorSpec([4], df.int32), df.TensorSpec([4], df.bool)

SAFE = {
    "sum": (lambda x, n: x + x * 2.0, X, N),
    "integers": (lambda x, n: n + n * 2 - df.abs(n), X, N),
    "comparison": (lambda x, n: (n > 2) & (x < 1.0), X, N),
    "conditional by element": (lambda x, n: df.where(n > 2, x, -x), X, N),
    "conversion": (lambda x, n: df.cast(n, df.float32) / x, X, N),
    "reduction": (lambda x, n: df.reduce_sum(x) + df.reduce_max(x), X, N),
    "product": (lambda x, n: df.tensordot(x, x, 1), X, N),
    "view": (lambda x, n: df.reshape(x, [2, 2]), X, N),
    "one-hot": (lambda x, n: df.one_hot(n, 5), X, N),
    "branches": (lambda x, n: df.cond(x[0] > 0.0, lambda: x + 1.0, lambda: x * 2.0), X, N),
}
FAILING = {
    "gather": (lambda x, n: df.gather(x, n), X, N),
    "scatter": (lambda x, n: df.tensor_scatter_nd_add(x, n[:, None], x), X, N),
    "division": (lambda x, n: n // n, X, N),
    "remainder": (lambda x, n: n % n, X, N),
    "power": (lambda x, n: n**n, X, N),
    "labels": (
        lambda x, n: df.nn.sparse_softmax_cross_entropy_with_logits(n, df.stack([x, x, x, x])),
        X,
        N,
    ),
    "loop": (lambda x, n: df.while_loop(lambda y: y[0] > 0.0, lambda y: [y - 1.0], [x])[0], X, N),
    "python": (lambda x, n: df.numpy_function(np.sin, [x], df.float32), X, N),
    "print": (lambda x, n: df.print(x), X, N),
    "random": (lambda x, n: df.random.normal([4]), X, N),
    "complex": (lambda x, n: df.sin(df.complex(x, x)), X, N),
    "a small matrix": (lambda x, n: df.linalg.inv(df.reshape(x, [2, 2])), X, N),
    "a branch": (lambda x, n: df.cond(x[0] > 0.0, lambda: df.gather(x, n), lambda: x), X, N),
}


@pytest.mark.parametrize("name", SAFE | FAILING)
@pytest.mark.parametrize("optimised", [False, True])
def test_failing_ops(name, optimised):
    function, *specs = (SAFE | FAILING)[name]
    graph = df.function(function).get_concrete_function(*specs).graph
    nodes = (optimise(graph, CompileOptions()) if optimised else graph).nodes
    assert any(map(may_fail, nodes)) is (name in FAILING)
