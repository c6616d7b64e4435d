"""Symbolic tensors: tensors without a value, which a function computes with while it is traced.

Their engine is a tracer, or an explicit graph that is built to be run later. :class:`SymbolicEngine` has the
methods of both that symbolic tensors call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final, NoReturn

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractVariable, Engine
from dualflow.core.dtypes import DType
from dualflow.core.errors import (
    DTypeError,
    FailedPreconditionError,
    MissingAttributeError,
    OperatorNotAllowedInGraphError,
)
from dualflow.core.locks import imported
from dualflow.core.records import NamedTuple
from dualflow.core.shape import UNKNOWN_RANK, Shape, as_shape
from dualflow.core.spec import TensorSpec
from dualflow.core.warning import called_by_user
from dualflow.eager.python_call import NUMPY_FUNCTION, PY_FUNCTION, with_declared_shape
from dualflow.eager.tensor import EagerTensor
from dualflow.function.errors import SymbolicValueError
from dualflow.function.tracing.numpy_use import instead_of_call, replacement
from dualflow.function.tracing.static_elements import computed_from_sizes, static_elements
from dualflow.graph.ir import Origin, Value
from dualflow.graph.origin import caller, is_inside
from dualflow.ops.record import Op
from dualflow.ops.shapes import ENSURED
from dualflow.ops.tensor import Tensor
from dualflow.sizes.abstract_size import AbstractSizeScope


class MaybeUnassigned(NamedTuple):
    """The value ``x`` of the Python variable ``name``, assigned if the bool scalar ``ran`` is true."""

    x: Any
    ran: Any
    name: str


class SymbolicEngine(Engine):
    """An engine whose tensors are symbolic, with the defaults of a traced function.

    Attributes:
        name: the name of the traced function.
        tensors: the symbolic tensor of each value; see :meth:`tensor_of`.
        maybe_unassigned: the values of Python variables that a loop or branch may not have assigned. Each
            nested trace that reads one adds the check that it is assigned.
        cotangents: the value of which each argument is the cotangent, for arguments of a gradient.
    """

    __slots__ = ("cotangents", "maybe_unassigned", "name", "tensors")

    overrides_numpy = True
    hashes_by_identity = False
    """Whether symbolic tensors are hashed by identity, since they are keys of feed dicts."""

    size_scope: AbstractSizeScope | None = None
    """The dynamic sizes that Python code reads as guarded numbers; None where it reads None."""

    hint = ""
    """A sentence for errors about a missing value."""

    @property
    def deferring_op(self) -> Op:
        op: Op = imported("dualflow.function.tracing.deferred_ops").LATE_SIZES
        return op

    @property
    def deferring_draw_op(self) -> Op:
        op: Op = imported("dualflow.function.tracing.deferred_ops").LATE_DRAW
        return op

    def __init__(self, name: str) -> None:
        self.name = name
        self.tensors: dict[Value, SymbolicTensor] = {}
        self.maybe_unassigned: dict[Value, MaybeUnassigned] = {}
        self.cotangents: dict[Value, Value] = {}

    def is_traced(self, value: Any) -> bool:
        return isinstance(value, SymbolicTensor | AbstractVariable)

    def tensor_of(self, value: Value) -> SymbolicTensor:
        """The one symbolic tensor of ``value``: gradient sweeps compare tensors by identity."""
        tensor = self.tensors.get(value)
        if tensor is None:
            tensor = self.tensors[value] = SymbolicTensor(value, self)
        return tensor

    def refuse(self, error: Exception) -> None:
        """Store ``error``, which is about to be raised, since the user's code might catch it."""
        raise NotImplementedError

    def static_value(self, value: Value) -> Any:
        """``value`` as an array if it is computed from small constants alone, else None."""
        raise NotImplementedError

    def tensor_name(self, value: Value) -> str:
        """The name of the argument or op, and the number of the result: ``"add:0"``."""
        if value.node is None:
            return f"{value.spec.name or 'input'}:0"
        return f"{value.node.op.name}:{value.index}"

    def pending_clause(self) -> str:
        """A clause for errors: the time at which symbolic tensors have no value."""
        return f"while {self.name!r} is traced"

    def value_advice(self) -> str:
        """A sentence for errors: how to get a symbolic tensor's value."""
        return "Return it and call .numpy() on the result"

    def origin(self, value: Value) -> Origin | None:
        """The user's line that created ``value``; None for an argument."""
        return None if value.node is None else value.node.origin

    def operation(self, tensor: SymbolicTensor) -> Any:
        """The operation of an explicit graph that has ``tensor`` as a result."""
        raise MissingAttributeError(f"{tensor!r} has no .op: only tensors of a Graph have.")

    def graph_of(self, tensor: SymbolicTensor) -> Any:
        """The explicit graph of ``tensor``; in a trace an object that is the same for all its tensors."""
        raise NotImplementedError

    def evaluate(self, tensor: SymbolicTensor, feed_dict: Any, session: Any) -> Any:
        """The value of ``tensor``, computed by a session."""
        raise FailedPreconditionError(
            f"{tensor!r} can't be evaluated {self.pending_clause()}: only tensors of a Graph have eval(). "
            f"{self.value_advice()}."
        )


