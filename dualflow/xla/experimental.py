"""Compiles a computation: ``df.xla.experimental``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import publish as _publish
from dualflow.function import function

__all__ = ["compile", "jit_scope"]


def compile(computation: Callable[..., Any], inputs: Sequence[Any] | None = None) -> list[Any]:
    """The results of a computation that is compiled.

    Args:
        computation: a function of tensors that returns a tensor or a sequence of them.
        inputs: its arguments, none by default.

    Returns:
        A list of the results; without results an empty list.

    >>> import dualflow as df
    >>> [x.numpy() for x in df.xla.experimental.compile(lambda x: 2 * x, [df.constant(3.0)])]
    [np.float32(6.0)]
    """
    results = function(computation)(*(inputs or ()))
    if results is None:
        return []
    return list(results) if isinstance(results, list | tuple) else [results]


@contextmanager
def jit_scope(compile_ops: bool = True, separate_compiled_gradients: bool = False) -> Iterator[None]:
    """A context manager that changes nothing: every function is compiled.

    Args:
        compile_ops: must be True: compiled functions have no parts that are not.
        separate_compiled_gradients: TensorFlow's, and ignored.

    Raises:
        InvalidArgumentError: ``compile_ops`` is false.

    >>> import dualflow as df
    >>> with df.xla.experimental.jit_scope():
    ...     x = df.ones([])
    """
    if not compile_ops:
        raise InvalidArgumentError(
            "jit_scope(compile_ops=False) has no effect here: run eagerly what should not be compiled."
        )
    yield


_publish(globals())
