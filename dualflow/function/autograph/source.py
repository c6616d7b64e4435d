"""``to_code``: the source of a converted function."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import Any

from dualflow.core.errors import InvalidArgumentError
from dualflow.core.locks import imported
from dualflow.function.autograph.callees import NotConverted


def to_code(
    entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: object = None
) -> str:
    """The Python source that a function is converted to.

    Args:
        entity: a Python function or method, or a traced function.
        recursive: ignored; as in TensorFlow.
        experimental_optional_features: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: its source is not available, or uses what can't be converted.

    >>> import dualflow as df
    >>> from dualflow.function.autograph.do_not_convert import is_marked
    >>> df.autograph.to_code(is_marked).splitlines()[0]
    'def ag__is_marked(function: Any) -> bool:'
    """
    function = getattr(entity, "python_function", entity)
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        raise InvalidArgumentError(f"to_code takes a Python function, not a {type(function).__name__}.")
    try:
        tree = imported("dualflow.function.autograph.compilation").lowered_tree(function)
    except NotConverted as reason:
        raise InvalidArgumentError(str(reason)) from None
    if isinstance(tree, ast.Lambda):
        return f"ag__lambda = {ast.unparse(tree)}\n"
    tree.name = f"ag__{tree.name}"
    return ast.unparse(tree) + "\n"
