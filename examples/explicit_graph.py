"""A graph built first and run in a session, as in TensorFlow 1: placeholders, variables, training, a trap.

python examples/explicit_graph.py
"""

from __future__ import annotations

import warnings

import numpy as np

from dualflow.compat import v1


def lines(count: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points near the line ``3 x + 2``."""
    x = generator.standard_normal(count)
    return x, 3.0 * x + 2.0 + 0.05 * generator.standard_normal(count)


def train() -> None:
    """The graph is built once; each run computes the part that it fetches, for any number of points."""
    generator = np.random.default_rng(0)
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(v1.float32, [None], name="x")
        y = v1.placeholder(v1.float32, [None], name="y")
        weight, bias = v1.Variable(0.0, name="weight"), v1.Variable(0.0, name="bias")
        loss = v1.reduce_mean((weight * x + bias - y) ** 2.0)
        step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        start = v1.global_variables_initializer()
    graph.finalize()
    size = len(graph.get_operations())
    with v1.Session(graph=graph) as session:
        session.run(start)
        for count in [100, 250] * 50:
            xs, ys = lines(count, generator)
            session.run(step, {x: xs, y: ys})
        xs, ys = lines(1000, generator)
        found = session.run({"weight": weight, "bias": bias, "loss": loss}, {x: xs, y: ys})
    print(f"weight {found['weight']:.2f}, bias {found['bias']:.2f}, loss {found['loss']:.4f}")
    print(f"nodes added by 102 runs: {len(graph.get_operations()) - size}")


def snapshot() -> None:
    """All that one run fetches comes from one state and one draw."""
    with v1.Graph().as_default(), v1.Session() as session:
        noise = v1.random_uniform([3])
        twice = noise * 2.0
        first, doubled = session.run([noise, twice])
        print("one draw in one run:", np.array_equal(first * 2, doubled))
        print("another in the next:", not np.array_equal(first, session.run(noise)))


def trap() -> None:
    """A loop that builds what it runs makes the graph grow; a warning names the line."""
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for i in range(5):
                session.run(x * 2.0, {x: float(i)})
        print("Warning:", caught[0].message)


if __name__ == "__main__":
    train()
    snapshot()
    trap()
