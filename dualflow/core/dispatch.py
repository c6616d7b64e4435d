"""Which engine is current: the one switch between running now and recording a graph.

An engine takes an op record and tensors and returns tensors. The eager engine is the base; a trace or a
tape is another engine for the length of a ``with`` block. The switch is a context variable, so threads and
asyncio tasks each have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from dualflow.core.naming import scoped

if TYPE_CHECKING:
    import numpy as np

    from dualflow.core.dtypes import DType
    from dualflow.core.shape import Shape
    from dualflow.core.spec import TensorSpec
    from dualflow.ops.record import Op
    from dualflow.ops.tensor import Tensor


class AbstractTensor:
    """What engines hand around: something with a shape and a dtype."""

    __slots__ = ()
    shape: Shape
    dtype: DType
    spec: TensorSpec


class AbstractVariable:
    """State that an engine can read and assign; ``created`` numbers variables in order of creation."""

    __slots__ = ()
    shape: Shape
    dtype: DType
    trainable: bool
    created: int


class AbstractComposite:
    """A value made of several tensors, of which ``values`` holds the numbers: what gradients flow to.

    It is a structure of its tensors: ``__tree__`` says which (:mod:`dualflow.core.tree`).
    """

    __slots__ = ()
    shape: Any
    dtype: Any
    values: Any

    def with_values(self, new_values: Any) -> Any:
        """The same with other numbers."""
        raise NotImplementedError

    def as_tensor(self) -> Any:
        """The tensor that stands for it in ops; or an error that says what to use."""
        raise NotImplementedError


class AbstractSource:
    """What programs read elements from while they run: a dataset, or an iterator over one."""

    __slots__ = ()

    def reading(self) -> Any:
        """How a traced loop reads it (:class:`dualflow.function.autograph.streams.StreamReading`)."""
        raise NotImplementedError

    def enumerate(self, start: Any = 0) -> Any:
        """What gives pairs of a number and an element."""
        raise NotImplementedError

    @classmethod
    def zip(cls, *sources: Any) -> Any:
        """What gives one element of each source, side by side."""
        raise NotImplementedError


TENSORS: Final = (AbstractTensor, AbstractVariable)
"""What ops take without converting it: the classes for ``isinstance``."""


class SupportsArray(Protocol):
    """What NumPy can read: arrays and scalars of NumPy, and objects of other libraries."""

    def __array__(self) -> np.ndarray[Any, Any]:
        """The values as an array."""
        ...


TensorLike: TypeAlias = "AbstractTensor | AbstractVariable | SupportsArray | complex | Sequence[TensorLike]"
"""What ops take and convert to tensors, for type checkers."""


class Engine:
    """How ops run. ``unary``, ``binary`` and ``part`` are calls that the eager engine runs faster."""

    __slots__ = ()
    eager = False
    overrides_numpy = False
    """Whether NumPy's functions run as ops on tensors for which :meth:`is_traced` is True."""

    seeds_begin_anew = False
    """Whether each random op with a seed has a stream of its own, not that of all eager ops with the seed."""

    @property
    def sizing(self) -> Op | None:
        """The op that holds a computation until all sizes are known; None where they always are."""
        return None

    @property
    def drawing(self) -> Op:
        """The op that holds a computation which draws random numbers, where :attr:`sizing` is not None."""
        raise NotImplementedError

    @property
    def unrecorded(self) -> Engine:
        """The engine that runs the same ops without a tape that listens."""
        return self

    @property
    def innermost(self) -> Engine:
        """The engine at the bottom, behind all tapes and accumulators: the eager one, or a trace."""
        return self

    def unary(self, op: Op, x: Any) -> Tensor:
        """Run a one-input op without attributes on a value of any kind."""
        return op.run_on(self, (x,), {})

    def binary(self, op: Op, x: Any, y: Any) -> Tensor:
        """Run a two-input op without attributes on values of any kind."""
        return op.run_on(self, (x, y), {})

    def apply(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Tensor:
        """Run ``op`` on values of any kind. What ops of several outputs give is unpacked as a tensor is."""
        return op.run_on(self, inputs, attrs)

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        """Run ``op`` on this engine's tensors: a tensor, or a tuple for an op with several outputs.

        What has no outputs gives an empty tuple, or the operation of a graph that is run later.
        """
        raise NotImplementedError

    def composite(self, rule: Callable[..., Any], x: Any, attrs: dict[str, Any]) -> Any:
        """``rule(x, **attrs)``: a pure function of a tensor, made of ops, which may run as one.

        ``rule`` is a function of a module, and the attributes are plain data: both are a key.
        """
        return rule(x, **attrs)

    def generated(
        self, rule: Callable[..., Any], inputs: tuple[Any, ...], count: int, attrs: dict[str, Any]
    ) -> Any:
        """``rule(*inputs, count=count, **attrs)``: many numbers made of a few inputs, which may run as one.

        ``rule`` and ``attrs`` are as in :meth:`composite`. For a larger count the first numbers are the same.
        """
        return rule(*inputs, count=count, **attrs)

    def part(self, rule: Callable[[Any, Any], Any], x: Any, key: Any) -> Any:
        """``rule(x, key)``: the part ``x[key]``, for which the eager engine has a short way."""
        return rule(x, key)

    def constant(self, array: np.ndarray[Any, Any]) -> Any:
        """A tensor that holds ``array``, which nobody else will change."""
        raise NotImplementedError

    def lift(self, tensor: AbstractTensor) -> AbstractTensor:
        """``tensor``, perhaps of another engine, as one of this engine's."""
        return tensor

    def shallow_copy(self, tensor: Any) -> Any:
        """Another tensor of the same elements, which is told from ``tensor`` by its identity."""
        raise NotImplementedError

    def is_traced(self, value: Any) -> bool:
        """Whether what is computed from ``value``, which may be anything, is recorded."""
        return False

    def record_numpy_use(self, value: AbstractTensor | AbstractVariable, frame: FrameType) -> None:
        """Take note that the elements of ``value`` are handed to NumPy, which ``frame`` has called.

        Only engines that override NumPy need the note.
        """

    def read(self, variable: Any) -> Any:
        """The variable's value at this point of the program."""
        raise NotImplementedError

    def assign(self, variable: Any, value: Any) -> Any:
        """Give the variable a new value, a tensor of its dtype and shape.

        An engine whose assignments happen later returns the tensor that stands for this one; others None.
        """
        raise NotImplementedError

    def change(self, variable: Any, rule: Callable[[Any], Any]) -> Any:
        """Assign ``rule(value)``, losing no change by another thread where ops run now."""
        return self.assign(variable, rule(self.read(variable)))

    def update(self, variable: Any, value: Any, outputs: Sequence[Any]) -> None:
        """Assign what recorded code has computed for a variable, beside ``outputs``, its results."""
        self.assign(variable, value)

    def record_assignment(self, variable: Any, value: Any) -> None:
        """What a variable holds from this point of recorded code on, which assigns its last value later."""
        self.assign(variable, value)

    def stream(self, seed: int | None) -> Any:
        """What a new op with this seed draws from; None if that is what all engines share."""
        return None

    def set_own_seed(self, seed: int | None) -> bool:
        """Whether the seed of all ops is this engine's alone, which it has taken."""
        return False

    def name_scope(self, name: str) -> AbstractContextManager[str]:
        """The block in which names begin with ``name/``, or with ``name`` if it ends in ``/``."""
        return scoped(name)

    def unordered(self) -> AbstractContextManager[None]:
        """The block whose ops run whenever their results are needed, such as a variable's initial value."""
        return nullcontext()

    def create_variable(self, variable: Any, initial: Any) -> None:
        """Give a variable that is being constructed its first value."""
        raise NotImplementedError


_current: ContextVar[Engine]


def current() -> Engine:
    """The engine of this thread or task. Call it as ``dispatch.current()``: :func:`install` replaces it."""
    raise RuntimeError("no engine is installed: import dualflow")


def install(base: Engine) -> None:
    """Make ``base`` the engine of every context that has chosen none."""
    global _current, current
    _current = ContextVar("dualflow_engine", default=base)
    current = _current.get


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
