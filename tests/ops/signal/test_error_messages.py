"""Errors of ``df.signal``: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError

signal = df.signal
V, M, C, NUMBERS = df.ones([3]), df.ones([2, 3]), df.constant([1j]), df.constant([1, 2, 3])


def traced(function, *shapes):
    """Trace ``function`` with tensors of these shapes, where None is a dynamic size."""
    return df.function(function).get_concrete_function(*[df.TensorSpec(s) for s in shapes])


def gradient(function, *shapes):
    """Trace the gradient of ``function``."""

    def taken(*xs):
        with df.GradientTape() as tape:
            tape.watch(xs)
            y = function(*xs)
        return tape.gradient(y, xs)

    return traced(taken, *shapes)


CASES = {
    "several answers to periodic": (
        lambda: signal.hann_window(3, [True, False]),
        DTypeError,
        "periodic is a bool",
        r"not \[True, False\]",
    ),
    "coefficients of one frame": (
        lambda: signal.inverse_mdct(V),
        InvalidArgumentError,
        "frames, frame_length",
        r"the shape is \(3,\)",
    ),
    "spectra of no bands": (
        lambda: signal.mfccs_from_log_mel_spectrograms(1.0),
        InvalidArgumentError,
        "num_mel_bins",
        "df.reshape",
    ),
    "a transform of real numbers": (lambda: signal.fft(V), DTypeError, "complex64 or complex128", "df.cast"),
    "a transform of integers": (lambda: signal.rfft(NUMBERS), DTypeError, "float32 or float64", "df.cast"),
    "a transform of too few axes": (
        lambda: signal.rfft2d(V),
        InvalidArgumentError,
        "rfft2d takes 2 axes",
        "df.reshape",
    ),
    "lengths of other axes": (
        lambda: signal.rfft(V, [2, 3]),
        InvalidArgumentError,
        "one size, not negative, for each of 1 axes",
        r"not \[2, 3\]",
    ),
    "a transform's norm": (
        lambda: signal.fftnd(C, norm="unit"),
        InvalidArgumentError,
        "'ortho'",
        "not 'unit'",
    ),
    "cosine transforms of integers": (
        lambda: signal.dct(NUMBERS),
        DTypeError,
        "float32 or float64",
        "df.cast",
    ),
    "cosine transforms of a scalar": (
        lambda: signal.dct(1.0),
        InvalidArgumentError,
        "one axis or more",
        "df.reshape",
    ),
    "a cosine transform's type": (lambda: signal.dct(V, 5), InvalidArgumentError, "1, 2, 3 or 4", "not 5"),
    "an inverse cosine transform's type": (
        lambda: signal.idct(V, 5),
        InvalidArgumentError,
        "1, 2, 3 or 4",
        "not 5",
    ),
    "a cosine transform's norm": (
        lambda: signal.dct(V, norm="unit"),
        InvalidArgumentError,
        "'ortho'",
        "not 'unit'",
    ),
    "a cosine transform's axis": (
        lambda: signal.dct(M, axis=0),
        InvalidArgumentError,
        "axis -1",
        "df.transpose",
    ),
    "a cosine transform's length": (lambda: signal.dct(V, n=0), InvalidArgumentError, "1 or more", "not 0"),
    "an inverse cosine transform's length": (
        lambda: signal.idct(V, n=2),
        InvalidArgumentError,
        "n=None",
        "cut or pad",
    ),
    "one sample of the first type": (
        lambda: signal.dct([1.0], 1),
        InvalidArgumentError,
        "two samples",
        "norm=None",
    ),
    "frames of a modified transform": (
        lambda: signal.mdct(V, 6),
        InvalidArgumentError,
        "multiple of 4",
        "not 6",
    ),
    "empty frames": (lambda: signal.frame(V, 0, 1), InvalidArgumentError, "at least 1", "not 0 and 1"),
    "a sum of a vector": (
        lambda: signal.overlap_and_add(V, 1),
        InvalidArgumentError,
        "two axes",
        "df.reshape",
    ),
    "a sum of frames at one place": (
        lambda: signal.overlap_and_add(M, 0),
        InvalidArgumentError,
        "at least 1",
        "not 0",
    ),
    "a negative window": (lambda: signal.hann_window(-1), InvalidArgumentError, "not negative", "-1"),
    "a window of ints": (lambda: signal.hann_window(3, dtype=df.int32), DTypeError, "int32", "another dtype"),
    "a window of unknown kind": (
        lambda: traced(lambda x: signal.hann_window(3, x), []),
        DTypeError,
        "periodic must be known",
        "Python bool",
    ),
    "a window of unknown shape": (
        lambda: traced(lambda x: signal.kaiser_window(3, x), []),
        DTypeError,
        "beta must be known",
        "Python float",
    ),
    "mel bands in disorder": (
        lambda: signal.linear_to_mel_weight_matrix(lower_edge_hertz=9e3),
        InvalidArgumentError,
        "0 <= lower < upper",
        "here 9000.0",
    ),
    "mel bands of ints": (
        lambda: signal.linear_to_mel_weight_matrix(dtype=df.int32),
        DTypeError,
        "int32",
        "another dtype",
    ),
    "mel bands of an unknown rate": (
        lambda: traced(lambda x: signal.linear_to_mel_weight_matrix(sample_rate=x), []),
        DTypeError,
        "while tracing",
        "Python number",
    ),
    "cepstra of nothing": (
        lambda: signal.mfccs_from_log_mel_spectrograms(df.zeros([2, 0])),
        InvalidArgumentError,
        "one band or more",
        "num_mel_bins",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/signal/*.py",)
