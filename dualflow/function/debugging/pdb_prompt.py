"""The prompt of ``f.debug``: Python's pdb, at the user's line of an op.

pdb shows frames. For each op a line of code is compiled with the user's file, line and function name, and
runs with the op's inputs and outputs as local variables. So ``list``, ``where`` and breakpoints refer to the
user's source, which does not run again. No trace function is set, so that other tracers (coverage, an outer
debugger) are not disturbed.
"""

from __future__ import annotations

import ast
import pdb
import sys
from bdb import BdbQuit
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

from dualflow.core.errors import DualflowError
from dualflow.core.own_files import OWN_FILES
from dualflow.eager.tensor import wrap
from dualflow.function.debugging.local_names import Names
from dualflow.function.debugging.stepping import Outputs, Step, step_of
from dualflow.graph.ir import Graph, Node, Origin, Value

_RUN = "__run__"
Stops = Callable[[FrameType, int], bool]


class DebuggingEnded(DualflowError, BdbQuit):
    """The user has left the debugger before the function's end."""


class Prompt:
    """An observer that prompts at the ops at which the debugger stops.

    Args:
        default_globals: the globals on lines whose module is unknown.
        names: the user's local names at each op.
    """

    def __init__(self, default_globals: Mapping[str, Any], names: Names) -> None:
        self._default_globals = dict(default_globals)
        self._names = names
        self._values: dict[Value, Any] = {}
        self._debugger = OpDebugger()
        self._codes: dict[Origin, tuple[CodeType, dict[str, Any]]] = {}

    def begin(self, graph: Graph, arrays: Outputs) -> None:
        """Called before each run of a body: forget the values of the previous iteration."""
        for node in graph.nodes:
            for value in node.outputs:
                self._values.pop(value, None)
        self._values.update(zip(graph.inputs, map(wrap, arrays), strict=True))

    def __call__(self, node: Node, arrays: Outputs, depth: int, compute: Callable[[], Outputs]) -> Outputs:
        """Run the op in a frame on its line, and prompt after it; prompt also before an op with bodies."""
        if node.origin is None:
            return compute()
        outputs: Outputs = ()
        before = step_of(node, arrays, (), depth)
        scope = self._scope(node, before)

        def run() -> None:
            nonlocal outputs
            frame = sys._getframe(1)
            if node.bodies:
                self._debugger.stop(frame, depth, f"into {node.op.name}, whose ops come first")
            try:
                outputs = compute()
            except Exception as error:
                if not node.bodies:
                    self._debugger.fail(frame, depth, f"{node.op.name} failed: {error}")
                raise
            step = step_of(node, arrays, outputs, depth)
            scope["__step__"] = step
            scope.setdefault("outputs", step.outputs)
            self._debugger.stop(frame, depth, str(step))

        code, names = self._codes.get(node.origin) or self._compile_call(node.origin)
        scope[_RUN] = run
        exec(code, names, scope)
        self._values.update(zip(node.outputs, map(wrap, outputs), strict=True))
        return outputs

    def _scope(self, node: Node, step: Step) -> dict[str, Any]:
        """The local names at the prompt: those of the op, which the user's names may shadow."""
        scope: dict[str, Any] = {"op": step.op, "inputs": step.inputs, "attrs": step.attrs, "__step__": step}
        return scope | self._names.shown(node, self._values)

    def _compile_call(self, origin: Origin) -> tuple[CodeType, dict[str, Any]]:
        """The code of a call of ``run`` on the user's line, and the globals of the line's module; cached."""
        tree = ast.increment_lineno(ast.parse(f"{_RUN}()"), origin.line - 1)
        name = origin.function.rpartition(".")[2]
        code = compile(tree, origin.file, "exec").replace(co_name=name, co_qualname=origin.function)
        modules = [m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == origin.file]
        entry = self._codes[origin] = code, vars(modules[0]) if modules else self._default_globals
        return entry


class OpDebugger(pdb.Pdb):
    """pdb that steps from op to op: ``step`` to the next, ``next`` over bodies, ``return`` out of a body."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._stops: Stops = _always
        self.reset()

    def stop(self, frame: FrameType, depth: int, message: str) -> None:
        """Prompt on this frame if the last command stops here, or at a breakpoint.

        Raises:
            DebuggingEnded: the user has ended the session.
        """
        self._depth = depth
        if self._stops(frame, depth) or self.break_here(frame):
            self._prompt(frame, message)
            if self.quitting:
                raise DebuggingEnded("The debugger was left, which ended the call; no variable has changed.")

    def fail(self, frame: FrameType, depth: int, message: str) -> None:
        """Prompt on this frame, whose op has failed."""
        self._depth = depth
        self._prompt(frame, message)

    def _prompt(self, frame: FrameType, message: str) -> None:
        self.message(message)
        self.user_line(frame)

    def get_stack(self, f: FrameType | None, t: Any) -> tuple[list[tuple[FrameType, int]], int]:
        """The stack without the frames between the user's lines."""
        stack, _ = super().get_stack(f, t)
        shown = [row for row in stack if not row[0].f_code.co_filename.startswith(OWN_FILES)]
        return shown, len(shown) - 1

    def set_step(self) -> None:
        """Stop at the next op."""
        self._stops = _always

    def set_next(self, frame: FrameType) -> None:
        """Stop at the next op that is not in a nested body."""
        here = self._depth
        self._stops = lambda _, depth: depth <= here

    def set_return(self, frame: FrameType) -> None:
        """Stop when the body is left."""
        here = self._depth
        self._stops = lambda _, depth: depth < here

    def set_until(self, frame: FrameType, lineno: int | None = None) -> None:
        """Stop at an op on a later line of the same body, or when the body is left."""
        current, line = self._depth, frame.f_lineno + 1 if lineno is None else lineno
        self._stops = lambda at, depth: depth < current or (depth == current and at.f_lineno >= line)

    def set_continue(self) -> None:
        """Stop at breakpoints only."""
        self._stops = _never


def _always(frame: FrameType, depth: int) -> bool:
    return True


def _never(frame: FrameType, depth: int) -> bool:
    return False
