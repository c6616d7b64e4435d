"""The backend, under a name that ends with "tensorflow": then Keras encodes categories by counts.

Keras's preprocessing layers and dataset loaders import it in place of Keras's backend for TensorFlow. As that
one, it returns the shapes of ragged tensors, too, and the averages of resized images as floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import dualflow as df
from keras_dualflow import flat
from keras_dualflow.flat import *  # noqa: F403  the names of a backend


def shape(x: Any) -> tuple[Any, ...]:  # type: ignore[no-redef]  # in place of the one of all backends
    """The shape of a tensor; of a ragged one the static shape."""
    if isinstance(x, df.RaggedTensor):
        return tuple(x.shape)
    sizes: tuple[Any, ...] = flat.shape(x)
    return sizes


def _resize(images: Any, size: Sequence[int], interpolation: str = "bilinear", **options: Any) -> Any:
    """Images of another size; float32 if pixels are averaged."""
    if interpolation != "nearest":
        images = flat.cast(images, "float32")
    return flat.image.resize(images, size, interpolation, **options)


image = SimpleNamespace(**{**vars(flat.image), "resize": _resize})  # type: ignore[assignment]  # as shape
"""The functions of images."""
