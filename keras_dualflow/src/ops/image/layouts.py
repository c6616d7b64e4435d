"""Conversion of images to channels-last layout and batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras.src.backend import standardize_data_format

import dualflow as df
from keras_dualflow.src.ops.promotion import tensor

_LAST = {3: (1, 2, 0), 4: (0, 2, 3, 1)}
_FIRST = {3: (2, 0, 1), 4: (0, 3, 1, 2)}


def images_of(images: Any) -> Any:
    """``images`` as a tensor, one image or a batch.

    Raises:
        ValueError: another rank.
    """
    images = tensor(images)
    if len(images.shape) not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received input with shape: images.shape={images.shape}"
        )
    return images


def with_channels_last(images: Any, data_format: str | None, function: Callable[[Any], Any]) -> Any:
    """The result of ``function`` for channels-last images, in the layout of the arguments."""
    images = images_of(images)
    if standardize_data_format(data_format) == "channels_last":
        return function(images)
    result = function(df.transpose(images, _LAST[len(images.shape)]))
    return df.transpose(result, _FIRST[len(images.shape)])


def on_batch(images: Any, function: Callable[[Any], Any]) -> Any:
    """The result of ``function`` for a batch of images; one image is a batch of one."""
    if len(images.shape) == 4:
        return function(images)
    return df.squeeze(function(df.expand_dims(images, 0)), 0)


def check_choice(argument: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise an error unless the value is one of ``choices``."""
    if value not in choices:
        raise ValueError(
            f"Invalid value for argument `{argument}`. Expected of one {set(choices)}. "
            f"Received: {argument}={value}"
        )
