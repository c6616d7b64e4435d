"""Graphs as text.

    graph step(%x: float32[8, 3], %weight: float32[3, 1] = variable)
        %0: float32[8, 1] = matmul(%x, %weight)   # train.py:12
        return %0

The bodies of fused nodes, branches and loops are indented under their node.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from dualflow.graph.ir import Graph, Node, Value

_INDENT = "    "
_ELEMENTS = 6
_PLAIN = (bool, int, float, str, tuple)


def text(graph: Graph) -> str:
    """The text of ``graph``."""
    return "\n".join(_lines(graph, ""))


def value_names(graph: Graph) -> dict[Value, str]:
    """The name of each value in the text of ``graph``. Values of bodies have names of their own."""
    names = _input_names(graph)
    computed = (value for node in graph.nodes for value in node.outputs)
    return names | {value: f"%{i}" for i, value in enumerate(computed)}


def attributes(node: Node) -> list[str]:
    """The attributes as ``name=value``, without bodies and the settings that only the compiler reads."""
    settings = node.settings
    if node.bodies:
        settings = {name: value for name, value in settings.items() if isinstance(value, _PLAIN)}
    return [f"{name}={_shown(value)}" for name, value in settings.items()]


def lines_of(node: Node) -> str:
    """The user's lines that called the node's op, as ``file.py:12``; empty without any."""
    origins = [o for o in (node.origin, *node.merged_origins) if o is not None]
    return ", ".join(dict.fromkeys(f"{os.path.basename(o.file)}:{o.line}" for o in origins))


def _lines(graph: Graph, margin: str, title: str = "") -> Iterator[str]:
    names = value_names(graph)
    inputs = [f"{names[v]}: {v.spec}" for v in graph.inputs]
    first = len(graph.arguments)
    for i, capture in enumerate(graph.captures, start=first):
        inputs[i] += " = variable" if capture.variable else " = captured tensor"
    yield f"{margin}{title}graph {graph.name}({', '.join(inputs)})"
    inner = margin + _INDENT
    for node in graph.nodes:
        results = ", ".join(f"{names[v]}: {v.spec}" for v in node.outputs)
        call = f"{node.op.name}({', '.join([names[v] for v in node.inputs] + attributes(node))})"
        where = lines_of(node)
        yield f"{inner}{results} = {call}" + (f"   # {where}" if where else "")
        for name, body in node.bodies:
            yield from _lines(body, inner + _INDENT, f"{name}: ")
    for update in graph.updates:
        yield f"{inner}{names[update.input]} <- {names[update.value]}"
    yield f"{inner}return {', '.join(names[v] for v in graph.outputs) or 'nothing'}"


def _input_names(graph: Graph) -> dict[Value, str]:
    """The name of each input: that of the argument or variable if it has one, made unique."""
    own_names = [v.spec.name or f"in{i}" for i, v in enumerate(graph.arguments)]
    own_names += [getattr(c.source, "name", None) or f"captured{i}" for i, c in enumerate(graph.captures)]
    names: dict[Value, str] = {}
    taken: set[str] = set()
    for i, (value, name) in enumerate(zip(graph.inputs, own_names, strict=True)):
        short = str(name).removesuffix(":0")
        names[value] = f"%{short}" if short not in taken and not short.isdigit() else f"%{short}_{i}"
        taken.add(short)
    return names


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        shown = np.array2string(value, threshold=_ELEMENTS, edgeitems=2, precision=8, separator=", ")
        return " ".join(shown.split())
    return getattr(value, "__name__", None) or str(getattr(value, "name", None) or repr(value))
