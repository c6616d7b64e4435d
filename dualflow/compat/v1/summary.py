"""Summaries of TensorFlow 1: ops that a session runs, and the writer of their results, for TensorBoard."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dualflow.compat.v1.collection import GraphKeys, get_collection
from dualflow.compat.v1.file_writer import FileWriter as FileWriter
from dualflow.compat.v1.file_writer import FileWriterCache as FileWriterCache
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import ABSENT
from dualflow.core.namespace import publish as _publish
from dualflow.core.naming import prefix
from dualflow.core.tracebacks import entry
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.graph_mode import recording_graph
from dualflow.ops.creation import convert_to_tensor
from dualflow.summary.session_ops import merge_summaries, summary_op
from dualflow.summary.tensorboardx import protocol

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

    Event: Any
    Summary: Any

__all__ = [
    "FileWriter",
    "FileWriterCache",
    "audio",
    "histogram",
    "image",
    "merge",
    "merge_all",
    "scalar",
    "text",
]
_MESSAGES: Final = ("Event", "Summary")
_INVALID_NAME_CHARACTERS: Final = re.compile(r"[^-/\w.]", re.ASCII)


@entry
def scalar(
    name: str, tensor: TensorLike, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """A summary of a number, which TensorBoard plots over the steps.

    In a graph it is an op: a session computes it, and :meth:`FileWriter.add_summary` writes the result.

    Args:
        name: the name of the curve and of the op, made unique, and prefixed by the open name scopes.
        tensor: a real scalar.
        collections: the collections of the graph to add it to, by default that of :func:`merge_all`.
        family: a prefix of the tag, by which TensorBoard groups summaries.

    Returns:
        A scalar of dtype string: the serialised message ``Summary``.

    Raises:
        NotFoundError: tensorboardX is not installed: ``pip install 'dualflow[summary]'``.
        InvalidArgumentError: ``name`` is empty; when it runs, ``tensor`` has axes.
        DTypeError: when it runs, ``tensor`` is not real.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     loss = v1.placeholder(v1.float32, [])
    ...     summary = v1.summary.scalar("loss", loss)
    ...     message = v1.Summary.FromString(session.run(summary, {loss: 0.5}))
    >>> message.value[0].tag, message.value[0].simple_value
    ('loss', 0.5)
    """
    return _record_summary("scalar", name, family, collections, tensor)


@entry
def histogram(
    name: str, values: TensorLike, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """A summary of the distribution of numbers, in 30 intervals.

    Args:
        values: real numbers of any shape; numbers that are not finite are ignored.

    See :func:`scalar` for the other arguments, the result and the errors.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     print(v1.summary.histogram("weights", v1.zeros([3])).name)
    weights:0
    """
    return _record_summary("histogram", name, family, collections, values)


@entry
def image(
    name: str,
    tensor: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of the first images of a batch.

    Args:
        tensor: ``[batch, height, width, channels]`` with 1 to 4 channels. Integers are in [0, 255]. Floats
            are scaled by TensorFlow 1's rule: the largest one of an image becomes 255; in an image with
            negative numbers, 0 becomes 128. Pixels that are not finite are red.
        max_outputs: the maximum number of images.

    See :func:`scalar` for the other arguments, the result and the errors.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     print(v1.summary.image("digits", v1.zeros([1, 8, 8, 1])).name)
    digits:0
    """
    return _record_summary(
        "image", name, family, collections, tensor, max_outputs=_checked_max_outputs(max_outputs)
    )


