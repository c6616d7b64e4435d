"""``to_graph``: a function with its control flow converted, to be called in traces."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.function.autograph.callees import NotConverted
from dualflow.function.autograph.conversion import must_convert


@entry
def to_graph(
    entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: object = None
) -> Callable[..., Any]:
    """A function with control flow that takes symbolic tensors, as :func:`dualflow.function` converts it.

    It compiles nothing, and may be called in any trace, or eagerly.

    Args:
        entity: a Python function or method, or a traced function.
        recursive: True; the functions that it calls are converted when they are called.
        experimental_optional_features: ignored, as in TensorFlow.

    Returns:
        A function with the arguments and results of ``entity``.

    Raises:
        InvalidArgumentError: the source of ``entity`` is not available, or uses what can't be converted.

    >>> import dualflow as df
    >>> def steps(x):
    ...     n = 0
    ...     while x > 1.0:
    ...         x, n = x / 2.0, n + 1
    ...     return n
    >>> df.function(df.autograph.to_graph(steps), autograph=False)(df.constant(8.0)).numpy()
    np.int32(3)
    """
    function = getattr(entity, "python_function", entity)
    if not callable(function):
        raise InvalidArgumentError(f"to_graph takes a Python function, not a {type(function).__name__}.")
    if not recursive:
        raise InvalidArgumentError(
            "to_graph converts what a function calls as well; mark what must stay as it is with "
            "df.autograph.do_not_convert."
        )
    try:
        converted = must_convert(function)
    except NotConverted as reason:
        raise InvalidArgumentError(str(reason)) from None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return converted(*args, **kwargs)

    return call
