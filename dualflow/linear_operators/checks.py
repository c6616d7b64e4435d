"""Checks of the numbers that an operator holds, at once or when a function runs."""

from __future__ import annotations

from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.function.debugging.assertions import assert_equal, assert_positive
from dualflow.ops.arithmetic import abs as absolute
from dualflow.ops.complex_numbers import imag
from dualflow.ops.creation import zeros_like


def assert_no_zeros(x: Any, message: str) -> Any:
    """Raises an error with this message unless all elements differ from 0; in a function, when it runs."""
    return assert_positive(absolute(x), message=message)


def assert_real(x: Any, message: str) -> Any:
    """Raises an error with this message unless all imaginary parts are 0; in a function, when it runs."""
    return assert_equal(imag(x), zeros_like(imag(x)), message=message) if x.dtype.is_complex else None


def require_square(x: Any, name: str) -> None:
    """Raise an error if the matrices of a tensor are not square by their static shape."""
    rows, columns = x.shape[-2:]
    if None not in (rows, columns) and rows != columns:
        raise InvalidArgumentError(
            f"{name} holds square matrices, but its shape is {x.shape}; use LinearOperatorFullMatrix."
        )