@entry
def audio(
    name: str,
    tensor: TensorLike,
    sample_rate: TensorLike,
    max_outputs: int = 3,
    collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:
    """A summary of the first sounds of a batch.

    Args:
        tensor: ``[batch, frames, channels]`` or ``[batch, frames]`` of floats in [-1, 1].
        sample_rate: the number of frames per second, a scalar.
        max_outputs: the maximum number of sounds.

    See :func:`scalar` for the other arguments, the result and the errors.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     print(v1.summary.audio("tone", v1.zeros([1, 100, 1]), 8000).name)
    tone:0
    """
    sounds = convert_to_tensor(tensor)
    if sounds.ndim == 2:
        sounds = sounds[:, :, None]
    rate = convert_to_tensor(sample_rate)
    return _record_summary(
        "audio", name, family, collections, sounds, rate, max_outputs=_checked_max_outputs(max_outputs)
    )


@entry
def text(name: str, tensor: TensorLike, collections: Sequence[str] | None = None) -> Tensor:
    """A summary of texts, which TensorBoard shows as Markdown.

    Args:
        tensor: a text, or a list or array of texts: a table, or rows of one.

    See :func:`scalar` for the other arguments, the result and the errors.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     print(v1.summary.text("settings", "rate = **0.1**").name)
    settings:0
    """
    return _record_summary("text", name, None, collections, tensor)


@entry
def merge(
    inputs: Sequence[TensorLike], collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """A summary with the values of all ``inputs``.

    Args:
        inputs: summaries.
        collections: the collections of the graph to add it to, by default none.
        name: the name of the op, by default ``Merge/MergeSummary``.

    Raises:
        InvalidArgumentError: there are no inputs; when it runs, two values have one tag, or an input is no
            summary.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default(), v1.Session() as session:
    ...     both = v1.summary.merge([v1.summary.scalar("a", 1.0), v1.summary.scalar("b", 2.0)])
    ...     print([value.tag for value in v1.Summary.FromString(session.run(both)).value])
    ['a', 'b']
    """
    if not len(inputs):
        raise InvalidArgumentError("merge takes at least one summary.")
    return _with_unique_name(
        name or "Merge/MergeSummary", collections or (), lambda _: merge_summaries(list(inputs))
    )


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """A summary with all summaries of a collection of the default graph; None if it is empty.

    Args:
        key: the collection.
        scope: selects the summaries whose names begin with it.
        name: as in :func:`merge`.

    >>> from dualflow.compat import v1
    >>> with v1.Graph().as_default():
    ...     print(v1.summary.merge_all())
    None
    """
    summaries = get_collection(key, scope)
    return merge(summaries, name=name) if summaries else None


def _record_summary(
    kind: str, name: Any, family: str | None, collections: Any, *inputs: Any, max_outputs: int | None = None
) -> Tensor:
    """The summary of ``inputs``; in a graph an op with a unique name, in ``collections``."""
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"The name of a summary is a text, not {name!r}.")
    full_name = name if family is None else f"{family}/{name}"
    valid_name = _INVALID_NAME_CHARACTERS.sub("_", full_name).lstrip("/_-\\>") or "summary"
    target_collections = [GraphKeys.SUMMARIES] if collections is None else collections

    def summary(unique_name: str) -> Any:
        tag = unique_name if family is None else f"{family}/{unique_name}"
        return summary_op(kind, tag, *inputs, most=max_outputs)

    return _with_unique_name(valid_name, target_collections, summary)


def _with_unique_name(name: str, collections: Sequence[str], summary: Callable[[str], Tensor]) -> Tensor:
    """The result of ``summary(name)``; in a graph the name is unique, and collections get the result."""
    graph = recording_graph()
    if graph is None:
        return summary(f"{prefix()}{name}")
    unique_name = graph.unique_name(name)
    with graph.name_scope(f"{unique_name}/"):
        tensor = summary(unique_name)
    if isinstance(tensor, SymbolicTensor) and tensor._value.node is not None:
        graph.engine.rename(tensor._value.node, unique_name)
    graph.engine.collect(tensor, collections)
    return tensor


def _checked_max_outputs(max_outputs: Any) -> int:
    if int(max_outputs) < 1:
        raise InvalidArgumentError(f"max_outputs is at least 1, not {max_outputs}.")
    return int(max_outputs)


def _message(name: str) -> Any:
    """A message class of tensorboardX."""
    messages = protocol()
    for module in (messages.summary, messages.event):
        if name in _MESSAGES and hasattr(module, name):
            return getattr(module, name)
    return ABSENT


_publish(globals(), others=_MESSAGES, fallback=_message, requires={"tensorboardX": " ".join(_MESSAGES)})
