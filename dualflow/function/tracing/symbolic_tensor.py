"""The tensor without a value: what a function's arguments and results are while it is traced.

What a symbol can say of itself depends on the engine that made it: a function that is traced, or a graph that
is built to be run later. :class:`SymbolicEngine` is the part of such engines that symbols ask.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NoReturn

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
from dualflow.core.shape import Shape
from dualflow.core.spec import TensorSpec
from dualflow.eager.tensor import EagerTensor
from dualflow.function.errors import SymbolicValueError
from dualflow.function.tracing.numpy_use import instead_of_call, replacement
from dualflow.function.tracing.static_elements import static_elements
from dualflow.graph.ir import Origin, Value
from dualflow.graph.origin import caller
from dualflow.ops.record import Op
from dualflow.ops.shapes import ENSURED
from dualflow.ops.tensor import Tensor


class MaybeUnassigned(NamedTuple):
    """The value ``x`` of the variable ``name``, if the bool scalar ``ran`` holds."""

    x: Any
    ran: Any
    name: str


class SymbolicEngine(Engine):
    """An engine whose tensors are symbols, with the defaults of a function that is traced.

    Attributes:
        name: the traced function's.
        tensors: the one symbolic tensor of each value, as returned by :meth:`tensor_of`.
        provisional: values that a loop may not have assigned, each with what it is made of: a trace inside
            makes it anew, so that it fails where it is read.
    """

    __slots__ = ("maybe_unassigned", "name", "tensors")

    overrides_numpy = True
    keys_feeds = False
    """Whether symbols may be keys of dicts, told apart by identity: where runs are fed by such a dict."""

    hint = ""
    """A sentence for errors about a missing value."""

    @property
    def sizing(self) -> Op:
        found: Op = imported("dualflow.function.tracing.late_sizes").LATE
        return found

    @property
    def drawing(self) -> Op:
        found: Op = imported("dualflow.function.tracing.late_sizes").LATE_DRAW
        return found

    def __init__(self, name: str) -> None:
        self.name = name
        self.tensors: dict[Value, SymbolicTensor] = {}
        self.maybe_unassigned: dict[Value, MaybeUnassigned] = {}

    def is_traced(self, value: Any) -> bool:
        return isinstance(value, SymbolicTensor | AbstractVariable)

    def tensor_of(self, value: Value) -> SymbolicTensor:
        """The one symbol of ``value`` in gradient sweeps, which tell tensors apart by identity."""
        found = self.tensors.get(value)
        if found is None:
            found = self.tensors[value] = SymbolicTensor(value, self)
        return found

    def refuse(self, error: Exception) -> None:
        """Note that ``error`` is about to be raised, which the user's code might catch."""
        raise NotImplementedError

    def static_value(self, value: Value) -> Any:
        """``value`` as an array if it is computed from small constants alone, else None."""
        raise NotImplementedError

    def tensor_name(self, value: Value) -> str:
        """The argument's name, or the op's, and which of its results ``value`` is."""
        if value.node is None:
            return f"{value.spec.name or 'input'}:0"
        return f"{value.node.op.name}:{value.index}"

    def pending(self) -> str:
        """When symbols have no value yet."""
        return f"while {self.name!r} is traced"

    def way_to_value(self) -> str:
        """How to come to a symbol's value."""
        return "Return it and call .numpy() on the result"

    def origin(self, value: Value) -> Origin | None:
        """The user's line that made ``value``; None for an argument."""
        return None if value.node is None else value.node.origin

    def operation(self, tensor: SymbolicTensor) -> Any:
        """What an explicit graph calls the maker of ``tensor``."""
        raise MissingAttributeError(f"{tensor!r} has no .op: only tensors of a Graph have.")

    def graph_of(self, tensor: SymbolicTensor) -> Any:
        """The explicit graph of ``tensor``."""
        raise MissingAttributeError(f"{tensor!r} has no .graph: only tensors of a Graph have.")

    def evaluate(self, tensor: SymbolicTensor, feed_dict: Any, session: Any) -> Any:
        """The value of ``tensor`` by a session."""
        raise FailedPreconditionError(
            f"{tensor!r} can't be evaluated {self.pending()}: only tensors of a Graph have eval(). "
            f"{self.way_to_value()}."
        )


