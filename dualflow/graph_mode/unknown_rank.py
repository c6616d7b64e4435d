"""Tensors of unknown rank: calls that get one are kept, and made again when a run's feeds tell the ranks.

Until then such a call is one node. What its results are is found by tracing it for a few ranks: what these
agree on is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import TENSORS, AbstractVariable
from dualflow.core.errors import DualflowError, InternalError, InvalidArgumentError
from dualflow.core.shape import UNKNOWN_RANK, Dim, Shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tree import Structure, flatten, unflatten
from dualflow.eager.tape import GradientTape
from dualflow.function.tracing.symbolic_tensor import SymbolicTensor
from dualflow.function.tracing.tracer import Tracer, tracing
from dualflow.graph.ir import GraphBuilder, Node, Value
from dualflow.graph_mode.variable_ops import planned
from dualflow.ops.complex_numbers import conj
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.op_kinds import Opaque
from dualflow.ops.record import Op

Call = Callable[..., Sequence[Any]]
"""A function of tensors that returns a list of tensors."""
_REMEDY: Final = "Give the placeholder a shape: [] for a number, [None, 3] for any number of rows of 3."
_RANKS: Final = (1, 0, 2, 3, 4)
"""The ranks that a call is traced for; the first one's error is shown if there is none that it takes."""


def is_unknown(x: Any) -> bool:
    """Whether ``x`` is a tensor of unknown rank."""
    return isinstance(x, SymbolicTensor) and x._value.spec.shape is UNKNOWN_RANK


def takes_unknown(args: Any, kwargs: Any) -> bool:
    """Whether a tensor of unknown rank is among the arguments of a call, or in their lists and dicts."""
    return any(map(is_unknown, flatten((args, kwargs))[0]))


