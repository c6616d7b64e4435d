"""Values of graph mode, as TensorFlow 1 has them: gradients of complex numbers and integers, feeds, seeds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1


@pytest.fixture
def graph() -> Iterator[v1.Graph]:
    graph = v1.Graph()
    with graph.as_default():
        yield graph


def test_gradients_of_complex_numbers_are_conjugated(graph: v1.Graph) -> None:
    z = v1.placeholder(v1.complex128, [])
    (plain,) = v1.gradients(z * z, z, grad_ys=df.constant(1 + 0j))
    (weighted,) = v1.gradients(z * z, z, grad_ys=df.constant(1 + 1j))
    (uphill,) = v1.gradients(df.abs(z), z)
    found = v1.Session(graph=graph).run([plain, weighted, uphill], {z: 1 + 2j})
    np.testing.assert_allclose(found, [2 - 4j, (1 + 1j) * (2 - 4j), (1 + 2j) / 5**0.5])


def test_integers_have_no_gradient(graph: v1.Graph) -> None:
    n = v1.placeholder(v1.int32, [2])
    counter = v1.get_variable("counter", initializer=df.constant([1, 2]))
    assert v1.gradients(n * 2, n) == [None]
    assert v1.gradients(counter * 2, counter) == [None]
    assert v1.gradients(df.cast(counter, df.float32), counter) == [None]
