"""Loops that run a recurrent cell over the steps of sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dualflow.compat.v1.scopes import variable_scope
from dualflow.core import tree
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.function.control.scan_loop import scan_loop
from dualflow.ops.arrangement import transpose
from dualflow.ops.creation import convert_to_tensor, zeros_like
from dualflow.ops.positions import range as range_of_numbers
from dualflow.ops.rearranging.sequences import reverse_sequence
from dualflow.ops.repetition import reverse
from dualflow.ops.selection import where
from dualflow.ops.shapes import shape

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, TensorLike


@entry
def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: TensorLike | None = None,
    initial_state: Any = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Run a recurrent cell over the steps of sequences, in one loop of the graph.

    Args:
        cell: ``outputs, state = cell(inputs, state)``, such as ``nn.rnn_cell.LSTMCell``.
        inputs: ``[batch, steps, ...]``, or a structure of such tensors; sizes may be dynamic.
        sequence_length: the number of steps of each sequence, ``[batch]``; by default all. After the last
            step of a sequence its outputs are zeros, and its state is kept.
        initial_state: by default zeros.
        dtype: of the initial state; required without ``initial_state``.
        time_major: whether inputs and outputs are ``[steps, batch, ...]``.
        scope: the variable scope, "rnn" by default.

    ``parallel_iterations`` and ``swap_memory`` are TensorFlow's, and ignored.

    Returns:
        The outputs of all steps, ``[batch, steps, ...]``, and the state after the last step.

    Raises:
        InvalidArgumentError: neither ``initial_state`` nor ``dtype``.

    >>> from dualflow.compat import v1
    >>> cell = v1.nn.rnn_cell.BasicRNNCell(3)
    >>> outputs, state = v1.nn.dynamic_rnn(cell, v1.ones([2, 5, 4]), [5, 1], dtype=v1.float32)
    >>> outputs.shape, state.shape, float(v1.reduce_sum(abs(outputs[1, 1:])))
    ((2, 5, 3), (2, 3), 0.0)
    """
    rows = tree.map_structure(convert_to_tensor, inputs)
    if not time_major:
        rows = tree.map_structure(_swapped, rows)
    first = tree.leaves(rows)[0]
    sizes, steps = shape(first), first.shape[0]
    times = range_of_numbers(sizes[0] if steps is None else steps)
    with variable_scope("rnn" if scope is None else scope):
        state = _initial_state(cell, initial_state, sizes[1], dtype)
        step = _step(cell, None if sequence_length is None else convert_to_tensor(sequence_length))
        outputs, last = _scanned(step, state, (times, rows), steps)
    return (outputs if time_major else tree.map_structure(_swapped, outputs)), last


