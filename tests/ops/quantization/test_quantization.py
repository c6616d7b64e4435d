"""Quantization by its definition, its gradients, and literal values of TensorFlow 2.21."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualflow as df

quant = df.quantization
X = [-1.0, 0.0, 0.5, 2.0, 7.0]
LOW16 = (-6.0001831, 6)
ENDS = st.tuples(st.floats(-8, -0.5), st.floats(0.5, 8))


def same(result, expected, dtype=np.float32):
    """To the digits that are printed of float32, and of integers exactly."""
    np.testing.assert_allclose(result, np.array(expected, dtype), rtol=1.2e-7, strict=True)


def gradients(mode, function, *xs):
    def taken(*xs):
        with df.GradientTape() as tape:
            tape.watch(xs)
            y = function(*xs)
        return tape.gradient(y, xs)

    return [None if g is None else g.numpy().tolist() for g in mode(taken)(*[df.constant(x) for x in xs])]


@pytest.mark.parametrize(
    ("options", "expected", "ends"),
    [
        ({"max_range": 6.0, "T": df.quint8}, [0, 0, 21, 85, 255], (0, 6)),
        ({"max_range": 6.0, "T": df.quint8, "mode": "MIN_FIRST"}, [0, 0, 21, 85, 255], (0, 6)),
        ({"max_range": 6.0, "T": df.quint8, "mode": "SCALED"}, [0, 0, 21, 85, 255], (0, 6)),
        ({"min_range": -6.0, "T": df.qint8}, [-22, -1, 10, 42, 127], (-6, 6)),
        ({"min_range": -6.0, "T": df.qint8, "mode": "MIN_FIRST"}, [-21, 0, 11, 43, 127], (-6, 6)),
        ({"min_range": -6.0, "T": df.qint8, "mode": "SCALED"}, [-21, 0, 11, 42, 127], (-6.047244, 6)),
        (
            {"min_range": -6.0, "T": df.qint16, "mode": "SCALED"},
            [-5461, 0, 2731, 10922, 32767],
            (-6.000183, 6),
        ),
        (
            {
                "min_range": -6.0,
                "T": df.qint8,
                "mode": "SCALED",
                "narrow_range": True,
                "round_mode": "HALF_TO_EVEN",
            },
            [-21, 0, 11, 42, 127],
            (-6, 6),
        ),
        ({"min_range": 5.0, "T": df.quint8}, [0, 0, 21, 85, 255], (0, 6)),
    ],
)
def test_integers_are_tensorflows(mode, options, expected, ends):
    options = {"min_range": 0.0, "max_range": 6.0, **options}
    result = mode(lambda x: quant.quantize(x, **options))(df.constant(X))
    same(result.output, expected, df.as_dtype(options["T"]).dtype)
    same(result.output_min, ends[0])
    same(result.output_max, ends[1])


def test_places_of_an_axis_have_ranges_of_their_own(mode):
    x = df.constant([[-1.0, 0.0, 0.5], [2.0, 7.0, 1.0]])
    call = mode(lambda x: quant.quantize(x, [-6.0, -1.0], [6.0, 5.0], df.qint8, mode="SCALED", axis=0))
    result = call(x)
    same(result.output, [[-21, 0, 11], [51, 127, 25]], np.int8)
    same(result.output_min, [-6.047244, -5.03937])
    same(result.output_max, [6, 5])


@pytest.mark.parametrize(
    ("x", "dtype", "low", "options", "expected"),
    [
        ([0, 1, 128, 255], df.quint8, 0.0, {}, [0, 0.02352941, 3.0117648, 6]),
        ([-128, 1, 127], df.qint8, -6.0, {}, [-6, 0.07058859, 6]),
        ([-128, 1, 127], df.qint8, -6.0, {"mode": "SCALED"}, [-6.047244, 0.04724409, 6]),
        ([-128, 1, 127], df.qint8, -6.0, {"mode": "MIN_FIRST"}, [-6.0235295, 0.04705882, 5.9764705]),
        ([0, 1, 128, 255], df.quint8, -1.0, {"mode": "SCALED"}, [0, 0.02352941, 3.0117648, 6]),
    ],
)
def test_floats_of_integers_are_tensorflows(mode, x, dtype, low, options, expected):
    result = mode(lambda x: quant.dequantize(x, low, 6.0, **options))(df.constant(x, dtype))
    np.testing.assert_allclose(result, expected, rtol=3e-7)


@pytest.mark.parametrize("mode_name", ["MIN_COMBINED", "MIN_FIRST", "SCALED"])
@pytest.mark.parametrize("dtype", [df.qint8, df.quint8, df.qint16])
@given(ends=ENDS, part=st.floats(0, 1))
def test_dequantize_inverts_quantize_within_a_step(mode_name, dtype, ends, part):
    low, high = (0.0, ends[1]) if dtype.is_unsigned else ends
    x = np.float32(low + part * (high - low))
    result = quant.quantize(x, low, high, dtype, mode=mode_name)
    back = quant.dequantize(result.output, result.output_min, result.output_max, mode=mode_name)
    step = 3.0 * max(-low, high) / (int(dtype.max) - int(dtype.min))  # MIN_FIRST rounds three times
    assert abs(float(back) - x) <= step


def test_names_of_quantized_dtypes():
    assert (df.qint8, df.quint8, df.qint16) == (df.int8, df.uint8, df.int16)
    assert (df.quint16, df.qint32) == (df.uint16, df.int32)


def test_joined_tensors_have_a_common_range(mode):
    parts = [df.constant([1, 2], df.quint8), df.constant([3], df.quint8)]
    result = mode(lambda a, b: quant.quantized_concat(0, [a, b], [0.0, 0.0], [6.0, 12.0]))(*parts)
    same(result.output, [1, 1, 3], np.uint8)
    same(result.output_max, 12)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [-6.0235295, -5.9764705, 0, 0.04705882, 0.5176471, 5.9764705, 5.9764705]),
        (
            {"min": -1.3, "max": 2.0, "num_bits": 4, "narrow_range": True},
            [-1.4142857, -1.4142857, 0, 0, 0.47142857, 1.8857143, 1.8857143],
        ),
        ({"min": 1.0, "max": 2.0}, [0, 0, 0, 0.03137255, 0.5019608, 1, 1]),
        ({"min": -2.0, "max": -1.0}, [-1, -1, 0, 0, 0, 0, 0]),
    ],
)
def test_fake_quantization_is_tensorflows(mode, options, expected):
    x = df.constant([-7.0, -6.0, 0.0, 0.03, 0.5, 6.0, 7.0])
    same(mode(lambda x: quant.fake_quant_with_min_max_args(x, **options))(x), expected)


def test_fake_quantization_by_channels_and_of_no_range(mode):
    call = mode(lambda x: quant.fake_quant_with_min_max_vars_per_channel(x, [-1.0, 0.0], [2.0, 6.0]))
    same(call(df.constant([[-7.0, 2.0], [3.0, 8.0]])), [[-1, 2], [2, 6]])
    same(mode(lambda x: quant.fake_quant_with_min_max_vars(x, 0.0, 0.0))(df.constant([-7.0, 1.0])), [0, 0])


def test_fake_quantization_is_native():
    f = df.function(lambda x: quant.fake_quant_with_min_max_args(x))
    f(df.ones([10]))
    assert "numpy:" not in str(f.status())


def test_gradients_of_fake_quantization_are_tensorflows(mode):
    args = [-7.0, -6.1, -6.02, -6.0, 0.0, 6.0, 6.02, 7.0]
    result = gradients(mode, quant.fake_quant_with_min_max_args, args)
    assert result == [[0, 0, 1, 1, 1, 0, 0, 0]]
    x = [-7.0, -6.0, 0.0, 6.0, 7.0]
    assert gradients(mode, quant.fake_quant_with_min_max_vars, x, -6.0, 6.0) == [[0, 1, 1, 0, 0], 1, 2]
    assert gradients(mode, quant.fake_quant_with_min_max_vars, [-7.0, 1.0], 0.0, 0.0) == [[1, 1], 0, 0]


def test_gradients_that_are_requested(mode):
    g, x = df.constant([1.0, 2.0, 3.0, 4.0]), df.constant([-7.0, 0.0, 7.0, 8.0])
    result = mode(lambda g, x: quant.fake_quant_with_min_max_vars_gradient(g, x, -5.0, 6.0))(g, x)
    assert [part.numpy().tolist() for part in result] == [[0, 2, 0, 0], 1, 7]
    result = mode(quant.fake_quant_with_min_max_args_gradient)(g, x)
    same(result, [0, 2, 0, 0])
    call = mode(
        lambda g, x: quant.fake_quant_with_min_max_vars_per_channel_gradient(g, x, [-1.0, 0.0], [2.0, 6.0])
    )
    result = call(df.constant([[1.0, 2.0], [3.0, 4.0]]), df.constant([[-7.0, 2.0], [3.0, 8.0]]))
    assert [part.numpy().tolist() for part in result] == [[[0, 2], [0, 0]], [1, 0], [3, 4]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"range_given": True}, [-0.992126, 0, 0.28346455, 1.984252, 6]),
        (
            {"range_given": True, "input_max": 5.0, "narrow_range": True},
            [-0.992126, 0, 0.28346455, 1.984252, 6],
        ),
        ({"range_given": True, "input_min": -1.0, "num_bits": 4}, [-0.85714287, 0, 0, 1.7142857, 6]),
        ({}, [-0.992126, 0, 0.27559054, 1.984252, 7]),
        ({"signed_input": False}, [-0.9882353, 0, 0.3019608, 2.0039215, 7]),
        ({"range_given": True, "round_mode": "HALF_UP", "num_bits": 3}, [0, 0, 0, 2, 6]),
    ],
)
def test_quantize_and_dequantize_is_tensorflows(mode, options, expected):
    options = {"input_min": -6.0, "input_max": 6.0, **options}
    result = mode(lambda x: quant.quantize_and_dequantize_v2(x, **options))(df.constant([-1.0, 0, 0.3, 2, 7]))
    same(result, expected)


def test_quantize_and_dequantize_along_an_axis(mode):
    x = df.constant([[-1.0, 0.0, 0.3], [2.0, 7.0, 1.0]])
    result = mode(lambda x: quant.quantize_and_dequantize_v2(x, 0.0, 0.0, axis=1))(x)
    same(result, [[-1.007874, 0, 0.2992126], [2, 7, 1]])
    same(mode(lambda x: quant.quantize_and_dequantize_v2(x, 0.0, 0.0))(df.zeros([2])), [0, 0])


def test_gradients_of_quantize_and_dequantize_are_tensorflows(mode):
    x = [-7.0, -6.0, 0.0, 6.0, 7.0]
    second = gradients(mode, lambda x: quant.quantize_and_dequantize_v2(x, -6.0, 6.0, range_given=True), x)
    assert second == [[0, 1, 1, 1, 0]]
    first = gradients(mode, lambda x: quant.quantize_and_dequantize(x, -6.0, 6.0, range_given=True), x)
    assert first == [[1, 1, 1, 1, 1]]
