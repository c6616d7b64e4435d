"""Names in exported C: valid identifiers that neither C nor the file uses for anything else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from dualflow.graph.ir import Graph, Node

_RESERVED: Final = re.compile(
    r"_.*|df_.*|DF_.*|auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if"
    r"|inline|int|long|register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned"
    r"|void|volatile|while|bool|true|false|complex|main|workspace|arena|status|failed|memcpy|memmove|asm|typeof"
    r"|u?int(8|16|32|64|ptr|max)_t|size_t|NAN|INFINITY|I|(in|out|const|row|iteration|batch|k)\d+.*"
    r"|(a?(sin|cos|tan)h?|atan2|exp2?|expm1|log(2|10|1p)?|pow|sqrt|fabs|floor|ceil|rint|fma|fmod|erfc?|y[01n]"
    r"|j[01n]|gamma|abs|div|time|index|round|copysign|cbrt|hypot|signgam|creal|cimag)[fl]?"
)


def is_free(name: str) -> bool:
    """Whether ``name`` is an identifier that exported text doesn't use itself.

    >>> is_free("weights"), is_free("double"), is_free("exp"), is_free("2x")
    (True, False, False, False)
    """
    return re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) is not None and not _RESERVED.fullmatch(name)


def function_name(graph: Graph) -> str:
    """The graph's name if it is free, or else ``program``."""
    return graph.name if is_free(graph.name) else "program"


def argument_names(graph: Graph) -> list[str]:
    """A name for each input of the graph, its own if that is free."""
    own = [v.spec.name for v in graph.arguments]
    own += [getattr(c.source, "name", None) for c in graph.captures]
    taken = {function_name(graph)}
    names = []
    for i, name in enumerate(own):
        plain = re.sub(r"\W", "_", (name or "").removesuffix(":0"), flags=re.ASCII)
        unique = plain if is_free(plain) and plain not in taken else f"in{i}"
        taken.add(unique)
        names.append(unique)
    return names


def kernel_name(number: int, nodes: Sequence[Node]) -> str:
    """The name of a kernel: its number, and the first ops that it computes."""
    ops = dict.fromkeys(re.sub(r"\W", "_", node.op.name, flags=re.ASCII) for node in nodes)
    return "_".join([f"k{number}", *list(ops)[:4]])


def user_lines(nodes: Sequence[Node]) -> Iterator[str]:
    """The lines of the user's program that nodes come from, each once: ``model.py:5, in gelu``."""
    origins = [node.origin for node in nodes if node.origin is not None]
    yield from dict.fromkeys(f"{os.path.basename(o.file)}:{o.line}, in {o.function}" for o in origins)
