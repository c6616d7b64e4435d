"""Notes of errors: the op that failed, and the user's line that called it."""

from __future__ import annotations

from dualflow.graph.ir import Node


def call_site(node: Node) -> str:
    """A note for an error: the op and the user's line."""
    return f"in {node.op.name}" + (f", called at {node.origin}" if node.origin else "")


def note_place(error: Exception, node: Node) -> None:
    """Add the op and the user's line of ``node`` to an error that has no notes."""
    if node.origin is not None and not getattr(error, "__notes__", ()):
        error.add_note(call_site(node))
