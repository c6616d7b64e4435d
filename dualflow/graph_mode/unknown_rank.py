"""Tensors of unknown rank: a call with one becomes a node, which is expanded when feeds determine the rank.

The node keeps the Python call. What functions among its arguments read from outside are inputs of the node.
The specs of its results come from tracing the call for a few ranks: sizes on which these traces agree are
known, others are dynamic. A vector of an unknown number of integers may hold the sizes of such a tensor, so
these traces have as many of them as axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import TENSORS, AbstractVariable
from dualflow.core.dtypes import int32, int64
from dualflow.core.errors import DualflowError, InternalError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.shape import UNKNOWN_RANK, Dim, Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.eager.tape import GradientTape
from dualflow.function.tracing.symbolic_tensor import KNOWN_SPECS, SymbolicTensor
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.ir import GraphBuilder, Node, Value
from dualflow.graph_mode.replaced_ops import reject_execution
from dualflow.ops.complex_numbers import conj
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.indexing import getitem
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Effect, Op

Call = Callable[..., Sequence[Any]]
"""A function of tensors that returns a list of tensors."""
_REMEDY: Final = "Give the placeholder a shape: [] for a number, [None, 3] for any number of rows of 3."
_RANKS: Final = (1, 0, 2, 3, 4)
"""The ranks that a call is traced for."""
_HIGHER_RANKS: Final = (5, 6, 7, 8)
"""Further ranks if fewer than two of these fit; the first error is raised if none does."""


class _ResultsOfRank(NamedTuple):
    """The results of a call for one rank.

    Attributes:
        structure: their structure.
        specs: of the tensors in it.
        has_effect: whether the call has an effect other than a check.
        captured: the tensors of the graph and the variables that functions in the call read from outside.
        assigns: whether it assigns variables.
    """

    structure: Structure
    specs: list[TensorSpec]
    has_effect: bool
    captured: list[Any]
    assigns: bool


def is_unknown(x: Any) -> bool:
    """Whether ``x`` is a tensor of unknown rank."""
    return isinstance(x, SymbolicTensor) and x._value.spec.shape is UNKNOWN_RANK


def has_unknown_rank(args: Any, kwargs: Any) -> bool:
    """Whether a tensor of unknown rank is among the arguments of a call, or in their lists and dicts."""
    return any(map(is_unknown, flatten((args, kwargs))[0]))


def postpone(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results of ``function(*args, **kwargs)`` as outputs of a node that each run expands.

    A call that only checks its arguments returns the operation of the node. Functions among the arguments
    are traced for several ranks now, and in each run of other ranks.

    Raises:
        InvalidArgumentError: no tensor is returned by a call that has an effect other than a check; a
            function in it assigns a variable; no tensor of unknown rank is read; or the call fails for all
            ranks, or returns another number of tensors for each.
    """
    leaves, structure = flatten((args, kwargs))  # runs are later, so the node keeps copies of arrays
    leaves = [x.copy() if isinstance(x, np.ndarray) else x for x in leaves]
    places = [i for i, x in enumerate(leaves) if isinstance(x, TENSORS)]
    engine = dispatch.current()
    inputs = tuple([dispatch.operand(engine, leaves[i]) for i in places])

    def result_of(tensors: Sequence[Any]) -> Any:
        arguments = list(leaves)
        for i, tensor in zip(places, tensors, strict=True):
            arguments[i] = tensor
        positional, named = unflatten(structure, arguments)
        return function(*positional, **named)

    name = getattr(function, "__name__", type(function).__name__)
    returned, specs, captured = _common_results(name, result_of, [x.spec for x in inputs])
    if captured:
        inputs = (*inputs, *[dispatch.operand(engine, x) for x in captured])
    if not any(map(is_unknown, inputs)) and not any(map(_are_sizes, [x.spec for x in inputs])):
        raise InvalidArgumentError(f"{name} reads no tensor of unknown rank.")

    def call(*tensors: Any) -> Sequence[Any]:
        with _substituted(captured, tensors[len(places) :]):
            return _tensors(result_of(tensors[: len(places)]))[0]

    attrs = {"call": call, "specs": specs, "called": name}
    if not specs:
        return engine.run(POSTPONED_CHECK, inputs, attrs)
    return unflatten(returned, list(engine.run(POSTPONED, inputs, attrs)))