def postpone(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results of ``function(*args, **kwargs)``, which each run computes for the ranks that it is fed.

    Raises:
        InvalidArgumentError: an argument is a function, nothing is returned, or the call is wrong for every
            rank that is tried.
    """
    leaves, structure = flatten((args, kwargs))
    leaves = [
        x.copy() if isinstance(x, np.ndarray) else x for x in leaves
    ]  # runs are later: nobody writes to it
    if any(callable(x) and not isinstance(x, type) for x in leaves):
        raise InvalidArgumentError(
            f"{function.__name__} can't take a function and a tensor of unknown rank. {_REMEDY}"
        )
    places = [i for i, x in enumerate(leaves) if isinstance(x, TENSORS)]
    engine = dispatch.current()
    inputs = tuple([_tensor(engine, leaves[i]) for i in places])

    def result_of(tensors: Sequence[Any]) -> Any:
        given = list(leaves)
        for i, tensor in zip(places, tensors, strict=True):
            given[i] = tensor
        positional, named = unflatten(structure, given)
        return function(*positional, **named)

    def call(*tensors: Any) -> Sequence[Any]:
        return _tensors(result_of(tensors))[0]

    returned, specs = _agreed(function.__name__, result_of, [x.spec for x in inputs])
    if not specs:
        raise InvalidArgumentError(
            f"{function.__name__} returns no tensor, and takes none of unknown rank. {_REMEDY}"
        )
    found = engine.run(POSTPONED, inputs, {"call": call, "specs": specs, "called": function.__name__})
    return unflatten(returned, list(found))


def make(builder: GraphBuilder, node: Node, inputs: Sequence[Value]) -> Sequence[Value]:
    """The results of a kept call as values of ``builder``, where the inputs' shapes are known."""
    tracer = Tracer(node.op.name)
    tracer.builder = builder
    with tracing(tracer):
        found = [
            tracer.lift(x)._value for x in node.attrs["call"](*[SymbolicTensor(v, tracer) for v in inputs])
        ]
    for value, spec in zip(found, node.specs, strict=True):
        if not spec.is_compatible_with(value.spec):
            raise InternalError(
                f"{node.attrs['called']}: {value.spec} where {spec} was found for equal ranks"
            )
    return found


def _tensor(engine: Any, x: Any) -> Any:
    return engine.read(x) if isinstance(x, AbstractVariable) else engine.lift(x)


def _tensors(result: Any) -> tuple[list[Any], Structure]:
    """The tensors that a call returns, and the structure that they stand in."""
    leaves, structure = flatten(result)
    return [convert_to_tensor(x) for x in leaves], structure


def _agreed(
    name: str, function: Callable[[Sequence[Any]], Any], inputs: Sequence[TensorSpec]
) -> tuple[Structure, tuple[TensorSpec, ...]]:
    """What ``function`` returns for tensors of these specs, as far as it is the same for all ranks."""
    trials: list[tuple[Structure, list[TensorSpec]]] = []
    refusal: DualflowError | None = None
    for rank in _RANKS:
        tracer = Tracer(name)
        with tracing(tracer):
            try:
                tensors, structure = _tensors(function([tracer.argument(_of_rank(s, rank)) for s in inputs]))
                trials.append((structure, [tracer.lift(x).spec for x in tensors]))
            except DualflowError as error:
                refusal = refusal or error
    if not trials:
        raise InvalidArgumentError(
            f"{name} can't be called with a tensor of unknown rank. {_REMEDY} ({refusal})"
        )
    first, specs = trials[0]
    dtypes = [s.dtype for s in specs]
    if any(structure != first or [s.dtype for s in found] != dtypes for structure, found in trials):
        raise InternalError(f"{name} returns other kinds of results for other ranks")
    columns = zip(*[found for _, found in trials], strict=True)
    return first, tuple([TensorSpec.of(_common([s.shape for s in c]), c[0].dtype) for c in columns])


def _of_rank(spec: TensorSpec, rank: int) -> TensorSpec:
    return TensorSpec.of(Shape([None] * rank), spec.dtype) if spec.shape is UNKNOWN_RANK else spec


def _common(shapes: Sequence[Shape]) -> Shape:
    """What the shapes agree on: sizes, or at least their number."""
    if any(s is UNKNOWN_RANK or len(s) != len(shapes[0]) for s in shapes):
        return UNKNOWN_RANK
    dims: list[Dim] = [d[0] if len(set(d)) == 1 else None for d in zip(*shapes, strict=True)]
    return Shape(dims)


def _pull(
    needed: Sequence[bool],
    g: Any,
    out: Any,
    *inputs: Any,
    call: Call,
    specs: tuple[TensorSpec, ...],
    called: str,
) -> list[Any]:
    """The gradient is a kept call too: it makes the call under a tape."""
    wanted = [i for i, x in enumerate(inputs) if needed[i] and x.dtype.is_inexact]
    flows = g if isinstance(g, tuple) else (g,)
    reached = [i for i, flow in enumerate(flows) if flow is not None and specs[i].dtype.is_inexact]
    found: list[Any] = [None] * len(inputs)
    if not wanted or not reached:
        return found

    def backward(*tensors: Any) -> Sequence[Any]:
        given, cotangents = tensors[: len(inputs)], tensors[len(inputs) :]
        sources = [given[i] for i in wanted]
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            results = call(*given)
        slopes = tape.gradient(
            [results[i] for i in reached],
            sources,
            output_gradients=[conj(c) for c in cotangents],
            unconnected_gradients="zero",
        )
        return [conj(slope) for slope in slopes]

    attrs = {"call": backward, "specs": tuple([inputs[i].spec for i in wanted]), "called": f"{called}_grad"}
    operands = (*inputs, *[flows[i] for i in reached])
    for i, flow in zip(wanted, dispatch.current().run(POSTPONED, operands, attrs), strict=True):
        found[i] = flow
    return found


POSTPONED: Final = Op(
    name="postponed_call",
    doc="What ``call``, by the name ``called``, returns for tensors whose rank a run tells, of ``specs``.",
    infer=lambda *inputs, call, specs, called: specs,
    kernel=planned,
    kind=Opaque("a run makes the call before it compiles, so no compiled graph has this op"),
    joint_vjp=_pull,
    outputs=None,
)
