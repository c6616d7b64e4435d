"""Random changes of images, from the shared stream or, in the ``stateless`` functions, decided by a seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from dualflow.core.dtypes import int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import mod
from dualflow.ops.arrangement import reshape
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.image.adjustment import adjust_brightness, adjust_contrast
from dualflow.ops.image.colours import adjust_hue, adjust_saturation
from dualflow.ops.image.placement import as_batch
from dualflow.ops.measuring import sizes_of
from dualflow.ops.positions import iota
from dualflow.ops.random_numbers.functions import uniform
from dualflow.ops.random_numbers.stateless import stateless_uniform
from dualflow.ops.repetition import reverse
from dualflow.ops.selection import where
from dualflow.ops.static import ints, known_sizes, static_float
from dualflow.ops.taking import gather

if TYPE_CHECKING:
    from dualflow.ops.tensor import Tensor

Draw = Callable[..., Any]


def _stateful(seed: int | None) -> Draw:
    return partial(uniform, seed=seed)


def _by(seed: Any) -> Draw:
    return partial(stateless_uniform, seed=seed)


def _flipped(image: Any, axis: int, draw: Draw) -> Tensor:
    """One image is mirrored where less than a half is drawn, those of a batch where more is."""
    images, single = as_batch(image)
    mirrored = reverse(images, [axis])
    if len(convert_to_tensor(image).shape) == 3:
        return single(where(draw([]) < 0.5, mirrored, images))
    count = images.shape[0]
    drawn = draw([sizes_of(images)[0] if count is None else count])
    return where(reshape(drawn, [-1, 1, 1, 1]) > 0.5, mirrored, images)


@entry
def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Images mirrored at a chance of a half, left and right exchanged, each on its own.

    Args:
        image: ``[batch, height, width, channels]``, or without the batch.
        seed: a stream of its own for the calls with this seed.
    """
    return _flipped(image, 2, _stateful(seed))


@entry
def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Images upside down at a chance of a half; see :func:`random_flip_left_right`."""
    return _flipped(image, 1, _stateful(seed))


@entry
def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """As :func:`random_flip_left_right`, decided by the two integers ``seed``, as TensorFlow decides.

    >>> import dualflow as df
    >>> df.image.stateless_random_flip_left_right([[[1], [2]]], seed=(3, 4)).shape.as_list()
    [1, 2, 1]
    """
    return _flipped(image, 2, _by(seed))


@entry
def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """As :func:`random_flip_up_down`, decided by the two integers ``seed``, as TensorFlow decides."""
    return _flipped(image, 1, _by(seed))


def _around_zero(max_delta: Any, draw: Draw, most: float | None = None) -> Any:
    max_delta = static_float(max_delta, "max_delta")
    if max_delta < 0 or (most is not None and max_delta > most):
        reach = "0 or more" if most is None else f"from 0 to {most}"
        raise InvalidArgumentError(f"max_delta is {reach}, not {max_delta}.")
    return draw([], minval=-max_delta, maxval=max_delta)


def _between(lower: Any, upper: Any, draw: Draw) -> Any:
    if not 0 <= static_float(lower, "lower") < static_float(upper, "upper"):
        raise InvalidArgumentError(f"factors are drawn with 0 <= lower < upper, not from {lower} to {upper}.")
    return draw([], minval=lower, maxval=upper)


@entry
def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_brightness` by a number from ``-max_delta`` to ``max_delta``.

    Raises:
        InvalidArgumentError: a negative ``max_delta``.
    """
    return adjust_brightness(image, _around_zero(max_delta, _stateful(seed)))


@entry
def stateless_random_brightness(image: Any, max_delta: float, seed: Any) -> Tensor:
    """As :func:`random_brightness`, decided by the two integers ``seed``, as TensorFlow decides."""
    return adjust_brightness(image, _around_zero(max_delta, _by(seed)))


@entry
def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_contrast` by a factor from ``lower`` to ``upper``.

    Raises:
        InvalidArgumentError: not ``0 <= lower < upper``.
    """
    return adjust_contrast(image, _between(lower, upper, _stateful(seed)))


@entry
def stateless_random_contrast(image: Any, lower: float, upper: float, seed: Any) -> Tensor:
    """As :func:`random_contrast`, decided by the two integers ``seed``, as TensorFlow decides."""
    return adjust_contrast(image, _between(lower, upper, _by(seed)))


@entry
def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_saturation` by a factor from ``lower`` to ``upper``.

    Raises:
        InvalidArgumentError: not ``0 <= lower < upper``.
    """
    return adjust_saturation(image, _between(lower, upper, _stateful(seed)))


@entry
def stateless_random_saturation(image: Any, lower: float, upper: float, seed: Any = None) -> Tensor:
    """As :func:`random_saturation`, decided by the two integers ``seed``, as TensorFlow decides."""
    return adjust_saturation(image, _between(lower, upper, _by(seed)))


@entry
def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_hue` by a number from ``-max_delta`` to ``max_delta``, which is 0.5 at most.

    Raises:
        InvalidArgumentError: another ``max_delta``.
    """
    return adjust_hue(image, _around_zero(max_delta, _stateful(seed), 0.5))


@entry
def stateless_random_hue(image: Any, max_delta: float, seed: Any) -> Tensor:
    """As :func:`random_hue`, decided by the two integers ``seed``, as TensorFlow decides."""
    return adjust_hue(image, _around_zero(max_delta, _by(seed), 0.5))


def _cropped(value: Any, size: Any, draw: Draw) -> Tensor:
    value, sizes = convert_to_tensor(value), ints(size, "an entry of size")
    have = known_sizes(value.shape, "a crop")
    if len(sizes) != len(have) or any(not 0 <= n <= h for n, h in zip(sizes, have, strict=True)):
        raise InvalidArgumentError(
            f"a part of the sizes {sizes} can't be cut out of a tensor of shape {have}."
        )
    drawn = draw([len(have)], minval=0, maxval=int32.max, dtype=int32)
    for axis, (n, h) in enumerate(zip(sizes, have, strict=True)):
        if n < h:
            value = gather(value, iota([n], 0) + mod(drawn[axis], h - n + 1), axis=axis)
    return value


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of ``value`` of the sizes ``size``, one for each axis and known now, at a random place.

    Raises:
        InvalidArgumentError: a part that is larger than ``value``.

    >>> import dualflow as df
    >>> df.image.random_crop(df.ones([8, 8, 3]), [5, 6, 3]).shape.as_list()
    [5, 6, 3]
    """
    return _cropped(value, size, _stateful(seed))


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """As :func:`random_crop`, at the place that the two integers ``seed`` decide, as TensorFlow decides.

    >>> import dualflow as df
    >>> df.image.stateless_random_crop([[1, 2, 3], [4, 5, 6]], (1, 2), seed=(1, 2)).shape.as_list()
    [1, 2]
    """
    return _cropped(value, size, _by(seed))
