"""Traces as a saved model stores them: the text of the graph, and the structures of arguments and results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from hashlib import sha256
from typing import Any

import numpy as np

from dualflow.core.errors import DTypeError
from dualflow.core.records import dataclass, field
from dualflow.core.spec import TensorSpec
from dualflow.function.arguments.trace_key import TensorLeaf, VariableLeaf
from dualflow.function.concrete import ConcreteFunction
from dualflow.graph.printer import Storage, complete_text
from dualflow.saved.gradients import with_traced_gradients
from dualflow.saved.structures import to_json, tree_to_json
from dualflow.train.encoding import Array


@dataclass(slots=True)
class TraceWriter:
    """Collects the traces of a save, each once.

    Attributes:
        node_of: returns the number of the object that is a captured variable or tensor.
        texts: the texts of the graphs.
        traces: a description of each trace, as JSON.
        constants: the constants that the texts refer to, by name.
    """

    node_of: Callable[[Any], int]
    texts: list[str] = field(default_factory=list)
    traces: list[Any] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)
    _names: dict[Hashable, str] = field(default_factory=dict)

    def number(self, trace: ConcreteFunction) -> int:
        """The index of a trace, which is added if it is new.

        Raises:
            InvalidArgumentError: an attribute of its graph has no text, or its Python code compared sizes.
            DTypeError: an argument or result is an object that only its own code could create again.
        """
        if id(trace) not in self._numbers:
            trace.guards.require_none(repr(trace))
            cannot = f"{trace.name} can't be saved"
            entry = {
                "name": trace.name,
                "parameters": [_parameter(p) for p in trace.parameters],
                "arguments": tree_to_json(
                    trace.key.structure, argument_leaves(trace), f"{cannot}: an argument"
                ),
                "results": tree_to_json(trace._structure, trace.outputs, f"{cannot}: its result"),
            }
            self.texts.append(
                complete_text(with_traced_gradients(trace), Storage(self._constant, self._source))
            )
            self.traces.append(entry)
            self._numbers[id(trace)] = len(self.traces) - 1
        return self._numbers[id(trace)]

    def _constant(self, array: Array) -> str:
        """The name under which a constant is stored; equal constants share one."""
        key = array.dtype.str, array.shape, sha256(np.ascontiguousarray(array).tobytes()).digest()
        if key not in self._names:
            self._names[key] = f"constants/{len(self.constants)}"
            self.constants[self._names[key]] = array
        return self._names[key]

    def _source(self, source: Any) -> str:
        return str(self.node_of(source))


def argument_leaves(trace: ConcreteFunction) -> list[Any]:
    """The leaves of the parameters of a trace, with specs for tensors; their structure is in its key.

    Raises:
        DTypeError: a variable is an argument.
    """
    values: list[Any] = []
    for leaf, name in zip(trace.key.leaves, trace.leaf_names, strict=True):
        if isinstance(leaf, VariableLeaf):
            raise DTypeError(
                f"{trace.name} can't be saved: its argument {name} is a variable. A saved function takes "
                "tensors, and captures variables: pass the variable's value, or use the variable inside."
            )
        if isinstance(leaf, TensorLeaf):
            values.append(TensorSpec(leaf.spec.shape, leaf.spec.dtype, leaf.spec.name or name))
        else:
            values.append(leaf.value)
    return values


def _parameter(parameter: inspect.Parameter) -> list[Any]:
    """The name and kind of a parameter, and its default if that can be saved."""
    entry: list[Any] = [parameter.name, parameter.kind.name]
    if parameter.default is not parameter.empty:
        try:
            entry.append(to_json(parameter.default, "a default"))
        except DTypeError:
            # A trace made with this default can't be saved; in all other traces the call passed the argument.
            return entry
    return entry