KNOWN_SPECS: Final[ContextVar[Callable[[Value], TensorSpec] | None]] = ContextVar(
    "dualflow_known_specs", default=None
)
"""The specs of tensors of unknown rank, while a call that reads them from outside is traced for one rank."""


class SymbolicTensor(Tensor):
    """A tensor inside a traced function: it has a shape and a dtype, but no elements until the function runs.

    Ops accept it like any tensor. Python code that needs its elements (``if``, ``for``, ``int()``,
    ``.numpy()``, NumPy) raises an error with the line where it was created.
    """

    __slots__ = ("__dict__", "__weakref__", "_tracer", "_value")  # programs may set attributes

    def __init__(self, value: Value, tracer: SymbolicEngine) -> None:
        self._value = value
        self._tracer = tracer

    @property
    def shape(self) -> Shape:  # type: ignore[override]  # the base declares what each kind of tensor computes
        shape = self._value.spec.shape
        if shape is UNKNOWN_RANK:
            return self.spec.shape
        scope = self._tracer.size_scope
        if scope is None or shape.is_static or is_inside(sys._getframe(1)):
            return shape
        return scope.python_shape(self)

    @property
    def size(self) -> int | None:
        """The number of elements; None if a size is known only at run time."""
        return self.get_shape().num_elements()

    def get_shape(self) -> Shape:
        """The shape, for Python code: dynamic sizes are guarded numbers in a trace that has them."""
        shape, scope = self.spec.shape, self._tracer.size_scope
        return shape if scope is None or shape.is_static else scope.python_shape(self)

    def python_shape(self) -> Shape:
        """The shape for an op that decides by sizes as Python code does, while the trace is recorded."""
        scope = self._tracer.size_scope
        return self.spec.shape if scope is None or scope.closed else self.get_shape()

    @property
    def dtype(self) -> DType:  # type: ignore[override]  # as shape
        return self._value.spec.dtype

    @property
    def spec(self) -> TensorSpec:  # type: ignore[override]  # as shape
        spec = self._value.spec
        spec_of = KNOWN_SPECS.get() if spec.shape is UNKNOWN_RANK else None
        return spec if spec_of is None else spec_of(self._value)

    @property
    def name(self) -> str:
        """The name of the argument, or of the op, and the number of the result: ``"add:0"``."""
        return self._tracer.tensor_name(self._value)

    @property
    def op(self) -> Any:
        """In an explicit graph, the operation that computes the tensor; elsewhere absent."""
        return self._tracer.operation(self)

    @property
    def graph(self) -> Any:
        """The explicit graph of the tensor; in a trace an object that is the same for all its tensors."""
        return self._tracer.graph_of(self)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """In an explicit graph, the value: ``session.run(self)``, by default of the innermost session block.

        Raises:
            InvalidArgumentError: there is no session, or it runs another graph.
            FailedPreconditionError: the tensor belongs to a function, which no session runs.
        """
        return self._tracer.evaluate(self, feed_dict, session)

    @property
    def numpy(self) -> NoReturn:
        """Absent, as in TensorFlow: a symbolic tensor has no value."""
        raise self._valueless("numpy")

    def _valueless(self, name: str) -> MissingAttributeError:
        pending = self._tracer.pending_clause()
        return MissingAttributeError(
            f"{self._described()} has no .{name}() {pending}. {self._tracer.value_advice()}, "
            "or hand it to Python with df.py_function."
        )

    def __getattr__(self, name: str) -> NoReturn:
        """Raise an error with a replacement for an attribute of arrays or eager tensors."""
        if isinstance(declared := getattr(SymbolicTensor, name, None), property):
            declared.__get__(self)  # raises the AttributeError for which Python calls __getattr__
        if hasattr(EagerTensor, name):
            raise self._valueless(name)
        advice = replacement(name) if hasattr(np.ndarray, name) and not name.startswith("_") else None
        remedy = f": {advice}" if advice else ""
        raise MissingAttributeError(f"A df.Tensor has no attribute {name!r}{remedy}.")

    def static_value(self) -> Any:
        """The value as an array if it is computed from constants alone, else None."""
        return self._tracer.static_value(self._value)

    def python_value(self) -> Any:
        """The static value, for Python code: sizes are those of the traced call, which are guards."""
        value, scope = self.static_value(), self._tracer.size_scope
        if value is not None or scope is None or scope.closed:
            return value
        tensor_of, static_value = self._tracer.tensor_of, self._tracer.static_value
        return computed_from_sizes(
            self._value, static_value, lambda value: scope.python_shape(tensor_of(value))
        )

    def static_elements(self) -> Any:
        """The elements that are constants or static sizes, None for each other.

        None if no element is static.
        """
        return static_elements(self._value, self._tracer.static_value)

    def set_shape(self, shape: Any) -> None:
        """Declare the shape, in which None is any size.

        It is checked at run time; in an explicit graph, where a placeholder is fed, but not for the result of
        an op.

        Raises:
            InvalidArgumentError: the tensor has another shape; or ``shape`` has a number for a dynamic size
                while a tape records, or inside of a branch or loop. There :func:`dualflow.ensure_shape`
                returns a new tensor with the shape.
        """
        if self._declare_result_of_python(as_shape(shape)):
            return
        merged = self.shape.merge_with(shape)
        if merged == self.shape or dispatch.current() is not self._tracer:
            super().set_shape(shape)
        elif self._tracer.hashes_by_identity:  # the tensor may be a key of a feed, so its value stays
            spec = self._value.spec
            self._value.spec = TensorSpec(merged, spec.dtype, spec.name)
        else:
            ensured: Any = self._tracer.apply(ENSURED, (self,), {"sizes": merged})
            self._value = ensured._value

    def _declare_result_of_python(self, shape: Shape) -> bool:
        """Declare the shape of a result of ``py_function`` that has a dtype alone, and that no op reads."""
        node, value = self._value.node, self._value
        if node is None or node.op not in (PY_FUNCTION, NUMPY_FUNCTION) or shape is UNKNOWN_RANK:
            return False
        specs = with_declared_shape(node.attrs["specs"], value.index, shape)
        tracer: Any = self._tracer
        is_open = dispatch.current().innermost is tracer
        if specs is None or not is_open or any(value in n.inputs for n in tracer.builder.nodes):
            return False
        node.attrs = {**node.attrs, "specs": specs}
        value.spec = specs[value.index]
        return True

    def _described(self) -> str:
        """The tensor and the line that created it, for errors."""
        origin = self._tracer.origin(self._value)
        if self._value.node is None and origin is None:
            return f"The symbolic tensor {self.name!r}, an argument of {self._tracer.name!r},"
        created = f" (created in {origin})" if origin else ""
        return f"The symbolic tensor {self.name!r}{created}"

    def _refuse(self, use: str, remedy: str) -> NoReturn:
        """Raise the error for Python code that needs the tensor's value."""
        here = caller()
        where = f"\n  {here}" if here is not None else ""
        error = OperatorNotAllowedInGraphError(
            f"{use} is not allowed. {self._described()} has no value {self._tracer.pending_clause()}; "
            f"{remedy}.{self._tracer.hint}" + where
        )
        self._tracer.refuse(error)
        raise error

    def __bool__(self) -> NoReturn:
        self._refuse(
            "Using a symbolic `df.Tensor` as a Python `bool`",
            "choose with df.where or df.cond and loop with df.while_loop, or return it and test the result",
        )

    def __iter__(self) -> Iterator[Any]:
        self._refuse(
            "Iterating over a symbolic `df.Tensor`",
            "use df.unstack, index it with Python ints, or map over it with df.map_fn",
        )

    def __int__(self) -> NoReturn:
        self._refuse("Using a symbolic `df.Tensor` as a Python `int`", "use df.cast(x, df.int32)")

    def __float__(self) -> NoReturn:
        self._refuse("Using a symbolic `df.Tensor` as a Python `float`", "use df.cast(x, df.float32)")

    def __complex__(self) -> NoReturn:
        self._refuse("Using a symbolic `df.Tensor` as a Python `complex`", "use df.cast(x, df.complex128)")

    def __index__(self) -> NoReturn:
        self._refuse(
            "Using a symbolic `df.Tensor` as a Python index or size",
            "use df.range instead of range and df.gather instead of list[i]",
        )

    def __contains__(self, value: object) -> NoReturn:
        self._refuse("`in` a symbolic `df.Tensor`", "use df.reduce_any(x == value)")

    def __format__(self, spec: str) -> str:
        if spec:
            self._refuse(f"Formatting a symbolic `df.Tensor` as {spec!r}", "print it with df.print")
        return str(self)

    def __len__(self) -> int:
        """The size of the first axis; an error if it is dynamic."""
        if not self.shape:
            raise DTypeError("A tensor without axes has no len(); df.size(x) is its number of elements.")
        size = self.get_shape()[0]
        if size is None:
            self._refuse("len() of a symbolic `df.Tensor` of unknown size", "use df.shape(x)[0]")
        return int(size)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise SymbolicValueError(
            f"Cannot convert a symbolic df.Tensor ({self.name}) to a NumPy array. {self._described()} has no "
            f"value {self._tracer.pending_clause()}; {instead_of_call(sys._getframe(1))}.{self._tracer.hint}"
        )

    def __eq__(self, other: object) -> Any:
        return self is other if self._is_compared_by_identity() else super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        return self is not other if self._is_compared_by_identity() else super().__ne__(other)

    def _is_compared_by_identity(self) -> bool:
        """Whether a program compares tensors of an explicit graph; dualflow's own code compares elements."""
        return self._tracer.hashes_by_identity and called_by_user(sys._getframe(2))

    def __hash__(self) -> int:  # type: ignore[override]  # the base has none: == compares elements
        return id(self) if self._tracer.hashes_by_identity else super().__hash__()

    def __copy__(self) -> SymbolicTensor:
        return SymbolicTensor(self._value, self._tracer)

    def __deepcopy__(self, memo: Any) -> SymbolicTensor:
        return SymbolicTensor(self._value, self._tracer)

    def __str__(self) -> str:
        return f'Tensor("{self.name}", shape={self.shape}, dtype={self.dtype.name})'

    def __repr__(self) -> str:
        origin = self._tracer.origin(self._value)
        created = f" created in {origin}" if origin else ""
        return f"<tf.Tensor {self.name!r} shape={self.shape} dtype={self.dtype.name}{created}>"
