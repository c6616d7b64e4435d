"""``df.contrib.summary``: the summaries of TensorFlow 1's eager guides.

The step is the global step of ``v1.train`` by default. Other than in TensorFlow 1, summaries are recorded
unless one of the context managers disables it.
"""

from __future__ import annotations

from typing import Any

from dualflow.compat.v1.global_step import get_global_step, get_or_create_global_step
from dualflow.core.argument_types import IntLike, TensorLike
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.core.tracebacks import entry
from dualflow.summary import writing
from dualflow.summary.defaults import DEFAULTS, record_if
from dualflow.summary.defaults import should_record_summaries as should_record_summaries
from dualflow.summary.graphs import graph as graph
from dualflow.summary.writer import SummaryWriter as SummaryWriter
from dualflow.summary.writer import create_file_writer as create_file_writer
from dualflow.summary.writing import flush as flush

__all__ = [
    "SummaryWriter",
    "always_record_summaries",
    "audio",
    "create_file_writer",
    "flush",
    "graph",
    "histogram",
    "image",
    "never_record_summaries",
    "record_summaries_every_n_global_steps",
    "scalar",
    "should_record_summaries",
]


def always_record_summaries() -> Any:
    """A context manager in which all summaries are written.

    >>> import dualflow as df
    >>> with df.contrib.summary.always_record_summaries():
    ...     df.contrib.summary.should_record_summaries()
    False
    """
    return record_if(True)


def never_record_summaries() -> Any:
    """A context manager in which no summary is written."""
    return record_if(False)


@entry
def record_summaries_every_n_global_steps(n: int, global_step: TensorLike | None = None) -> Any:
    """A context manager in which summaries are written if the global step is a multiple of ``n``.

    Args:
        n: an int of at least 1.
        global_step: a variable, by default the global step of ``v1.train``.

    Raises:
        InvalidArgumentError: ``n`` is below 1.
    """
    if n < 1:
        raise InvalidArgumentError(
            f"record_summaries_every_n_global_steps takes an n of at least 1, not {n}."
        )
    step: Any = get_or_create_global_step() if global_step is None else global_step
    return record_if(lambda: step % n == 0)


def _step(step: Any) -> Any:
    """``step``, else the default step, else the global step."""
    if step is None and DEFAULTS.step is None:
        return get_global_step()
    return step


def _tag(name: str, family: str | None) -> str:
    return name if family is None else f"{family}/{name}"


@entry
def scalar(name: str, tensor: TensorLike, family: str | None = None, step: IntLike | None = None) -> bool:
    """:func:`dualflow.summary.scalar` with the name ``family/name``, at the global step by default.

    >>> import dualflow as df
    >>> df.contrib.summary.scalar("loss", 0.5, step=1)
    False
    """
    return writing.scalar(_tag(name, family), tensor, _step(step))


@entry
def histogram(name: str, tensor: TensorLike, family: str | None = None, step: IntLike | None = None) -> bool:
    """:func:`dualflow.summary.histogram` with the name ``family/name``, at the global step by default."""
    return writing.histogram(_tag(name, family), tensor, _step(step))


@entry
def image(
    name: str,
    tensor: TensorLike,
    bad_color: TensorLike | None = None,
    max_images: int = 3,
    family: str | None = None,
    step: IntLike | None = None,
) -> bool:
    """:func:`dualflow.summary.image` with the name ``family/name``, at the global step by default.

    ``bad_color`` is ignored: pixels that are nan are black.
    """
    return writing.image(_tag(name, family), tensor, _step(step), max_images)


@entry
def audio(
    name: str,
    tensor: TensorLike,
    sample_rate: int,
    max_outputs: int = 3,
    family: str | None = None,
    step: IntLike | None = None,
) -> bool:
    """:func:`dualflow.summary.audio` with the name ``family/name``, at the global step by default."""
    return writing.audio(_tag(name, family), tensor, sample_rate, _step(step), max_outputs)


_publish(globals())
