"""The current engine: decides whether ops run eagerly or are recorded in a graph.

An engine takes an op record and tensors and returns tensors. The eager engine is the default; a trace or a
tape is the current engine during a ``with`` block. The current engine is a context variable, so threads and
asyncio tasks each have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.naming import scoped

if TYPE_CHECKING:
    import numpy as np

    from dualflow.core.dtypes import DType
    from dualflow.core.shape import Shape
    from dualflow.core.spec import TensorSpec
    from dualflow.ops.record import Op
    from dualflow.ops.tensor import Tensor


class AbstractTensor:
    """The base of all tensors: a value with a shape and a dtype."""

    __slots__ = ()
    shape: Shape
    dtype: DType
    spec: TensorSpec


class AbstractVariable:
    """The base of variables; ``created`` is the number of the variable in the order of creation."""

    __slots__ = ()
    shape: Shape
    dtype: DType
    trainable: bool
    created: int


class AbstractComposite:
    """A value that ops may take for a tensor though it is none: a sparse tensor, for example.

    The methods have names that no class of a program has for something else.
    """

    __slots__ = ()
    shape: Any
    dtype: Any

    def __as_tensor__(self) -> Any:
        """The equivalent tensor, for ops; raises an error with an alternative if there is none.

        A :class:`~dualflow.core.composite_rules.CompositeError` is for a class with rules of its own.
        """
        raise NotImplementedError

    def __map_elements__(self, op: Op, inputs: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """The result of an elementwise op, of whose inputs this composite is one.

        It is called where :meth:`__as_tensor__` raised a CompositeError.
        """
        raise NotImplementedError

    def __invariant__(self, shape: Shape) -> Sequence[TensorSpec] | None:
        """The specs of the leaves of all composites of ``shape``, which a loop carries for this one.

        None if there are none: the class has no rule, or this composite does not have the shape.
        """
        return None


class DifferentiableComposite(AbstractComposite):
    """A composite of which ``values`` is differentiable."""

    __slots__ = ()
    values: Any

    def with_values(self, new_values: AbstractTensor) -> Any:
        """A copy with other values."""
        raise NotImplementedError

    @property
    def innermost(self) -> Any:
        """The differentiable tensor: ``values``, or the innermost of values that are a composite."""
        values = self.values
        return values.innermost if isinstance(values, DifferentiableComposite) else values

    def with_innermost(self, new_values: AbstractTensor) -> Any:
        """A copy with another differentiable tensor."""
        values = self.values
        nested = isinstance(values, DifferentiableComposite)
        return self.with_values(values.with_innermost(new_values) if nested else new_values)

    def differentiable_parts(self) -> list[Any]:
        """The tensors and variables to which gradients flow."""
        return [self.innermost]

    def with_gradients(self, gradients: Sequence[Any]) -> Any:
        """The composite of the gradients of :meth:`differentiable_parts`; None if there is none."""
        (gradient,) = gradients
        return None if gradient is None else self.with_innermost(gradient)


class AbstractSource:
    """The base of datasets and iterators, from which programs read elements at run time."""

    __slots__ = ()

    def reading(self) -> Any:
        """How a traced loop reads it (:class:`dualflow.function.autograph.stream_loops.ElementSource`)."""
        raise NotImplementedError

    def traced_iterator(self) -> Any:
        """An iterator over it in a function that is being traced; an iterator returns itself."""
        raise NotImplementedError

    def enumerate(self, start: int = 0) -> Any:
        """A source of pairs: the index of an element, and the element."""
        raise NotImplementedError

    @classmethod
    def zip(cls, *sources: Any) -> Any:
        """A source of tuples of one element of each source."""
        raise NotImplementedError


TENSORS: Final = (AbstractTensor, AbstractVariable)
"""The classes of ops' inputs that need no conversion, for ``isinstance``."""


