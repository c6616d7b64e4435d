"""Lazy import of tensorboardX, an optional dependency."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from dualflow.core.errors import NotFoundError


class Protocol(NamedTuple):
    """The used parts of tensorboardX: modules of message classes."""

    event: Any
    summary: Any
    graph: Any
    node: Any
    tensor: Any
    shape: Any
    types: Any


@cache
def protocol() -> Protocol:
    """The message classes of events.

    Raises:
        NotFoundError: tensorboardX is not installed.
    """
    try:
        from tensorboardX.proto import (
            event_pb2,
            graph_pb2,
            node_def_pb2,
            summary_pb2,
            tensor_pb2,
            tensor_shape_pb2,
            types_pb2,
        )
    except ImportError as error:
        raise NotFoundError(
            f"df.summary writes events by tensorboardX, which can't be imported ({error}): pip install "
            "'dualflow[summary]'"
        ) from error
    return Protocol(
        event_pb2,
        summary_pb2,
        graph_pb2,
        node_def_pb2,
        tensor_pb2.TensorProto,
        tensor_shape_pb2.TensorShapeProto,
        types_pb2,
    )
