"""Gradients of complex numbers, as TensorFlow has them: the conjugate of the derivative."""

import numpy as np
import pytest

import dualflow as df

Z, W = 1.5 + 2j, -0.5 + 1j


def gradient(f, at=Z):
    x = df.constant(at)
    with df.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x).numpy()


@pytest.mark.parametrize(
    ("f", "derivative"),
    [
        (lambda z: z * z, 2 * Z),
        (lambda z: z * z * z, 3 * Z**2),
        (lambda z: W / z, -W / Z**2),
        (df.exp, np.exp(Z)),
        (lambda z: df.reduce_sum(df.matmul([[z, z]], [[W], [2 + 0j]])), W + 2),
    ],
    ids=["square", "cube", "quotient", "exp", "matmul"],
)
def test_of_holomorphic_functions_it_is_the_conjugate_of_the_derivative(f, derivative):
    np.testing.assert_allclose(gradient(f), np.conj(derivative))


def slopes(f, at=Z, step=1e-6):
    """By central differences: the slope along the real axis, plus i times that along the imaginary one."""
    return sum(
        unit
        * (f(df.constant(at + unit * step)).numpy() - f(df.constant(at - unit * step)).numpy())
        / (2 * step)
        for unit in (1, 1j)
    )


@pytest.mark.parametrize(
    "f",
    [
        df.abs,
        lambda z: df.abs(z * W) ** 2,
        lambda z: df.math.real(z * z),
        lambda z: df.math.imag(z * W),
        lambda z: df.math.real(df.math.conj(z) * W),
        lambda z: df.math.real(df.complex(df.math.imag(z), df.math.real(z)) * W),
        lambda z: df.cast(z * W, df.float64),
    ],
    ids=["abs", "abs2", "real", "imag", "conj", "complex", "cast"],
)
def test_of_real_functions_it_points_uphill(f):
    np.testing.assert_allclose(gradient(f), slopes(f), rtol=1e-6)


def test_weights_and_custom_gradients_keep_the_convention():
    x = df.constant(Z)
    custom = df.custom_gradient(lambda z: (z * z, lambda d: d * df.math.conj(2.0 * z)))
    results = []
    for f in (lambda z: z * z, custom):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        results.append(tape.gradient(y, x, output_gradients=df.constant(W)).numpy())
    np.testing.assert_allclose(results[0], W * np.conj(2 * Z))
    np.testing.assert_allclose(results[1], results[0])


def test_parts_of_real_numbers():
    x = df.constant([1.0, np.nan])
    assert df.math.real(x) is x
    assert df.math.conj(x) is x
    assert df.math.imag(x).numpy().tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="float32 or float64"):
        df.complex(df.ones([], df.float16), 2.0)


def test_infinite_parts_stay_apart():
    z = df.complex(df.constant(0.0), df.constant(np.inf)).numpy()
    assert z.real == 0.0
    assert z.imag == np.inf
