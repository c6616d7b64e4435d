"""``rnn``: a scan of a cell over the time steps of sequences."""

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
    """Scan a cell over the time steps of ``inputs``.

    A masked step does not change the states; its output is zeros with ``zero_output_for_mask``, else the
    cell's last output.

    Returns:
        The last output, all outputs (or only the last one), and the final states.
    """
    rows = [_time_first(x, time_major) for x in tree.flatten(inputs)]
    masks = None if mask is None else _time_first(_add_feature_axis(mask), time_major)
    constants = [] if constants is None else list(constants)
    states = tree.map_structure(tensor, tuple(initial_states) if unroll else initial_states)
    flat = tree.flatten(states)
    has_mask = masks is not None

    def step(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        state = tree.pack_sequence_as(states, carry)
        step_inputs = tree.pack_sequence_as(inputs, row[: len(rows)])
        output, new_state = step_function(step_inputs, tuple(state) + tuple(constants))
        leaves = tree.flatten(new_state)
        new_carry = [cast(new, old.dtype.name) for new, old in zip(leaves, carry, strict=True)]
        if not has_mask:
            return new_carry, [output]
        active = row[-1]
        new_carry = [_where_mask(active, new, old) for new, old in zip(new_carry, carry, strict=True)]
        other = df.zeros_like(output) if zero_output_for_mask else _last_output(state)
        return new_carry, [_where_mask(active, output, other)]

    steps = rows[0].shape[0]
    scanned = [*rows, masks] if has_mask else rows
    last_states, (outputs,) = scan_loop(step, flat, scanned, steps, reverse=go_backwards)
    if go_backwards:
        outputs = df.reverse(outputs, [0])
    last = outputs[-1]
    outputs = outputs if return_all_outputs else outputs[-1:]
    return last, _time_first(outputs, time_major), tree.pack_sequence_as(states, last_states)


def _time_first(x: Any, time_major: bool) -> Any:
    """``x`` with the time axis first; the first two axes are exchanged unless ``time_major``."""
    x = tensor(x)
    return x if time_major else df.transpose(x, (1, 0, *range(2, len(x.shape))))


def _add_feature_axis(mask: Any) -> Any:
    """A mask with an axis after those of the batch and time."""
    mask = cast(mask, "bool")
    return df.expand_dims(mask, -1) if len(mask.shape) == 2 else mask


def _where_mask(mask: Any, new: Any, old: Any) -> Any:
    """``new`` where the mask is true, else ``old``."""
    if len(new.shape) > len(mask.shape):
        mask = df.reshape(mask, (-1, *[1] * (len(new.shape) - 1)))
    return df.where(mask, new, old)


def _last_output(states: Any) -> Any:
    """The first state, which is the cell's last output; for stacked cells, that of the last cell."""
    first = states[0]
    return states[-1][0] if tree.is_nested(first) else first


def lstm(*args: Any, **kwargs: Any) -> Any:
    """A fused LSTM; it is not implemented, so that Keras scans its cell with :func:`rnn`."""
    raise NotImplementedError


def gru(*args: Any, **kwargs: Any) -> Any:
    """A fused GRU; it is not implemented, so that Keras scans its cell with :func:`rnn`."""
    raise NotImplementedError


def bidirectional_lstm(*args: Any, **kwargs: Any) -> Any:
    """A fused bidirectional LSTM; it is not implemented, so that Keras scans its cells with :func:`rnn`."""
    raise NotImplementedError


def bidirectional_gru(*args: Any, **kwargs: Any) -> Any:
    """A fused bidirectional GRU; it is not implemented, so that Keras scans its cells with :func:`rnn`."""
    raise NotImplementedError


def unstack(x: Any, axis: int = 0) -> list[Any]:
    """The slices of ``x`` along an axis."""
    return list(df.unstack(tensor(x), axis=axis))


def cudnn_ok(*args: Any, **kwargs: Any) -> bool:
    """Whether cuDNN could run this layer: never."""
    return False
