"""The texts of boxes: an op's arguments as the user wrote them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dualflow.graph.fused import body_of
from dualflow.graph.ir import Node, Value
from dualflow.graph.printer import attributes
from dualflow.ops.op_kinds import Cond, Literal, Loop

_MAX_NAMES = 4


def arguments(node: Node, name_of: Callable[[Value], str]) -> Iterator[str]:
    """The lines below the name of an op: its operands if one is a constant, and its attributes.

    Internal fields are left out: those of loops and conditionals except the number of iterations, and of
    kernels.
    """
    if isinstance(node.op.kind, Loop):
        settings = node.settings
        if settings.get("length") is not None:
            most = " at most" if len(node.bodies) > 1 else ""
            yield f"{settings['length']} iterations{most}"
        if settings.get("reverse"):
            yield "from the last to the first"
        return
    if node.bodies:
        return
    if any(v.node is not None and isinstance(v.node.op.kind, Literal) for v in node.inputs):
        yield f"({', '.join([name_of(v) for v in node.inputs])})"
    key = node.attrs.get("key")
    if isinstance(key, tuple):
        yield _index_text(key, node.inputs[0].spec.shape if node.inputs else ())
    for text in attributes(node):
        if not (isinstance(key, tuple) and text.startswith("key=")):
            yield text


def _index_text(key: Sequence[Any], sizes: Sequence[int | None]) -> str:
    """An index in Python's notation.

    >>> _index_text(((2, 256, 1), None, 0, (0, 8, 2)), (256, 3, 8))
    '[2:256, None, 0, ::2]'
    """
    axis, parts = 0, []
    for entry in key:
        if entry is None:
            parts.append("None")
            continue
        size = sizes[axis] if axis < len(sizes) else None
        parts.append(_slice_text(entry, size) if isinstance(entry, tuple) else str(entry))
        axis += 1
    return f"[{', '.join(parts)}]"


def _slice_text(entry: Sequence[int | None], size: int | None) -> str:
    start, stop, step = entry
    if step is None or step > 0:
        start = start or None
        stop = None if start is None and stop == size else stop
    first, last = ("" if bound is None else str(bound) for bound in (start, stop))
    return f"{first}:{last}" + ("" if step in (None, 1) else f":{step}")


def branch_names(node: Node) -> list[str]:
    """The names of the branches of a conditional: then and else if its index is a boolean."""
    count = len(node.bodies)
    if count == 2 and _is_boolean(node.inputs[0]):
        return ["else", "then"]
    return [f"branch {i}" for i in range(count)]


def body_names(node: Node) -> list[str]:
    """The names of the graphs inside a node; the body of a kernel has none."""
    if isinstance(node.op.kind, Cond):
        return branch_names(node)
    return ["" if body_of(node) is not None else name for name, _ in node.bodies]


def _is_boolean(index: Value) -> bool:
    """Whether the index of a branch was converted from a boolean, perhaps inside of a kernel."""
    node = index.node
    if node is not None and (body := body_of(node)) is not None:
        node = body.outputs[index.index].node
    return node is not None and bool(node.inputs) and node.inputs[0].spec.dtype.name == "bool"


def counted(names: Iterable[str]) -> str:
    """Each name with the number of its occurrences, the most frequent first.

    >>> counted(["add", "exp", "add"])
    '2 add, exp'
    """
    counts = Counter(names).most_common()
    shown = [name if n == 1 else f"{n} {name}" for name, n in counts[:_MAX_NAMES]]
    return ", ".join([*shown, "..."] if len(counts) > _MAX_NAMES else shown)
