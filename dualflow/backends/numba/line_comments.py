"""Comments of generated source: the ops that a line computes, and the user's lines of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dualflow.backends.numba.source_lines import Lines
from dualflow.graph.ir import Node
from dualflow.graph.origin import line_label, origins_of

_COLUMN = 60


def ops_comment(nodes: Sequence[Node]) -> str:
    """The ops of some nodes with the user's lines: ``multiply, add (model.py:3)``."""
    ops = Counter(node.op.name for node in nodes)
    what = ", ".join(name if n == 1 else f"{name} (x{n})" for name, n in ops.items())
    where = ", ".join(dict.fromkeys(map(line_label, origins_of(nodes))))
    return f"{what} ({where})" if where else what


def commented(line: str, comment: str) -> str:
    """A line with a comment to its right.

    >>> commented("x = 1", "one")
    'x = 1                                                         # one'
    """
    return f"{line:<{_COLUMN}}  # {comment}"


class CommentedLines(Lines):
    """Source lines with the nodes that they compute, for comments in listings."""

    def __init__(self, depth: int = 1) -> None:
        super().__init__(depth)
        self.nodes: dict[int, Sequence[Node]] = {}

    def add(self, line: str, nodes: Sequence[Node] = ()) -> None:
        if nodes:
            self.nodes[len(self.text)] = nodes
        super().add(line)

    def with_comments(self) -> list[str]:
        """The lines with their comments."""
        return [
            commented(line, ops_comment(self.nodes[i])) if i in self.nodes else line
            for i, line in enumerate(self.text)
        ]
