"""The functions that write summaries: immediately, or at each run of a traced function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dualflow.core import dispatch, naming
from dualflow.core.convert import Array
from dualflow.core.dispatch import TENSORS
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op
from dualflow.summary.defaults import DEFAULTS, checked_step, condition_here
from dualflow.summary.event_values import (
    audio_values,
    event_of,
    histogram_values,
    image_values,
    scalar_values,
    text_values,
)
from dualflow.summary.writer import SummaryWriter

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike

Values = Callable[[str, Array, str | None], list[Any]]


@dataclass(frozen=True)
class PlannedSummary:
    """A summary in a traced function.

    Attributes:
        tag: its name, with the open name scopes.
        values: converts the content to values of an event.
        description: a text for people.
        writer: the writer of a block inside the function; None for the default one at run time.
        has_step: whether the step is an input of the op.
        has_condition: whether the condition is an input of the op.
        step: the step if it is an integer; None for the default one at run time.
        content: static content, of texts; None if it is an input of the op.
    """

    tag: str
    values: Values
    description: str | None
    writer: SummaryWriter | None
    has_step: bool
    has_condition: bool
    step: int | None
    content: Any


def _write(*arrays: Array, summary: PlannedSummary) -> tuple[()]:
    inputs = list(arrays)
    content = inputs.pop(0) if summary.content is None else summary.content
    step = int(inputs.pop(0)) if summary.has_step else summary.step
    enabled = bool(inputs.pop(0) if summary.has_condition else condition_here())
    writer = DEFAULTS.writer if summary.writer is None else summary.writer
    if enabled and writer is not None:
        _add(writer, summary.tag, summary.values, content, summary.description, step)
    return ()


WRITE = Op(
    name="write_summary",
    doc="Writes its input, for a step, as a summary.",
    infer=lambda *specs, summary: (),
    kernel=_write,
    kind=Opaque("summaries are written by Python"),
    outputs=None,
    effect=Effect.PRINT,
)


def _add(
    writer: SummaryWriter, tag: str, values: Values, content: Array, description: str | None, step: Any
) -> None:
    at = DEFAULTS.step if step is None else step
    if at is None:
        raise InvalidArgumentError(
            "No step set. Give the summary its step=, or set a default by as_default(step=...) or "
            "df.summary.experimental.set_step()."
        )
    writer.add(event_of(values(tag, content, description), int(at)))


def _summarize(
    name: str, data: Any, step: Any, values: Values, description: str | None, *, texts: bool = False
) -> bool:
    """Write a summary, or record it in a traced function; returns whether that was done."""
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"The name of a summary is a text, not {name!r}.")
    at, tag = checked_step(step), f"{naming.prefix()}{name}"
    engine = dispatch.current()
    if engine.eager:
        if DEFAULTS.writer is None or not condition_here():
            return False
        _add(DEFAULTS.writer, tag, values, _now(data, texts), description, at)
        return True
    condition, default = condition_here(), DEFAULTS.step
    if at is None and isinstance(default, TENSORS):
        at = default
    steps = [convert_to_tensor(at)] if isinstance(at, TENSORS) else []
    conditions = [convert_to_tensor(condition)] if isinstance(condition, TENSORS) else []
    plain = texts and not isinstance(data, TENSORS)
    planned = PlannedSummary(
        tag,
        values,
        description,
        DEFAULTS.writer if DEFAULTS.traced else None,
        bool(steps),
        bool(conditions),
        None if steps or at is None else int(at),
        _now(data, texts) if plain else None,
    )
    inputs = [] if plain else [convert_to_tensor(data)]
    engine.apply(WRITE, (*inputs, *steps, *conditions), {"summary": planned})
    return True


def _now(data: Any, texts: bool) -> Array:
    if texts and not isinstance(data, TENSORS):
        return np.asarray(data, object)
    return np.asarray(convert_to_tensor(data))


@entry
def scalar(name: str, data: TensorLike, step: IntLike | None = None, description: str | None = None) -> bool:
    """Write a number, which TensorBoard plots over the steps.

    Args:
        name: the name of the curve, prefixed by the open :func:`dualflow.name_scope` s.
        data: a real scalar.
        step: an integer, or a scalar integer tensor; by default the default step.
        description: a text for people, in Markdown.

    Returns:
        Whether it was written: there is a default writer, and the condition of :func:`record_if` holds. True
        in a function that is being traced: each run of the function decides.

    Raises:
        InvalidArgumentError: there is no step, or it is not an integer; ``data`` is not a scalar.
        FailedPreconditionError: the writer is closed, or can't write.
        DTypeError: ``data`` is not real.

    >>> import dualflow as df
    >>> df.summary.scalar("loss", 0.5, step=1)
    False
    """
    return _summarize(name, data, step, scalar_values, description)


@entry
def histogram(
    name: str,
    data: TensorLike,
    step: IntLike | None = None,
    buckets: int | None = None,
    description: str | None = None,
) -> bool:
    """Write a histogram of numbers.

    Args:
        data: real numbers of any shape; numbers that are not finite are ignored.
        buckets: the number of intervals, 30 by default.

    See :func:`scalar` for the other arguments, the result and the errors.

    >>> import dualflow as df
    >>> df.summary.histogram("weights", df.random.normal([100]), step=1)
    False
    """
    count = _count(buckets, 30, "buckets")
    return _summarize(name, data, step, partial(histogram_values, buckets=count), description)


@entry
def image(
    name: str,
    data: TensorLike,
    step: IntLike | None = None,
    max_outputs: int | None = 3,
    description: str | None = None,
) -> bool:
    """Write the first images of a batch.

    Args:
        data: ``[batch, height, width, channels]`` with 1 to 4 channels: grey, grey and alpha, RGB, RGBA;
            floats in [0, 1], integers in [0, 255], or bools.
        max_outputs: the maximum number of images to write.

    See :func:`scalar` for the other arguments, the result and the errors.

    >>> import dualflow as df
    >>> df.summary.image("digits", df.zeros([1, 8, 8, 1]), step=1)
    False
    """
    count = _count(max_outputs, 3, "max_outputs")
    return _summarize(name, data, step, partial(image_values, most=count), description)


@entry
def audio(
    name: str,
    data: TensorLike,
    sample_rate: int,
    step: IntLike | None = None,
    max_outputs: int | None = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> bool:
    """Write the first sounds of a batch.

    Args:
        data: ``[batch, frames, channels]`` of floats in [-1, 1].
        sample_rate: the number of frames per second.
        max_outputs: the maximum number of sounds to write.
        encoding: "wav".

    See :func:`scalar` for the other arguments, the result and the errors.

    >>> import dualflow as df
    >>> df.summary.audio("tone", df.zeros([1, 100, 1]), 8000, step=1)
    False
    """
    if encoding not in (None, "wav"):
        raise InvalidArgumentError(f'The encoding of sounds is "wav", not {encoding!r}.')
    count, rate = _count(max_outputs, 3, "max_outputs"), _count(sample_rate, 0, "sample_rate")
    return _summarize(name, data, step, partial(audio_values, sample_rate=rate, most=count), description)


@entry
def text(name: str, data: TensorLike, step: IntLike | None = None, description: str | None = None) -> bool:
    """Write texts, which TensorBoard shows as Markdown.

    Args:
        data: a text, or a list or array of texts: a table, or rows of one.

    See :func:`scalar` for the other arguments, the result and the errors.

    >>> import dualflow as df
    >>> df.summary.text("settings", "rate = **0.1**", step=0)
    False
    """
    return _summarize(name, data, step, text_values, description, texts=True)


@entry
def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Write the buffered events of a writer.

    Args:
        writer: the writer; by default the default one.
        name: ignored; as in TensorFlow.

    Raises:
        FailedPreconditionError: the writer is closed, or its file can't be written to.

    >>> import dualflow as df
    >>> df.summary.flush()
    """
    target = DEFAULTS.writer if writer is None else writer
    if target is not None:
        target.flush()


def _count(value: Any, default: int, what: str) -> int:
    count = default if value is None else int(value)
    if count < 0:
        raise InvalidArgumentError(f"{what} is at least 0, not {value}.")
    return count