class SymbolicTensor(Tensor):
    """A tensor inside a traced function: its shape and dtype are known, its elements only when it runs.

    Ops take it like any tensor. What needs its elements now (``if``, ``for``, ``int()``, ``.numpy()``, NumPy)
    raises an error that names the line where it was made.
    """

    __slots__ = ("__weakref__", "_tracer", "_value")

    def __init__(self, value: Value, tracer: SymbolicEngine) -> None:
        self._value = value
        self._tracer = tracer

    @property
    def shape(self) -> Shape:  # type: ignore[override]  # the base declares what each kind of tensor computes
        return self._value.spec.shape

    @property
    def dtype(self) -> DType:  # type: ignore[override]  # as shape
        return self._value.spec.dtype

    @property
    def spec(self) -> TensorSpec:  # type: ignore[override]  # as shape
        return self._value.spec

    @property
    def name(self) -> str:
        """The argument's name, or the op that made the tensor and which of its results it is."""
        return self._tracer.tensor_name(self._value)

    @property
    def op(self) -> Any:
        """In an explicit graph the operation that makes the tensor; elsewhere absent."""
        return self._tracer.operation(self)

    @property
    def graph(self) -> Any:
        """The explicit graph that the tensor is an element of; elsewhere absent."""
        return self._tracer.graph_of(self)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """In an explicit graph the value, by ``session`` or the innermost block's: ``session.run(self)``.

        Raises:
            InvalidArgumentError: there is no session, or it runs another graph.
            FailedPreconditionError: the tensor belongs to a function, which no session runs.
        """
        return self._tracer.evaluate(self, feed_dict, session)

    @property
    def numpy(self) -> NoReturn:
        """Absent, as TensorFlow's: a symbol has no value to give."""
        raise self._valueless("numpy")

    def _valueless(self, name: str) -> MissingAttributeError:
        return MissingAttributeError(
            f"{self._described()} has no .{name}() {self._tracer.pending()}. {self._tracer.way_to_value()}, "
            "or hand it to Python with df.py_function."
        )

    def __getattr__(self, name: str) -> NoReturn:
        """Raise an error that says what to use in place of an attribute of arrays or eager tensors."""
        if isinstance(declared := getattr(SymbolicTensor, name, None), property):
            declared.__get__(self)  # raises again what has led here
        if hasattr(EagerTensor, name):
            raise self._valueless(name)
        found = replacement(name) if hasattr(np.ndarray, name) and not name.startswith("_") else None
        advice = f": {found}" if found else ""
        raise MissingAttributeError(f"A df.Tensor has no attribute {name!r}{advice}.")

    def static_value(self) -> Any:
        """The value as an array if it follows from constants alone, else None."""
        return self._tracer.static_value(self._value)

    def static_elements(self) -> Any:
        """Its integers that follow from constants and sizes; None for others, or for all."""
        return static_elements(self._value, self._tracer.static_value)

    def set_shape(self, shape: Any) -> None:
        """State what the shape is known to be, where None stands for any size; the run compares it.

        Raises:
            InvalidArgumentError: the tensor has another shape; or ``shape`` tells an open size where a tape
                records, inside of a branch or loop, or in an explicit graph: there
                :func:`dualflow.ensure_shape` gives it to a tensor of its own.
        """
        known = self.shape.merge_with(shape)
        if known == self.shape or dispatch.current() is not self._tracer or self._tracer.keys_feeds:
            super().set_shape(shape)
        else:
            ensured: Any = self._tracer.apply(ENSURED, (self,), {"sizes": known})
            self._value = ensured._value

    def _described(self) -> str:
        """The tensor and the line that made it, for errors."""
        origin = self._tracer.origin(self._value)
        if self._value.node is None and origin is None:
            return f"The symbolic tensor {self.name!r}, an argument of {self._tracer.name!r},"
        made = f" (made in {origin})" if origin else ""
        return f"The symbolic tensor {self.name!r}{made}"

    def _refuse(self, use: str, remedy: str) -> NoReturn:
        here = caller()
        where = f"\n  {here}" if here is not None else ""
        error = OperatorNotAllowedInGraphError(
            f"{use} is not allowed. {self._described()} has no value {self._tracer.pending()}; "
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
        """The first size, which is known unless the signature leaves it open."""
        if not self.shape:
            raise DTypeError("A tensor without axes has no len(); df.size(x) is its number of elements.")
        size = self.shape[0]
        if size is None:
            self._refuse("len() of a symbolic `df.Tensor` of unknown size", "use df.shape(x)[0]")
        return int(size)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise SymbolicValueError(
            f"Cannot convert a symbolic df.Tensor ({self.name}) to a NumPy array. {self._described()} has no "
            f"value {self._tracer.pending()}; {instead_of_call(sys._getframe(1))}.{self._tracer.hint}"
        )

    def __hash__(self) -> int:  # type: ignore[override]  # the base has none: its elements are seen by ==
        return id(self) if self._tracer.keys_feeds else super().__hash__()

    def __copy__(self) -> SymbolicTensor:
        return SymbolicTensor(self._value, self._tracer)

    def __deepcopy__(self, memo: Any) -> SymbolicTensor:
        return SymbolicTensor(self._value, self._tracer)

    def __str__(self) -> str:
        return f'Tensor("{self.name}", shape={self.shape}, dtype={self.dtype.name})'

    def __repr__(self) -> str:
        origin = self._tracer.origin(self._value)
        made = f" made in {origin}" if origin else ""
        return f"<tf.Tensor {self.name!r} shape={self.shape} dtype={self.dtype.name}{made}>"
