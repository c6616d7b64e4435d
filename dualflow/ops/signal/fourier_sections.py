"""Docstring sections that the discrete Fourier transforms share."""

from typing import Final

FFT: Final = """Args:
    input: complex64 or complex128, of {axes} or more.

Returns:
    A tensor with the shape and dtype of ``input``.

Raises:
    DTypeError: ``input`` doesn't hold complex numbers.
    InvalidArgumentError: ``input`` has fewer axes.
"""
RFFT: Final = """Args:
    input_tensor: {takes}, of {axes} or more.
    fft_length: {lengths}: longer signals are cut off, shorter ones padded with zeros.
        None for {default}.

Returns:
    A tensor of {returns}.

Raises:
    DTypeError: ``input_tensor`` has another dtype.
    InvalidArgumentError: ``input_tensor`` has fewer axes, or ``fft_length`` another number of entries, or a
        negative one.
"""
REAL: Final = {
    "takes": "float32 or float64",
    "default": "the sizes of the input",
    "returns": "complex64 or complex128, with ``fft_length // 2 + 1`` coefficients on the last axis",
}
COMPLEX: Final = {
    "takes": "complex64 or complex128, the first half of the coefficients on the last axis",
    "default": "the sizes of the input, and ``2 * (size - 1)`` for the last axis",
    "returns": "float32 or float64, of size ``fft_length`` on the last axis",
}
ONE: Final = {"axes": "one axis", "lengths": "the length of the transform"}
TWO: Final = {"axes": "two axes", "lengths": "the lengths of the transform on the last two axes"}
THREE: Final = {"axes": "three axes", "lengths": "the lengths of the transform on the last three axes"}
ANY_AXES: Final = """Args:
    input_tensor: {takes}.
    fft_length: the length of the transform on each axis: longer signals are cut off, shorter ones padded with
        zeros. None for {default}.
    axes: the axes to transform, a list of integers; None for all.
    norm: "backward" divides the inverse by the number of elements, "forward" the transform, "ortho" both by
        its square root; None for "backward".

Returns:
    A tensor of {returns}.

Raises:
    DTypeError: ``input_tensor`` has another dtype.
    InvalidArgumentError: there isn't one length for each axis, or ``norm`` is unknown.
"""
FULL: Final = {
    "takes": "complex64 or complex128",
    "default": "the sizes of the input",
    "returns": "the dtype of ``input_tensor``, of size ``fft_length`` on the transformed axes",
}
