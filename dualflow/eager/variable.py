"""``Variable``: a mutable tensor, read and assigned through the current engine."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn

from dualflow.core import dispatch
from dualflow.core.device_names import CPU
from dualflow.core.dispatch import AbstractTensor
from dualflow.core.dtypes import DType
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.core.naming import prefix
from dualflow.core.shape import UNKNOWN_RANK, Shape, as_shape
from dualflow.core.spec import TensorSpec
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.eager.replicas import VariableAggregation, VariableSynchronization
from dualflow.eager.tensor import EagerTensor
from dualflow.eager.updates import tensor_of, value_of
from dualflow.eager.variable_creators import CreatedByScopes
from dualflow.eager.variable_parts import VariableParts
from dualflow.ops.arithmetic import add, subtract
from dualflow.ops.creation import convert_to_tensor
from dualflow.ops.indexing import getitem
from dualflow.ops.shapes import with_shape
from dualflow.ops.static import python_shape
from dualflow.ops.tensor import Tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike

_created: Final = itertools.count()
_DEFAULT: Final = (None, VariableAggregation.NONE, VariableSynchronization.AUTO)


class Variable(VariableParts, metaclass=CreatedByScopes):
    """A mutable tensor: its value can be replaced by another of its shape and dtype.

    Ops accept a variable as a tensor, and read its present value; tapes watch a trainable one when it is
    read. Variables are thread-safe: no concurrent change is lost, and a tensor that was read keeps its value.

    Args:
        initial_value: a value that :func:`dualflow.convert_to_tensor` accepts, or a function without
            arguments that returns it.
        trainable: whether tapes watch it automatically, and optimizers update it.
        name: the variable's name, after the names of open :func:`dualflow.name_scope` s.
        dtype: the dtype to convert ``initial_value`` to.
        constraint: a function that optimizers apply to the value after each update.
        shape: the shape that values must have, by default that of ``initial_value``; ``None`` entries allow
            any size.
        validate_shape, caching_device, variable_def, import_scope: ignored, as in TensorFlow.
        synchronization, aggregation: of :class:`dualflow.VariableSynchronization` and
            :class:`dualflow.VariableAggregation`; without effect, as there is one replica.
        experimental_enable_variable_lifting: ignored, as in TensorFlow.

    Raises:
        InvalidArgumentError: ``initial_value`` is missing, or does not fit ``shape``.

    >>> import dualflow as df
    >>> v = df.Variable(10.0, name="weight")
    >>> v.assign_add(2.0)
    <tf.Variable 'weight:0' shape=() dtype=float32, numpy=12.0>
    """

    # Compiled code reads the tensor from its slot, and uses the other two while it writes to its buffer.
    __slots__ = ("__dict__", "__weakref__", "_borrower", "_substitute", "_tensor")

    @entry
    def __init__(
        self,
        initial_value: TensorLike | Callable[[], Any] | None = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: object = None,
        name: str | None = None,
        variable_def: object = None,
        dtype: DTypeLike | None = None,
        import_scope: object = None,
        constraint: Callable[..., Any] | None = None,
        synchronization: object = VariableSynchronization.AUTO,
        aggregation: object = VariableAggregation.NONE,
        shape: ShapeLike | None = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        if initial_value is None:
            raise InvalidArgumentError("A variable needs an initial value: df.Variable(initial_value).")
        with dispatch.current().no_control_dependencies():
            initial = convert_to_tensor(initial_value() if callable(initial_value) else initial_value, dtype)
        self.trainable: bool = trainable is None or trainable
        self.created = next(_created)
        self.constraint = constraint
        if aggregation not in _DEFAULT:
            self._aggregation = aggregation
        if synchronization not in _DEFAULT:
            self._synchronization = synchronization
        self._name = f"{prefix()}{'Variable' if name is None else name}"
        self._spec = TensorSpec(initial.shape if shape is None else as_shape(shape), initial.dtype)
        self._tensor: EagerTensor
        self._check(initial)
        dispatch.current().create_variable(self, initial)

    @property
    def name(self) -> str:
        """The name with the suffix ``:0``; names need not be unique."""
        return f"{self._name}:0"

    @property
    def _trainable(self) -> bool:
        """:attr:`trainable`, which libraries set by TensorFlow's internal name."""
        return self.trainable

    @_trainable.setter
    def _trainable(self, value: bool) -> None:
        self.trainable = value

    @property
    def shape(self) -> Shape:  # type: ignore[override]  # a property here
        return self._spec.shape

    @property
    def dtype(self) -> DType:  # type: ignore[override]  # as shape
        return self._spec.dtype

    @property
    def spec(self) -> TensorSpec:
        """The spec of the variable's values."""
        return self._spec

    @property
    def device(self) -> str:
        """TensorFlow's full name of the device that holds the value; assignments keep it there."""
        tensor = tensor_of(self)
        return CPU if tensor is None else tensor.device

    @property
    def aggregation(self) -> Any:
        """How the assignments of replicas would be combined; see :class:`dualflow.VariableAggregation`."""
        return getattr(self, "_aggregation", VariableAggregation.NONE)

    @property
    def synchronization(self) -> Any:
        """When the replicas' values would be combined; see :class:`dualflow.VariableSynchronization`."""
        return getattr(self, "_synchronization", VariableSynchronization.AUTO)

    # Reading

    def value(self) -> Tensor:
        """The present value as a tensor.

        Raises nothing.

        Returns:
            A tensor with the variable's shape and dtype; later assignments don't change it.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).value().numpy()
        array([1., 2.], dtype=float32)
        """
        present: Tensor = dispatch.current().read(self)
        return present

    read_value = value

    def numpy(self) -> Any:
        """A copy of the present value as a NumPy array or, without axes, as a NumPy scalar.

        Returns:
            An array with the variable's shape and dtype.

        Raises:
            SymbolicValueError: the variable is read in a traced function.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
        """
        return self._current_value().numpy()

    def _current_value(self) -> Any:
        """The value for Python code, not recorded by tapes; in a trace a symbolic tensor."""
        return dispatch.current().unrecorded.read(self)

    @property
    def initializer(self) -> Any:
        """The operation that initializes it in an explicit graph; None elsewhere: it has a value."""
        return dispatch.current().initializer_of(self)

    def is_initialized(self) -> bool:
        """True: a variable always has a value.

        Raises nothing.

        Returns:
            True.

        >>> import dualflow as df
        >>> df.Variable(1.0).is_initialized()
        True
        """
        return True

    def static_value(self) -> None:
        """None: the value of a variable is dynamic.

        Raises nothing.

        Returns:
            None.

        >>> import dualflow as df
        >>> df.Variable(1.0).static_value()
        """

    # Assigning

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Assign a value to the variable. Assignments are not differentiable.

        Args:
            value: the new value, of the variable's shape; converted to its dtype, unless it is a tensor.
            use_locking: ignored, as in TensorFlow; False by default.
            name: ignored, as in TensorFlow; None by default.
            read_value: whether to return the variable; True by default.

        Returns:
            The variable, or None; in an explicit graph the tensor to fetch.

        Raises:
            InvalidArgumentError: ``value`` has another shape, or is a tensor of another dtype.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).assign([3.0, 4.0]).numpy()
        array([3., 4.], dtype=float32)
        """
        try:
            engine = dispatch.current()
            if engine is engine.unrecorded:
                return self._assignment_result(engine.assign(self, self._checked_value(value)), read_value)
            with dispatch.using(engine.unrecorded):
                return self.assign(value, read_value=read_value)
        except Exception as error:
            hide_frames(error)
            raise

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add ``delta`` to the value; see :meth:`assign`.

        Args:
            delta: numbers of the variable's shape.
            use_locking, name: ignored, as in TensorFlow.
            read_value: whether to return the variable; True by default.

        Returns:
            The variable, or None; in an explicit graph the tensor to fetch.

        Raises:
            InvalidArgumentError: ``delta`` has another shape, or is a tensor of another dtype.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).assign_add([3.0, 4.0]).numpy()
        array([4., 6.], dtype=float32)
        """
        try:
            return self._update(add, delta, read_value)
        except Exception as error:
            hide_frames(error)
            raise

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract ``delta`` from the value; see :meth:`assign`.

        Args:
            delta: numbers of the variable's shape.
            use_locking, name: ignored, as in TensorFlow.
            read_value: whether to return the variable; True by default.

        Returns:
            The variable, or None; in an explicit graph the tensor to fetch.

        Raises:
            InvalidArgumentError: ``delta`` has another shape, or is a tensor of another dtype.

        >>> import dualflow as df
        >>> df.Variable([1.0, 2.0]).assign_sub([1.0, 1.0]).numpy()
        array([0., 1.], dtype=float32)
        """
        try:
            return self._update(subtract, delta, read_value)
        except Exception as error:
            hide_frames(error)
            raise

    def _update(self, op: Any, delta: Any, read_value: bool) -> Any:
        engine = dispatch.current()
        if engine is engine.unrecorded:
            operand = self._checked_value(delta)
            done = engine.change(self, lambda value: engine.binary(op.op, value, operand))
            return self._assignment_result(done, read_value)
        with dispatch.using(engine.unrecorded):
            return self._update(op, delta, read_value)

    def _assignment_result(self, done: Any, read_value: bool) -> Any:
        """The result of an assignment; in an explicit graph, the tensor to fetch for it."""
        if done is not None:
            return done
        return self if read_value else None

    def _checked_value(self, value: Any) -> Any:
        """``value`` as a tensor of the variable's dtype and a shape that it can have."""
        if not isinstance(value, EagerTensor) or not dispatch.current().eager:
            value = convert_to_tensor(value, self.dtype)
        self._check(value)
        if value.shape is UNKNOWN_RANK or value.shape.is_static or not self.shape.is_static:
            return value
        self._check_shape(python_shape(value))
        return with_shape(value, self.shape)

    def _check(self, value: AbstractTensor) -> None:
        if value.dtype is not self.dtype:
            raise InvalidArgumentError(
                f"{self._name} has dtype {self.dtype.name} and can't hold a value of dtype "
                f"{value.dtype.name}; convert it with df.cast."
            )
        self._check_shape(value.shape)

    def _check_shape(self, shape: Shape) -> None:
        if shape is not self.shape and not _compatible(self.shape, shape):
            raise InvalidArgumentError(
                f"{self._name} has shape {self.shape} and can't hold a value of shape {shape}; the shapes "
                "must be equal."
            )

    # Parts

    def __getitem__(self, key: Any) -> Tensor:
        """``v[key]``, a tensor whose ``assign``, ``assign_add`` and ``assign_sub`` change the variable."""
        try:
            part = getitem(self, key)
            part._part_of = (self, key)
            return part
        except Exception as error:
            hide_frames(error)
            raise

    def _assign_part(self, rule: Callable[[Any], Any]) -> Any:
        with dispatch.using(dispatch.current().unrecorded) as engine:
            done = engine.change(self, lambda value: self._checked_value(rule(value)))
        return self._assignment_result(done, read_value=True)

    @entry
    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise DTypeError("Assign a part of a variable with v[key].assign(value).")

    @entry
    def _in_place(self, other: Any) -> NoReturn:
        raise FailedPreconditionError(
            "A variable does not change by +=, -=, *= and the like. Use v.assign_add(x), v.assign_sub(x) or "
            "v.assign(y) to change it, or v = v + x for a new tensor."
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = (
        _in_place
    )

    # Python's protocols

    @entry
    def __bool__(self) -> bool:
        return bool(self._current_value())

    @entry
    def __int__(self) -> int:
        return int(self._current_value())

    @entry
    def __float__(self) -> float:
        return float(self._current_value())

    @entry
    def __complex__(self) -> complex:
        return complex(self._current_value())

    @entry
    def __index__(self) -> int:
        return self._current_value().__index__()  # type: ignore[no-any-return]  # a tensor's, or its error

    @entry
    def __len__(self) -> int:
        return len(self._current_value())

    @entry
    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.value())

    def __contains__(self, value: Any) -> bool:
        return value in self._current_value()

    def __format__(self, spec: str) -> str:
        return format(self._current_value(), spec) if spec else str(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        engine = dispatch.current()
        if engine.overrides_numpy:
            engine.record_numpy_use(self, sys._getframe(1))
        return self._current_value().__array__(dtype, copy)

    @entry
    def __hash__(self) -> NoReturn:
        raise DTypeError("Variables compare elementwise and have no hash; use v.ref() as the key.")

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        copied = Variable(
            value_of(self),
            self.trainable,
            name=self._name,
            shape=self.shape,
            constraint=self.constraint,
            synchronization=self.synchronization,
            aggregation=self.aggregation,
        )
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        """A call of ``_unpickled``, as pickle cannot import a class whose module is another than it names."""
        return _unpickled, (None if type(self) is Variable else type(self),), self.__getstate__()

    def __getstate__(self) -> tuple[dict[str, Any], dict[str, Any]]:
        tensor = value_of(self)
        return self.__dict__, {} if tensor is None else {"_tensor": tensor}

    def __repr__(self) -> str:
        tensor = value_of(self)  # None while the initial value is pending in a trace
        value = "" if tensor is None else f", numpy={tensor.shown()}"
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}{value}>"

    __str__ = __repr__


def _compatible(declared: Shape, shape: Shape) -> bool:
    if shape is UNKNOWN_RANK:  # checked at run time
        return True
    return len(declared) == len(shape) and all(
        w is None or g is None or w == g for w, g in zip(declared, shape, strict=True)
    )


def _unpickled(kind: type[Variable] | None) -> Variable:
    """An empty variable, whose state unpickling sets; ``kind`` is its class, None for Variable itself."""
    return object.__new__(Variable if kind is None else kind)
