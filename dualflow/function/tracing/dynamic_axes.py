"""Adds the dynamic axes, and advice, to errors about None that are raised in a trace with dynamic sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dualflow.core.spec import TensorSpec
from dualflow.function.tracing.tracer import Tracer

_NONE = "None"


@contextmanager
def named_dynamic_axes(tracer: Tracer) -> Iterator[None]:
    """Append a sentence about the trace's dynamic sizes to the message of a TypeError about None."""
    try:
        yield
    except TypeError as error:
        message = str(error.args[0]) if error.args else ""
        advice = _advice(tracer) if _NONE in message else None
        if advice is not None and advice not in message:
            error.args = (f"{message.rstrip('.')}. {advice}", *error.args[1:])
        raise


def _advice(tracer: Tracer) -> str | None:
    """The sentence: which size is dynamic, and how to get it at run time; None if no size is dynamic."""
    inputs = [v.spec for v in tracer.builder.inputs if not v.spec.shape.is_static]
    if inputs:
        shown = " and ".join(map(_axes, inputs))
        first = inputs[0]
        axis = next(axis for axis, size in enumerate(first.shape) if size is None)
        name = first.name or "x"
        length = f"len({name}) or " if axis == 0 else ""
        return (
            f"The size of {shown} is known only at run time, and is None in the shape: use "
            f"{length}df.shape({name})[{axis}]."
        )
    node = next((n for n in tracer.builder.nodes if any(not s.shape.is_static for s in n.specs)), None)
    if node is None:
        return None
    where = f" in line {node.origin.line}" if node.origin is not None else ""
    return (
        f"The size of the result of {node.op.name}{where} is known only at run time, and is None in its "
        "shape: use len(x) or df.shape(x)[0]."
    )


def _axes(spec: TensorSpec) -> str:
    axes = [str(axis) for axis, size in enumerate(spec.shape) if size is None]
    return f"axis {', '.join(axes)} of {spec.name or 'an argument'} ({TensorSpec.of(spec.shape, spec.dtype)})"
