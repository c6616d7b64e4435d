"""Random changes of images, from the shared stream or, in the ``stateless`` functions, from a seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dtypes import int32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.arithmetic import mod
from dualflow.ops.arrangement import reshape
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.docstrings import documented
from dualflow.ops.image.adjustment import adjust_brightness, adjust_contrast
from dualflow.ops.image.colours import adjust_hue, adjust_saturation
from dualflow.ops.image.geometry import as_batch
from dualflow.ops.positions import iota
from dualflow.ops.random_numbers.functions import uniform
from dualflow.ops.random_numbers.stateless import stateless_uniform
from dualflow.ops.repetition import reverse
from dualflow.ops.selection import where
from dualflow.ops.static import ints, require_static_sizes, static_float
from dualflow.ops.taking import gather
from dualflow.ops.tensor_sizes import axis_size

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntsLike, TensorLike
    from dualflow.ops.tensor import Tensor

Draw = Callable[..., Any]


_FLIP: Final = """Args:
    image: a tensor of shape ``(batch, height, width, channels)``, or without the batch, of any dtype.
    seed: {seed}.

Returns:
    A tensor with the shape and dtype of ``image``.

Raises:
    InvalidArgumentError: ``image`` has another number of axes{or_seed}.
"""
_ADJUST: Final = """Args:
    image: numbers of shape ``(..., height, width, channels)``.
    {range}
    seed: {seed}.

Returns:
    A tensor with the shape and dtype of ``image``.

Raises:
    InvalidArgumentError: {invalid}{or_seed}.
    DTypeError: ``image`` holds bools or complex numbers.
"""
_CROP: Final = """Args:
    value: a tensor of any shape and dtype.
    size: the size of the part on each axis, known while tracing.
    seed: {seed}.

Returns:
    A tensor of shape ``size`` with the dtype of ``value``.

Raises:
    InvalidArgumentError: the part is larger than ``value``{or_seed}.
"""
_STATEFUL: Final = {"seed": "an integer for a stream of its own; None for the shared stream", "or_seed": ""}
_STATELESS: Final = {
    "seed": "two integers, which alone decide the result, the same as TensorFlow's",
    "or_seed": ", or ``seed`` is not two integers",
}
_FACTOR: Final = {
    "range": "lower: the lower bound of the factor, 0 or more.\n    upper: its upper bound.",
    "invalid": "not ``0 <= lower < upper``",
}
_DELTA: Final = {"range": "max_delta: 0 or more.", "invalid": "``max_delta`` is negative"}
_HUE: Final = {"range": "max_delta: from 0 to 0.5.", "invalid": "``max_delta`` is out of this range"}


def _stateful(seed: int | None) -> Draw:
    return partial(uniform, seed=seed)


def _stateless(seed: Any) -> Draw:
    return partial(stateless_uniform, seed=seed)


def _flipped(image: Any, axis: int, draw: Draw) -> Tensor:
    """Images mirrored at random; as in TensorFlow, a batch mirrors those whose number is above 0.5."""
    images, single = as_batch(image)
    mirrored = reverse(images, [axis])
    if len(convert_to_tensor(image).shape) == 3:
        return single(where(draw([]) < 0.5, mirrored, images))
    drawn = draw([axis_size(images, 0)])
    return where(reshape(drawn, [-1, 1, 1, 1]) > 0.5, mirrored, images)


@documented(_FLIP, **_STATEFUL)
@entry
def random_flip_left_right(image: TensorLike, seed: int | None = None) -> Tensor:
    """Images mirrored left to right with probability 0.5, independently for each image of a batch.

    >>> import dualflow as df
    >>> df.image.random_flip_left_right(df.ones([2, 4, 3, 1])).shape
    (2, 4, 3, 1)
    """
    return _flipped(image, 2, _stateful(seed))


@documented(_FLIP, **_STATEFUL)
@entry
def random_flip_up_down(image: TensorLike, seed: int | None = None) -> Tensor:
    """Images turned upside down with probability 0.5, independently for each image of a batch.

    >>> import dualflow as df
    >>> df.image.random_flip_up_down(df.ones([2, 4, 3, 1])).shape
    (2, 4, 3, 1)
    """
    return _flipped(image, 1, _stateful(seed))


@documented(_FLIP, **_STATELESS)
@entry
def stateless_random_flip_left_right(image: TensorLike, seed: TensorLike) -> Tensor:
    """:func:`random_flip_left_right` from a seed.

    >>> import dualflow as df
    >>> df.image.stateless_random_flip_left_right([[[1], [2]]], seed=(3, 4)).shape.as_list()
    [1, 2, 1]
    """
    return _flipped(image, 2, _stateless(seed))


@documented(_FLIP, **_STATELESS)
@entry
def stateless_random_flip_up_down(image: TensorLike, seed: TensorLike) -> Tensor:
    """:func:`random_flip_up_down` from a seed.

    >>> import dualflow as df
    >>> df.image.stateless_random_flip_up_down([[[1], [2]]], seed=(3, 4)).shape.as_list()
    [1, 2, 1]
    """
    return _flipped(image, 1, _stateless(seed))


def _around_zero(max_delta: Any, draw: Draw, most: float | None = None) -> Any:
    max_delta = static_float(max_delta, "max_delta")
    if max_delta < 0 or (most is not None and max_delta > most):
        reach = "0 or more" if most is None else f"from 0 to {most}"
        raise InvalidArgumentError(f"max_delta is {reach}, not {max_delta}.")
    return draw([], minval=-max_delta, maxval=max_delta)


def _random_factor(lower: Any, upper: Any, draw: Draw) -> Any:
    if not 0 <= static_float(lower, "lower") < static_float(upper, "upper"):
        raise InvalidArgumentError(f"factors are drawn with 0 <= lower < upper, not from {lower} to {upper}.")
    return draw([], minval=lower, maxval=upper)


@documented(_ADJUST, **_DELTA, **_STATEFUL)
@entry
def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_brightness` by a random number from ``-max_delta`` to ``max_delta``.

    >>> import dualflow as df
    >>> df.image.random_brightness(df.ones([4, 3, 1]), 0.1).shape
    (4, 3, 1)
    """
    return adjust_brightness(image, _around_zero(max_delta, _stateful(seed)))