@contextmanager
def _substituted(sources: Sequence[Any], tensors: Sequence[Any]) -> Iterator[None]:
    """Let ``tensors`` of the current trace be the values of ``sources``, which are of the graph."""
    if not sources:
        yield
        return
    tracer = dispatch.current().innermost
    assert isinstance(tracer, Tracer), "a call is expanded in a trace"
    for source, tensor in zip(sources, tensors, strict=True):
        tracer.substitute(source, tensor)
    specs = {x._value: y.spec for x, y in zip(sources, tensors, strict=True) if is_unknown(x)}
    with _known_specs(lambda value: specs.get(value, value.spec)):
        yield


@contextmanager
def _known_specs(spec_of: Callable[[Value], TensorSpec]) -> Iterator[None]:
    """A context in which ``spec_of(value)`` is the spec of a tensor of unknown rank."""
    token = KNOWN_SPECS.set(spec_of)
    try:
        yield
    finally:
        KNOWN_SPECS.reset(token)


class _Bounds(NamedTuple):
    """A slice of an index, whose bounds may be tensors."""

    start: Any
    stop: Any
    step: Any


def postponed_part(x: Any, key: Any) -> Any:
    """``x[key]`` for a tensor of unknown rank; bounds of slices in ``key`` may be tensors.

    Raises:
        InvalidArgumentError: as :func:`postpone`.
    """
    return postpone(_part, (x, _with_bounds(key)), {})


def _part(x: Any, key: Any) -> Any:
    return getitem(x, _with_slices(key))


_part.__name__ = getitem.__name__


def _with_bounds(key: Any) -> Any:
    """``key`` with its slices as structures, whose tensors become operands."""
    if isinstance(key, slice):
        return _Bounds(key.start, key.stop, key.step)
    return tuple(map(_with_bounds, key)) if type(key) is tuple else key


def _with_slices(key: Any) -> Any:
    if type(key) is _Bounds:
        return slice(*key)
    return tuple(map(_with_slices, key)) if type(key) is tuple else key


