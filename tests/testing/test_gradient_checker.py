"""``v1.test.compute_gradient``: Jacobians by gradients and by differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest
from error_cases import ErrorCases

from dualflow.compat import v1


@pytest.fixture
def session() -> Iterator[v1.Session]:
    with v1.Graph().as_default(), v1.Session() as session:
        yield session


def test_both_jacobians_are_that_of_the_function(session: v1.Session) -> None:
    x, w = v1.placeholder(v1.float64, [3]), v1.Variable(np.eye(3)[:, :2] * 2.0)
    y = v1.tensordot(x, w, 1) ** 2
    pair = v1.test.compute_gradient(x, [3], y, [2], [1.0, 2.0, 3.0], init_targets=[w.initializer])
    for jacobian in pair:
        np.testing.assert_allclose(jacobian, [[8.0, 0.0], [0.0, 16.0], [0.0, 0.0]], atol=1e-6)


def test_several_tensors_have_a_pair_each(session: v1.Session) -> None:
    x, z, rate = (v1.placeholder(v1.float64, shape) for shape in ([2], [], []))
    pairs = v1.test.compute_gradient([x, z], [[2], []], rate * z, [], extra_feed_dict={rate: 3.0})
    assert [[jacobian.round(6).tolist() for jacobian in pair] for pair in pairs] == [
        [[[0.0], [0.0]]] * 2,
        [[[3.0]]] * 2,
    ]


def test_a_tensor_without_elements_has_jacobians_without_rows(session: v1.Session) -> None:
    x = v1.placeholder(v1.float32, [0, 2])
    pair = v1.test.compute_gradient(x, [0, 2], v1.reduce_sum(x, 0), [2])
    assert [jacobian.shape for jacobian in pair] == [(0, 2), (0, 2)]


def test_the_error_is_that_of_a_wrong_gradient(session: v1.Session) -> None:
    @v1.custom_gradient
    def wrong(x: v1.Tensor) -> tuple[v1.Tensor, object]:
        return x * 2.0, lambda upstream: upstream * 5.0

    x = v1.placeholder(v1.float64, [2])
    assert v1.test.compute_gradient_error(x, [2], wrong(x), [2]) == pytest.approx(3.0)
    assert v1.test.compute_gradient_error(x, [2], v1.sin(x), [2]) < 1e-6


def _complex() -> object:
    with v1.Graph().as_default(), v1.Session():
        x = v1.placeholder(v1.complex64, [2])
        return v1.test.compute_gradient(x, [2], x, [2])


class TestErrorMessages(ErrorCases):
    cases: ClassVar = {
        "without a session": (
            lambda: v1.test.compute_gradient(v1.constant(1.0), [], v1.constant(1.0), []),
            RuntimeError,
            "needs a default session",
        ),
        "complex numbers": (_complex, TypeError, "takes real tensors; call df.test.check_gradients"),
    }
    raised_in = ("testing/gradient_checker.py",)
