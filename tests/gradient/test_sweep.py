"""The reverse sweep: what it computes, and how much work it does."""

import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df
from dualflow.core import dispatch
from dualflow.core.dispatch import Engine
from dualflow.eager.engine import EAGER
from dualflow.gradient.sweep import Record, sweep
from dualflow.ops.record import REGISTRY


class Counting(Engine):
    """The eager engine, counting ops."""

    eager = True

    def __init__(self):
        self.count = 0

    def run(self, op, inputs, attrs):
        self.count += 1
        return EAGER.run(op, inputs, attrs)

    def constant(self, array):
        return EAGER.constant(array)


def chain(length):
    """Records of ``x -> x * 1.0``, ``length`` times over."""
    multiply, one = REGISTRY["multiply"], df.constant(1.0)
    x = source = df.constant(2.0)
    records = []
    for _ in range(length):
        y = multiply.kernel(x.numpy(), one.numpy())
        out = df.constant(y)
        records.append(Record(multiply, (x, one), (out,), {}))
        x = out
    return records, source, x


def test_a_long_chain_needs_no_recursion():
    records, source, target = chain(10_000)
    (result,) = sweep(records, [target], [df.constant(1.0)], [source])
    assert result.numpy() == 1.0


def test_the_work_grows_with_the_number_of_records():
    counts = []
    for length in (500, 1000, 2000):
        records, source, target = chain(length)
        engine = Counting()
        with dispatch.using(engine):
            sweep(records, [target], [df.constant(1.0)], [source])
        counts.append(engine.count)
    assert counts[1] == 2 * counts[0]
    assert counts[2] == 2 * counts[1]


def test_nothing_is_computed_for_constants():
    data, w = df.ones([4, 3]), df.ones([3, 2])
    y = df.matmul(data, w)
    records = [Record(REGISTRY["matmul"], (data, w), (y,), {})]
    engine, cotangent = Counting(), df.ones([4, 2])
    with dispatch.using(engine):
        (result,) = sweep(records, [y], [cotangent], [w])
    assert engine.count == 1
    assert result.shape == (3, 2)


def test_the_sweep_frees_records_as_it_goes():
    alive = []

    @df.custom_gradient
    def first(x):
        def grad(d):
            alive.append(late() is not None)
            return d

        return x * 1.0, grad

    x = df.constant(2.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        middle = first(x)
        middle = df.exp(middle)
        late = weakref.ref(middle)
        y = middle * middle
        del middle
    tape.gradient(y, x)
    assert alive == [False]


def test_records_that_no_source_reaches_cost_nothing():
    records, _, target = chain(10)
    engine = Counting()
    with dispatch.using(engine):
        assert sweep(records, [target], [df.constant(1.0)], [df.constant(3.0)]) == [None]
    assert engine.count == 0


SHAPES = st.sampled_from(
    [(), (1,), (3,), (2, 3), (1, 3), (2, 1), (1, 1, 1), (4, 1, 3), (4, 2, 3), (0,), (2, 0), (4, 2, 1)]
)


@given(SHAPES, SHAPES)
def test_the_gradient_of_a_broadcast_input_has_its_shape(a, b):
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return
    x, y = df.constant(np.full(a, 2.0)), df.constant(np.full(b, 3.0))
    with df.GradientTape() as tape:
        tape.watch([x, y])
        z = x * y
    dx, dy = tape.gradient(z, [x, y])
    np.testing.assert_array_equal(dx.numpy(), 3.0 * df.size(z).numpy() / max(x.numpy().size, 1) * np.ones(a))
    np.testing.assert_array_equal(dy.numpy(), 2.0 * df.size(z).numpy() / max(y.numpy().size, 1) * np.ones(b))


def test_a_tensor_used_twice_gets_both_parts():
    x = df.constant(3.0)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = x * x + x
    assert tape.gradient(y, x).numpy() == 7.0


def test_an_op_with_several_outputs_of_which_one_matters():
    x = df.constant([1.0, 2.0, 3.0, 4.0])
    with df.GradientTape() as tape:
        tape.watch(x)
        first, _ = df.split(x, 2)
        y = df.reduce_sum(first * first)
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("f", "at", "expected"),
    [
        (lambda x: df.maximum(x, 0.0), 0.0, 1.0),
        (lambda x: df.maximum(x, x), 2.0, 1.0),
        (df.nn.relu, 0.0, 0.0),
        (df.abs, 0.0, 0.0),
        (df.sign, 2.0, 0.0),
        (df.sqrt, 0.0, np.inf),
        (lambda x: x % 3.0, 5.0, 1.0),
        (lambda x: 1 / x, 0.0, -np.inf),
    ],
    ids=["maximum", "maximum-tie", "relu", "abs", "sign", "sqrt", "mod", "reciprocal"],
)
def test_kinks_ties_and_poles(f, at, expected):
    x = df.constant(at)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).numpy() == expected
