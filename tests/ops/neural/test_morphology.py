"""Grayscale dilation and erosion against their definition."""

import numpy as np
import pytest

import dualflow as df

OPTIONS = [("SAME", [1, 1, 1, 1], [1, 1, 1, 1]), ("VALID", [1, 2, 1, 1], [1, 1, 2, 1]), ("SAME", 2, 1)]


def expected(x, f, strides, dilations, padding):
    """By hand: the largest sum of each window, and where it is."""
    (sh, sw), (dh, dw) = [(o, o) if isinstance(o, int) else o[1:3] for o in (strides, dilations)]
    _, rows, columns, _ = x.shape
    kernel_height, kernel_width, _ = f.shape
    if padding == "SAME":
        out = -(-rows // sh), -(-columns // sw)
        before = [
            max(0, (n - 1) * s + (k - 1) * d + 1 - size) // 2
            for n, s, k, d, size in (
                (out[0], sh, kernel_height, dh, rows),
                (out[1], sw, kernel_width, dw, columns),
            )
        ]
    else:
        out = (
            (rows - (kernel_height - 1) * dh - 1) // sh + 1,
            (columns - (kernel_width - 1) * dw - 1) // sw + 1,
        )
        before = [0, 0]
    largest = np.full((len(x), *out, x.shape[3]), -np.inf)
    for i in range(out[0]):
        for j in range(out[1]):
            for a in range(kernel_height):
                for b in range(kernel_width):
                    r, c = i * sh + a * dh - before[0], j * sw + b * dw - before[1]
                    if 0 <= r < rows and 0 <= c < columns:
                        largest[:, i, j] = np.maximum(largest[:, i, j], x[:, r, c] + f[a, b])
    return largest


@pytest.mark.parametrize(("padding", "strides", "dilations"), OPTIONS)
def test_dilation_is_the_largest_sum_of_a_window(mode, padding, strides, dilations):
    rng = np.random.default_rng(0)
    x, f = rng.normal(size=(2, 6, 5, 3)), rng.normal(size=(3, 2, 3))
    run = mode(lambda x, f: df.nn.dilation2d(x, f, strides, padding, "NHWC", dilations))
    result = run(df.constant(x), df.constant(f))
    np.testing.assert_allclose(result, expected(x, f, strides, dilations, padding), rtol=1e-12)


@pytest.mark.parametrize(("padding", "strides", "dilations"), OPTIONS)
def test_erosion_is_dilation_upside_down(mode, padding, strides, dilations):
    rng = np.random.default_rng(1)
    x, f = rng.normal(size=(2, 6, 5, 3)), rng.normal(size=(3, 2, 3))
    run = mode(lambda x, f: df.nn.erosion2d(x, f, strides, padding, "NHWC", dilations))
    mirrored = -expected(-x, f[::-1, ::-1], strides, dilations, padding)
    np.testing.assert_allclose(run(df.constant(x), df.constant(f)), mirrored, rtol=1e-12)


def test_integers_do_not_overflow_at_the_edge(mode):
    x, f = np.full((1, 3, 3, 1), -128, np.int8), np.full((3, 3, 1), -1, np.int8)
    result = mode(lambda x: df.nn.dilation2d(x + 2, f, 1, "SAME", "NHWC", 1))(df.constant(x))
    np.testing.assert_array_equal(result, np.full((1, 3, 3, 1), -127, np.int8), strict=True)


def test_the_gradient_goes_to_the_first_largest_sum(mode):
    def gradients(x, f):
        with df.GradientTape() as tape:
            tape.watch([x, f])
            y = df.nn.dilation2d(x, f, 1, "SAME", "NHWC", 1)
        return tape.gradient(y, [x, f])

    x, f = np.zeros((1, 1, 3, 1)), np.zeros((1, 2, 1))
    to_x, to_f = mode(gradients)(df.constant(x), df.constant(f))
    assert to_x.numpy().ravel().tolist() == [1.0, 1.0, 1.0]
    assert to_f.numpy().ravel().tolist() == [3.0, 0.0]


@pytest.mark.llvm
def test_dilation_and_its_gradient_are_compiled():
    def gradients(x, f):
        with df.GradientTape() as tape:
            tape.watch([x, f])
            y = df.nn.dilation2d(x, f, 2, "SAME", "NHWC", 1)
        return tape.gradient(y, [x, f])

    traced = df.function(gradients)
    traced(df.ones([1, 5, 5, 2]), df.ones([3, 3, 2]))
    assert "numpy:" not in str(traced.status())
