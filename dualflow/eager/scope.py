"""``name_scope``: prefixes of names."""

from __future__ import annotations

from contextlib import AbstractContextManager

from dualflow.core import dispatch
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry


class name_scope:
    """A context that prefixes the names of variables with ``name/``; in an explicit graph, of ops as well.

    ``with name_scope(name) as prefix:`` yields the prefix. Used as a name, it opens the same scope again.

    Args:
        name: the name of the scope; scopes nest.

    Raises:
        InvalidArgumentError: ``name`` is not a string.

    >>> import dualflow as df
    >>> with df.name_scope("layer"):
    ...     print(df.Variable(1.0, name="w").name)
    layer/w:0
    """

    @entry
    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise InvalidArgumentError(f"name for name_scope must be a string, not {name!r}.")
        self._name = name
        self._open: list[AbstractContextManager[str]] = []

    @property
    def name(self) -> str:
        """The name that the scope was created with."""
        return self._name

    def __enter__(self) -> str:
        block = dispatch.current().name_scope(self._name)
        scope_prefix = block.__enter__()
        self._open.append(block)
        return scope_prefix

    def __exit__(self, *exc: object) -> None:
        self._open.pop().__exit__(None, None, None)
