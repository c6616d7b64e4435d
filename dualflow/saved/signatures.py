"""Signatures: functions of named tensors that return a dict of tensors, as servers call them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, Final

from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import leaves
from dualflow.function.bound_method import BoundFunction
from dualflow.function.concrete import ConcreteFunction
from dualflow.function.traced_function import Function
from dualflow.saved.gradients import with_traced_gradients
from dualflow.saved.loaded import LoadedTrace
from dualflow.saved.traces import argument_leaves

DEFAULT_KEY: Final = "serving_default"
_CONTAINERS: Final = (Mapping, list, tuple, TensorSpec)
"""The results of a signature: a tensor, or tensors in one of these."""


def is_function(thing: Any) -> bool:
    """Whether ``thing`` is a traced function, or one trace of it."""
    return isinstance(thing, Function | BoundFunction | ConcreteFunction)


def signatures_of(signatures: Any, children: Mapping[str, Any]) -> dict[str, ConcreteFunction]:
    """The signatures of a save, each as a trace with keyword parameters that returns a dict.

    Args:
        signatures: a function, or a dict of functions; None for the only function of ``children`` if it has
            an input signature.
        children: the attributes of the saved object.

    Raises:
        DTypeError: one of them is no function, or no trace of tensors that returns tensors.
        InvalidArgumentError: a function has several traces, or none.
    """
    if signatures is None:
        signatures = _only_function(children)
    if is_function(signatures):
        signatures = {DEFAULT_KEY: signatures}
    if not isinstance(signatures, Mapping):
        raise DTypeError(f"signatures is a function, or a dict of functions by name, not {signatures!r}.")
    traces = {}
    for key, function in signatures.items():
        if not isinstance(key, str) or not is_function(function):
            raise DTypeError(
                f"signatures has {key!r}: {function!r}; it maps names to functions of df.function, or to "
                "what their get_concrete_function returns."
            )
        traces[key] = _as_signature(key, single_trace(function, f"the signature {key!r}"))
    return traces


def _only_function(children: Mapping[str, Any]) -> Mapping[str, Any]:
    functions = [child for child in children.values() if is_function(child)]
    if len(functions) != 1:
        return {}
    (function,) = functions
    if isinstance(function, ConcreteFunction):
        return {DEFAULT_KEY: function} if _is_of_tensors(function) else {}
    if function.input_signature is None:
        return {}
    trace = function.get_concrete_function()
    return {DEFAULT_KEY: trace} if _is_of_tensors(trace) else {}


def single_trace(function: Any, what: str) -> ConcreteFunction:
    """The trace of a function with an input signature or a single trace, or a trace itself.

    Raises:
        InvalidArgumentError: it has several traces, or none.
    """
    if isinstance(function, ConcreteFunction):
        return function
    if function.input_signature is not None:
        trace: ConcreteFunction = function.get_concrete_function()
        return trace
    traces = function.traces_without_guards
    if len(traces) != 1:
        raise InvalidArgumentError(
            f"{function!r} has {len(traces)} traces, and {what} needs one: pass "
            "function.get_concrete_function(df.TensorSpec(...)), or give the function an input_signature."
        )
    only: ConcreteFunction = traces[0]
    return only


def _is_of_tensors(trace: ConcreteFunction) -> bool:
    results = trace.structured_outputs
    return isinstance(results, _CONTAINERS) and all(isinstance(x, TensorSpec) for x in leaves(results))


def _as_signature(key: str, trace: ConcreteFunction) -> ConcreteFunction:
    """``trace``, traced again with its tensors as keyword arguments, and a dict as result."""
    saved = argument_leaves(trace)
    named: dict[str, TensorSpec] = {}
    for spec in [x for x in saved if isinstance(x, TensorSpec)]:
        name = re.sub(r"\W+", "_", str(spec.name)).strip("_") or "x"
        while name in named:
            name += "_"
        named[name] = TensorSpec(spec.shape, spec.dtype, name)
    results = _named_results(key, trace)
    graph = with_traced_gradients(trace)
    value_trace = LoadedTrace(trace.name, graph, (), tuple(saved), trace._structure)

    def serve(**tensors: Any) -> dict[str, Any]:
        remaining = iter([tensors[name] for name in named])
        values = [next(remaining) if isinstance(x, TensorSpec) else x for x in saved]
        return dict(zip(results, leaves(value_trace.run(values)), strict=True))

    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in named]
    serve.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # inspect reads it
    function: Function[..., Any] = Function(serve, autograph=False, name=f"signature_{key}")
    signature: ConcreteFunction = function.get_concrete_function(**named)
    return signature


def _named_results(key: str, trace: ConcreteFunction) -> list[str]:
    """The name of each result, in the order of the leaves."""
    results = trace.structured_outputs
    values = leaves(results)
    if not _is_of_tensors(trace):
        raise DTypeError(f"The signature {key!r} returns {results!r}; a signature returns tensors alone.")
    if not isinstance(results, Mapping):
        is_nested = isinstance(results, list | tuple) and any(not isinstance(x, TensorSpec) for x in results)
        if is_nested and len(values) > 1:
            raise DTypeError(
                f"The signature {key!r} returns nested structures; return a dict, or a list of tensors."
            )
        return [f"output_{i}" for i in range(len(values))]
    if not all(isinstance(name, str) and isinstance(x, TensorSpec) for name, x in results.items()):
        raise DTypeError(f"The signature {key!r} returns a dict whose members are not tensors by name.")
    return sorted(results)
