"""Signatures that leave sizes open: one trace, compiled for the sizes of each call."""

from __future__ import annotations

import numpy as np
import pytest

import dualflow as df
from dualflow.core.errors import FailedPreconditionError

ROWS = df.TensorSpec([None, 2])


def counted(signature):
    traces = []

    @df.function(input_signature=signature)
    def mean(x):
        traces.append(x.shape)
        return df.reduce_sum(x, axis=0) / df.cast(df.shape(x)[0], df.float32)

    return mean, traces


def test_python_sees_the_open_size_once():
    mean, traces = counted([ROWS])
    for n in (1, 3, 50):
        x = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2)
        np.testing.assert_allclose(mean(x).numpy(), x.mean(0), rtol=1e-6)
    assert traces == [(None, 2)]


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [[1.0]], [[[1.0, 2.0]]]])
def test_another_rank_or_known_size_is_refused(wrong):
    mean, _ = counted([ROWS])
    with pytest.raises(TypeError, match="Can not cast"):
        mean(df.constant(wrong))


def test_an_eager_tape_goes_through():
    mean, _ = counted([ROWS])
    x = df.constant([[1.0, 2.0], [3.0, 4.0]])
    with df.GradientTape() as tape:
        tape.watch(x)
        y = df.reduce_sum(mean(x) ** 2)
    assert tape.gradient(y, x).numpy().tolist() == [[2.0, 3.0], [2.0, 3.0]]


def test_variables_are_assigned():
    total = df.Variable(0.0)

    @df.function(input_signature=[df.TensorSpec([None])])
    def add(x):
        total.assign_add(df.reduce_sum(x))
        return total * 1.0

    assert [float(add(df.ones([n]))) for n in (2, 3)] == [2.0, 5.0] == [2.0, float(total)]


def test_a_spec_gives_a_concrete_function_for_all_sizes():
    f = df.function(lambda x: x * 2.0).get_concrete_function(df.TensorSpec([None]))
    assert [len(f(df.ones([n])).numpy()) for n in (1, 4)] == [1, 4]


def test_what_is_compiled_is_known_after_a_call():
    f = df.function(lambda x: x * 2.0).get_concrete_function(df.TensorSpec([None]))
    with pytest.raises(FailedPreconditionError, match="call it"):
        f.parts  # noqa: B018  the property compiles
    f(df.ones([3]))
    assert [p.kind for p in f.parts] == ["native"]


def test_another_size_uses_the_same_machine_code():
    f = df.function(lambda x: df.nn.softmax(x)).get_concrete_function(df.TensorSpec([None, 8]))
    f(df.ones([5, 8]))
    f(df.ones([7, 8]))
    assert f._runner.executable.reused
