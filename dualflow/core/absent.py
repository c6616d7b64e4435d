"""Error messages for names that a public namespace lacks: TensorFlow's names, with what to use instead.

The names and the advice are in ``absent_names.txt``, which is read at the first missing name. A line there
without indentation is a namespace, followed by its names; those of "tf" apply to all namespaces. After ``->``
is the name in this package, where ``*`` is the name itself; after ``=`` is advice. Lines that are indented
further continue the previous one. Names without either are TensorFlow's without a replacement.
"""

from __future__ import annotations

import difflib
import pkgutil
import re
from functools import cache
from typing import Final

from dualflow.core.errors import MissingAttributeError, MissingNameError
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple

_NAMESPACES: Final = ("math", "nn", "linalg", "random", "bitwise", "config", "debugging", "sparse")


class AbsentName(NamedTuple):
    """A name of TensorFlow that dualflow lacks: its namespace, the name, and the advice, if any."""

    section: str
    name: str
    advice: str | None


def missing(module: str, name: str, public: list[str], importing: bool) -> Exception:
    """The error for a ``name`` that ``module`` lacks.

    ``importing``: the import system looks it up for ``from module import name``. After an AttributeError it
    would try a submodule next, after an ImportError it doesn't.
    """
    text = explain(module, name, public)
    return MissingNameError(text, name=name) if importing else MissingAttributeError(text, name=name)


def explain(module: str, name: str, public: list[str]) -> str:
    """The message for a ``name`` that ``module``, whose names are ``public``, lacks.

    >>> print(explain("dualflow", "random_normal", []))
    module 'dualflow' has no attribute 'random_normal': use df.random.normal.
    >>> print(explain("dualflow.nn", "rleu", ["relu", "elu"]))
    module 'dualflow.nn' has no attribute 'rleu'. Did you mean 'relu'?
    """
    start = f"module {module!r} has no attribute {name!r}"
    place = module.removeprefix("dualflow").removeprefix(".").removeprefix("function.") or "tf"
    advice = _advice(place, name)
    if advice is not None:
        return f"{start}: {advice}."
    similar = difflib.get_close_matches(name, public, 3, 0.75)
    return f"{start}. Did you mean {' or '.join(map(repr, similar))}?" if similar else f"{start}."


def _advice(place: str, name: str) -> str | None:
    table = _table()
    rows = [
        table[section, name]
        for section in dict.fromkeys((place, place.removeprefix("compat.v1."), "tf"))
        if (section, name) in table
    ]
    advice = next((row.advice for row in rows if row.advice is not None), None)
    if advice is not None:
        return advice
    for other in _NAMESPACES:
        if name in imported(f"dualflow.{other}").__all__:
            return f"use df.{other}.{name}"
    for row in rows:
        path = name if row.section == "tf" else f"{row.section}.{name}"
        return f"TensorFlow's tf.{path} is not in this version"
    return None


@cache
def _table() -> dict[tuple[str, str], AbsentName]:
    return {(row.section, row.name): row for row in rows()}


def rows() -> list[AbsentName]:
    """The names of TensorFlow that dualflow lacks, with their advice, as parsed from ``absent_names.txt``."""
    content = pkgutil.get_data("dualflow.core", "absent_names.txt")
    assert content is not None, "the table of names is part of the package"
    absent = []
    section = ""
    for line in re.sub(r"\n {8,}", " ", content.decode()).splitlines():
        if not line.startswith(" "):
            section = line
            continue
        names, sign, text = [*re.split(r" (->|=) ", line), "", ""][:3]
        for name in names.split():
            advice = f"use df.{text.replace('*', name)}" if sign == "->" else text or None
            absent.append(AbsentName(section, name, advice))
    return absent