@documented(_ADJUST, **_DELTA, **_STATELESS)
@entry
def stateless_random_brightness(image: TensorLike, max_delta: float, seed: TensorLike) -> Tensor:
    """:func:`random_brightness` from a seed.

    >>> import dualflow as df
    >>> df.image.stateless_random_brightness(df.ones([4, 3, 1]), 0.1, seed=(1, 2)).shape
    (4, 3, 1)
    """
    return adjust_brightness(image, _around_zero(max_delta, _stateless(seed)))


@documented(_ADJUST, **_FACTOR, **_STATEFUL)
@entry
def random_contrast(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_contrast` by a random factor from ``lower`` to ``upper``.

    >>> import dualflow as df
    >>> df.image.random_contrast(df.ones([4, 3, 1]), 0.5, 2.0).shape
    (4, 3, 1)
    """
    return adjust_contrast(image, _random_factor(lower, upper, _stateful(seed)))


@documented(_ADJUST, **_FACTOR, **_STATELESS)
@entry
def stateless_random_contrast(image: TensorLike, lower: float, upper: float, seed: TensorLike) -> Tensor:
    """:func:`random_contrast` from a seed.

    >>> import dualflow as df
    >>> df.image.stateless_random_contrast(df.ones([4, 3, 1]), 0.5, 2.0, seed=(1, 2)).shape
    (4, 3, 1)
    """
    return adjust_contrast(image, _random_factor(lower, upper, _stateless(seed)))


@documented(_ADJUST, **_FACTOR, **_STATEFUL)
@entry
def random_saturation(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_saturation` by a random factor from ``lower`` to ``upper``.

    >>> import dualflow as df
    >>> df.image.random_saturation(df.ones([4, 3, 3]), 0.5, 2.0).shape
    (4, 3, 3)
    """
    return adjust_saturation(image, _random_factor(lower, upper, _stateful(seed)))


@documented(_ADJUST, **_FACTOR, **_STATELESS)
@entry
def stateless_random_saturation(
    image: TensorLike, lower: float, upper: float, seed: int | None = None
) -> Tensor:
    """:func:`random_saturation` from a seed.

    >>> import dualflow as df
    >>> df.image.stateless_random_saturation(df.ones([4, 3, 3]), 0.5, 2.0, seed=(1, 2)).shape
    (4, 3, 3)
    """
    return adjust_saturation(image, _random_factor(lower, upper, _stateless(seed)))


@documented(_ADJUST, **_HUE, **_STATEFUL)
@entry
def random_hue(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """:func:`adjust_hue` by a random number from ``-max_delta`` to ``max_delta``.

    >>> import dualflow as df
    >>> df.image.random_hue(df.ones([4, 3, 3]), 0.2).shape
    (4, 3, 3)
    """
    return adjust_hue(image, _around_zero(max_delta, _stateful(seed), 0.5))


@documented(_ADJUST, **_HUE, **_STATELESS)
@entry
def stateless_random_hue(image: TensorLike, max_delta: float, seed: TensorLike) -> Tensor:
    """:func:`random_hue` from a seed.

    >>> import dualflow as df
    >>> df.image.stateless_random_hue(df.ones([4, 3, 3]), 0.2, seed=(1, 2)).shape
    (4, 3, 3)
    """
    return adjust_hue(image, _around_zero(max_delta, _stateless(seed), 0.5))


def _cropped(value: Any, size: Any, draw: Draw) -> Tensor:
    value, sizes = convert_to_tensor(value), ints(size, "an entry of size")
    have = require_static_sizes(value.shape, "a crop")
    if len(sizes) != len(have) or any(not 0 <= n <= h for n, h in zip(sizes, have, strict=True)):
        raise InvalidArgumentError(
            f"a part of the sizes {sizes} can't be cut out of a tensor of shape {have}."
        )
    drawn = draw([len(have)], minval=0, maxval=int32.max, dtype=int32)
    for axis, (n, h) in enumerate(zip(sizes, have, strict=True)):
        if n < h:
            value = gather(value, iota([n], 0) + mod(drawn[axis], h - n + 1), axis=axis)
    return value


@documented(_CROP, **_STATEFUL)
def random_crop(
    value: TensorLike, size: IntsLike, seed: int | None = None, name: str | None = None
) -> Tensor:
    """A part of ``value`` of shape ``size`` at a random position.

    >>> import dualflow as df
    >>> df.image.random_crop(df.ones([8, 8, 3]), [5, 6, 3]).shape.as_list()
    [5, 6, 3]
    """
    return _cropped(value, size, _stateful(seed))


@documented(_CROP, **_STATELESS)
def stateless_random_crop(
    value: TensorLike, size: IntsLike, seed: TensorLike, name: str | None = None
) -> Tensor:
    """:func:`random_crop` from a seed.

    >>> import dualflow as df
    >>> df.image.stateless_random_crop([[1, 2, 3], [4, 5, 6]], (1, 2), seed=(1, 2)).shape.as_list()
    [1, 2]
    """
    return _cropped(value, size, _stateless(seed))
