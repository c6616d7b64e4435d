"""Recurrent cells and their loops: equations, lengths, dynamic sizes, names, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualflow as df
from dualflow.compat import v1

rnn_cell = v1.nn.rnn_cell
CELLS = {
    "basic": lambda: rnn_cell.BasicRNNCell(3),
    "gru": lambda: rnn_cell.GRUCell(3),
    "lstm": lambda: rnn_cell.LSTMCell(3),
    "peepholes and projection": lambda: rnn_cell.LSTMCell(3, True, 0.5, num_proj=2, proj_clip=0.3),
    "one tensor as state": lambda: rnn_cell.BasicLSTMCell(3, state_is_tuple=False),
    "two layers": lambda: rnn_cell.MultiRNNCell([rnn_cell.GRUCell(3), rnn_cell.LSTMCell(2)]),
    "residual": lambda: rnn_cell.ResidualWrapper(rnn_cell.GRUCell(4)),
}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def steps(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_an_lstm_step_has_the_equations_of_its_docstring() -> None:
    cell = rnn_cell.LSTMCell(3, forget_bias=0.7)
    x, c, h = steps(2, 4), steps(2, 3), steps(2, 3) * 0.5
    output, state = cell(x, rnn_cell.LSTMStateTuple(c, h))
    kernel, bias = (v.numpy() for v in cell.weights)
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ kernel + bias, 4, 1)
    memory = sigmoid(f + 0.7) * c + sigmoid(i) * np.tanh(j)
    np.testing.assert_allclose(state.c, memory, rtol=1e-5)
    np.testing.assert_allclose(output, sigmoid(o) * np.tanh(memory), rtol=1e-5, atol=1e-7)


def test_a_gru_step_resets_the_state_before_the_product() -> None:
    cell = rnn_cell.GRUCell(3)
    x, h = steps(2, 4), steps(2, 3)
    output, _ = cell(x, h)
    gates, gate_bias, candidate, candidate_bias = (v.numpy() for v in cell.weights)
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ gates + gate_bias), 2, 1)
    c = np.tanh(np.concatenate([x, r * h], 1) @ candidate + candidate_bias)
    np.testing.assert_allclose(output, u * h + (1 - u) * c, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CELLS)
def test_both_loops_repeat_the_cell(name: str) -> None:
    cell, x = CELLS[name](), steps(2, 5, 4)
    outputs, state = v1.nn.dynamic_rnn(cell, x, dtype=v1.float32)
    listed, last = v1.nn.static_rnn(cell, [x[:, t] for t in range(5)], dtype=v1.float32)
    np.testing.assert_allclose(outputs, np.stack(listed, 1), rtol=1e-5, atol=1e-6)
    for a, b in zip(v1.nest.flatten(state), v1.nest.flatten(last), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [0, 1, 3, 5])
def test_after_its_length_a_sequence_has_zeros_and_keeps_its_state(length: int) -> None:
    cell, x = rnn_cell.GRUCell(3), steps(2, 5, 4)
    outputs, state = v1.nn.dynamic_rnn(cell, x, [length, 5], dtype=v1.float32)
    shorter, last = v1.nn.dynamic_rnn(cell, x[:1, :length], dtype=v1.float32)
    np.testing.assert_allclose(outputs[0, :length], shorter[0], rtol=1e-5, atol=1e-6)
    assert not outputs[0, length:].numpy().any()
    np.testing.assert_allclose(state[0], last[0], rtol=1e-5, atol=1e-6)


def test_time_major_is_a_transposition() -> None:
    cell, x = rnn_cell.LSTMCell(3), steps(2, 5, 4)
    outputs, _ = v1.nn.dynamic_rnn(cell, x, [2, 5], dtype=v1.float32)
    other, _ = v1.nn.dynamic_rnn(cell, x.swapaxes(0, 1), [2, 5], dtype=v1.float32, time_major=True)
    np.testing.assert_allclose(other, outputs.numpy().swapaxes(0, 1), rtol=1e-6)


def test_a_graph_runs_sequences_of_any_size_and_trains() -> None:
    with v1.Graph().as_default(), v1.Session() as session:
        x, lengths = v1.placeholder(v1.float32, [None, None, 4]), v1.placeholder(v1.int32, [None])
        outputs, _ = v1.nn.dynamic_rnn(rnn_cell.BasicLSTMCell(3), x, lengths, dtype=v1.float32)
        loss = v1.reduce_mean(v1.square(outputs - 0.5))
        step = v1.train.AdamOptimizer(0.05).minimize(loss)
        session.run(v1.global_variables_initializer())
        feeds = {x: steps(2, 5, 4), lengths: [5, 3]}
        first = session.run(loss, feeds)
        for _ in range(20):
            session.run(step, feeds)
        assert session.run(loss, feeds) < 0.8 * first
        assert session.run(outputs, {x: steps(3, 7, 4), lengths: [7, 1, 2]}).shape == (3, 7, 3)


def test_variables_have_tensorflows_names() -> None:
    with v1.Graph().as_default():
        cells = rnn_cell.MultiRNNCell([rnn_cell.BasicLSTMCell(3), rnn_cell.GRUCell(2)])
        v1.nn.dynamic_rnn(cells, v1.placeholder(v1.float32, [None, 5, 4]), dtype=v1.float32)
        assert [v.name for v in v1.trainable_variables()] == [
            "rnn/multi_rnn_cell/cell_0/basic_lstm_cell/kernel:0",
            "rnn/multi_rnn_cell/cell_0/basic_lstm_cell/bias:0",
            "rnn/multi_rnn_cell/cell_1/gru_cell/gates/kernel:0",
            "rnn/multi_rnn_cell/cell_1/gru_cell/gates/bias:0",
            "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/kernel:0",
            "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/bias:0",
        ]


def test_the_backward_cell_reads_each_sequence_from_its_last_step() -> None:
    cells, x = (rnn_cell.GRUCell(3), rnn_cell.GRUCell(3)), steps(2, 5, 4)
    (_, backward), (_, state) = v1.nn.bidirectional_dynamic_rnn(*cells, x, [3, 5], dtype=v1.float32)
    alone, last = v1.nn.dynamic_rnn(cells[1], x[:1, 2::-1], dtype=v1.float32)
    np.testing.assert_allclose(backward[0, :3], alone.numpy()[0, ::-1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state[0], last[0], rtol=1e-5, atol=1e-6)


def test_dropout_of_outputs_keeps_the_expected_share() -> None:
    cell = rnn_cell.DropoutWrapper(rnn_cell.BasicRNNCell(1000), output_keep_prob=0.25, seed=1)
    outputs, state = cell(steps(2, 4), cell.zero_state(2, v1.float32))
    assert 0.15 < np.mean(outputs.numpy() != 0) < 0.35
    assert (state.numpy() != 0).all()


def test_dropout_of_outputs_and_state_is_independent() -> None:
    cell = rnn_cell.DropoutWrapper(
        rnn_cell.BasicRNNCell(100), output_keep_prob=0.5, state_keep_prob=0.5, seed=1
    )
    outputs, state = df.function(lambda x: cell(x, cell.zero_state(2, v1.float32)))(steps(2, 4))
    assert (outputs.numpy() != 0).tolist() != (state.numpy() != 0).tolist()


def test_a_loop_without_a_state_needs_a_dtype() -> None:
    with pytest.raises(ValueError, match="you must give a dtype"):
        v1.nn.dynamic_rnn(rnn_cell.GRUCell(3), steps(2, 5, 4))
    with pytest.raises(ValueError, match="at least one step"):
        v1.nn.static_rnn(rnn_cell.GRUCell(3), [], dtype=v1.float32)
    with pytest.raises(TypeError, match="takes a list of steps"):
        v1.nn.static_rnn(rnn_cell.GRUCell(3), steps(2, 5, 4), dtype=v1.float32)


def test_cells_refuse_what_they_can_not_build() -> None:
    with pytest.raises(ValueError, match="at least one cell"):
        rnn_cell.MultiRNNCell([])
    with pytest.raises(ValueError, match="no state_size"):
        rnn_cell.RNNCell().zero_state(2, v1.float32)
    with pytest.raises(ValueError, match="no output_size"):
        rnn_cell.RNNCell().output_size  # noqa: B018  # the property raises
    with (
        v1.Graph().as_default(),
        pytest.raises(ValueError, match="last dimension of the inputs to a recurrent cell"),
    ):
        v1.nn.dynamic_rnn(rnn_cell.GRUCell(3), v1.placeholder(v1.float32, [2, 5, None]), dtype=v1.float32)
