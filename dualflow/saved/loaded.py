"""The results of ``load``: objects with the attributes of the saved ones, and functions that run traces."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import dataclass
from dualflow.core.report_text import ReportText
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.eager.module import Module
from dualflow.function.arguments.match_structure import as_tensor, match_structure
from dualflow.function.arguments.signature import Signature
from dualflow.function.arguments.trace_key import static_leaf
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.traced_function import Function
from dualflow.graph.interpret import replay
from dualflow.graph.ir import Graph
from dualflow.saved.structures import is_tensor

_NO_SIGNATURES: Final[Mapping[str, ConcreteFunction]] = MappingProxyType({})


class LoadedObject(Module):
    """An object of a saved model, with its variables, objects, functions and plain values as attributes.

    Attributes:
        signatures: the functions of named tensors, by name; of the outermost object alone.
        class_name: the name of the class of the saved object.
    """

    def __init__(self, class_name: str) -> None:
        super().__init__()
        self.class_name = class_name
        self.signatures: Mapping[str, ConcreteFunction] = _NO_SIGNATURES

    def _trackable_children(self) -> Mapping[str, Any]:
        return {name: x for name, x in vars(self).items() if name not in _INTERNAL_ATTRIBUTES}

    def __repr__(self) -> str:
        return f"<loaded {self.class_name}: {', '.join(self._trackable_children()) or 'nothing'}>"


class LoadedCallable(LoadedObject):
    """An object of a saved model whose ``__call__`` is a saved function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the saved ``__call__``."""
        return vars(self)["__call__"](*args, **kwargs)


_INTERNAL_ATTRIBUTES: Final = frozenset({"signatures", "_scope_name", "class_name"})


@dataclass(frozen=True, slots=True, eq=False)
class LoadedTrace:
    """A trace of a saved model.

    Attributes:
        name: its name.
        graph: the graph, whose captures are the loaded variables and tensors.
        parameters: the parameters of the function.
        arguments: the value of each parameter, with specs for tensors.
        results: the structure of the results.
    """

    name: str
    graph: Graph
    parameters: tuple[inspect.Parameter, ...]
    arguments: tuple[Any, ...]
    results: Structure

    def converted(self, values: tuple[Any, ...], *, exactly: bool) -> list[Any] | None:
        """The leaves of ``values``, converted to the specs of this trace; None if they don't match.

        Args:
            values: a value for each parameter.
            exactly: whether tensors must be tensors of the right dtype; others are converted.
        """
        saved, structure = flatten(self.arguments)
        leaves, own = flatten(values)
        if own != structure:
            try:
                leaves = [] if exactly else list(match_structure(structure, values))
            except DTypeError:
                return None
        if len(leaves) != len(saved):
            return None
        converted = []
        for spec, leaf in zip(saved, leaves, strict=True):
            if not isinstance(spec, TensorSpec):
                if is_tensor(leaf) or static_leaf(leaf) != static_leaf(spec):
                    return None
            elif is_tensor(leaf):
                if leaf.dtype is not spec.dtype or not _includes(spec.shape, leaf.shape):
                    return None
            elif exactly:
                return None
            else:
                try:
                    leaf = as_tensor(spec, leaf)
                except (DTypeError, InvalidArgumentError):
                    return None
            converted.append(leaf)
        return converted

    def run(self, leaves: Sequence[Any]) -> Any:
        """The result for the leaves of the arguments, through the current engine."""
        engine = dispatch.current()
        saved = flatten(self.arguments)[0]
        tensors = [engine.lift(x) for x, spec in zip(leaves, saved, strict=True) if is_tensor(spec)]
        captured = [
            engine.read(c.source) if c.variable else engine.lift(c.source) for c in self.graph.captures
        ]
        latest: dict[int, Any] = {}

        def assign(variable: Any, value: Any) -> None:
            latest[id(variable)] = value
            variable.assign(value)

        results = replay(self.graph, [*tensors, *captured], assign)
        sources = dict(zip(self.graph.inputs[len(tensors) :], self.graph.captures, strict=True))
        count = len(self.graph.outputs)
        for update, value in zip(self.graph.updates, results[count:], strict=True):
            variable = sources[update.input].source
            if latest.get(id(variable)) is not value:
                variable.assign(value)
        return unflatten(self.results, results[:count])

    def __str__(self) -> str:
        shown = zip(self.parameters, self.arguments, strict=True)
        return ", ".join(f"{p.name}: {_shown(value)}" for p, value in shown)


class LoadedFunction(Function[..., Any]):
    """A function of a saved model: it has the saved traces, and no Python code for others.

    A call runs the trace whose specs fit its arguments; numbers, lists and arrays are converted.
    """

    def __init__(self, name: str, traces: Sequence[LoadedTrace], input_signature: Any = None) -> None:
        self.saved = tuple(traces)
        self.signatures: Mapping[str, ConcreteFunction] = _NO_SIGNATURES
        super().__init__(
            _interpreting_function(name, self.saved),
            input_signature=input_signature,
            autograph=False,
            sizes="exact",  # for other shapes there is no Python code
            name=name,
        )
        self.__signature__ = self._signature.python
        for trace in self.saved:
            args, kwargs = self._signature.spread(trace.arguments)
            self.get_concrete_function(*args, **kwargs)

    def _bound(self, values: Sequence[Any], names: tuple[str, ...], kind: Any) -> Any:
        count = len(values) - len(names)
        call = self._signature.bind(values[:count], dict(zip(names, values[count:], strict=True)))
        if self._cache.find(call, call.inputs, self._calls) is None:
            arguments = unflatten(call.structure, call.leaves)
            trace, leaves = matching(self._name, self.saved, arguments)
            converted = unflatten(flatten(trace.arguments)[1], leaves)
            if self._cache.find(self._signature.call(converted), (), self._calls) is not None:
                args, kwargs = self._signature.spread(converted)
                return self(*args, **kwargs)
        return super()._bound(values, names, kind)


def matching(
    name: str, traces: Sequence[LoadedTrace], arguments: tuple[Any, ...]
) -> tuple[LoadedTrace, list[Any]]:
    """The first trace that matches ``arguments``, preferably without conversions, and its leaves.

    Raises:
        InvalidArgumentError: no trace does.
    """
    for exactly in (True, False):
        for trace in traces:
            leaves = trace.converted(arguments, exactly=exactly)
            if leaves is not None:
                return trace, leaves
    shown = ", ".join(map(_shown, arguments))
    listed = "".join(f"\n  {i}. ({trace})" for i, trace in enumerate(traces, 1)) or " none"
    raise InvalidArgumentError(
        f"{name} was loaded from a saved model, and no trace that was saved takes ({shown}). Its traces "
        f"are:{listed}\nCall it with such arguments, or call the original with these before it is saved."
    )


def _includes(shape: Shape, other: Shape) -> bool:
    """Whether all tensors of the shape ``other``, whose sizes may be dynamic, have ``shape``."""
    return shape.is_compatible_with(other) and all(
        size is None or size == own for size, own in zip(shape, other, strict=True)
    )


def _interpreting_function(name: str, traces: Sequence[LoadedTrace]) -> Callable[..., Any]:
    """A Python function that runs the trace for its arguments node by node."""
    parameters = traces[0].parameters if traces else _ANY

    @entry
    def replayed(*args: Any, **kwargs: Any) -> Any:
        values = tuple(signature.arguments(args, kwargs).values())
        trace, leaves = matching(name, traces, values)
        return trace.run(leaves)

    replayed.__name__ = replayed.__qualname__ = name
    replayed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # inspect reads it
    signature = Signature(replayed)
    return replayed


_ANY: Final = (
    inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
    inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
)


def _shown(value: Any) -> str:
    """An argument for a message: tensors as their specs."""
    leaves, structure = flatten(value)
    shown = [ReportText(str(TensorSpec(x.shape, x.dtype)) if is_tensor(x) else repr(x)[:60]) for x in leaves]
    return str(unflatten(structure, shown))
