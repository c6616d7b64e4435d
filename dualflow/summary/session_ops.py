"""Summaries as ops whose result is a serialised message ``Summary``, for TensorFlow 1's sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.attribute_values import in_text
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op
from dualflow.summary.event_values import (
    audio_values,
    histogram_values,
    image_values,
    scalar_values,
    text_values,
)
from dualflow.summary.images import rescaled
from dualflow.summary.tensorboardx import protocol

_BUCKETS: Final = 30


def _images(tag: str, array: Array, most: int) -> list[Any]:
    return image_values(tag, rescaled(array[:most]), None, most)


_CONTENTS: Final[Mapping[str, Callable[..., list[Any]]]] = MappingProxyType(
    {
        "scalar": lambda tag, array: scalar_values(tag, array, None),
        "histogram": lambda tag, array: histogram_values(tag, array, None, _BUCKETS),
        "image": _images,
        "audio": lambda tag, array, sample_rate, most: audio_values(tag, array, None, int(sample_rate), most),
        "text": lambda tag, array: text_values(tag, array, None),
    }
)


def _serialised(values: list[Any]) -> Array:
    return np.array(protocol().summary.Summary(value=values).SerializeToString(), object)


def _summary(*arrays: Array, kind: str, tag: str, most: int | None) -> Array:
    limits = {} if most is None else {"most": most}
    return _serialised(_CONTENTS[kind](tag, *arrays, **limits))


def _merged(*summaries: Array) -> Array:
    values: dict[str, Any] = {}
    for serialised in [x for array in summaries for x in array.ravel().tolist()]:
        for value in summary_of(serialised).value:
            if value.tag in values:
                raise InvalidArgumentError(
                    f"Duplicate tag {value.tag} found in summary inputs: each summary has a name of its own."
                )
            values[value.tag] = value
    return _serialised(list(values.values()))


def _infer_summary(*specs: TensorSpec, kind: str, tag: str, most: int | None) -> TensorSpec:
    if kind not in _CONTENTS:
        raise InvalidArgumentError(f"there is no summary of the kind {kind!r}")
    return TensorSpec.of(Shape(), string)


SUMMARY: Final = in_text(
    Op(
        name="summary",
        doc="The serialised summary of its input, of the ``kind`` scalar, histogram, image, audio or text.",
        infer=_infer_summary,
        kernel=_summary,
        kind=Opaque("summaries are messages, which Python writes"),
        strings=True,
    )
)
MERGE: Final = in_text(
    Op(
        name="merge_summaries",
        doc="The serialised summary with the values of all its inputs.",
        infer=lambda *specs: TensorSpec.of(Shape(), string),
        kernel=_merged,
        kind=Opaque("summaries are messages, which Python writes"),
        strings=True,
    )
)


def summary_op(kind: str, tag: str, *inputs: Any, most: int | None = None) -> Any:
    """The serialised summary of ``inputs`` through the current engine: a scalar of dtype string.

    Raises:
        NotFoundError: tensorboardX is not installed.
    """
    protocol()
    tensors = tuple([convert_to_tensor(x) for x in inputs])
    return dispatch.current().run(SUMMARY, tensors, {"kind": kind, "tag": tag, "most": most})


def merge_summaries(summaries: list[Any]) -> Any:
    """The serialised summary that has the values of ``summaries``, tensors of dtype string."""
    return dispatch.current().run(MERGE, tuple([convert_to_tensor(x) for x in summaries]), {})


def summary_of(serialised: Any) -> Any:
    """Parse a serialised ``Summary`` message.

    Raises:
        InvalidArgumentError: they are none.
    """
    messages = protocol()
    try:
        return messages.summary.Summary.FromString(serialised)
    except Exception as error:  # protobuf's DecodeError, or a TypeError
        raise InvalidArgumentError(f"This is no serialised summary ({error}).") from None
