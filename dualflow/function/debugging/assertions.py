"""``df.debugging.assert_*`` on values: checked eagerly, or by machine code when a traced function runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from dualflow.core.api_dispatch import COMPARING_ASSERTIONS, by_rule
from dualflow.core.composite_rules import CompositeError
from dualflow.core.dtypes import finfo, int32, int64
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.slot import Slot
from dualflow.core.tracebacks import entry
from dualflow.function.control.control_flow import cond
from dualflow.function.control.graph_exceptions import SMALL_BYTES, require
from dualflow.ops import arithmetic, comparison
from dualflow.ops.arrangement import reshape
from dualflow.ops.broadcasting import broadcast_like
from dualflow.ops.creation import convert_to_tensor, zeros, zeros_like
from dualflow.ops.record import promote_together
from dualflow.ops.reduction import argmax, reduce_all, reduce_any
from dualflow.ops.statistics import count_nonzero
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import sizes_of

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])
Relation = Callable[..., Any]

GROUP: Final[Slot[Callable[..., Any]]] = Slot("an operation that runs several", lambda *operations: None)
"""Joins operations of an explicit graph; ``graph_mode`` provides it, without which there are none."""


def _comparing(assertion: F) -> F:
    """:func:`entry` for an assertion about two values, which a program may define for its extension types."""
    COMPARING_ASSERTIONS.add(assertion)

    @functools.wraps(assertion)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return assertion(*args, **kwargs)
        except CompositeError as error:
            return by_rule(assertion, args, kwargs, error)

    return entry(call)  # type: ignore[return-value]  # of the same signature


@_comparing
def assert_equal(
    x: TensorLike,
    y: TensorLike,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """Raise an error unless ``x == y`` for each pair of elements; ``x`` and ``y`` broadcast.

    In a traced function it is a check of the compiled code, which stops the call at this line. A condition
    that is constant is checked while tracing.

    Args:
        x: a tensor.
        y: a tensor.
        message: the first line of the error.
        summarize: the number of elements that the error shows; 3 by default. Compiled code shows one element
            of large tensors.
        name: ignored; as in TensorFlow.

    Returns:
        None; in an explicit graph the operation that checks.

    Raises:
        InvalidArgumentError: the condition doesn't hold, or the shapes don't broadcast.

    >>> import dualflow as df
    >>> df.debugging.assert_equal(df.constant([1, 2, 3]), [1, 5, 3], message="sizes")
    Traceback (most recent call last):
    ...
    dualflow.core.errors.InvalidArgumentError: sizes
    Condition x == y did not hold for 1 of 3 elements:
        [1]: x = 2, y = 5
    """
    return _compare("x == y", comparison.equal, (x, y), message, summarize)


@_comparing
def assert_none_equal(
    x: TensorLike,
    y: TensorLike,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    """Raise an error unless ``x != y`` for each pair of elements; as :func:`assert_equal`."""
    return _compare("x != y", comparison.not_equal, (x, y), message, summarize)


@_comparing
def assert_less(
    x: TensorLike,
    y: TensorLike,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """Raise an error unless ``x < y`` for each pair of elements; as :func:`assert_equal`."""
    return _compare("x < y", comparison.less, (x, y), message, summarize)


@_comparing
def assert_less_equal(
    x: TensorLike,
    y: TensorLike,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """Raise an error unless ``x <= y`` for each pair of elements; as :func:`assert_equal`."""
    return _compare("x <= y", comparison.less_equal, (x, y), message, summarize)


@_comparing
def assert_greater(
    x: TensorLike,
    y: TensorLike,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """Raise an error unless ``x > y`` for each pair of elements; as :func:`assert_equal`."""
    return _compare("x > y", comparison.greater, (x, y), message, summarize)


@_comparing
def assert_greater_equal(
    x: TensorLike,
    y: TensorLike,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """Raise an error unless ``x >= y`` for each pair of elements; as :func:`assert_equal`."""
    return _compare("x >= y", comparison.greater_equal, (x, y), message, summarize)


@entry
def assert_negative(
    x: TensorLike, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> Any:
    """Raise an error unless each element is below 0; as :func:`assert_equal`."""
    return _compare("x < 0", lambda x: x < zeros_like(x), (x,), message, summarize)


@entry
def assert_positive(
    x: TensorLike, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> Any:
    """Raise an error unless each element is above 0; as :func:`assert_equal`.

    >>> import dualflow as df
    >>> root = df.function(lambda x: [df.debugging.assert_positive(x), df.sqrt(x)][1])
    >>> root(df.constant(4.0)).numpy()
    np.float32(2.0)
    """
    return _compare("x > 0", lambda x: x > zeros_like(x), (x,), message, summarize)


@entry
def assert_non_negative(
    x: TensorLike, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> Any:
    """Raise an error unless each element is 0 or above; as :func:`assert_equal`."""
    return _compare("x >= 0", lambda x: x >= zeros_like(x), (x,), message, summarize)


@entry
def assert_non_positive(
    x: TensorLike, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> Any:
    """Raise an error unless each element is 0 or below; as :func:`assert_equal`."""
    return _compare("x <= 0", lambda x: x <= zeros_like(x), (x,), message, summarize)


@_comparing
def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: TensorLike | None = None,
    atol: TensorLike | None = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """Raise an error unless ``|x - y| <= atol + rtol * |y|`` for each pair of elements.

    Args:
        x: a tensor of floats or complex numbers.
        y: a tensor of floats or complex numbers.
        rtol: the relative tolerance; by default 10 times the epsilon of the dtype.
        atol: the absolute tolerance; the same by default.
        message: the first line of the error.
        summarize: the number of elements that the error shows; 3 by default.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: the condition doesn't hold, or ``x`` and ``y`` are of integers.
    """
    first, second = promote_together(x, y)
    if not first.dtype.is_inexact:
        raise InvalidArgumentError(
            f"assert_near compares floats, not {first.dtype.name}; use assert_equal for integers."
        )
    default = 10 * float(finfo(first.dtype).eps)
    relative: Any = default if rtol is None else rtol
    absolute: Any = default if atol is None else atol

    def near(x: Any, y: Any) -> Any:
        return arithmetic.abs(x - y) <= absolute + relative * arithmetic.abs(y)

    return _compare("|x - y| <= atol + rtol * |y|", near, (first, second), message, summarize)


@entry
def Assert(
    condition: TensorLike, data: TensorLike, summarize: int | None = None, name: str | None = None
) -> Any:
    """Raise an error that shows ``data`` unless all elements of ``condition`` are true.

    Args:
        condition: a bool, or a bool tensor.
        data: a list of tensors and Python values.
        summarize: the number of elements of each tensor that the error shows; 3 by default.
        name: ignored; as in TensorFlow.

    Returns:
        None; in an explicit graph the operation that checks.

    Raises:
        InvalidArgumentError: an element of ``condition`` is false.

    >>> import dualflow as df
    >>> df.debugging.Assert(False, ["sizes", df.constant([1, 2])])
    Traceback (most recent call last):
    ...
    dualflow.core.errors.InvalidArgumentError: assertion failed: sizes [1, 2]
    """
    count = 3 if summarize is None else summarize

    def failed(*shown: Any) -> InvalidArgumentError:
        return InvalidArgumentError(f"assertion failed: {' '.join(_summary(x, count) for x in shown)}")

    shown = list(data) if isinstance(data, list | tuple) else [data]
    texts = " ".join([x for x in shown if isinstance(x, str)])
    return require(reduce_all(condition), failed, shown, f"assertion failed: {texts}".removesuffix(": "))


@entry
def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """``tensor`` unchanged; an error if one of its elements is nan or infinite.

    Args:
        tensor: a tensor of floats.
        message: the beginning of the error.
        name: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: an element is nan or infinite, or ``tensor`` is not of floats.

    >>> import dualflow as df
    >>> df.debugging.check_numerics(df.constant([1.0, float("nan")]), "rates")
    Traceback (most recent call last):
    ...
    dualflow.core.errors.InvalidArgumentError: rates : Tensor had NaN values
    """
    x = convert_to_tensor(tensor)
    if not x.dtype.is_floating:
        raise InvalidArgumentError(f"check_numerics takes floats, not {x.dtype.name}; cast it with df.cast.")

    def failed(has_inf: Any, has_nan: Any) -> InvalidArgumentError:
        kinds = [kind for kind, occurs in (("Inf", has_inf), ("NaN", has_nan)) if occurs]
        return InvalidArgumentError(f"{message} : Tensor had {' and '.join(kinds)} values")

    ok = reduce_all(comparison.isfinite(x))
    kinds = [reduce_any(comparison.isinf(x)), reduce_any(comparison.isnan(x))]
    require(ok, failed, kinds, f"{message} : Tensor had Inf or NaN values")
    return x


@entry
def assert_all_finite(x: TensorLike, message: str, name: str | None = None) -> Tensor:
    """``x`` unchanged; an error if one of its elements is nan or infinite; as :func:`check_numerics`."""
    return check_numerics(x, message)


def all_checks(checks: Sequence[Any]) -> Any:
    """Several checks as one.

    Args:
        checks: results of assertions.

    Returns:
        None; in an explicit graph an operation that runs those of ``checks``.
    """
    operations = [check for check in checks if check is not None]
    return GROUP.value(*operations) if operations else None


def _compare(
    condition: str, relation: Relation, values: Sequence[Any], message: str | None, summarize: int | None
) -> Any:
    """Raise an error unless a relation of values, which broadcast, holds for all elements."""
    tensors = promote_together(*values)
    try:
        holds = relation(*tensors)
    except DTypeError as error:
        raise InvalidArgumentError(f"{condition} can't be checked: {error}") from None
    start = f"{message}\nCondition {condition}" if message else f"Condition {condition}"
    count = 3 if summarize is None else summarize
    broadcast = [broadcast_like(x, holds) for x in tensors]
    if all(x.shape.is_static for x in tensors) and sum(x.spec.nbytes for x in broadcast) <= SMALL_BYTES:

        def failed(*shown: Any) -> InvalidArgumentError:
            indices = np.argwhere(~relation(*shown).numpy())
            examples = [
                (tuple(i.tolist()), [np.asarray(x)[tuple(i)] for x in shown]) for i in indices[:count]
            ]
            return _failure(start, len(indices), holds.shape.num_elements(), examples)

        return require(reduce_all(holds), failed, broadcast, f"{start} did not hold")
    return _require_all(holds, broadcast, start)


def _require_all(holds: Any, shown: Sequence[Any], start: str) -> Any:
    """Raise an error that begins with ``start`` and shows the values at the first element that is False."""

    def first_failure() -> list[Any]:
        fails, *flat = [reshape(x, [-1]) for x in (~holds, *shown)]
        first = argmax(fails)
        return [count_nonzero(fails), sizes_of(holds), first, *[gather(x, first) for x in flat]]

    def no_failure() -> list[Any]:
        rank = len(holds.shape)
        specs = [((), int64), ((rank,), int32), ((), int64), *[((), x.dtype) for x in shown]]
        return [zeros(shape, dtype) for shape, dtype in specs]

    def failed(failures: Any, sizes: Any, position: Any, *values: Any) -> InvalidArgumentError:
        shape = tuple(sizes.numpy().tolist())
        index = np.unravel_index(int(position), shape)
        return _failure(start, int(failures), math.prod(shape), [(index, [x.numpy() for x in values])])

    all_hold = reduce_all(holds)
    # tensors of dynamic size may have no elements, among which there is no position
    reads = first_failure() if holds.shape.is_static else cond(all_hold, no_failure, first_failure)
    return require(all_hold, failed, reads, f"{start} did not hold")


def _failure(
    start: str, failures: int, size: int, examples: Sequence[tuple[Any, list[Any]]]
) -> InvalidArgumentError:
    """The error for the number of failures, with examples: pairs of an index and the values there."""
    shown = [", ".join(f"{n} = {v!s}" for n, v in zip("xy", values, strict=False)) for _, values in examples]
    if examples and not len(examples[0][0]):
        return InvalidArgumentError(f"{start} did not hold: {shown[0]}")
    elements = f"{failures} of {size} elements"
    lines = [
        f"\n    {[int(i) for i in index]}: {text}" for (index, _), text in zip(examples, shown, strict=True)
    ]
    return InvalidArgumentError(f"{start} did not hold for {elements}:{''.join(lines)}")


def _summary(value: Any, count: int) -> str:
    """A tensor's first elements; ``str`` of any other value."""
    if not hasattr(value, "numpy"):
        return str(value)
    flat = np.ravel(value.numpy())
    more = ", ..." if 0 <= count < flat.size else ""
    listed = f"[{', '.join(str(x) for x in (flat[:count] if count >= 0 else flat))}{more}]"
    return listed if value.shape else str(flat[0])
