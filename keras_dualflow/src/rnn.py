"""A cell over the time steps of sequences: steps one after another, or one loop of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras.src import tree

import dualflow as df
from dualflow.function.control.scan_loop import scan_loop
from keras_dualflow.src.ops.core import cast
from keras_dualflow.src.ops.promotion import tensor


def rnn(
    step_function: Callable[[Any, Any], tuple[Any, Any]],
    inputs: Any,
    initial_states: Any,
    go_backwards: bool = False,
    mask: Any = None,
    constants: Sequence[Any] | None = None,
    unroll: bool = False,
    input_length: int | None = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
    return_all_outputs: bool = True,
) -> tuple[Any, Any, Any]:
    """A cell over the time steps of ``inputs``.

    A step that the mask leaves out keeps the states, and gives zeros or the first state as its output.

    Returns:
        The last output, all outputs (or the last one alone), and the last states.
    """
    rows = [_time_first(x, time_major) for x in tree.flatten(inputs)]
    kept = None if mask is None else _time_first(_column(mask), time_major)
    constants = [] if constants is None else list(constants)
    states = tree.map_structure(tensor, tuple(initial_states) if unroll else initial_states)
    flat = tree.flatten(states)
    has_mask = kept is not None

    def step(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        before = tree.pack_sequence_as(states, carry)
        given = tree.pack_sequence_as(inputs, row[: len(rows)])
        output, after = step_function(given, tuple(before) + tuple(constants))
        made = [cast(new, old.dtype.name) for new, old in zip(tree.flatten(after), carry, strict=True)]
        if not has_mask:
            return made, [output]
        seen = row[-1]
        made = [_chosen(seen, new, old) for new, old in zip(made, carry, strict=True)]
        other = df.zeros_like(output) if zero_output_for_mask else _first_state(before)
        return made, [_chosen(seen, output, other)]

    steps = rows[0].shape[0]
    last_states, (outputs,) = scan_loop(step, flat, [*rows, kept] if has_mask else rows, steps, go_backwards)
    if go_backwards:
        outputs = df.reverse(outputs, [0])
    last = outputs[-1]
    outputs = outputs if return_all_outputs else outputs[-1:]
    return last, _time_first(outputs, time_major), tree.pack_sequence_as(states, last_states)


def _time_first(x: Any, time_major: bool) -> Any:
    """``x`` with the axes of the batch and of time exchanged, unless time comes first already."""
    x = tensor(x)
    return x if time_major else df.transpose(x, (1, 0, *range(2, len(x.shape))))


def _column(mask: Any) -> Any:
    """A mask with an axis beside those of the batch and time."""
    mask = cast(mask, "bool")
    return df.expand_dims(mask, -1) if len(mask.shape) == 2 else mask


def _chosen(seen: Any, new: Any, old: Any) -> Any:
    """``new`` where the mask holds, else ``old``."""
    if len(new.shape) > len(seen.shape):
        seen = df.reshape(seen, (-1, *[1] * (len(new.shape) - 1)))
    return df.where(seen, new, old)


def _first_state(states: Any) -> Any:
    """The state that is the cell's last output: of stacked cells, the last cell's."""
    first = states[0]
    return states[-1][0] if tree.is_nested(first) else first


def lstm(*args: Any, **kwargs: Any) -> Any:
    """A fused LSTM: there is none, so Keras takes its cell over :func:`rnn`."""
    raise NotImplementedError


def gru(*args: Any, **kwargs: Any) -> Any:
    """A fused GRU: there is none, so Keras takes its cell over :func:`rnn`."""
    raise NotImplementedError


def bidirectional_lstm(*args: Any, **kwargs: Any) -> Any:
    """A fused LSTM both ways: there is none, so Keras takes its cell over :func:`rnn`."""
    raise NotImplementedError


def bidirectional_gru(*args: Any, **kwargs: Any) -> Any:
    """A fused GRU both ways: there is none, so Keras takes its cell over :func:`rnn`."""
    raise NotImplementedError


def unstack(x: Any, axis: int = 0) -> list[Any]:
    """The slices of ``x`` along an axis."""
    return list(df.unstack(tensor(x), axis=axis))


def cudnn_ok(*args: Any, **kwargs: Any) -> bool:
    """Whether cuDNN could run this layer: never."""
    return False
