"""``ForwardAccumulator``: forward-mode derivatives along a direction, computed with the values."""

from __future__ import annotations

from typing import Any, Final

from dualflow.core import dispatch, tree
from dualflow.core.delegating_engine import DelegatingEngine
from dualflow.core.dispatch import TENSORS, AbstractTensor, Engine
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.core.warning import warn_user
from dualflow.eager.tangents import push_forward
from dualflow.eager.unconnected import Unconnected, UnconnectedGradients, unconnected_choice
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.record import Op

_NOTHING: Final[dict[str, Any]] = {}


class TangentTable:
    """The tangents of tensors and variables, by id.

    A tensor with a tangent is kept alive, so that its id isn't reused.
    """

    __slots__ = ("_tangents",)

    def __init__(self) -> None:
        self._tangents: dict[int, tuple[Any, Any]] = {}

    def __contains__(self, value: Any) -> bool:
        return id(value) in self._tangents

    def of(self, value: Any) -> Any:
        """The tangent of a tensor or variable; None if it is zero."""
        entry = self._tangents.get(id(value))
        return None if entry is None else entry[1]

    def put(self, value: Any, tangent: Any) -> None:
        """Set the tangent of a tensor or variable; None for zeros."""
        if tangent is None:
            self._tangents.pop(id(value), None)
        else:
            self._tangents[id(value)] = value, tangent


class AccumulatingEngine(DelegatingEngine):
    """An engine that runs ops on ``base`` and computes the tangents of their results.

    Tangents are computed on ``base``: outer tapes and accumulators record their ops.
    """

    __slots__ = ("_reads", "table")
    overrides_numpy = True

    def __init__(self, base: Engine, table: TangentTable) -> None:
        super().__init__(base)
        self.table = table
        self._reads: dict[int, tuple[Any, Any]] = {}

    @property
    def unrecorded(self) -> Engine:
        return self.base.unrecorded

    def run(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        result = self.base.run(op, inputs, attrs)
        table = self.table
        if any(x in table for x in inputs):
            outputs = result if type(result) is tuple else (result,)
            with dispatch.using(self.base):
                new_tangents = push_forward(op, inputs, outputs, attrs, [table.of(x) for x in inputs])
            for output, tangent in zip(outputs, new_tangents, strict=True):
                table.put(output, tangent)
        return result

    def is_traced(self, value: Any) -> bool:
        return (isinstance(value, TENSORS) and value in self.table) or self.base.is_traced(value)

    def lift(self, tensor: AbstractTensor) -> AbstractTensor:
        lifted = self.base.lift(tensor)
        if lifted is not tensor and tensor in self.table:  # a trace has captured it
            self.table.put(lifted, self.base.lift(self.table.of(tensor)))
        return lifted

    def shallow_copy(self, tensor: Any) -> Any:
        copy = self.base.shallow_copy(tensor)
        if tensor in self.table:
            self.table.put(copy, self.table.of(tensor))
        return copy

    def read(self, variable: Any) -> Any:
        value = self.base.read(variable)
        if variable not in self.table:
            return value
        before = self._reads.get(id(variable))
        if before is not None and before[0] is value:
            return before[1]
        # A new tensor object: the one that was read before the block has no tangent.
        read = self.base.shallow_copy(value)
        self.table.put(read, self.base.lift(self.table.of(variable)))
        self._reads[id(variable)] = value, read
        return read


@entry
class ForwardAccumulator:
    """Computes derivatives of the ops in its ``with`` block along a direction, by forward mode.

    It costs about as much as computing the values, and keeps no records. Forward mode suits few inputs and
    many outputs; reverse mode (:class:`GradientTape`) suits many inputs and few outputs. Accumulators and
    tapes nest, in any order, for higher derivatives. In a ``df.function`` the derivative is compiled with the
    function; a ``df.function`` that is called in the block runs op by op.

    Args:
        primals: the tensors or variables to differentiate with respect to, in any structure.
        tangents: the direction, in the same structure: for each primal a tensor of its shape and dtype.

    Raises:
        InvalidArgumentError: structures, shapes or dtypes differ, or a primal occurs twice.
        DTypeError: a primal is not a tensor or variable.

    >>> import dualflow as df
    >>> x = df.constant([2.0, 3.0])
    >>> with df.autodiff.ForwardAccumulator(x, df.constant([1.0, 0.0])) as acc:
    ...     y = x * x
    >>> acc.jvp(y).numpy()
    array([4., 0.], dtype=float32)
    """

    @entry
    def __init__(self, primals: object, tangents: object) -> None:
        self._table = TangentTable()
        self._using: dispatch.using | None = None
        leaves, structure = tree.flatten(primals)
        directions, other = tree.flatten(tangents)
        if structure != other:
            raise InvalidArgumentError(
                f"primals and tangents must have the same structure, but have {structure} and {other}; give "
                "each primal one tangent."
            )
        for primal, tangent in zip(leaves, directions, strict=True):
            self._begin(primal, tangent)

    def _begin(self, primal: Any, tangent: Any) -> None:
        if not isinstance(primal, TENSORS):
            raise DTypeError(
                f"Primals must be tensors or variables, not {primal!r}; convert it with df.constant before "
                "computing with it."
            )
        if primal in self._table:
            raise InvalidArgumentError(
                f"{primal!r} occurs twice in the primals; give it once, with the sum of its tangents."
            )
        if not primal.dtype.is_inexact:
            warn_user(
                f"The dtype of the watched primal must be floating (e.g. df.float32), got {primal.dtype.name}"
            )
            return
        direction = convert_to_tensor(tangent, dtype_hint=primal.dtype)
        if direction.dtype is not primal.dtype or direction.shape != primal.shape:
            raise InvalidArgumentError(
                f"The tangent of a {primal.dtype.name}{primal.shape} must have that dtype and shape, not "
                f"{direction.dtype.name}{direction.shape}."
            )
        self._table.put(primal, direction)

    @entry
    def __enter__(self) -> ForwardAccumulator:
        if self._using is not None:
            raise InvalidArgumentError(
                "Accumulator is already recording: its block can't be entered again inside itself."
            )
        self._using = dispatch.using(AccumulatingEngine(dispatch.current(), self._table))
        self._using.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._using is not None, "a block that ends has begun"
        using, self._using = self._using, None
        using.__exit__(*exc)

    def jvp(self, primals: object, unconnected_gradients: Unconnected = UnconnectedGradients.NONE) -> Any:
        """The derivative of ``primals`` along the direction: the Jacobian times the tangents.

        Args:
            primals: tensors computed in the block, or variables, in any structure.
            unconnected_gradients: "none" or "zero": the result for a tensor that does not depend on the
                primals.

        Returns:
            In the structure of ``primals``: tensors of their shapes and dtypes, or None.

        Raises:
            InvalidArgumentError: ``unconnected_gradients`` has another value.
        """
        choice = unconnected_choice(unconnected_gradients)
        zero = choice is UnconnectedGradients.ZERO
        return tree.map_structure(lambda x: self._tangent(x, zero), primals)

    def _tangent(self, x: Any, zero: bool) -> Any:
        tangent = self._table.of(x)
        if tangent is not None or not zero:
            return tangent
        return zeros_like(x)