class Engine:
    """Runs ops. ``unary``, ``binary`` and ``part`` have fast paths in the eager engine."""

    __slots__ = ()
    eager = False
    overrides_numpy = False
    """Whether NumPy's functions run as ops on tensors for which :meth:`is_traced` is True."""

    seeds_begin_anew = False
    """Whether each random op with a seed has a stream of its own, unlike eager ops, which share one."""

    @property
    def deferring_op(self) -> Op | None:
        """The op that defers a computation until all sizes are known; None if all sizes always are."""
        return None

    @property
    def deferring_draw_op(self) -> Op:
        """As :attr:`deferring_op`, for a computation that draws random numbers."""
        raise NotImplementedError

    @property
    def unrecorded(self) -> Engine:
        """The engine that runs the same ops without recording them on tapes."""
        return self

    @property
    def innermost(self) -> Engine:
        """The engine below all tapes and accumulators: the eager one, or a trace."""
        return self

    def with_innermost(self, innermost: Engine) -> Engine:
        """An engine like this one whose :attr:`innermost` is another engine."""
        return innermost

    def postponed(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The results of a call whose ranks only a run's feeds determine; None where that is impossible."""
        return None

    def compile_for_device(self) -> None:
        """Compile the graph that this engine records for the GPU, as one of its blocks is placed there."""

    def initializer_of(self, variable: Any) -> Any:
        """The operation of an explicit graph that assigns a variable's initial value; None elsewhere."""
        return None

    def unary(self, op: Op, x: Any) -> Tensor:
        """Run a one-input op without attributes on a value of any kind."""
        return op.run_on(self, (x,), {})

    def binary(self, op: Op, x: Any, y: Any) -> Tensor:
        """Run a two-input op without attributes on values of any kind."""
        return op.run_on(self, (x, y), {})

    def apply(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Tensor:
        """Run ``op`` on values of any kind."""
        return op.run_on(self, inputs, attrs)

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run ``op`` on this engine's tensors: a tensor, or a tuple for an op with several outputs.

        An op without outputs returns an empty tuple; in an explicit graph, its operation.
        """
        raise NotImplementedError

    def composite(self, rule: Callable[..., Any], x: Any, attrs: dict[str, Any]) -> Any:
        """``rule(x, **attrs)``, which may run as one compiled kernel.

        ``rule`` is a pure function of a module, which calls ops on the tensor; the attributes are hashable.
        Both are part of the kernel's key.
        """
        return rule(x, **attrs)

    def generated(
        self, rule: Callable[..., Any], inputs: tuple[Any, ...], count: int, attrs: dict[str, Any]
    ) -> Any:
        """``count`` random numbers of ``rule(*inputs, count=count, **attrs)``, which may be one kernel.

        ``rule`` and ``attrs`` are as in :meth:`composite`. For a larger count the first numbers are the same.
        """
        return rule(*inputs, count=count, **attrs)

    def part(self, rule: Callable[[Any, Any], Any], x: Any, key: Any) -> Any:
        """``rule(x, key)``: the part ``x[key]``, for which the eager engine has a fast path."""
        return rule(x, key)

    def constant(self, array: np.ndarray[Any, Any]) -> Any:
        """A tensor of ``array``, which must not be written to any more."""
        raise NotImplementedError

    def lift(self, tensor: AbstractTensor) -> AbstractTensor:
        """``tensor``, which may be another engine's, as a tensor of this engine."""
        return tensor

    def shallow_copy(self, tensor: Any) -> Any:
        """Another tensor object with the same elements."""
        raise NotImplementedError

    def computes(self, value: Any) -> bool:
        """Whether ``value`` is a tensor that this engine traces, of a dtype that floating functions keep."""
        return False

    def is_traced(self, value: Any) -> bool:
        """Whether computations that depend on ``value``, of any type, are recorded."""
        return False

    def record_numpy_use(self, value: AbstractTensor | AbstractVariable, frame: FrameType) -> None:
        """Called when NumPy, in a call by ``frame``, reads the elements of ``value``.

        Only engines that override NumPy's functions use it.
        """

    def read(self, variable: Any) -> Any:
        """The variable's value at this point of the program."""
        raise NotImplementedError

    def assign(self, variable: Any, value: Any) -> Any:
        """Assign a tensor of the variable's dtype and shape.

        The engine of an explicit graph returns the tensor to fetch for the assignment; others return None.
        """
        raise NotImplementedError

    def change(self, variable: Any, rule: Callable[[Any], Any]) -> Any:
        """Assign ``rule(value)``; the eager engine does it atomically."""
        return self.assign(variable, rule(self.read(variable)))

    def update(self, variable: Any, value: Any, outputs: Sequence[Any]) -> None:
        """Assign the value that recorded code has computed for a variable; ``outputs`` are its results."""
        self.assign(variable, value)

    def record_assignment(self, variable: Any, value: Any) -> None:
        """Record the variable's value at this point of recorded code, which assigns its final value later."""
        self.assign(variable, value)

    def stream(self, seed: int | None) -> Any:
        """The random stream of a new op with this seed; None for the stream that all engines share."""
        return None

    def set_own_seed(self, seed: int | None) -> bool:
        """Set this engine's own global seed; False if it shares the one of all engines."""
        return False

    def name_scope(self, name: str) -> AbstractContextManager[str]:
        """A context that prefixes names with ``name/``, or with ``name`` if it ends in ``/``."""
        return scoped(name)

    def no_control_dependencies(self) -> AbstractContextManager[None]:
        """A context whose ops have no control dependencies, for a variable's initial value."""
        return nullcontext()

    def create_variable(self, variable: Any, initial: Any) -> None:
        """Set the initial value of a variable that is being constructed."""
        raise NotImplementedError


_current: ContextVar[Engine]


def current() -> Engine:
    """The engine of this thread or task. Call it as ``dispatch.current()``: :func:`install` replaces it."""
    raise RuntimeError("no engine is installed: import dualflow")


def install(base: Engine) -> None:
    """Make ``base`` the default engine of all contexts."""
    global _current, current
    _current = ContextVar("dualflow_engine", default=base)
    current = _current.get


def operand(engine: Engine, source: Any) -> Any:
    """The tensor of ``engine`` for ``source``: a tensor, or a variable, whose current value is read."""
    return engine.read(source) if isinstance(source, AbstractVariable) else engine.lift(source)


def switch(engine: Engine) -> None:
    """Make ``engine`` current until the next switch: for tapes, whose blocks may end in any order."""
    _current.set(engine)


class using:
    """``with using(engine):`` makes ``engine`` current for the block."""

    __slots__ = ("_engine", "_token")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Engine:
        self._token: Token[Engine] = _current.set(self._engine)
        return self._engine

    def __exit__(self, *exc: object) -> None:
        _current.reset(self._token)
