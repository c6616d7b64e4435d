"""What a function becomes, to look at."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from dualflow.core.locks import imported


def to_code(
    entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Any = None
) -> str:
    """The Python source that a function is converted to.

    Args:
        entity: a Python function or method, or a traced function.
        recursive: ignored; as in TensorFlow.
        experimental_optional_features: ignored; as in TensorFlow.

    Raises:
        InvalidArgumentError: its source is not available, or uses what can't be converted.

    >>> import dualflow as df
    >>> from dualflow.function.autograph.do_not_convert import is_as_written
    >>> df.autograph.to_code(is_as_written).splitlines()[0]
    'def ag__is_as_written(function: Any) -> bool:'
    """
    converter = imported("dualflow.function.autograph.malt_conversion")  # imports malt, which takes a while
    return textwrap.dedent(inspect.getsource(converter.convert(getattr(entity, "python_function", entity))))
