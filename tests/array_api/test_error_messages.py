"""Errors of the Array API namespace: each states what is wrong and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from error_cases import ErrorCases

import dualflow as df
import dualflow.array_api as xp
from dualflow.core.device_names import DeviceSpec
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError

X = xp.reshape(xp.arange(6.0), (2, 3))
V = xp.asarray([1, 2, 3])
EMPTY = xp.zeros((0, 3))
DYNAMIC = df.TensorSpec([None, 3])


def put(x: Any, key: Any, value: Any) -> None:
    x[key] = value


def grow(x: Any, by: Any) -> None:
    x += by


def traced(function: Any, *specs: Any) -> Any:
    return df.function(function).get_concrete_function(*specs)


CASES = {
    "a list": (lambda: xp.sin([1.0]), DTypeError, "take arrays, not list", "asarray"),
    "two numbers": (lambda: xp.add(1, 2), DTypeError, "take arrays, not int", "asarray"),
    "a wider result": (
        lambda: grow(xp.asarray([1, 2]), 0.5),
        DTypeError,
        r"can't put float64\[2\]",
        r"x = x \+ y",
    ),
    "a larger result": (lambda: grow(xp.ones(1), xp.ones(2)), DTypeError, r"float64\[1\] stays so", "astype"),
    "no axis to go along": (
        lambda: iter(xp.ones(())),
        DTypeError,
        "without axes can't be iterated",
        "reshape",
    ),
    "a hash": (lambda: hash(V), DTypeError, "have no hash", r"id\(x\)"),
    "an axis outside": (lambda: xp.sum(X, axis=2), OutOfRangeError, "axis 2 is out of range", "use -2 to 1"),
    "an axis of another type": (lambda: xp.sum(X, axis="x"), DTypeError, "not 'x'", "such as 0 or -1"),
    "an axis twice": (
        lambda: xp.sum(X, axis=(0, -2)),
        InvalidArgumentError,
        "names an axis twice",
        "each once",
    ),
    "shifts for other axes": (
        lambda: xp.roll(X, (1, 2, 3), axis=(0, 1)),
        InvalidArgumentError,
        r"shift \(1, 2, 3\)",
        "one integer for each of 2 axes",
    ),
    "no copy of a list": (
        lambda: xp.asarray([1], copy=False),
        InvalidArgumentError,
        "only by a copy",
        "leave copy",
    ),
    "no name of a device": (
        lambda: DeviceSpec.from_string("the first one"),
        InvalidArgumentError,
        "'the first one' is no name of a device, such as",
    ),
    "another device": (
        lambda: xp.zeros(1, device="gpu"),
        InvalidArgumentError,
        "'gpu' is no device",
        "'cpu'",
    ),
    "a stream": (
        lambda: X.to_device("cpu", stream=1),
        InvalidArgumentError,
        "no streams, such as 1",
        "leave the stream",
    ),
    "many values to fill with": (
        lambda: xp.full(2, V),
        InvalidArgumentError,
        r"shape \(3,\)",
        "broadcast_to",
    ),
    "many values for a shape": (
        lambda: xp.full_like(X, V),
        InvalidArgumentError,
        r"shape \(3,\)",
        "broadcast_to",
    ),
    "no step": (lambda: xp.arange(3, step=0), InvalidArgumentError, "step can't be 0", "arange"),
    "fewer than none": (lambda: xp.linspace(0, 1, -1), InvalidArgumentError, "not -1", "0 numbers or more"),
    "whole distances": (lambda: xp.linspace(0, 1, 3, dtype=xp.int8), DTypeError, "not int8", "astype"),
    "a triangle of a vector": (lambda: xp.tril(V), InvalidArgumentError, r"shape \(3,\)", "take matrices"),
    "a lost imaginary part": (
        lambda: xp.astype(xp.asarray([1j]), xp.float64),
        DTypeError,
        "complex128 becomes float64",
        r"real\(x\)",
    ),
    "limits of integers": (lambda: xp.finfo(xp.int8), DTypeError, "not int8", "use iinfo"),
    "ends of floats": (lambda: xp.iinfo(xp.float32), DTypeError, "not float32", "use finfo"),
    "no kind": (lambda: xp.isdtype(xp.int8, "text"), InvalidArgumentError, "'text' is no kind", "use one of"),
    "no dtypes": (xp.result_type, InvalidArgumentError, "one array or dtype", "or more"),
    "bounds for complex numbers": (
        lambda: xp.clip(xp.asarray([1j]), 0, 1),
        DTypeError,
        "needs real numbers",
        "parts",
    ),
    "a value for other parts": (
        lambda: put(xp.zeros((2, 3)), xp.asarray([True, False]), xp.ones(2)),
        InvalidArgumentError,
        r"shape \(2,\) does not broadcast to the part's shape \(3,\)",
        "reshape it",
    ),
    "a value for other elements": (
        lambda: put(xp.zeros(3), xp.asarray([0, 1]), xp.ones(3)),
        InvalidArgumentError,
        r"shape \(3,\) does not broadcast to the part's shape \(2,\)",
        "reshape it",
    ),
    "places of dynamic sizes": (
        lambda: traced(lambda x: put(xp.asarray(x, copy=True), V, 0.0), DYNAMIC),
        DTypeError,
        r"not \(None, 3\)",
        "where",
    ),
    "a mask of another shape": (
        lambda: X[xp.asarray([True, False, True])],
        OutOfRangeError,
        r"mask of shape \(3,\) does not fit an array of shape \(2, 3\)",
        "first axes",
    ),
    "a float among integers": (
        lambda: put(xp.zeros(2, dtype=xp.int8), 0, 0.5),
        DTypeError,
        "int8 can't hold 0.5",
        "astype",
    ),
    "vectors of two lengths": (
        lambda: xp.vecdot(V, xp.ones(2)),
        InvalidArgumentError,
        "not 3 and 2",
        "one size",
    ),
    "an outer product of matrices": (
        lambda: xp.linalg.outer(X, V),
        InvalidArgumentError,
        r"\(2, 3\)",
        "two vectors",
    ),
    "a plane's vectors": (
        lambda: xp.linalg.cross(xp.ones(2), V),
        InvalidArgumentError,
        "2 and 3",
        "3 elements",
    ),
    "a diagonal of a vector": (
        lambda: xp.linalg.diagonal(V),
        InvalidArgumentError,
        r"shape \(3,\)",
        "two axes or more",
    ),
    "nothing to join": (
        lambda: xp.concat([]),
        InvalidArgumentError,
        "the list is empty",
        "one array or more",
    ),
    "one source to two places": (
        lambda: xp.moveaxis(X, 0, (0, 1)),
        InvalidArgumentError,
        "not 2 for 1",
        "a destination for each",
    ),
    "a product with a number": (
        lambda: xp.matmul(X, xp.ones(())),
        InvalidArgumentError,
        "one axis or more",
        r"with \*",
    ),
    "rows to take": (lambda: xp.take(X, V), InvalidArgumentError, "of 2 axes", "axis="),
    "places of fewer axes": (
        lambda: xp.take_along_axis(X, V),
        InvalidArgumentError,
        r"of shape \(3,\)",
        "as many axes",
    ),
    "places of no axes": (
        lambda: xp.nonzero(xp.ones(())),
        InvalidArgumentError,
        "one axis or more",
        "reshape",
    ),
    "the largest of none": (
        lambda: xp.max(EMPTY, axis=0),
        InvalidArgumentError,
        "maximum of no elements",
        "axis 0",
    ),
    "sums along which axis": (lambda: xp.cumulative_sum(X), InvalidArgumentError, "of 2 axes", "axis="),
    "another way to decompose": (
        lambda: xp.linalg.qr(X, mode="r"),
        InvalidArgumentError,
        "not 'r'",
        "'reduced' or",
    ),
    "powers of what is not square": (
        lambda: xp.linalg.matrix_power(X, 2),
        InvalidArgumentError,
        r"shape \(2, 3\)",
        "takes square matrices",
    ),
    "another norm of matrices": (
        lambda: xp.linalg.matrix_norm(X, ord=3),
        InvalidArgumentError,
        "not 3",
        "'fro', 'nuc'",
    ),
    "a search in a matrix": (
        lambda: xp.searchsorted(X, V),
        InvalidArgumentError,
        r"shape \(2, 3\)",
        "of one axis",
    ),
    "neither side": (
        lambda: xp.searchsorted(V, V, side="top"),
        InvalidArgumentError,
        "not 'top'",
        "'left' or 'right'",
    ),
    "a real transform of complex numbers": (
        lambda: xp.fft.rfft(xp.asarray([1j])),
        DTypeError,
        "not of complex128",
        "fft.fft",
    ),
    "sizes for other axes": (
        lambda: xp.fft.fftn(X, s=(2,), axes=(0, 1)),
        InvalidArgumentError,
        r"s has one size for each axis, not \(2,\)",
        "2 axes",
    ),
    "whole frequencies": (lambda: xp.fft.fftfreq(3, dtype=xp.int8), DTypeError, "not int8", "use float32"),
    "frequencies of nothing": (
        lambda: xp.fft.fftfreq(0),
        InvalidArgumentError,
        "not of 0",
        "1 element or more",
    ),
    "differences undone": (lambda: xp.diff(V, n=-1), InvalidArgumentError, "not -1", "0 times or more"),
}
"""For each kind of mistake: a call that makes it, the error, its text, and what to do."""


class TestErrorMessages(ErrorCases):
    cases = CASES
    internal = ("bounds for complex numbers",)
    raised_in = ("array_api/*.py", "core/device_names.py", "ops/item_assignment.py")


def test_a_version_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"'2035\.12' of the Array API; leave it out, or take one of 2021\.12"
    ):
        X.__array_namespace__(api_version="2035.12")


def test_the_traceback_shows_the_users_line_alone() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        xp.concat([])
    assert [entry.path.name for entry in caught.traceback] == ["test_error_messages.py"]


def test_memory_that_has_to_be_copied_is_not_shared() -> None:
    with pytest.raises(BufferError, match="readonly"):
        X.__dlpack__(copy=False, max_version=(0, 8))
    shared = np.from_dlpack(X, copy=False)
    assert not shared.flags.writeable
