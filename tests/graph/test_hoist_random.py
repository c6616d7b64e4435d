"""Random numbers of loops, drawn at once: the same numbers, and a loop of machine code."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.ops.op_kinds import Loop


def walk(x, draw, iterations=100):
    for _ in df.range(iterations):
        x = 0.9 * x + draw()
    return x


DRAWS = {
    "normal": lambda: df.random.normal([3]),
    "normal, float64": lambda: df.cast(df.random.normal([3], dtype=df.float64), df.float32),
    "uniform": lambda: df.random.uniform([3], -1.0, 2.0),
    "uniform, an odd number": lambda: df.random.uniform([]),
    "of a generator": lambda: GENERATOR.normal([3]),
}
GENERATOR = df.random.Generator.from_seed(7)


def the_loop(graph):
    (loop,) = [n for n in graph.nodes if isinstance(n.op.kind, Loop)]
    return loop


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_the_numbers_are_those_of_draws_iteration_by_iteration(draw):
    results = []
    for function in (walk, df.function(walk)):
        df.random.set_seed(5)
        GENERATOR.reset_from_seed(7)
        results.append([function(df.zeros([3]), draw).numpy() for _ in range(3)])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)


def test_such_a_loop_has_no_effect_any_more():
    f = df.function(walk).get_concrete_function(df.TensorSpec([3]), DRAWS["normal"])
    assert the_loop(f.optimised_graph).effect is None
    assert [part.what for part in f.parts if part.kind != "native"] == ["random_normal"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: df.random.normal([3]) + df.random.uniform([3]),
        lambda: df.cast(df.random.uniform([3], 0, 9, df.int32), df.float32),
    ],
    ids=["two draws", "integers"],
)
def test_numbers_that_would_come_in_another_order_stay_in_the_loop(draw):
    f = df.function(walk).get_concrete_function(df.TensorSpec([3]), draw)
    assert the_loop(f.optimised_graph).effect is not None


def test_a_number_of_iterations_known_only_at_run_time_stays_in_the_loop():
    f = df.function(lambda x, n: walk(x, DRAWS["normal"], n))
    concrete = f.get_concrete_function(df.TensorSpec([3]), df.TensorSpec([], df.int32))
    assert the_loop(concrete.optimised_graph).effect is not None
