"""``gradients``: gradients of symbolic tensors, as more ops of the same graph or trace."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.eager.unconnected import UnconnectedGradients
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer
from dualflow.gradient.sweep import Record, Records, sweep
from dualflow.graph.ir import Value
from dualflow.graph_mode.graph_engine import GraphEngine
from dualflow.graph_mode.run_plan import needed
from dualflow.graph_mode.unknown_rank import is_unknown, postpone
from dualflow.ops.complex_numbers import conj
from dualflow.ops.creation import convert_to_tensor, ones_like, zeros_like


@entry
def gradients(
    ys: object,
    xs: object,
    grad_ys: object = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: object = None,
    stop_gradients: object = None,
    unconnected_gradients: UnconnectedGradients | str = "none",
) -> list[Any]:
    """The gradient of the sum of ``ys`` with respect to each of ``xs``, in a traced function or a graph.

    It works on the ops that are recorded so far, so ``xs`` may be any tensors that ``ys`` are computed from.
    Eagerly ops are not recorded: there a GradientTape computes gradients.

    Args:
        ys: a tensor or a list.
        xs: a tensor or variable, or a list of them.
        grad_ys: the cotangent of each of ``ys``, ones by default.
        name: the name scope of the added ops, in an explicit graph.
        colocate_gradients_with_ops, gate_gradients, aggregation_method: TensorFlow's, and ignored.
        stop_gradients: tensors that are treated as constants.
        unconnected_gradients: ``"none"`` or ``"zero"``: the gradient of an unconnected source.

    Returns:
        A list with a tensor for each of ``xs``, of its shape and dtype; None for an unconnected one.

    Raises:
        FailedPreconditionError: ops run eagerly.
        DTypeError: one of ``ys`` belongs to another graph; in a branch or loop, to the code around it.
        InvalidArgumentError: ``unconnected_gradients`` is another value, or a function has assigned a
            variable of ``xs`` before.

    >>> import dualflow as df
    >>> @df.function
    ... def slope(x):
    ...     return df.gradients(x**3.0, x)[0]
    >>> slope(df.constant(2.0)).numpy()
    np.float32(12.0)
    """
    engine = dispatch.current().innermost
    if not isinstance(engine, Tracer):
        raise FailedPreconditionError(
            "gradients() is not compatible with eager execution: use df.GradientTape, or call it in a "
            "df.function or in a block `with Graph().as_default():`."
        )
    try:
        unconnected = UnconnectedGradients(unconnected_gradients)
    except ValueError:
        raise InvalidArgumentError(
            f'unconnected_gradients is "none" or "zero", not {unconnected_gradients!r}.'
        ) from None
    scope = engine.name_scope(name) if isinstance(engine, GraphEngine) else nullcontext(name)
    with scope:
        return _gradients(engine, ys, xs, grad_ys, stop_gradients, unconnected)


def _gradients(
    engine: Tracer, ys: Any, xs: Any, grad_ys: Any, stop_gradients: Any, unconnected: UnconnectedGradients
) -> list[Any]:
    targets, sources = [_tensor_of(engine, y) for y in _targets(engine, ys)], _listed(xs)
    source_values = [[v for v in _values_of(engine, x) if v.spec.dtype.is_inexact] for x in sources]
    initial = [None] * len(targets) if grad_ys is None else _listed(grad_ys)
    cotangents = [
        _ones(y) if g is None else conj(convert_to_tensor(g, y.dtype))
        for y, g in zip(targets, initial, strict=True)
    ]
    stops = dict.fromkeys(_tensor_of(engine, s)._value for s in _listed(stop_gradients or []))
    ancestors = needed({}, [y._value for y in targets], (), stops)
    records: Records = [
        Record(
            n.op,
            tuple(map(engine.tensor_of, n.inputs)),
            tuple(map(engine.tensor_of, n.outputs)),
            dict(n.attrs),
        )
        for n in engine.builder.nodes
        if n in ancestors
    ]
    flat = [v for values in source_values for v in values]
    flows = iter(sweep(records, targets, cotangents, [engine.tensor_of(v) for v in flat]))
    return [
        _total([next(flows) for _ in values], source, unconnected)
        for values, source in zip(source_values, sources, strict=True)
    ]


def _ones(target: SymbolicTensor) -> Any:
    return postpone(ones_like, (target,), {}) if is_unknown(target) else ones_like(target)


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, list | tuple) else [x]


def _targets(engine: Tracer, ys: Any) -> list[Any]:
    """The tensors ``ys``, which the engine has recorded; those of enclosing code are refused."""
    targets = _listed(ys)
    for y in targets:
        if isinstance(y, SymbolicTensor) and y._tracer is not engine:
            raise DTypeError(
                f"gradients() takes ys of the graph or trace that is being built, not {y!r}. In a branch or "
                "loop compute ys from xs, or call gradients() after it."
            )
    return targets


def _tensor_of(engine: Tracer, x: Any) -> SymbolicTensor:
    """The engine's symbolic tensor for a tensor or a variable's value."""
    return engine.tensor_of(engine.lift(convert_to_tensor(x))._value)


def _values_of(engine: Tracer, source: Any) -> list[Value]:
    """The values to differentiate for a source: the reads of a variable, or the value of a tensor."""
    is_variable = isinstance(source, AbstractVariable)
    return engine.reads(source) if is_variable else [_tensor_of(engine, source)._value]


def _total(flows: Sequence[Any], source: Any, unconnected: UnconnectedGradients) -> Any:
    connected = [flow for flow in flows if flow is not None]
    if not connected:
        return zeros_like(source) if unconnected is UnconnectedGradients.ZERO else None
    total = connected[0]
    for flow in connected[1:]:
        total = total + flow
    return conj(total)
