"""Assertions about tensors, arrays and structures of them, for classes of unit tests."""

from __future__ import annotations

import unittest
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dualflow.core.dispatch import TENSORS, AbstractComposite
from dualflow.core.dtypes import DType, as_dtype
from dualflow.core.spec import HasSpec

Array = np.ndarray[Any, Any]


class ArrayAssertions(unittest.TestCase):
    """Assertions that take tensors, arrays, numbers and lists, and evaluate what a session has to."""

    longMessage = True

    def evaluate(self, tensors: object) -> Any:
        """The values of a structure of tensors as arrays."""
        raise NotImplementedError

    def _GetNdArray(self, value: Any) -> Array:
        """``value`` as an array; subclasses call it by TensorFlow's name."""
        return np.asarray(self._evaluated(value))

    def _evaluated(self, value: Any) -> Any:
        """``value`` with arrays in place of the tensors in it; a ragged tensor becomes nested lists."""
        if hasattr(value, "to_list"):
            return self.evaluate(value).to_list()
        if isinstance(value, (*TENSORS, AbstractComposite)):
            return self.evaluate(value)
        if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
            return [self._evaluated(item) for item in value]
        return value

    # Equality

    def assertAllEqual(self, a: object, b: object, msg: str | None = None) -> None:
        """Check that two values have one shape and equal elements; nan equals nan.

        Args:
            a, b: tensors, ragged tensors, arrays, numbers, strings or nested lists.
            msg: the beginning of the error's message.
        """
        first, second = self._evaluated(a), self._evaluated(b)
        if _is_ragged(first) or _is_ragged(second):
            self.assertEqual(_as_lists(first), _as_lists(second), msg)
            return
        x, y = np.asarray(first), np.asarray(second)
        self._check_shapes(x, y, msg)
        x, y = _as_bytes(x), _as_bytes(y)
        same = x == y
        if x.dtype.kind in "fc" and y.dtype.kind in "fc":
            same = same | (np.isnan(x) & np.isnan(y))
        if not np.all(same):
            self._fail_at(~np.asarray(same), x, y, "Values are not equal", msg)

    def assertNotAllEqual(self, a: object, b: object, msg: str | None = None) -> None:
        """Check that two values differ in an element or in shape.

        Args:
            a, b: as of :meth:`assertAllEqual`.
            msg: the beginning of the error's message.
        """
        try:
            self.assertAllEqual(a, b)
        except self.failureException:
            return
        self.fail(self._formatMessage(msg, "The two values are equal at all elements."))

    # Closeness

    def assertAllClose(
        self, a: object, b: object, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Check that ``abs(a - b) <= atol + rtol * abs(b)`` for all elements of two structures.

        Args:
            a, b: tensors, arrays, numbers, or dicts, named tuples and lists of them, of one structure.
            rtol: the relative tolerance.
            atol: the absolute tolerance.
            msg: the beginning of the error's message.
        """
        self._close(a, b, rtol, atol, msg, "")

    def assertNotAllClose(
        self, a: object, b: object, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Check that two structures are not close.

        Args:
            a, b, rtol, atol, msg: as of :meth:`assertAllClose`.
        """
        try:
            self.assertAllClose(a, b, rtol, atol)
        except self.failureException:
            return
        self.fail(self._formatMessage(msg, "The two values are close at all elements."))

    def assertAllCloseAccordingToType(
        self,
        a: object,
        b: object,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """:meth:`assertAllClose` with the tolerances of the narrower dtype of the two.

        Args:
            a, b: tensors, arrays or numbers.
            rtol, atol: the tolerances of float64 and of integers.
            float_rtol, float_atol: the smallest tolerances of float32 and complex64.
            half_rtol, half_atol: those of float16.
            bfloat16_rtol, bfloat16_atol: those of bfloat16.
            msg: the beginning of the error's message.
        """
        x, y = self._GetNdArray(a), self._GetNdArray(b)
        for names, least in (
            (("float32", "complex64"), (float_rtol, float_atol)),
            (("float16",), (half_rtol, half_atol)),
            (("bfloat16",), (bfloat16_rtol, bfloat16_atol)),
        ):
            if x.dtype.name in names or y.dtype.name in names:
                rtol, atol = max(rtol, least[0]), max(atol, least[1])
        self.assertAllClose(x, y, rtol, atol, msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: str | None = None) -> None:
        """Check that two numbers differ by at most ``err``.

        Args:
            f1, f2: the numbers.
            err: the largest difference.
            msg: the end of the error's message.
        """
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, f"{f1} is not near {f2} (error {err}). {msg or ''}")

    def assertArrayNear(
        self, farray1: Sequence[float], farray2: Sequence[float], err: float, msg: str | None = None
    ) -> None:
        """Check that the numbers of two lists differ by at most ``err`` each.

        Args:
            farray1, farray2: lists of as many numbers.
            err: the largest difference.
            msg: the end of the error's message.
        """
        self.assertEqual(len(farray1), len(farray2), msg)
        for x, y in zip(farray1, farray2, strict=True):
            self.assertNear(float(x), float(y), err, msg)

    def assertNDArrayNear(
        self, ndarray1: object, ndarray2: object, err: float, msg: str | None = None
    ) -> None:
        """Check that the Euclidean norm of the difference of two arrays is at most ``err``.

        Args:
            ndarray1, ndarray2: arrays of one shape.
            err: the largest norm.
            msg: the end of the error's message.
        """
        distance = np.linalg.norm(self._GetNdArray(ndarray1) - self._GetNdArray(ndarray2))
        self.assertLessEqual(float(distance), err, msg)

    # All elements

    def assertAllGreater(self, a: object, comparison_target: object) -> None:
        """Check that all elements are greater than a number: ``a > comparison_target``."""
        self._for_all(a, comparison_target, np.greater, ">")

    def assertAllLess(self, a: object, comparison_target: object) -> None:
        """Check that all elements are less than a number: ``a < comparison_target``."""
        self._for_all(a, comparison_target, np.less, "<")

    def assertAllGreaterEqual(self, a: object, comparison_target: object) -> None:
        """Check that all elements are a number or greater: ``a >= comparison_target``."""
        self._for_all(a, comparison_target, np.greater_equal, ">=")

    def assertAllLessEqual(self, a: object, comparison_target: object) -> None:
        """Check that all elements are a number or less: ``a <= comparison_target``."""
        self._for_all(a, comparison_target, np.less_equal, "<=")

    def assertAllInRange(
        self,
        target: object,
        lower_bound: float,
        upper_bound: float,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Check that all elements are in an interval.

        Args:
            target: a tensor or an array.
            lower_bound, upper_bound: the ends of the interval.
            open_lower_bound, open_upper_bound: whether an end is outside of it.
        """
        (self.assertAllGreater if open_lower_bound else self.assertAllGreaterEqual)(target, lower_bound)
        (self.assertAllLess if open_upper_bound else self.assertAllLessEqual)(target, upper_bound)

    def assertAllInSet(self, target: object, expected_set: Iterable[Any]) -> None:
        """Check that each element of ``target`` is one of ``expected_set``."""
        outside = set(self._GetNdArray(target).ravel().tolist()) - set(expected_set)
        self.assertFalse(outside, f"{sorted(outside)} are not in {expected_set}")

    # Shapes and dtypes

    def assertShapeEqual(self, input_a: HasSpec, input_b: HasSpec, msg: str | None = None) -> None:
        """Check that two values have the same static shape.

        Args:
            input_a, input_b: tensors or arrays.
            msg: the beginning of the error's message.
        """
        self.assertEqual(list(input_a.shape), list(input_b.shape), msg)

    def assertDTypeEqual(self, target: object, expected_dtype: object) -> None:
        """Check the dtype of a tensor or an array; ``expected_dtype`` is a dtype or its name."""
        dtype = target.dtype if hasattr(target, "dtype") else self._GetNdArray(target).dtype
        self.assertEqual(as_dtype(dtype).name, _dtype_name(expected_dtype))

    def _for_all(self, a: Any, target: Any, relation: Any, sign: str) -> None:
        x = self._GetNdArray(a)
        holds = np.asarray(relation(x, self._GetNdArray(target)))
        if not holds.all():
            self.fail(f"Not all elements are {sign} {target}: {x[~holds][:10]} at {np.argwhere(~holds)[:10]}")

    def _close(self, a: Any, b: Any, rtol: float, atol: float, msg: str | None, path: str) -> None:
        if hasattr(a, "_asdict") and hasattr(b, "_asdict"):
            a, b = a._asdict(), b._asdict()
        if isinstance(a, Mapping) or isinstance(b, Mapping):
            self.assertEqual(set(a), set(b), msg)
            for key in a:
                self._close(a[key], b[key], rtol, atol, msg, f"{path}[{key!r}]")
            return
        first, second = self._evaluated(a), self._evaluated(b)
        if _is_nested(first) or _is_nested(second):
            self.assertEqual(len(first), len(second), f"the lists{path} have different lengths")
            for i, (x, y) in enumerate(zip(first, second, strict=True)):
                self._close(x, y, rtol, atol, msg, f"{path}[{i}]")
            return
        x, y = np.asarray(first), np.asarray(second)
        self._check_shapes(x, y, msg)
        if x.dtype.kind not in "biufcV" or y.dtype.kind not in "biufcV":
            self.assertAllEqual(x, y, msg)
            return
        close = np.isclose(_wide(x), _wide(y), rtol, atol, equal_nan=True)
        if not close.all():
            where = f"Values{path and f' at {path}'} are not close within rtol={rtol}, atol={atol}"
            self._fail_at(~close, x, y, where, msg)

    def _check_shapes(self, x: Array, y: Array, msg: str | None) -> None:
        if x.shape != y.shape:
            self.fail(self._formatMessage(msg, f"Shape mismatch: expected {x.shape}, got {y.shape}."))

    def _fail_at(self, wrong: Array, x: Array, y: Array, what: str, msg: str | None) -> None:
        places = np.argwhere(wrong)
        shown = [f"  {tuple(at.tolist())}: {x[tuple(at)]!r} and {y[tuple(at)]!r}" for at in places[:10]]
        lines = [f"{what}: {len(places)} of {wrong.size} elements differ.", *shown]
        self.fail(self._formatMessage(msg, "\n".join(lines)))


def _is_nested(value: Any) -> bool:
    """Whether a list holds structures, or lists of different lengths: what no array can."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    return _is_ragged(value) or any(isinstance(v, Mapping) or hasattr(v, "_asdict") for v in value)


def _is_ragged(value: Any) -> bool:
    """Whether nested lists have different lengths."""
    if not isinstance(value, list | tuple):
        return False
    try:
        np.array(value)
    except ValueError:
        return True
    return False


def _as_lists(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_lists(item) for item in value]
    array = _as_bytes(np.asarray(value))
    return array.tolist()


def _as_bytes(array: Array) -> Array:
    """Text as the bytes that tensors hold."""
    if array.dtype.kind not in "USO":
        return array
    encoded = [x.encode() if isinstance(x, str) else x for x in array.ravel().tolist()]
    out = np.empty(len(encoded), object)
    out[:] = encoded
    return out.reshape(array.shape)


def _wide(array: Array) -> Array:
    """Narrow floats and bools as floats that NumPy compares; others unchanged."""
    return array.astype(np.float32) if array.dtype.kind in "bV" or array.dtype.itemsize < 4 else array


def _dtype_name(dtype: Any) -> str:
    return dtype.name if isinstance(dtype, DType) else as_dtype(dtype).name