def _scanned(step: Callable[[Any, Any], Any], state: Any, xs: Any, length: int | None) -> tuple[Any, Any]:
    """The outputs of ``step`` for each row of ``xs``, stacked, and the last state."""
    carry, carried = tree.flatten(state)
    rows, row_structure = tree.flatten(xs)
    structures: list[Any] = []

    def flat_step(values: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        outputs, new_state = step(tree.unflatten(carried, values), tree.unflatten(row_structure, row))
        leaves, structure = tree.flatten(outputs)
        structures.append(structure)
        return tree.leaves(new_state), leaves

    last, stacks = scan_loop(flat_step, list(carry), list(rows), length, reverse=False)
    return tree.unflatten(structures[0], stacks), tree.unflatten(carried, last)


def _step(cell: Any, lengths: Any) -> Callable[[Any, Any], Any]:
    """A step of the loop, which keeps the state of sequences that have ended."""

    def step(state: Any, row: Any) -> Any:
        time, inputs = row
        outputs, new_state = cell(inputs, state)
        if lengths is None:
            return outputs, new_state
        running = time < lengths

        def if_running(new: Any, old: Any) -> Any:
            return where(running[(..., *[None] * (len(new.shape) - 1))], new, old)

        next_state = tree.map_structure(if_running, new_state, state)
        return tree.map_structure(lambda x: if_running(x, zeros_like(x)), outputs), next_state

    return step


@entry
def static_rnn(
    cell: Any,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Run a recurrent cell over a list of steps, each of which is a part of the graph.

    Args:
        cell: ``outputs, state = cell(inputs, state)``.
        inputs: a list of the inputs of each step, ``[batch, ...]``.

    The other arguments are those of :func:`dynamic_rnn`.

    Returns:
        The outputs of the steps in a list, and the state after the last step.

    Raises:
        DTypeError: ``inputs`` is not a list.
        InvalidArgumentError: it is empty, or neither ``initial_state`` nor ``dtype``.

    >>> from dualflow.compat import v1
    >>> cell = v1.nn.rnn_cell.GRUCell(3)
    >>> outputs, state = v1.nn.static_rnn(cell, [v1.ones([2, 4])] * 5, dtype=v1.float32)
    >>> len(outputs), outputs[0].shape
    (5, (2, 3))
    """
    if not isinstance(inputs, list | tuple):
        raise DTypeError(f"static_rnn takes a list of steps, not a {type(inputs).__name__}; unstack it.")
    if not inputs:
        raise InvalidArgumentError("static_rnn takes at least one step.")
    lengths = None if sequence_length is None else convert_to_tensor(sequence_length)
    with variable_scope("rnn" if scope is None else scope):
        first = convert_to_tensor(tree.leaves(inputs[0])[0])
        state = _initial_state(cell, initial_state, shape(first)[0], dtype)
        step, outputs = _step(cell, lengths), []
        for time, row in enumerate(inputs):
            output, state = step(state, (time, row))
            outputs.append(output)
    return outputs, state


@entry
def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: TensorLike | None = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Run two cells over sequences, one of them from the last step to the first.

    Args:
        cell_fw, cell_bw: the cells.
        initial_state_fw, initial_state_bw: their initial states, zeros by default.

    The other arguments are those of :func:`dynamic_rnn`.

    Returns:
        The outputs of both, in the order of the steps, and their last states.

    >>> from dualflow.compat import v1
    >>> cells = v1.nn.rnn_cell.GRUCell(3), v1.nn.rnn_cell.GRUCell(2)
    >>> outputs, _ = v1.nn.bidirectional_dynamic_rnn(*cells, v1.ones([2, 5, 4]), dtype=v1.float32)
    >>> [x.shape for x in outputs]
    [(2, 5, 3), (2, 5, 2)]
    """

    def reversed_steps(x: Any) -> Any:
        x = convert_to_tensor(x)
        if sequence_length is None:
            return reverse(x, [0 if time_major else 1])
        axes = (0, 1) if time_major else (1, 0)
        return reverse_sequence(x, sequence_length, *axes)

    with variable_scope("bidirectional_rnn" if scope is None else scope):
        forward, state = dynamic_rnn(
            cell_fw, inputs, sequence_length, initial_state_fw, dtype, time_major=time_major, scope="fw"
        )
        reversed_inputs = tree.map_structure(reversed_steps, inputs)
        backward, other = dynamic_rnn(
            cell_bw,
            reversed_inputs,
            sequence_length,
            initial_state_bw,
            dtype,
            time_major=time_major,
            scope="bw",
        )
    return (forward, tree.map_structure(reversed_steps, backward)), (state, other)


def _initial_state(cell: Any, state: Any, batch: Any, dtype: Any) -> Any:
    if state is not None:
        return tree.map_structure(convert_to_tensor, state)
    if dtype is None:
        raise InvalidArgumentError("If there is no initial_state, you must give a dtype, such as tf.float32.")
    initial: Any = getattr(cell, "get_initial_state", None)
    return cell.zero_state(batch, dtype) if initial is None else initial(batch_size=batch, dtype=dtype)


def _swapped(x: Any) -> Any:
    """``x`` with its first two axes exchanged."""
    return transpose(x, [1, 0, *range(2, len(x.shape))])
