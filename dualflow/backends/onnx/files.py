"""Checks an exported model and writes it."""

from __future__ import annotations

from typing import Final

import onnx

from dualflow.backends.onnx.export import PRODUCER
from dualflow.core.atomic_files import AtomicFile
from dualflow.core.errors import FailedPreconditionError, InternalError, InvalidArgumentError

_MAX_PROTOBUF_BYTES: Final = (1 << 31) - 1
"""The largest size of a protobuf message in bytes."""
_HEADER_BYTES: Final = 64
"""The producer's name is within this number of bytes at the beginning of a file."""


def write_model(
    model: onnx.ModelProto, path: str, *, force: bool, largest: int = _MAX_PROTOBUF_BYTES
) -> list[str]:
    """Check ``model`` and write it to ``path``; returns the path in a list.

    Args:
        model: the model.
        path: the file.
        force: whether to replace a file that is no exported model.
        largest: the most bytes of a file.

    Raises:
        InvalidArgumentError: the model has more bytes than one file of ONNX.
        FailedPreconditionError: without ``force``, ``path`` exists and is no exported model.
        OSError: the file can't be written.
    """
    if not force and not _is_exported(path):
        raise FailedPreconditionError(
            f"{path} exists, and dualflow has not written it; name another file, or replace it with force."
        )
    size = model.ByteSize()
    if size > largest:
        raise InvalidArgumentError(
            f"{model.graph.name} has {size} bytes as ONNX, of which a file holds {largest}: pass large "
            "tensors as arguments."
        )
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise InternalError(f"{model.graph.name} was exported as invalid ONNX: {error}") from error
    with AtomicFile(path) as file:
        file.write(model.SerializeToString())
    return [path]


def _is_exported(path: str) -> bool:
    """Whether there is no file at ``path``, or an exported model."""
    try:
        with open(path, "rb") as file:
            return PRODUCER.encode() in file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return True
