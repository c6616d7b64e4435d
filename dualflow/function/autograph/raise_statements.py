"""``raise`` and ``assert`` under conditions that are tensors, and the ``try`` statements around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dualflow.core import dispatch
from dualflow.core.dispatch import Engine
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.function.control.graph_exceptions import end_of_branch, is_conditional, raise_at_boundary
from dualflow.function.errors import here


@dataclass(frozen=True, slots=True)
class _Guard:
    """A ``try`` statement that is being traced: its trace, and the exceptions that its clauses catch."""

    engine: Engine
    kinds: Callable[[], Any]

    def catches(self, kind: Any) -> bool:
        """Whether a clause catches exceptions of ``kind``; True if ``kind`` is no class of exceptions."""
        if isinstance(kind, BaseException):
            kind = type(kind)
        is_class = isinstance(kind, type) and issubclass(kind, BaseException)
        return not is_class or issubclass(kind, self.kinds())


_guards: ContextVar[tuple[_Guard, ...]] = ContextVar("dualflow_guards", default=())


@contextmanager
def catching(kinds: Callable[[], Any]) -> Iterator[None]:
    """The context of a ``try`` statement's body; ``kinds()`` are the classes of its ``except`` clauses."""
    token = _guards.set((*_guards.get(), _Guard(dispatch.current().innermost, kinds)))
    try:
        yield
    finally:
        _guards.reset(token)


def raised(kind: Any, make: Callable[..., Any], reads: Sequence[Any]) -> Any:
    """Lower the statement ``raise make(*reads)``: return the exception, or end the trace of a branch.

    Under a condition that is a tensor, the trace of the branch ends here, and the exception is raised if the
    graph takes the branch.

    Args:
        kind: the class of the exception; None if it is not known before the expression is evaluated.
        make: evaluates the expression.
        reads: the values that the expression reads.

    Raises:
        Ended: the trace of the branch ends.
        InvalidArgumentError: a ``try`` statement outside of the branch would have to catch the exception.
    """
    if dispatch.current().eager or not is_conditional():
        return make(*reads)
    engine = dispatch.current().innermost
    guard = next((g for g in reversed(_guards.get()) if g.catches(kind)), None)
    if guard is None or guard.engine.eager:
        raise end_of_branch(make, reads)
    if guard.engine is not engine:
        raise_at_boundary(
            InvalidArgumentError(
                "An exception raised under a condition that is a tensor can't be caught by a `try` around "
                "the condition, which is not part of the graph. Put the `try` inside of the branch or around "
                f"the call of the compiled function, or set a flag in the branch.{here()}"
            )
        )
    return make(*reads)


def kinds(*classes: Any) -> tuple[Any, ...]:
    """The classes of ``except`` clauses, with tuples flattened."""
    return tuple([k for c in classes for k in (kinds(*c) if isinstance(c, tuple) else (c,))])


def caused(error: Any, cause: Any) -> Any:
    """The exception of ``raise error from cause``."""
    exception = error() if isinstance(error, type) else error
    exception.__cause__ = cause() if isinstance(cause, type) else cause
    return exception
