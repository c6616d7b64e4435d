"""The bases of sizes that the Python code of a trace reads: numbers to Python, scalars to ops."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core import dispatch
from dualflow.core.dispatch import AbstractTensor
from dualflow.core.dtypes import DType
from dualflow.core.shape import Shape
from dualflow.sizes.symbolic_sizes import SymInt


class AbstractSize(AbstractTensor):
    """A number that adapts to the dtype of the tensors it is combined with, as a Python number does."""

    __slots__ = ()

    @property
    def is_constant(self) -> bool:
        """Whether it is one number in ops too, as its trace has ended."""
        raise NotImplementedError

    def as_tensor(self) -> Any:
        """The number as a tensor of the dtype that a Python number has by default."""
        raise NotImplementedError

    def with_dtype(self, dtype: DType) -> Any:
        """The number as a tensor of ``dtype``."""
        raise NotImplementedError

    def fix(self) -> None:
        """Record that an op needs the number: the trace serves only calls with it."""
        raise NotImplementedError


symbolic_sizes_enabled: Final[list[str]] = []
"""A flag: empty until a trace has an AbstractSize; until then checks for such numbers are skipped.

``function/tracing/size_scope.py`` alone sets it, by adding the name of the traced function.
"""


class AbstractSizeScope:
    """The dynamic sizes of a trace, which its Python code reads.

    Attributes:
        tracer: what the trace is recorded with.
        closed: whether the trace has ended.
    """

    __slots__ = ()
    tracer: Any
    closed: bool

    def python_shape(self, tensor: Any) -> Shape:
        """The shape of ``tensor`` for Python code; None for sizes that depend on data."""
        raise NotImplementedError

    def require_unchanged(self, argument: Any, result: Any) -> None:
        """Raise an error if a size of ``argument`` was read, and ``result`` has other sizes.

        ``argument`` is an argument of a loop's body, and ``result`` its value for the next iteration.
        """
        raise NotImplementedError

    def tensor(self, size: SymInt) -> Any:
        """``size`` as an integer scalar of the trace."""
        raise NotImplementedError

    def recording(self) -> dispatch.using:
        """A context whose ops are recorded in the trace, whichever trace inside it is current."""
        return dispatch.using(self.tracer)

    def equal(self, x: int, y: int) -> bool:
        """Whether ``x == y`` in the traced call."""
        raise NotImplementedError

    def less(self, x: int, y: int) -> bool:
        """Whether ``x < y`` in the traced call."""
        raise NotImplementedError

    def exact(self, size: int, *, of_op: bool = False) -> int:
        """The number that ``size`` is in the traced call, which serves only calls with this number.

        ``of_op`` is whether an op needs the number, not Python code.
        """
        raise NotImplementedError
