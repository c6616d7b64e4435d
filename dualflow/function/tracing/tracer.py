"""The tracer: the engine that records ops as a graph while a function is traced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextvars import ContextVar, Token
from typing import Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import as_array
from dualflow.core.dispatch import AbstractTensor, AbstractVariable, Engine
from dualflow.core.dtypes import DType
from dualflow.core.errors import InaccessibleTensorError, InvalidArgumentError
from dualflow.core.locks import SharedLock
from dualflow.core.records import NamedTuple, dataclass
from dualflow.core.spec import TensorSpec
from dualflow.eager.engine import EAGER
from dualflow.eager.tensor import EagerTensor
from dualflow.function.options import compile_options
from dualflow.function.tracing.symbolic_tensor import MaybeUnassigned, SymbolicEngine, SymbolicTensor
from dualflow.function.tracing.variable_creation import VariableCreation
from dualflow.graph.extract import extract
from dualflow.graph.interpret import evaluate, run_node
from dualflow.graph.ir import GraphBuilder, Node, Update, Value
from dualflow.graph.options import CompileOptions
from dualflow.graph.origin import caller
from dualflow.graph.passes.assignments import ASSIGNMENT
from dualflow.ops.checks import ASSIGNED
from dualflow.ops.conversion import ASSIGNED_VALUE, identity
from dualflow.ops.op_kinds import Literal
from dualflow.ops.record import REGISTRY, Op
from dualflow.sizes.abstract_size import AbstractSize, AbstractSizeScope
from dualflow.sizes.symbolic_sizes import is_static, size_variables

Array = np.ndarray[Any, Any]
_MAX_INLINED_ELEMENTS = 16
_MAX_FOLDED_BYTES = 1 << 12


@dataclass(slots=True)
class _VariableState:
    """One variable in a trace: the graph's input for its value, and its current value in the traced code.

    ``unread`` is whether no code has read the current value, which was assigned.
    """

    variable: AbstractVariable
    input: Value
    current: SymbolicTensor
    unread: bool = False


class OuterShape(NamedTuple):
    """Where an argument of a body has its sizes from: a tensor outside of the body, or the rows of one.

    Attributes:
        tensor: the tensor outside.
        is_row: whether the argument is a row of it; else it is a carried value that begins as the tensor.
    """

    tensor: Any
    is_row: bool


class Tracer(SymbolicEngine):
    """Records ops as the nodes of one graph.

    Args:
        name: the name of the traced function.
        creation: creates the variables of the trace; None if it may create none.
        options: how the graph will be compiled; by default the options of the enclosing trace.
        enclosing_engine: for a graph that is evaluated once, directly after the trace, the engine that runs
            it: tensors that this engine traces are inputs of the graph, never constants.
        seeds_begin_anew: whether each random op with a seed has a stream of its own; inherited by nested
            traces.

    Attributes:
        size_scope: the dynamic sizes that Python code reads as guarded numbers; None where it reads None.
        refusal: the first error about Python code that needs a symbolic tensor's value, here or in a nested
            trace.
        proven_values: the values of bool scalars that an earlier check has established.
        on_device: whether a block of the traced code is placed on the GPU, for which the graph is compiled.
        outer_shapes: for arguments of a body, where their dynamic sizes are from.
        stands_for: the trace of whose tensors :meth:`substitute` has set values; None for none.
    """

    __slots__ = (
        "_captured",
        "_constants",
        "_enclosing_engine",
        "_states",
        "_static",
        "builder",
        "creation",
        "on_device",
        "options",
        "outer",
        "outer_shapes",
        "proven_values",
        "refusal",
        "seeds_begin_anew",
        "size_scope",
        "stands_for",
    )

    def __init__(
        self,
        name: str,
        creation: VariableCreation | None = None,
        options: CompileOptions | None = None,
        enclosing_engine: Engine | None = None,
        seeds_begin_anew: bool = False,
    ) -> None:
        super().__init__(name)
        self.creation = creation
        self.outer: Tracer | None = _active.get() or _recording()
        self.seeds_begin_anew = seeds_begin_anew or (self.outer is not None and self.outer.seeds_begin_anew)
        self._enclosing_engine: Engine | None = (
            self.outer._enclosing_engine if enclosing_engine is None and self.outer else enclosing_engine
        )
        if options is None:
            options = compile_options() if self.outer is None else self.outer.options
        self.options: CompileOptions = options
        self.builder: GraphBuilder = (
            GraphBuilder(name) if self.outer is None else self.outer.builder.inner(name)
        )
        self.size_scope: AbstractSizeScope | None = None if self.outer is None else self.outer.size_scope
        self.refusal: Exception | None = None
        self.on_device = False
        self.stands_for: SymbolicEngine | None = None
        self.proven_values: dict[Value, bool] = {}
        self.outer_shapes: dict[Value, OuterShape] = {}
        self._captured: dict[int, tuple[AbstractTensor, SymbolicTensor]] = {}
        self._constants: dict[tuple[Any, ...], Value] = {}
        self._states: dict[int, _VariableState] = {}
        self._static: dict[Value, Array | None] = {}

    # engine methods, called by ops

    def is_traced(self, value: Any) -> bool:
        return super().is_traced(value) or (
            self._enclosing_engine is not None and self._enclosing_engine.is_traced(value)
        )

    def computes(self, value: Any) -> bool:
        return type(value) is SymbolicTensor and value._tracer is self and value._value.spec.dtype.computes

    def unary(self, op: Op, x: Any) -> Any:
        if self.computes(x):
            return SymbolicTensor(self.builder.add(op, (x._value,), _NOTHING, caller()).outputs[0], self)
        return op.run_on(self, (x,), _NOTHING)

    def binary(self, op: Op, x: Any, y: Any) -> Any:
        a = x._value if type(x) is SymbolicTensor and x._tracer is self else None
        b = y._value if type(y) is SymbolicTensor and y._tracer is self else None
        if a is not None and b is None:
            b = self._number(y, a.spec.dtype)
        elif b is not None and a is None:
            a = self._number(x, b.spec.dtype)
        if a is not None and b is not None and a.spec.dtype is b.spec.dtype and a.spec.dtype.computes:
            return SymbolicTensor(self.builder.add(op, (a, b), _NOTHING, caller()).outputs[0], self)
        return op.run_on(self, (x, y), _NOTHING)

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        node = self.builder.add(op, [x._value for x in inputs], attrs, caller())
        outputs = [SymbolicTensor(v, self) for v in node.outputs]
        return outputs[0] if op.outputs == 1 else tuple(outputs)

    def constant(self, array: Array) -> SymbolicTensor:
        return SymbolicTensor(self._literal(array), self)

    def shallow_copy(self, tensor: Any) -> Any:
        return self.run(identity.op, (tensor,), {})

    def compile_for_device(self) -> None:
        tracer: Tracer | None = self
        while tracer is not None:
            tracer.on_device = True
            tracer = tracer.outer

    def lift(self, tensor: AbstractTensor) -> SymbolicTensor:
        if type(tensor) is SymbolicTensor and tensor._tracer is self:
            return tensor
        if isinstance(tensor, AbstractSize):
            tensor = tensor.as_tensor()
        captured = self._captured.get(id(tensor))
        if captured is not None:
            return captured[1]
        if isinstance(tensor, EagerTensor):
            lifted = self._constant_or_capture(tensor)
        elif type(tensor) is SymbolicTensor and self._is_inside(tensor._tracer):
            lifted = self._capture_outer(tensor)
        else:
            raise InaccessibleTensorError(self._out_of_scope(tensor))
        self._captured[id(tensor)] = tensor, lifted
        return lifted

    def read(self, variable: AbstractVariable) -> SymbolicTensor:
        return self._read(self._state(variable))

    def assign(self, variable: AbstractVariable, value: Any) -> Any:
        state, assigned = self._state(variable), SymbolicTensor(self.lift(value)._value, self)
        if assigned._value is not state.current._value:
            self.record_assignment(variable, assigned)
            state.unread = True
        state.current = assigned
        if self.outer is not None:  # the next iteration of a loop reads it
            self._read(state)

    def record_assignment(self, variable: AbstractVariable, value: Any) -> None:
        self.builder.add(ASSIGNMENT, (self.lift(value)._value,), {"variable": variable}, caller())

    def stream(self, seed: int | None) -> Any:
        return None if self.outer is None else self.outer.stream(seed)

    def create_variable(self, variable: AbstractVariable, initial: Any) -> None:
        if self.creation is None:
            raise InaccessibleTensorError(
                f"{self.name!r}, which may run any number of times, can't create variables; create it before."
            )
        self.creation.create(
            variable, self.evaluate_now(self.lift(initial)._value, "initial value"), caller()
        )

    def reads(self, variable: AbstractVariable) -> list[Value]:
        """The values of the graph that are the variable's value: the one at the start of the recorded code.

        Raises:
            InvalidArgumentError: the code has assigned the variable, which has several values then.
        """
        if any(n.op is ASSIGNMENT and n.attrs["variable"] is variable for n in self.builder.nodes):
            raise InvalidArgumentError(
                f"{variable!r} has been assigned in {self.name!r}, and has several values; read the one that "
                "is meant, x = v.value(), and pass x as the source."
            )
        return [self._state(variable).input]

    # methods called by the package function

    def refuse(self, error: Exception) -> None:
        """Store ``error``, which is about to be raised, since the user's code might catch it."""
        tracer: Tracer | None = self
        while tracer is not None:
            tracer.refusal = tracer.refusal or error
            tracer = tracer.outer

    def argument(self, spec: TensorSpec, outer_shape: OuterShape | None = None) -> SymbolicTensor:
        """A symbolic tensor for a new argument of the graph, which has its sizes from ``outer_shape``."""
        value = self.builder.argument(spec)
        if outer_shape is not None:
            self.outer_shapes[value] = outer_shape
        return self.tensor_of(value)

    def cotangent(self, value: Value) -> SymbolicTensor:
        """A symbolic tensor for a new argument of the graph, the cotangent of ``value``."""
        tensor = self.argument(value.spec)
        self.cotangents[tensor._value] = value
        return tensor

    def bind(self, variable: AbstractVariable) -> Value:
        """A new input of the graph for the value of a variable that is an argument."""
        value = self.builder.argument(_variable_spec(variable))
        self._states[id(variable)] = _VariableState(variable, value, SymbolicTensor(value, self))
        return value

    def substitute(self, source: AbstractTensor | AbstractVariable, tensor: SymbolicTensor) -> None:
        """Let ``tensor`` be the value of ``source``, a variable or a tensor of another trace."""
        if isinstance(source, AbstractVariable):
            self._states[id(source)] = _VariableState(source, tensor._value, tensor)
            return
        self._captured[id(source)] = source, tensor
        if type(source) is SymbolicTensor:
            self.stands_for = source._tracer

    def graph_of(self, tensor: SymbolicTensor) -> Any:
        return self.builder

    @property
    def variable_arguments(self) -> dict[int, int]:
        """The number of the argument for each variable that is an argument, by the variable's id."""
        input_index = {v: i for i, v in enumerate(self.builder.inputs)}
        return {id(s.variable): input_index[s.input] for s in self._states.values() if s.input in input_index}

    def updates(self) -> list[Update]:
        """The updates of the graph: the input and the last value of each assigned variable."""
        states = self._states.values()
        return [Update(s.input, s.current._value) for s in states if s.current._value is not s.input]

    def static_value(self, value: Value) -> Array | None:
        """``value`` as an array if it is computed from small constants alone, else None."""
        static = self._static
        pending = [value]
        while pending:
            node = pending[-1].node
            if node is None:
                static[pending.pop()] = None
                continue
            unknown = next((v for v in node.inputs if v not in static), None)
            if unknown is not None and not any(static.get(v, _UNKNOWN) is None for v in node.inputs):
                pending.append(unknown)
                continue
            pending.pop()
            static.update(zip(node.outputs, self._constant_folded(node), strict=True))
        return static[value]

    def evaluate_now(self, value: Value, what: str) -> Array:
        """The current value of ``value``, computed from constants, captured tensors and variables.

        Errors call it ``what``.

        Raises:
            InaccessibleTensorError: it depends on an argument.
        """
        graph = extract(self.builder.finish(()), (), [value])
        if graph.arguments or any(type(c.source) is SymbolicTensor for c in graph.captures):
            raise InaccessibleTensorError(
                f"The {what} of a variable depends on an argument of the traced function {self.name!r}, "
                "which has no value yet. Compute it from Python values, or create the variable outside."
            )
        sources = [EAGER.read(c.source) if c.variable else c.source for c in graph.captures]
        arrays = [x._array for x in sources]
        return evaluate(graph, arrays)[0].copy()

    # private

    def _number(self, x: Any, dtype: DType) -> Value | None:
        """A Python number as a constant of ``dtype``, one node per number; None if ``x`` isn't a number."""
        kind = type(x)
        if (kind is not float and kind is not int) or not dtype.is_inexact:
            return None
        if not x or not math.isfinite(x):  # as keys, 0.0 equals -0.0, and nan equals nothing
            return self._literal(as_array(x, dtype))
        constant = self._constants.get((x, kind, dtype))
        if constant is None:
            constant = self._constants[x, kind, dtype] = self._literal(as_array(x, dtype))
        return constant

    def _literal(self, array: Array) -> Value:
        return self.builder.add(REGISTRY["constant"], (), {"value": array}).output

    def _capture_outer(self, tensor: SymbolicTensor) -> SymbolicTensor:
        """A tensor of an enclosing trace as one of this trace."""
        maybe = tensor._tracer.maybe_unassigned.get(tensor._value)
        return self._capture(tensor) if maybe is None else self.checked_read(maybe)

    def checked_read(self, maybe: MaybeUnassigned) -> SymbolicTensor:
        """The value of a Python variable, with a check at run time that it is assigned."""
        checked: SymbolicTensor = self.run(
            ASSIGNED, (self.lift(maybe.x), self.lift(maybe.ran)), {"name": maybe.name}
        )
        self.maybe_unassigned[checked._value] = maybe
        return checked

    def _constant_or_capture(self, tensor: EagerTensor) -> SymbolicTensor:
        """A small tensor as a constant, unless a tape may compute a gradient for it; else as a capture."""
        if math.prod(tensor.shape) > _MAX_INLINED_ELEMENTS:  # type: ignore[arg-type]  # it has a value
            return self._capture(tensor)
        array = tensor._array
        if not tensor.dtype.is_inexact and not self.is_traced(tensor):
            return self.constant(array)
        captured = self._capture(tensor)
        self._static[captured._value] = array
        return captured

    def _capture(self, tensor: AbstractTensor) -> SymbolicTensor:
        return self.tensor_of(self.builder.capture(tensor.spec, tensor, variable=False))

    def _state(self, variable: AbstractVariable) -> _VariableState:
        state = self._states.get(id(variable))
        if state is None:
            value = self.builder.capture(_variable_spec(variable), variable, variable=True)
            state = self._states[id(variable)] = _VariableState(variable, value, self.tensor_of(value))
        return state

    def _read(self, state: _VariableState) -> SymbolicTensor:
        """The current value of a variable; its first read after an assignment has a node of its own."""
        value = state.current._value
        if state.unread and value is not state.input and value.spec.dtype.is_inexact:
            state.current = self.run(ASSIGNED_VALUE, (state.current, self.tensor_of(state.input)), {})
        state.unread = False
        return state.current

    def _is_inside(self, other: SymbolicEngine) -> bool:
        """Whether ``other`` is an enclosing trace of this one."""
        outer = self.outer
        while outer is not None and other is not outer and other is not outer.stands_for:
            outer = outer.outer
        return outer is not None

    def _out_of_scope(self, tensor: AbstractTensor) -> str:
        """The message of an error about a tensor that this trace can't read."""
        shown = f"{tensor!r} is out of scope and cannot be used in {self.name!r}."
        if type(tensor) is not SymbolicTensor:
            return f"{shown} Only tensors can be captured by a traced function."
        inside = tensor._tracer
        if isinstance(inside, Tracer) and inside.outer is not None:
            return (
                f"{shown} It was created inside of a loop or branch over tensors, and stored in a list, an "
                "attribute or a global. Collect rows with a list comprehension over the rows of a tensor, "
                "df.TensorArray or df.map_fn, and return what a branch computes."
            )
        return (
            f"{shown} It belongs to a trace of {inside.name!r}, and was stored in an attribute, a global or "
            "a list. Return it from that function and use the result."
        )

    def _constant_folded(self, node: Node) -> Sequence[Array | None]:
        """The static values of a node's outputs; those of its inputs have been computed."""
        if isinstance(node.op.kind, Literal):
            return [node.attrs["value"]]
        arrays = [self._static.get(v) for v in node.inputs]
        small = all(is_static(spec.shape) and spec.nbytes <= _MAX_FOLDED_BYTES for spec in node.specs)
        is_constant = node.effect is None and all(a is not None for a in arrays)
        if not small or not is_constant or size_variables(dict(node.attrs)):
            return [None] * len(node.outputs)
        return run_node(node, arrays)  # type: ignore[arg-type]  # no None left


