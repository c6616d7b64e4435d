"""Programs written for NumPy: differentiated and compiled to machine code without changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dualflow as df

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(8, 3))
LABELS = (ROWS[:, 0] > 0).astype(float)
MASSES = np.array([1.0, 2.0, 0.5])


def network(w):
    """The loss of a network of one hidden layer, whose weights are one vector."""
    first, second = np.split(w, [12])
    hidden = np.tanh(np.dot(ROWS, np.reshape(first, (3, 4))))
    return np.mean(np.square(np.matmul(hidden, second) - LABELS))


def logistic(w):
    """The loss of a logistic regression, with a penalty."""
    margins = np.where(LABELS > 0.5, 1.0, -1.0) * (ROWS @ w)
    return np.sum(np.logaddexp(0.0, -margins)) + 0.1 * np.linalg.norm(w) ** 2


def bodies(state):
    """The energy of three bodies after a step of leapfrog integration."""
    places, speeds = np.reshape(state, (2, 3, 2))

    def attraction(x):
        apart = x[np.newaxis, :, :] - x[:, np.newaxis, :]
        distance = np.sqrt(np.sum(apart**2, axis=-1) + 0.1)
        return np.einsum("j,ijk,ij->ik", MASSES, apart, distance**-3)

    speeds = speeds + 0.05 * attraction(places)
    places = places + 0.1 * speeds
    speeds = speeds + 0.05 * attraction(places)
    return np.sum(MASSES * np.sum(speeds * speeds, axis=1)) / 2 + np.sum(np.abs(places))


def softmax(x):
    """The entropy of probabilities."""
    shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
    p = shifted / np.sum(shifted, axis=-1, keepdims=True)
    return -np.sum(p * np.log(p))


def statistics(x):
    """A mixture of reductions."""
    centered = x - np.mean(x)
    skew = np.mean(centered**3) / np.std(x, ddof=1) ** 3
    return skew + np.ptp(x) * np.var(x) + np.prod(np.cos(x)) + np.max(np.hypot(x, 1.0))


def smoothness(x):
    """Differences, clipping and a stencil."""
    return np.sum(np.diff(x) ** 2) + np.sum(np.clip(x, -0.5, 0.5)) + np.trapezoid(np.gradient(x), dx=0.5)


def polynomial(x):
    """A polynomial, its rotation and its outer products."""
    y = np.polyval(np.array([1.0, -2.0, 0.5]), x)
    return np.sum(np.outer(np.roll(y, 1), np.flip(y)) * np.tri(6)) + np.vdot(x, np.tile(y[:3], 2))


class Program(NamedTuple):
    """A function of a vector, and where to take its gradient."""

    function: Callable[[Any], Any]
    at: np.ndarray[Any, Any]


PROGRAMS = {
    program.function.__name__: program
    for program in (
        Program(network, RNG.normal(size=16)),
        Program(logistic, RNG.normal(size=3)),
        Program(bodies, RNG.normal(size=12)),
        Program(softmax, RNG.normal(size=(4, 5))),
        Program(statistics, RNG.normal(size=7)),
        Program(smoothness, RNG.normal(size=9)),
        Program(polynomial, RNG.normal(size=6)),
    )
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]


def differences(function: Callable[[Any], Any], at: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The gradient by central differences, of NumPy alone."""
    result, step = np.zeros_like(at), 1e-6
    for i in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[i] += step
        down[i] -= step
        result[i] = (function(up) - function(down)) / (2 * step)
    return result


def gradient(function: Callable[[Any], Any], x: Any) -> Any:
    with df.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


def test_its_gradient_is_that_of_differences(program: Program) -> None:
    slope = gradient(program.function, df.constant(program.at)).numpy()
    np.testing.assert_allclose(slope, differences(program.function, program.at), rtol=1e-5, atol=1e-7)


def test_compiled_it_gives_what_numpy_gives(program: Program) -> None:
    compiled = df.function(program.function)
    result = compiled(df.constant(program.at))
    np.testing.assert_allclose(result.numpy(), program.function(program.at), rtol=1e-12)
    assert "host" not in str(compiled.status())


def test_compiled_with_its_gradient_it_needs_no_host_call(program: Program) -> None:
    compiled = df.function(lambda x: gradient(program.function, x))
    result = compiled(df.constant(program.at)).numpy()
    np.testing.assert_allclose(result, differences(program.function, program.at), rtol=1e-5, atol=1e-7)
    assert "host" not in str(compiled.status())


def test_it_trains() -> None:
    w = df.Variable(np.zeros(3))

    @df.function
    def step():
        with df.GradientTape() as tape:
            loss = logistic(w)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    losses = [float(step()) for _ in range(50)]
    assert losses[-1] < 0.5 * losses[0]
    assert np.mean((ROWS @ w.numpy() > 0) == LABELS) > 0.8


def test_forward_mode_goes_through_numpy() -> None:
    x = df.constant([1.0, 2.0])
    with df.autodiff.ForwardAccumulator(x, df.constant([1.0, 0.0])) as accumulator:
        y = np.sum(np.exp(x) * np.ones(2))
    assert float(accumulator.jvp(y)) == pytest.approx(np.e, rel=1e-6)
