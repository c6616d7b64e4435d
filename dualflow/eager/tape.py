"""``GradientTape``: records the ops in its block, and computes their gradients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from dualflow.core import dispatch
from dualflow.core.dispatch import TENSORS, AbstractTensor, AbstractVariable
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from dualflow.core.tracebacks import entry, hide_frames
from dualflow.core.warning import warn_user
from dualflow.eager import recording
from dualflow.eager.differentiable_parts import (
    flatten_differentiable,
    only_differentiable,
)
from dualflow.eager.jacobians import gradient_columns
from dualflow.eager.output_gradients import cotangents_of_targets
from dualflow.eager.recording import Tape
from dualflow.eager.unconnected import (
    NO_GRADIENT,
    Unconnected,
    UnconnectedGradients,
    unconnected_choice,
)
from dualflow.ops.arrangement import reshape, transpose
from dualflow.ops.broadcasting import broadcast_to
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.tensor_sizes import axis_sizes

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.eager.variable import Variable
    from dualflow.ops.tensor import Tensor

Source = AbstractTensor | AbstractVariable
S = TypeVar("S", bound=Source)
K = TypeVar("K")


@entry
class GradientTape:
    """Records the ops in its ``with`` block, for reverse-mode differentiation.

    Trainable variables are watched when they are read; tensors are watched by :meth:`watch`. Tapes nest: a
    gradient computed in another tape's block is recorded there, which gives higher-order gradients.

    Args:
        persistent: whether several gradients can be computed; otherwise the first one frees the records.
            False by default.
        watch_accessed_variables: whether reading a trainable variable watches it; True by default.

    >>> import dualflow as df
    >>> x = df.constant(3.0)
    >>> with df.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).numpy()
    np.float32(6.0)
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._accessed = watch_accessed_variables
        self._tape: Tape | None = None
        self._watched: Iterable[Variable] = ()
        self._recording = self._entered = False

    def __enter__(self) -> GradientTape:
        try:
            self._start()
        except Exception as error:
            hide_frames(error)
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        if self._recording:
            self._pause()

    def _start(self) -> None:
        if self._recording:
            raise InvalidArgumentError(
                "Tape is still recording, This can happen if you try to re-enter an active tape."
            )
        if self._tape is None:
            self._tape = Tape(self._accessed)
        recording.start_recording(self._tape)
        self._recording = self._entered = True

    def _pause(self) -> None:
        assert self._tape is not None, "a tape that records has records"
        recording.stop_recording(self._tape)
        self._recording = False

    def watch(self, tensor: TensorLike) -> None:
        """Record computations that depend on ``tensor``.

        Args:
            tensor: a tensor or variable of floats or complex numbers, or a structure of them.

        Returns:
            None.

        Raises:
            InvalidArgumentError: ``tensor`` has a leaf that is neither, such as a number or an array.
            FailedPreconditionError: the tape is not recording.

        >>> import dualflow as df
        >>> x = df.constant(2.0)
        >>> tape = df.GradientTape()
        >>> with tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> float(tape.gradient(y, x))
        4.0
        """
        for x in flatten_differentiable(tensor)[0]:
            if not isinstance(x, TENSORS):
                raise InvalidArgumentError(
                    f"Passed in object {x!r} of type {type(x).__name__!r}, not a tensor or a variable; "
                    "convert it with df.constant before computing with it."
                )
            if not (x.dtype.is_inexact or isinstance(tensor, dispatch.AbstractComposite)):
                warn_user(
                    f"The dtype of the watched tensor must be floating (e.g. df.float32), got {x.dtype.name}"
                )
            if self._tape is None:
                raise FailedPreconditionError("Tape is not recording: call watch() in its with block.")
            if isinstance(x, AbstractVariable):
                recording.watch(self._tape, x)
            elif x.dtype.is_inexact:
                self._tape.watch(x)

    def stop_recording(self) -> AbstractContextManager[None]:
        """A context manager: ops in its block are not recorded.

        Returns:
            A context manager.

        Raises:
            InvalidArgumentError: the tape is not recording.

        >>> import dualflow as df
        >>> x = df.Variable(2.0)
        >>> tape = df.GradientTape()
        >>> with tape, tape.stop_recording():
        ...     y = x * x
        >>> print(tape.gradient(y, x))
        None
        """
        if not self._recording:
            raise InvalidArgumentError("Tape is not recording. Stop it in its with block.")
        return self._stopped()

    @contextmanager
    def _stopped(self) -> Iterator[None]:
        self._pause()
        try:
            yield
        finally:
            self._start()

    def reset(self) -> None:
        """Clear all records and watched tensors, as if the tape began here.

        Raises nothing.

        Returns:
            None.

        >>> import dualflow as df
        >>> x = df.Variable(2.0)
        >>> with df.GradientTape() as tape:
        ...     y = x * x
        ...     tape.reset()
        >>> print(tape.gradient(y, x))
        None
        """
        running = self._recording
        if running:
            self._pause()
        self._tape, self._watched = None, ()
        if running:
            self._start()

    def watched_variables(self) -> tuple[Variable, ...]:
        """The variables watched so far, in the order of their creation.

        Raises nothing.

        Returns:
            A tuple of variables.

        >>> import dualflow as df
        >>> v = df.Variable(2.0)
        >>> with df.GradientTape() as tape:
        ...     y = v * v
        >>> len(tape.watched_variables())
        1
        """
        return recording.by_creation(self._watched if self._tape is None else self._tape.variables.values())

    # The types omit None, which is the gradient only for a source that the target doesn't depend on.
    @overload
    def gradient(
        self,
        target: object,
        sources: Source,
        output_gradients: object = ...,
        unconnected_gradients: Unconnected = ...,
    ) -> Tensor: ...
    @overload
    def gradient(
        self,
        target: object,
        sources: list[S],
        output_gradients: object = ...,
        unconnected_gradients: Unconnected = ...,
    ) -> list[Tensor]: ...
    @overload
    def gradient(
        self,
        target: object,
        sources: tuple[S, ...],
        output_gradients: object = ...,
        unconnected_gradients: Unconnected = ...,
    ) -> tuple[Tensor, ...]: ...
    @overload
    def gradient(
        self,
        target: object,
        sources: dict[K, S],
        output_gradients: object = ...,
        unconnected_gradients: Unconnected = ...,
    ) -> dict[K, Tensor]: ...
    @overload
    def gradient(
        self,
        target: object,
        sources: object,
        output_gradients: object = ...,
        unconnected_gradients: Unconnected = ...,
    ) -> Any: ...
    def gradient(
        self,
        target: object,
        sources: object,
        output_gradients: object = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradient of ``target`` with respect to each of ``sources``.

        Args:
            target: a tensor or a structure of them; the gradient is that of the sum of all their elements.
            sources: tensors and variables, in any structure.
            output_gradients: weights of the targets' elements, in the structure of ``target``; ones by
                default.
            unconnected_gradients: the result for a source on which ``target`` does not depend, "none" or
                "zero"; "none" by default.

        Returns:
            In the structure of ``sources``: tensors of the shape and dtype of each source, or None; always
            None for integers.

        Raises:
            FailedPreconditionError: the tape has been used, and is not persistent.
            InvalidArgumentError: ``unconnected_gradients`` has another value.
            DTypeError: ``target`` is None, or has a leaf that is neither a tensor nor a variable.

        >>> import dualflow as df
        >>> x = df.Variable([1.0, 2.0])
        >>> with df.GradientTape() as tape:
        ...     y = x * x
        >>> tape.gradient(y, x).numpy()
        array([2., 4.], dtype=float32)
        """
        unconnected = unconnected_choice(unconnected_gradients)
        if target is None:
            raise DTypeError(
                "Argument `target` should be a list or nested structure of Tensors or Variables to be "
                "differentiated, but received None."
            )
        tape = self._records()
        targets, _ = flatten_differentiable(target)
        for t in targets:
            _check_target(t)
        weights = cotangents_of_targets(targets, output_gradients)
        flat, rebuild = flatten_differentiable(sources)
        self._release(tape)
        gradients = recording.gradients(tape, targets, weights, flat, keep=self._persistent)
        return rebuild(_connected(gradients, flat, unconnected))

    def jacobian(
        self,
        target: TensorLike,
        sources: object,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivative of each element of ``target`` by each element of ``sources``.

        Elements of the target are batched into one sweep; if they are few, or an op's gradient can't be
        batched, there is one sweep for each.

        Args:
            target: a tensor of static shape.
            sources: tensors and variables, in any structure.
            unconnected_gradients: as in :meth:`gradient`; "none" by default.
            parallel_iterations: ignored, as in TensorFlow; None by default.
            experimental_use_pfor: whether to batch the sweeps; True by default.

        Returns:
            In the structure of ``sources``: tensors of shape ``target.shape + source.shape`` and the dtype of
            the source, or None.

        Raises:
            FailedPreconditionError: the tape has been used, and is not persistent.
            InvalidArgumentError: ``unconnected_gradients`` has another value, or a size of ``target`` is
                dynamic.
            DTypeError: ``target`` consists of several tensors.

        >>> import dualflow as df
        >>> x = df.Variable([1.0, 2.0])
        >>> with df.GradientTape() as tape:
        ...     y = x * x
        >>> tape.jacobian(y, x).numpy().tolist()
        [[2.0, 0.0], [0.0, 4.0]]
        """
        unconnected = unconnected_choice(unconnected_gradients)
        tape = self._records()
        target = only_differentiable(target)
        _check_target(target)
        flat, rebuild = flatten_differentiable(sources)
        self._release(tape)
        columns = gradient_columns(tape, target, target.shape, flat, at_once=experimental_use_pfor)
        jacobians: list[Any] = [
            None if column is None else reshape(column, (*target.shape, *source.shape))
            for column, source in zip(columns, flat, strict=True)
        ]
        if unconnected is UnconnectedGradients.ZERO:
            jacobians = [
                _zeros_of_jacobian(target, source) if jacobian is None else jacobian
                for jacobian, source in zip(jacobians, flat, strict=True)
            ]
        return rebuild(jacobians)

    def batch_jacobian(
        self,
        target: TensorLike,
        source: TensorLike,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The Jacobian of each batch element of ``target`` by that of ``source``; elements are independent.

        Sweeps are as in :meth:`jacobian`, for the elements of a row of the target.

        Args:
            target: a tensor of static shape [batch, ...].
            source: a tensor or variable of shape [batch, ...].
            unconnected_gradients: ignored: the result is zeros; "none" by default.
            parallel_iterations: ignored, as in TensorFlow; None by default.
            experimental_use_pfor: whether to batch the sweeps; True by default.

        Returns:
            A tensor of shape ``[batch] + target.shape[1:] + source.shape[1:]``; zeros of the target's dtype
            if the target does not depend on the source.

        Raises:
            InvalidArgumentError: the first sizes differ, or a tensor has no axes.
            FailedPreconditionError: the tape has been used, and is not persistent.
            DTypeError: the target or the source consists of several tensors.

        >>> import dualflow as df
        >>> x = df.Variable([[1.0], [2.0]])
        >>> with df.GradientTape() as tape:
        ...     y = x * x
        >>> tape.batch_jacobian(y, x).numpy().tolist()
        [[[2.0]], [[4.0]]]
        """
        unconnected_choice(unconnected_gradients)
        target, source = only_differentiable(target), only_differentiable(source)
        if not target.shape or not source.shape or target.shape[0] != source.shape[0]:
            raise InvalidArgumentError(
                f"Need first dimension of target shape ({target.shape}) and source shape ({source.shape}) to "
                "match."
            )
        _check_target(target)
        tape = self._records()
        self._release(tape)
        inner = target.shape[1:]
        (column,) = gradient_columns(tape, target, inner, [source], at_once=experimental_use_pfor)
        shape = (target.shape[0], *inner, *source.shape[1:])
        if column is None:
            dtype = target.dtype if inner.num_elements() else source.dtype
            return convert_to_tensor(np.zeros(shape, dtype.dtype))
        return reshape(transpose(column, [1, 0, *range(2, len(column.shape))]), shape)

    def _records(self) -> Tape:
        """The tape's records.

        Raises:
            FailedPreconditionError: it has none: it was never entered, or has been used.
        """
        tape = self._tape
        if tape is None:
            if not self._entered:
                raise FailedPreconditionError(
                    "The tape has no records: its block was never entered. Compute the target in "
                    "`with df.GradientTape() as tape:`, and call tape.gradient after the block."
                )
            raise FailedPreconditionError(
                "A non-persistent GradientTape can only be used to compute one set of gradients (or "
                "jacobians); for several, create it with df.GradientTape(persistent=True)."
            )
        return tape

    def _release(self, tape: Tape) -> None:
        """Stop recording and drop ``tape``, the records of one gradient, unless the tape is persistent."""
        if not self._persistent:
            if self._recording:
                self._pause()
            self._tape, self._watched = None, tape.variables.values()


def apply_vjp(
    tape: GradientTape, targets: Sequence[Any], cotangents: Sequence[Any], sources: Sequence[Any]
) -> list[Any]:
    """The cotangents of ``sources`` for those of ``targets``; zeros for an unconnected source."""
    records = tape._records()
    tape._release(records)
    gradients = recording.gradients(records, targets, cotangents, sources)
    return _connected(gradients, sources, UnconnectedGradients.ZERO)


def _check_target(target: Any) -> None:
    if not isinstance(target, TENSORS):
        raise DTypeError(f"The target of a gradient must be a tensor or variable, not {target!r}.")
    if not target.dtype.is_inexact:
        requirement = (
            "The dtype of the target tensor must be floating (e.g. df.float32) when calling gradient"
        )
        warn_user(f"{requirement}, got {target.dtype.name}")


def _zeros_of_jacobian(target: Any, source: Any) -> AbstractTensor:
    """The Jacobian of a target that does not depend on ``source``, whose sizes may be dynamic."""
    return broadcast_to(zeros_like(source), [*target.shape, *axis_sizes(source)])


def _connected(gradients: list[Any], sources: Sequence[Any], unconnected: UnconnectedGradients) -> list[Any]:
    if unconnected is NO_GRADIENT:
        return gradients
    return [zeros_like(s) if g is None else g for g, s in zip(gradients, sources, strict=True)]
