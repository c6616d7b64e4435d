"""The page docs/coverage.md: TensorFlow's public names, each done, or out with the reason and what to use.

    python tests/coverage/page.py > docs/coverage.md

``names.txt`` has TensorFlow 2.21's names, what ``dir`` shows of each namespace, and those of NumPy and JAX.
The reasons are those that asking for a missing name gives (``dualflow/core/absent_names.txt``).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import dualflow as df

NAMES = Path(__file__).with_name("names.txt")
INTRODUCTION = """\
# TensorFlow's names

Every public name of TensorFlow 2.21's numerical namespaces: there, or out, with the reason and what to use,
which is also the text of the name's error. `python tests/coverage/page.py > docs/coverage.md` writes this
page, and a test compares it with the package. Under `df.numpy` are the names of NumPy 2.4, `jax.numpy` and
`tf.experimental.numpy` together.
"""


class Found(NamedTuple):
    """A name of TensorFlow's: its namespace, whether it exists, and the error of its lookup if not."""

    namespace: str
    name: str
    there: bool
    advice: str


def listed() -> dict[str, list[str]]:
    """TensorFlow's names by namespace."""
    names: dict[str, list[str]] = {}
    namespace = ""
    for line in NAMES.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            names[namespace] += line.split()
        else:
            namespace = line
            names[namespace] = []
    return names


def look_up(namespace: str, name: str) -> Found:
    """Whether the package has the name; the advice of the outermost part of its path that is missing."""
    try:
        reduce(getattr, [*namespace.split(".")[1:], name], df)
    except AttributeError as error:
        return Found(namespace, name, False, str(error).partition(": ")[2])
    return Found(namespace, name, True, "")


def wrapped(text: str, **options: Any) -> str:
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False, **options)


def code(names: list[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


def section(namespace: str, entries: list[Found]) -> Iterator[str]:
    """The lines of one namespace: supported names, and the others grouped by their reason."""
    done = [row.name for row in entries if row.there]
    yield f"\n## {namespace}: {len(done)} of {len(entries)}\n"
    if done:
        yield wrapped(code(done)) + "\n"
    by_advice: dict[str, list[str]] = {}
    for row in entries:
        if not row.there:
            by_advice.setdefault(row.advice, []).append(row.name)
    if not by_advice:
        return
    if not done and len(by_advice) == 1:
        yield f"Out: {next(iter(by_advice))}"
        return
    yield "| out | why, and what to use |\n| :--- | :--- |"
    for advice, names in by_advice.items():
        yield f"| {code(names)} | {sentence(advice)} |"


def sentence(text: str) -> str:
    """The text with a capital letter at its beginning, unless that is a name of code."""
    is_code = re.match(r"\w+[._(]\w", text) is not None
    return text if is_code else f"{text[:1].upper()}{text[1:]}"


def entries() -> dict[str, list[Found]]:
    """TensorFlow's names by namespace, each looked up."""
    return {space: [look_up(space, name) for name in names] for space, names in listed().items()}


def page(entries: dict[str, list[Found]]) -> str:
    """The text of the page."""
    done = sum(row.there for rows in entries.values() for row in rows)
    lines = [INTRODUCTION, f"{done} of {sum(map(len, entries.values()))} names are there."]
    for namespace, rows in entries.items():
        lines += section(namespace, rows)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(entries()), end="")