def expand(builder: GraphBuilder, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """The results of the node's call as values of ``builder``, for inputs of known rank."""
    tracer = Tracer(node.op.name)
    tracer.builder = builder
    with tracing(tracer):
        results = node.attrs["call"](*[SymbolicTensor(v, tracer) for v in inputs])
        values = [tracer.lift(x)._value for x in results]
    for value, spec in zip(values, node.specs, strict=True):
        if not spec.is_compatible_with(value.spec):
            raise InternalError(f"{node.attrs['called']} has the result {value.spec} instead of {spec}")
    return values


def _tensors(result: Any) -> tuple[list[Any], Structure]:
    """The tensors that a call returns, and their structure."""
    leaves, structure = flatten(result)
    return [convert_to_tensor(x) for x in leaves], structure


def _common_results(
    name: str, function: Callable[[Sequence[Any]], Any], inputs: Sequence[TensorSpec]
) -> tuple[Structure, tuple[TensorSpec, ...], list[Any]]:
    """The structure and specs of the results of ``function``, and what it reads from outside.

    Sizes that are equal for all ranks are static.
    """
    results_by_rank: list[_ResultsOfRank] = []
    refusals: dict[int, DualflowError] = {}
    count = 0
    for rank in (*_RANKS, *_HIGHER_RANKS):
        if rank in _HIGHER_RANKS and count > 1:
            break
        try:
            results_by_rank += _results(name, function, inputs, rank)
            count += 1
        except DualflowError as error:
            refusals[rank] = error
    if not results_by_rank:
        raise InvalidArgumentError(
            f"{name} can't be called with a tensor of unknown rank. {_REMEDY} ({refusals[_RANKS[0]]})"
        )
    first = results_by_rank[0]
    dtypes = [s.dtype for s in first.specs]
    if any(r.structure != first.structure or [s.dtype for s in r.specs] != dtypes for r in results_by_rank):
        raise InvalidArgumentError(
            f"{name} returns other structures or dtypes for other ranks, and takes no tensor of unknown "
            f"rank. {_REMEDY}"
        )
    if not dtypes and any(r.has_effect for r in results_by_rank):
        raise InvalidArgumentError(f"{name} returns no tensor, and takes none of unknown rank. {_REMEDY}")
    if any(r.assigns for r in results_by_rank):
        raise InvalidArgumentError(
            f"{name} assigns a variable, and reads a tensor of unknown rank. {_REMEDY}"
        )
    captured = list({id(x): x for r in results_by_rank for x in r.captured}.values())
    operands = [*inputs, *[x.spec for x in captured if isinstance(x, SymbolicTensor)]]
    fit_together = bool(refusals) and sum(map(_has_unknown_rank_or_sizes, operands)) > 1
    if fit_together or (1 in refusals and _may_be_sizes(name, function, inputs, operands)):
        return first.structure, tuple([TensorSpec.of(UNKNOWN_RANK, dtype) for dtype in dtypes]), captured
    columns = zip(*[r.specs for r in results_by_rank], strict=True)
    specs = tuple([TensorSpec.of(_common([s.shape for s in c]), c[0].dtype) for c in columns])
    return first.structure, specs, captured


def _may_be_sizes(
    name: str,
    function: Callable[[Sequence[Any]], Any],
    inputs: Sequence[TensorSpec],
    operands: Sequence[TensorSpec],
) -> bool:
    """Whether the numbers of an operand may be sizes: a vector of one of them has results."""
    if not any(s.shape is UNKNOWN_RANK and s.dtype.is_integer for s in operands):
        return False
    with suppress(DualflowError):
        _result(name, function, inputs, _one_size, None)
        return True
    return False


def _one_size(spec: TensorSpec) -> TensorSpec:
    """The spec of a vector of one integer, if the rank of integers is unknown."""
    is_size = spec.shape is UNKNOWN_RANK and spec.dtype.is_integer
    return TensorSpec.of(Shape([1]), spec.dtype) if is_size else _of_rank(spec, 1)


def _results(
    name: str, function: Callable[[Sequence[Any]], Any], inputs: Sequence[TensorSpec], rank: int
) -> list[_ResultsOfRank]:
    """The results of ``function`` for inputs of a rank: one, or several if it needs integers as numbers.

    These are the numbers of the axes in both orders, which are permutations, and sizes that have no size of
    an axis in common.
    """
    spec_of = partial(_of_rank, rank=rank)
    try:
        return [_result(name, function, inputs, spec_of, None)]
    except DualflowError:
        if not any(map(_are_sizes, inputs)):
            raise
        numbers = np.arange(rank)
        return [_result(name, function, inputs, spec_of, order) for order in (numbers, numbers[::-1])]


def _result(
    name: str,
    function: Callable[[Sequence[Any]], Any],
    inputs: Sequence[TensorSpec],
    spec_of: Callable[[TensorSpec], TensorSpec],
    integers: np.ndarray[Any, Any] | None,
) -> _ResultsOfRank:
    """The structure and specs of the results for inputs of these specs, and ``integers`` for sizes."""
    tracer = Tracer(name)
    with tracing(tracer), _known_specs(lambda value: spec_of(value.spec)):
        arguments = [
            tracer.argument(spec_of(spec))
            if integers is None or not _are_sizes(spec)
            else tracer.constant(integers.astype(spec.dtype.dtype))
            for spec in inputs
        ]
        tensors, structure = _tensors(function(arguments))
        specs = [tracer.lift(x).spec for x in tensors]
    has_effect = any(node.effect not in (None, Effect.CHECK) for node in tracer.builder.nodes)
    sources = [capture.source for _, capture in tracer.builder.captures]
    captured = [x for x in sources if isinstance(x, SymbolicTensor | AbstractVariable)]
    return _ResultsOfRank(structure, specs, has_effect, captured, bool(tracer.updates()))


def _has_unknown_rank_or_sizes(spec: TensorSpec) -> bool:
    return spec.shape is UNKNOWN_RANK or (not spec.shape.is_static and spec.dtype.is_integer)


def _are_sizes(spec: TensorSpec) -> bool:
    """Whether a tensor may hold the sizes, or the axes, of one of unknown rank."""
    return spec.shape == (None,) and spec.dtype in (int32, int64)


def _of_rank(spec: TensorSpec, rank: int) -> TensorSpec:
    """The spec with ``rank`` axes if their number is unknown; of ``rank`` integers if that is unknown."""
    if spec.shape is UNKNOWN_RANK:
        return TensorSpec.of(Shape([None] * rank), spec.dtype)
    return TensorSpec.of(Shape([rank]), spec.dtype) if _are_sizes(spec) else spec


def _common(shapes: Sequence[Shape]) -> Shape:
    """The shape with the sizes, or at least the rank, that all shapes have."""
    if any(s is UNKNOWN_RANK or len(s) != len(shapes[0]) for s in shapes):
        return UNKNOWN_RANK
    dims: list[Dim] = [d[0] if len(set(d)) == 1 else None for d in zip(*shapes, strict=True)]
    return Shape(dims)


def _vjp(
    needed: Sequence[bool],
    g: Any,
    out: Any,
    *inputs: Any,
    call: Call,
    specs: tuple[TensorSpec, ...],
    called: str,
) -> list[Any]:
    """The cotangents of the inputs: another postponed call, which runs the call under a tape."""
    differentiated = [i for i, x in enumerate(inputs) if needed[i] and x.dtype.is_inexact]
    output_cotangents = g if isinstance(g, tuple) else (g,)
    reached = [
        i for i, flow in enumerate(output_cotangents) if flow is not None and specs[i].dtype.is_inexact
    ]
    cotangents: list[Any] = [None] * len(inputs)
    if not differentiated or not reached:
        return cotangents

    def backward(*tensors: Any) -> Sequence[Any]:
        arguments, reached_cotangents = tensors[: len(inputs)], tensors[len(inputs) :]
        sources = [arguments[i] for i in differentiated]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            results = call(*arguments)
        slopes = tape.gradient(
            [results[i] for i in reached],
            sources,
            output_gradients=[conj(c) for c in reached_cotangents],
            unconnected_gradients="zero",
        )
        return [conj(slope) for slope in slopes]

    input_specs = tuple([inputs[i].spec for i in differentiated])
    attrs = {"call": backward, "specs": input_specs, "called": f"{called}_grad"}
    operands = (*inputs, *[output_cotangents[i] for i in reached])
    for i, flow in zip(differentiated, dispatch.current().run(POSTPONED, operands, attrs), strict=True):
        cotangents[i] = flow
    return cotangents


POSTPONED: Final = Op(
    name="postponed_call",
    doc="The results, of ``specs``, of ``call``, whose name is ``called``, for tensors of unknown rank.",
    infer=lambda *inputs, call, specs, called: specs,
    kernel=reject_execution,
    kind=Opaque("a run expands the call before it compiles, so no compiled graph has this op"),
    joint_vjp=_vjp,
    outputs=None,
)
POSTPONED_CHECK: Final = replace(POSTPONED, name="postponed_check", joint_vjp=None, effect=Effect.CHECK)
POSTPONED_OPS: Final = (POSTPONED, POSTPONED_CHECK)
"""The ops of calls that each run expands."""