def _recording() -> Tracer | None:
    """The tracer that is the current engine; None if ops run eagerly."""
    engine = dispatch.current().innermost
    return engine if isinstance(engine, Tracer) else None


def _variable_spec(variable: AbstractVariable) -> TensorSpec:
    """The spec of a graph's input for the variable.

    Raises:
        InvalidArgumentError: the variable's shape is not static.
    """
    if not variable.shape.is_static:
        raise InvalidArgumentError(
            f"{variable!r} may hold tensors of other shapes, and a compiled function takes sizes that are "
            "known. Give the variable a full shape, or use it outside of the function."
        )
    return TensorSpec(variable.shape, variable.dtype, getattr(variable, "name", None))


class tracing:
    """``with tracing(tracer):`` records ops in the block as nodes of the tracer's graph."""

    __slots__ = ("_token", "_tracer", "_using")

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def __enter__(self) -> Tracer:
        self._token: Token[Tracer | None] = _active.set(self._tracer)
        self._using = dispatch.using(self._tracer)
        self._using.__enter__()
        return self._tracer

    def __exit__(self, *exc: object) -> None:
        self._using.__exit__(*exc)
        _active.reset(self._token)


def values(tensors: Sequence[SymbolicTensor]) -> list[Value]:
    """The graph's value of each of ``tensors``."""
    return [x._value for x in tensors]


tracing_lock: Final = SharedLock()
"""One trace at a time: with a lock for each function, functions that call each other could deadlock."""

_NOTHING: Final[dict[str, Any]] = {}
_UNKNOWN: Final = np.empty(0)
_active: Final[ContextVar[Tracer | None]] = ContextVar("dualflow_trace", default=None)
