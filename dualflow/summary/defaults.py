"""The default writer, step and condition of summaries, for each thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike

Condition = bool | Callable[[], Any] | Any
"""Whether summaries are recorded: a bool, a scalar tensor, or a function that returns either."""


class Defaults(threading.local):
    """The default writer, step and condition of summaries, for each thread.

    Attributes:
        writer: the writer of the innermost ``as_default`` block; None without one.
        traced: whether that block is in a function that is being traced, which captures the writer.
        step: the step of summaries without a ``step``.
        condition: whether summaries are recorded.
    """

    writer: Any = None
    traced: bool = False
    step: Any = None
    condition: Condition = True


DEFAULTS: Final = Defaults()


@contextmanager
def with_defaults(**changes: Any) -> Iterator[None]:
    """A context with changed defaults."""
    before = {name: getattr(DEFAULTS, name) for name in changes}
    vars(DEFAULTS).update(changes)
    try:
        yield
    finally:
        vars(DEFAULTS).update(before)


def record_if(condition: Condition) -> Any:
    """A context in which summaries are written only if ``condition`` holds.

    Args:
        condition: a bool, a scalar tensor, or a function without arguments that returns one of them, which
            is called for each summary.

    >>> import dualflow as df
    >>> with df.summary.record_if(False):
    ...     df.summary.should_record_summaries()
    False
    """
    return with_defaults(condition=condition)


def should_record_summaries() -> bool:
    """Whether a summary would be written here: there is a default writer, and the condition holds.

    >>> import dualflow as df
    >>> df.summary.should_record_summaries()
    False
    """
    return DEFAULTS.writer is not None and bool(condition_here())


def condition_here() -> Any:
    """The condition's value: a bool or a tensor."""
    condition = DEFAULTS.condition
    return condition() if callable(condition) and not isinstance(condition, dispatch.TENSORS) else condition


@entry
def set_step(step: IntLike) -> None:
    """Set the default step of summaries in this thread.

    Args:
        step: an integer; a variable or a tensor, which is read at each summary; None for no default.

    Raises:
        InvalidArgumentError: ``step`` is none of these.

    >>> import dualflow as df
    >>> df.summary.experimental.set_step(3)
    >>> df.summary.experimental.get_step()
    3
    >>> df.summary.experimental.set_step(None)
    """
    DEFAULTS.step = checked_step(step)


def get_step() -> Any:
    """The default step of summaries; None without one."""
    return DEFAULTS.step


def checked_step(step: Any) -> Any:
    """``step``, checked to be an integer, a scalar integer tensor, or None.

    Raises:
        InvalidArgumentError: it is not.
    """
    if step is None:
        return None
    if isinstance(step, dispatch.AbstractComposite):  # as a variable of Keras's is
        step = step.__as_tensor__()
    if isinstance(step, dispatch.TENSORS):
        fits = step.dtype.is_integer and tuple(step.shape) == ()
    else:
        fits = hasattr(step, "__index__") and not isinstance(step, bool)
    if not fits:
        shown = (
            f"a tensor of {step.dtype.name} and shape {step.shape}"
            if isinstance(step, (AbstractVariable, dispatch.AbstractTensor))
            else repr(step)
        )
        raise InvalidArgumentError(f"A step is an integer, or a scalar tensor of one, not {shown}.")
    return step
