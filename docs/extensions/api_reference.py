"""The pages of the API reference, one for each public namespace, as text that Sphinx's autodoc completes.

The names are those that ``dir`` shows. What several namespaces have is described on the page of the first,
and linked from the others.
"""

from __future__ import annotations

import inspect
import re
from collections import deque
from collections.abc import Hashable, Mapping
from contextlib import suppress
from types import ModuleType

import dualflow

EXCLUDED = (
    "dualflow.contrib",
    "dualflow.keras",
    "dualflow.compat.v1.compat",
    "dualflow.compat.v1.keras",
    "dualflow.compat.v2",
)
"""Namespaces of Keras, of what TensorFlow 1 kept apart, and those that repeat all others."""


def namespace_pages() -> dict[str, str]:
    """The text of each namespace's page, by the namespace's name."""
    described: dict[Hashable, str] = {}  # by the identity of a function or class, its path
    pages = {name: namespace_page(name, namespace, described) for name, namespace in namespaces().items()}
    return {name: page for name, page in pages.items() if not only_repeats(name, page)}


def only_repeats(name: str, page: str) -> bool:
    """Whether a namespace of TensorFlow 1's names has no name that another one doesn't describe."""
    return name.startswith("dualflow.compat.") and not re.search(r"^\.\. auto", page, re.MULTILINE)


def namespaces() -> dict[str, ModuleType]:
    """The public namespaces by name, each once, those of fewer dots first."""
    modules: dict[str, ModuleType] = {"dualflow": dualflow}
    pending = deque(modules)
    while pending:
        name = pending.popleft()
        for member in dir(modules[name]):
            path, value = f"{name}.{member}", getattr(modules[name], member)
            if is_namespace(path, value, modules):
                modules[path] = value
                pending.append(path)
    return modules


def is_namespace(name: str, value: object, visited: Mapping[str, ModuleType]) -> bool:
    """Whether a value is a namespace of dualflow's that was not visited under another name."""
    return (
        isinstance(value, ModuleType)
        and value.__name__.startswith("dualflow")
        and name not in EXCLUDED
        and value not in visited.values()
    )


def namespace_page(name: str, namespace: ModuleType, described: dict[Hashable, str]) -> str:
    """The page of a namespace; adds to ``described`` the functions and classes that it describes."""
    title = name.replace("dualflow", "df", 1)
    members = {f"{name}.{member}": getattr(namespace, member) for member in dir(namespace)}
    values = [path for path, value in members.items() if is_value(value)]
    first = [path for path, value in members.items() if described.setdefault(identity(value), path) == path]
    documented = [path for path in first if is_documented(members[path])]
    others = [path for path in members if path not in documented and is_documented(members[path])]
    heading = f"{title}\n{'=' * len(title)}"
    parts = [heading, f".. py:module:: {name}", inspect.getdoc(namespace) or ""]
    if values:
        parts.append("Values: " + ", ".join(f"``{path.rpartition('.')[2]}``" for path in values) + ".")
    if others:
        links = (
            f":py:obj:`{path.rpartition('.')[2]} <{described[identity(members[path])]}>`" for path in others
        )
        parts.append("Also available here, documented elsewhere: " + ", ".join(links) + ".")
    return "\n\n".join([*parts, *(directive(path, members[path]) for path in documented), ""])


def identity(value: object) -> Hashable:
    """What two names of the same description have in common.

    Functions of TensorFlow 1's names that only call one of TensorFlow 2's have its signature and docstring.
    """
    if inspect.isroutine(value):
        with suppress(ValueError, TypeError):  # it has no signature
            return getattr(value, "__name__", ""), str(inspect.signature(value)), inspect.getdoc(value)
    return id(value)


def is_documented(value: object) -> bool:
    """Whether a value is a function or class, whose docstring autodoc takes."""
    return isinstance(value, type) or inspect.isroutine(value)


def is_value(value: object) -> bool:
    """Whether a value is a constant, such as a dtype."""
    return not is_documented(value) and not isinstance(value, ModuleType)


def directive(path: str, value: object) -> str:
    """The directive by which autodoc describes a function or a class with its methods."""
    if not isinstance(value, type):
        return f".. autofunction:: {path}"
    fields = getattr(value, "_fields", ()) if "Attributes:" in (value.__doc__ or "") else ()
    excluded = f"\n   :exclude-members: {', '.join(fields)}" if fields else ""
    return f".. autoclass:: {path}\n   :members:{excluded}"
