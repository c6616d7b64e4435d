"""Traced methods: each instance of a class has its own traced function, which is freed with the instance."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from dualflow.core.errors import DTypeError, FailedPreconditionError
from dualflow.core.tracebacks import hide_frames

P = ParamSpec("P")
R = TypeVar("R")
"""The parameters and the result of the function that is traced."""

F = TypeVar("F", bound=Callable[..., Any])
"""The type of the traced function of an instance."""


class BoundFunction(Generic[P, R]):
    # ``instance.method`` of a traced method: its function, with a reference that keeps the instance alive.
    # This is a comment, since the docstring is that of the method.

    __slots__ = ("__self__", "__wrapped__")

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]  # of the instance, not of the class
        return self.__wrapped__.__doc__

    def __init__(self, function: Callable[..., Any], instance: Any) -> None:
        self.__wrapped__ = function
        self.__self__ = instance

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return self.__wrapped__(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.__self__, vars(self.__wrapped__)["__name__"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return getattr(copy.deepcopy(self.__self__, memo), vars(self.__wrapped__)["__name__"])

    def __repr__(self) -> str:
        return f"<bound {self.__wrapped__!r} of {self.__self__!r}>"


class WeakMethod:
    """A Python method with a weak reference to its instance, so that traces don't keep the instance alive."""

    __slots__ = ("__name__", "_function", "_instance")

    def __init__(self, function: Callable[..., Any], instance: Any) -> None:
        self._function = function
        self._instance = weakref.ref(instance)
        self.__name__: str = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(self.__self__, *args, **kwargs)

    @property
    def __func__(self) -> Callable[..., Any]:
        return self._function

    @property
    def __self__(self) -> Any:
        instance = self._instance()
        if instance is None:
            raise FailedPreconditionError(
                f"The object whose method {self.__name__!r} is called no longer exists; keep it in a "
                "variable."
            )
        return instance

    def with_function(self, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> WeakMethod:
        """The method of the same instance with the function ``change(function)``."""
        return WeakMethod(change(self._function), self.__self__)


class MethodTable(Generic[F]):
    """The traced function of each instance of a class, removed when the instance dies."""

    __slots__ = ("_functions",)

    def __init__(self) -> None:
        self._functions: dict[int, tuple[weakref.ref[Any], F]] = {}

    def get(self, instance: Any, make: Callable[[Any], F]) -> F:
        """The function of ``instance``, created by ``make(instance)`` at the first call.

        Raises:
            DTypeError: the instance doesn't support weak references.
        """
        entry = self._functions.get(id(instance))
        if entry is None:
            key = id(instance)
            functions = self._functions
            try:
                reference = weakref.ref(instance, lambda _: functions.pop(key, None))
            except TypeError:
                raise DTypeError(
                    "A traced method needs an instance that supports weak references: add '__weakref__' to "
                    f"the __slots__ of {type(instance).__name__}."
                ) from None
            entry = functions.setdefault(key, (reference, make(instance)))
        return entry[1]
