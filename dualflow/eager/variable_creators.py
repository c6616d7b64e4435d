"""Creators of variables: functions that a program puts between ``Variable(...)`` and the variable."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from dualflow.core.tracebacks import hide_frames

Creator = Callable[..., Any]
_creators: Final[ContextVar[tuple[Creator, ...]]] = ContextVar("dualflow_variable_creators", default=())


@contextmanager
def variable_creator_scope(variable_creator: Creator) -> Iterator[None]:
    """A context in which ``variable_creator`` creates the variables of this thread.

    Args:
        variable_creator: ``creator(next_creator, **kwargs)``, called with the arguments of
            :class:`dualflow.Variable`. It returns a variable: the result of ``next_creator(**kwargs)``, the
            creator of the outer block or the class itself, for arguments that it may change; or another.

    >>> import dualflow as df
    >>> def frozen(next_creator, **kwargs):
    ...     return next_creator(**{**kwargs, "trainable": False})
    >>> with df.variable_creator_scope(frozen):
    ...     df.Variable(1.0).trainable
    False
    """
    token = _creators.set((*_creators.get(), variable_creator))
    try:
        yield
    finally:
        _creators.reset(token)


class CreatedByScopes(type):
    """The metaclass of variables: calls of a class go through the creators of the open blocks.

    Subclasses that a program defines create their instances themselves, as in TensorFlow.
    """

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature of the class: that of ``__init__``, without ``self``."""
        signature = inspect.signature(cls.__init__)  # type: ignore[misc]  # of the class itself
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        try:
            creators = _creators.get()
            if not creators or cls.__module__.partition(".")[0] not in ("dualflow", "tensorflow"):
                return super().__call__(*args, **kwargs)
            bound = inspect.signature(cls).bind(*args, **kwargs)
            bound.apply_defaults()
            create: Creator = super().__call__
            for creator in creators:
                create = partial(creator, create)
            return create(**bound.arguments)
        except Exception as error:
            hide_frames(error)
            raise
