"""Generators: TensorFlow's numbers and states, in both modes, with threads and copies."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

Generator = df.random.Generator


def state(generator):
    return generator.state.numpy().tolist()


@pytest.mark.parametrize(
    ("seed", "expected"),
    [(1234, [1234, 0, 0]), ([12, 34], [0, 12, 34]), ([1, 2, 3], [1, 2, 3]), (2**70 + 5, [5, 64, 0])],
)
def test_states_of_seeds_are_tensorflows(seed, expected):
    assert df.random.create_rng_state(seed, "philox").numpy().tolist() == expected
    assert state(Generator.from_seed(seed)) == expected


def test_numbers_and_states_are_tensorflows(mode):
    """Values of TensorFlow 2.21, drawn one after another."""
    g = Generator.from_seed(1234)
    normal = mode(lambda: g.normal([2, 3]))()
    expected = [[0.9356609, 1.0854305, -0.93788373], [-0.5061547, 1.3169702, 0.7137579]]
    np.testing.assert_allclose(normal, expected, rtol=2e-6)
    assert state(g) == [2770, 0, 0]
    uniform = mode(lambda: g.uniform([5]))()
    np.testing.assert_allclose(uniform, [0.6512613, 0.9295906, 0.50873387, 0.9571184, 0.598248], rtol=1e-6)
    assert mode(lambda: g.uniform([5], 0, 10, df.int32))().numpy().tolist() == [6, 1, 9, 7, 8]
    assert mode(lambda: g.uniform_full_int([2]))().numpy().tolist() == [
        10434985011165393978,
        5830123041989737674,
    ]


def test_truncated_numbers_and_seeds_are_tensorflows():
    g = Generator.from_state([2770 + 15 * 256, 0, 0])
    expected = [-0.8347869, 0.8408687, -1.4104028, 0.24854295, -1.5135903, 0.5090082]
    np.testing.assert_allclose(g.truncated_normal([9])[:6], expected, rtol=2e-6)
    assert g.make_seeds(3).numpy()[0].tolist() == [
        -5577472974198837707,
        114062311612833323,
        -6150412237693762373,
    ]
    assert [state(part)[2] for part in g.split(2)] == [2259163965171600002, 4582184010439291418]


def test_skipping_is_drawing(mode):
    g, h = Generator.from_seed(5), Generator.from_seed(5)
    before = mode(lambda: g.skip(7))()
    h.normal([7])
    assert before.numpy().tolist() == [5, 0, 0]
    assert state(g) == state(h)


def test_the_counter_carries():
    g = Generator.from_state([-1, 41, 3])
    g.skip(1)
    assert state(g) == [255, 42, 3]


def test_each_call_of_a_compiled_function_draws_on():
    g, h = Generator.from_seed(3), Generator.from_seed(3)
    f = df.function(lambda: g.uniform([4]))
    compiled, eager = [f().numpy() for _ in range(3)], [h.uniform([4]).numpy() for _ in range(3)]
    np.testing.assert_array_equal(compiled, eager)
    assert state(g) == state(h)


def test_draws_of_a_loop_are_machine_code_and_the_same_numbers():
    g, h = Generator.from_seed(3), Generator.from_seed(3)

    @df.function
    def walk(x):
        for _ in df.range(50):
            x = x + g.uniform([3])
        return x

    result, expected = walk(df.zeros([3])), np.zeros(3, np.float32)
    for _ in range(50):
        expected = expected + h.uniform([3]).numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    concrete = walk.get_concrete_function(df.TensorSpec([3]))
    assert {part.kind for part in concrete.parts} == {"native"}


def test_threads_never_draw_the_same_numbers():
    g = Generator.from_seed(1)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: int(g.uniform_full_int([], df.int64)), range(400)))
    assert len(set(drawn)) == 400
    assert state(g)[0] == 1 + 400 * 256


def test_a_generator_goes_on_where_another_is():
    g = Generator.from_seed(1)
    g.normal([3])
    copied, restored = Generator(copy_from=g), Generator.from_state(g.state.numpy(), "philox")
    unpickled = pickle.loads(pickle.dumps(g))
    expected = g.normal([4])
    for other in (copied, restored, unpickled):
        np.testing.assert_array_equal(other.normal([4]), expected)


def test_a_variable_may_be_the_state():
    v = df.Variable([1, 2, 3], dtype=df.int64)
    g = Generator(state=v, alg="philox")
    g.skip(1)
    assert g.state is v
    assert v.numpy().tolist() == [257, 2, 3]


def test_key_and_algorithm():
    g = Generator.from_key_counter(7, [1, 2], "philox")
    assert (state(g), int(g.key), g.algorithm) == ([1, 2, 7], 7, df.random.Algorithm.PHILOX.value)
    g.reset_from_key_counter(8, [3, 4])
    assert state(g) == [3, 4, 8]
    g.reset([5, 6, 7])
    assert state(g) == [5, 6, 7]
    g.reset_from_seed(9)
    assert state(g) == [9, 0, 0]


def test_split_generators_differ():
    parts = Generator.from_seed(1).split(3)
    assert len({p.normal([5]).numpy().tobytes() for p in parts}) == 3


def test_generators_of_no_seed_differ():
    parts = [Generator.from_non_deterministic_state() for _ in range(2)]
    assert state(parts[0]) != state(parts[1])


def test_the_global_generator_begins_at_the_seed():
    df.random.set_seed(5)
    first = df.random.get_global_generator().normal([3])
    df.random.set_seed(5)
    np.testing.assert_array_equal(df.random.get_global_generator().normal([3]), first)


def test_the_global_generator_can_be_another_one(monkeypatch):
    own = df.random.get_global_generator()
    g = Generator.from_seed(1)
    df.random.set_global_generator(g)
    try:
        assert df.random.get_global_generator() is g
        df.random.set_seed(9)
        assert state(g) == [1, 0, 0]
    finally:
        df.random.set_global_generator(own)


def test_binomial_numbers():
    drawn = Generator.from_seed(1).binomial([20_000], 10.0, 0.5).numpy()
    assert drawn.dtype == np.int32
    assert abs(drawn.mean() - 5) < 4.5 * np.sqrt(2.5 / 20_000)


def test_each_run_of_a_session_draws_on():
    g = Generator.from_state([-100, 7, 3])
    expected, end = [g.uniform([2]).numpy() for _ in range(3)], state(g)
    with v1.Graph().as_default():
        of_graph = Generator.from_state([-100, 7, 3])
        drawn, held = of_graph.uniform([2]), of_graph.state.value()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            results = [session.run(drawn) for _ in range(3)]
            assert session.run(held).tolist() == end
    np.testing.assert_array_equal(results, expected)
