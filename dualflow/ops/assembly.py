"""The NumPy kernel of ops whose output consists of copies of parts of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dualflow.core.dtypes import as_dtype
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec

Array = np.ndarray[Any, Any]
Pieces = Callable[..., list[tuple[Any, Any]]]


def assembling(infer: Callable[..., TensorSpec], pieces: Pieces) -> Callable[..., Array]:
    """A NumPy kernel that allocates the output by ``infer``, and copies ``pieces`` into it in order."""

    def kernel(*inputs: Array, **attrs: Any) -> Array:
        spec = infer(*[TensorSpec.of(Shape(a.shape), as_dtype(a.dtype)) for a in inputs], **attrs)
        out: Array = np.empty(tuple(d or 0 for d in spec.shape), spec.dtype.dtype)
        for destination, source in pieces(out, *inputs, **attrs):
            destination[...] = source
        return out

    return kernel
