"""Jacobians of a graph's tensors, by gradients and by differences: ``compat.v1.test.compute_gradient``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core.errors import DTypeError, FailedPreconditionError
from dualflow.core.tracebacks import entry
from dualflow.graph_mode import get_default_session, gradients, placeholder

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from dualflow.core.argument_types import TensorLike

    Jacobians = tuple[NDArray[Any], NDArray[Any]]


@entry
def compute_gradient(
    x: TensorLike | Sequence[TensorLike],
    x_shape: Sequence[Any],
    y: TensorLike,
    y_shape: Sequence[int],
    x_init_value: ArrayLike | Sequence[ArrayLike] | None = None,
    delta: float = 1e-3,
    init_targets: object = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> Jacobians | list[Jacobians]:
    """The Jacobian of ``y`` for ``x`` in the default session, by its gradient and by central differences.

    Args:
        x: a tensor of floats, which is fed; or a list of such tensors.
        x_shape: its static shape, or a list of shapes.
        y: a tensor of floats that depends on ``x``.
        y_shape: its static shape.
        x_init_value: the value of ``x``, or a list of values; by default random numbers of [0, 1).
        delta: the difference.
        init_targets: operations that run before; a list of them.
        extra_feed_dict: more feeds of each run.

    Returns:
        Two matrices with a row for each element of ``x`` and a column for each element of ``y``; for a list
        ``x`` a list of such pairs.

    Raises:
        FailedPreconditionError: there is no default session.
        DTypeError: a tensor has complex numbers.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session():
    ...     x = v1.placeholder(v1.float64, [2])
    ...     by_gradient, by_difference = v1.test.compute_gradient(x, [2], 3.0 * x, [2])
    >>> by_gradient.tolist(), by_difference.round(6).tolist()
    ([[3.0, 0.0], [0.0, 3.0]], [[3.0, 0.0], [0.0, 3.0]])
    """
    session = get_default_session()
    if session is None:
        raise FailedPreconditionError(
            "compute_gradient() needs a default session: call it in a block `with Session():`; eagerly, call "
            "df.test.check_gradients(f, x)."
        )
    several = isinstance(x, list)
    tensors: list[Any] = list(x) if isinstance(x, list) else [x]
    shapes: list[Any] = list(x_shape) if several else [x_shape]
    values: list[Any] = [None] * len(tensors)
    if x_init_value is not None:
        values = list(x_init_value) if several else [x_init_value]  # type: ignore[arg-type]  # as x is a list
    target: Any = y
    if any(t.dtype.is_complex for t in (*tensors, target)):
        raise DTypeError(
            "compute_gradient() takes real tensors; call df.test.check_gradients for complex ones."
        )
    if init_targets is not None:
        session.run(init_targets)
    generator = np.random.default_rng(0)
    arrays = [
        (generator.random(tuple(shape)) if value is None else np.array(value)).astype(t.dtype.as_numpy_dtype)
        for t, shape, value in zip(tensors, shapes, values, strict=True)
    ]
    feeds = {**dict(zip(tensors, arrays, strict=True)), **(extra_feed_dict or {})}
    by_gradient = _by_gradient(session, tensors, target, tuple(y_shape), feeds)
    by_difference = [_by_difference(session, t, target, feeds, delta) for t in tensors]
    pairs = list(zip(by_gradient, by_difference, strict=True))
    return pairs if several else pairs[0]


@entry
def compute_gradient_error(
    x: TensorLike | Sequence[TensorLike],
    x_shape: Sequence[Any],
    y: TensorLike,
    y_shape: Sequence[int],
    x_init_value: ArrayLike | Sequence[ArrayLike] | None = None,
    delta: float = 1e-3,
    init_targets: object = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> float:
    """The largest difference of the two Jacobians of :func:`compute_gradient`, which has the arguments.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session():
    ...     x = v1.placeholder(v1.float64, [2])
    ...     v1.test.compute_gradient_error(x, [2], x * x, [2]) < 1e-6
    True
    """
    pairs = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    listed = pairs if isinstance(pairs, list) else [pairs]
    return max((float(np.abs(a - b).max(initial=0)) for a, b in listed), default=0.0)


def _by_gradient(
    session: Any, tensors: list[Any], y: Any, y_shape: tuple[int, ...], feeds: Mapping[Any, Any]
) -> list[NDArray[Any]]:
    """The Jacobian of ``y`` for each tensor: a gradient for each element of ``y``."""
    cotangent: Any = placeholder(y.dtype, y_shape)
    slopes = gradients(y, tensors, [cotangent])
    reached = {i: slope for i, slope in enumerate(slopes) if slope is not None}
    jacobians = [np.zeros((feeds[t].size, int(np.prod(y_shape))), feeds[t].dtype) for t in tensors]
    for column in range(int(np.prod(y_shape))):
        one = np.zeros(y_shape, y.dtype.as_numpy_dtype)
        one.flat[column] = 1
        for i, slope in session.run(reached, {**feeds, cotangent: one}).items():
            jacobians[i][:, column] = np.asarray(slope).reshape(-1)
    return jacobians


def _by_difference(session: Any, x: Any, y: Any, feeds: Mapping[Any, Any], delta: float) -> NDArray[Any]:
    """The Jacobian of ``y`` for ``x``: a central difference for each element of ``x``."""
    rows = []
    for row in range(feeds[x].size):
        low, high = feeds[x].copy(), feeds[x].copy()
        low.flat[row] -= delta
        high.flat[row] += delta
        ends = [np.asarray(session.run(y, {**feeds, x: end})).reshape(-1) for end in (low, high)]
        rows.append((ends[1] - ends[0]) / (2 * delta))
    if not rows:
        return np.zeros((0, np.size(session.run(y, feeds))), feeds[x].dtype)
    return np.array(rows, feeds[x].dtype)
