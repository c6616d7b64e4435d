"""The fast path of a compiled graph that the C fast call can't serve, such as one with host calls.

Tensors with the shapes and dtypes of the trace are passed to the executable without binding a signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dualflow.eager.tensor import EagerTensor, wrap
from dualflow.function.calls.array_ownership import gather
from dualflow.function.calls.call_form import REFUSED, CallForm, refuse
from dualflow.graph.compiled import Compiled
from dualflow.graph.ir import Graph


def checked_call(graph: Graph, form: CallForm | None, run: Callable[..., Any]) -> Callable[..., Any]:
    """The fast path that calls ``run`` with those of a call's values that are the graph's inputs.

    It returns REFUSED unless the inputs are tensors of the graph's shapes and dtypes in row-major order, and
    always if a shape is open.
    """
    specs = [v.spec for v in graph.arguments]
    if not all(type(size) is int for spec in specs for size in spec.shape):
        return refuse
    places = range(len(specs)) if form is None else form.places
    fixed = [] if form is None else [(x.place, x.value) for x in form.fixed]
    count = len(places) + len(fixed)
    expected = [(i, spec.dtype.dtype, tuple(spec.shape)) for i, spec in zip(places, specs, strict=True)]

    def call(*values: Any) -> Any:
        if len(values) != count:
            return REFUSED
        tensors = []
        for place, dtype, shape in expected:
            x = values[place]
            if type(x) is not EagerTensor:
                return REFUSED
            array = x._array
            if array.dtype is not dtype or array.shape != shape or not array.flags.c_contiguous:
                return REFUSED
            tensors.append(x)
        for place, value in fixed:
            if values[place] is not value:
                return REFUSED
        return run(*tensors)

    return call


def reading_call(
    compiled: Compiled, captured: Sequence[Any], pack: Callable[[Sequence[Any]], Any]
) -> Callable[..., Any]:
    """An executable that assigns no variable, as a function of tensors in row-major order."""
    run = compiled.run

    def call(*tensors: Any) -> Any:
        arrays = [x._array for x in tensors]
        if captured:
            arrays += gather(captured)
        return pack([wrap(x) for x in run(arrays)])

    return call
