"""Errors of quantization: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

V, C = df.ones([3]), df.constant([1j])
quant = df.quantization
both, rounded = quant.quantize_and_dequantize_v2, quant.fake_quant_with_min_max_args

BYTES, WEIGHTS = df.zeros([2, 8], df.uint8), df.zeros([2, 3, 4], df.int8)

CASES = {
    "a product of floats": (
        lambda: quant.integer_product(V, WEIGHTS),
        DTypeError,
        "takes uint8 and int8, not float32",
    ),
    "weights that are not grouped": (
        lambda: quant.integer_product(BYTES, df.zeros([8, 3], df.int8)),
        InvalidArgumentError,
        r"\(8, 3\)",
        "group_weights",
    ),
    "other inner sizes": (
        lambda: quant.integer_product(df.zeros([2, 7], df.uint8), WEIGHTS),
        InvalidArgumentError,
        "7 and 4 . 2 differ",
        "pad x",
    ),
    "a vector to group": (lambda: quant.group_weights(V), InvalidArgumentError, r"\(3,\)", "reshape"),
    "bits of one": (lambda: rounded(V, num_bits=1), InvalidArgumentError, "num_bits", "2..16"),
    "bounds in reverse order": (
        lambda: rounded(V, 2.0, 1.0),
        InvalidArgumentError,
        "min should be less",
        "2.0 and 1.0",
    ),
    "complex numbers": (lambda: rounded(C), DTypeError, "not complex128", "parts"),
    "an end for each": (
        lambda: quant.fake_quant_with_min_max_vars(V, [1.0], 2.0),
        InvalidArgumentError,
        r"\(1,\)",
        "the axis",
    ),
    "one bound for all channels": (
        lambda: quant.fake_quant_with_min_max_vars_per_channel(V, 1.0, 2.0),
        InvalidArgumentError,
        "axis 0",
        "each index",
    ),
    "integers of 64 bits": (lambda: quant.quantize(V, 0.0, 1.0, df.int64), DTypeError, "not int64", "int8"),
    "floats to dequantize": (lambda: quant.dequantize(V, 0.0, 1.0), DTypeError, "not float32", "uint8"),
    "another mode": (
        lambda: quant.quantize(V, 0.0, 1.0, df.qint8, "FIRST"),
        InvalidArgumentError,
        "mode",
        "'FIRST'",
    ),
    "a rounding of another mode": (
        lambda: quant.quantize(V, 0.0, 1.0, df.qint8, round_mode="HALF_TO_EVEN"),
        InvalidArgumentError,
        "mode SCALED",
        "MIN_COMBINED",
    ),
    "a range in reverse order": (
        lambda: quant.quantize(V, 6.0, 0.0, df.qint8),
        InvalidArgumentError,
        "min_range",
        "not more",
    ),
    "values without ranges": (
        lambda: quant.quantized_concat(0, [V], [], []),
        InvalidArgumentError,
        "0 and 0 bounds",
        "for each",
    ),
    "no bits": (lambda: both(V, 0.0, 1.0, num_bits=0), InvalidArgumentError, "num_bits", "not 0"),
    "a given range backwards": (
        lambda: both(V, 3.0, 0.0, range_given=True),
        InvalidArgumentError,
        "input_min",
        "not more",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/quantization/*.py",)
