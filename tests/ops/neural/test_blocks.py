"""Blocks of neighbours as channels, and windows whose elements are apart."""

import numpy as np
import pytest

import dualflow as df


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
def test_blocks_become_channels_row_by_row(mode, size, dtype):
    x = np.arange(2 * 6 * 12 * 3).reshape(2, 6, 12, 3).astype(dtype)
    result = mode(lambda x: df.nn.space_to_depth(x, size))(df.constant(x)).numpy()
    assert result.dtype == dtype
    for i in range(6 // size):
        for j in range(12 // size):
            block = x[:, i * size : (i + 1) * size, j * size : (j + 1) * size]
            np.testing.assert_array_equal(result[:, i, j], block.reshape(2, -1))


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_depth_to_space_undoes_space_to_depth(mode, data_format):
    x = np.arange(2 * 4 * 6 * 4).reshape(2, 4, 6, 4)

    def there_and_back(x):
        return df.nn.depth_to_space(df.nn.space_to_depth(x, 2, data_format), 2, data_format)

    np.testing.assert_array_equal(mode(there_and_back)(df.constant(x)), x)


def test_channels_second_are_in_the_order_of_channels_last():
    x = np.arange(2 * 4 * 6 * 3).reshape(2, 4, 6, 3)
    last = df.nn.space_to_depth(x, 2).numpy()
    first = df.nn.space_to_depth(x.transpose(0, 3, 1, 2), 2, "NCHW").numpy()
    np.testing.assert_array_equal(first, last.transpose(0, 3, 1, 2))


def test_gradients_are_rearranged_back(mode):
    def gradient(x):
        with df.GradientTape() as tape:
            tape.watch(x)
            y = df.nn.space_to_depth(x, 2)
        return tape.gradient(y, x, output_gradients=df.nn.space_to_depth(x * 2.0, 2))

    x = np.arange(16.0).reshape(1, 4, 4, 1)
    np.testing.assert_array_equal(mode(gradient)(df.constant(x)), 2 * x)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_windows_apart_are_windows_of_every_few_elements(mode, padding):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 9, 8, 2)), rng.normal(size=(3, 2, 2, 3))

    def apart(x):
        return df.nn.with_space_to_batch(
            x, [2, 3], padding, lambda part, axes, p: df.nn.conv2d(part, w, 1, p), filter_shape=[3, 2]
        )

    expected = df.nn.conv2d(x, w, 1, padding, dilations=[2, 3])
    np.testing.assert_allclose(mode(apart)(df.constant(x)), expected, rtol=1e-10, atol=1e-12)


def test_windows_apart_along_one_axis_or_with_the_channels_second():
    x = np.arange(24.0).reshape(1, 1, 4, 6)

    def doubled(part, axes, padding):
        return df.nn.max_pool2d(part, 2, 1, padding, "NCHW")

    result = df.nn.with_space_to_batch(x, [1, 2], "VALID", doubled, data_format="NCHW")
    expected = df.nn.pool(x[0, 0][None, :, :, None], [2, 2], "MAX", dilations=[1, 2])
    np.testing.assert_array_equal(result[:, 0], expected[..., 0])
    assert df.nn.with_space_to_batch(x, [1, 1], "VALID", lambda part, axes, padding: (axes, padding)) == (
        2,
        "VALID",
    )
    line = df.nn.with_space_to_batch(
        x, [2], "VALID", lambda part, axes, padding: df.nn.max_pool2d(part, [1, 2], 1), spatial_dims=[2]
    )
    np.testing.assert_array_equal(line, np.maximum(x[:, :, :2], x[:, :, 2:]))
