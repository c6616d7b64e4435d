"""Recurrent cells: layers of an input and a state, with TensorFlow 1's names of variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dualflow.compat.v1.initializers import Ones, Zeros
from dualflow.compat.v1.layers.base import Layer, named_activation
from dualflow.compat.v1.scopes import Reuse, variable_scope
from dualflow.core import tree
from dualflow.core.dtypes import float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.clipping import clip_by_value
from dualflow.ops.contraction import matmul
from dualflow.ops.creation import convert_to_tensor, zeros
from dualflow.ops.exponential import sigmoid
from dualflow.ops.joining import concat, split, stack
from dualflow.ops.neural.dropout import dropout
from dualflow.ops.shapes import shape
from dualflow.ops.trigonometric import tanh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualflow.core.argument_types import DTypeLike, TensorLike

Activation = Callable[[Any], Any]


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM cell: the cell's memory, and its last output."""

    c: Any
    h: Any


class RNNCell(Layer):
    """The base of recurrent cells: ``outputs, state = cell(inputs, state)``.

    A subclass defines :attr:`state_size`, :attr:`output_size`, ``build`` and ``call(inputs, state)``.
    """

    @property
    def state_size(self) -> Any:
        """The size of the state, or a structure of the sizes of its parts."""
        raise InvalidArgumentError(f"{type(self).__name__} has no state_size: define it as a property.")

    @property
    def output_size(self) -> Any:
        """The size of the outputs."""
        raise InvalidArgumentError(f"{type(self).__name__} has no output_size: define it as a property.")

    @entry
    def __call__(self, inputs: TensorLike, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """The outputs, and the new state.

        Args:
            inputs: ``[batch, width]``.
            state: tensors ``[batch, size]``, in the structure of :attr:`state_size`.
            scope: a variable scope, or its name, instead of the cell's.
        """
        if scope is None:
            return super().__call__(inputs, state, **kwargs)
        with variable_scope(scope, reuse=self._reuse) as opened:
            if self._scope is None:
                self._scope = opened
            return super().__call__(inputs, state, **kwargs)

    def zero_state(self, batch_size: TensorLike, dtype: DTypeLike) -> Any:
        """Zeros ``[batch_size, size]`` for each part of the state; ``batch_size`` may be a tensor."""
        return tree.map_structure(lambda n: zeros(stack([batch_size, n]), dtype), self.state_size)

    def get_initial_state(
        self,
        inputs: TensorLike | None = None,
        batch_size: TensorLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> Any:
        """:meth:`zero_state` for the batch of ``inputs``, or for ``batch_size`` and ``dtype``."""
        if inputs is not None:
            x = convert_to_tensor(inputs)
            batch_size, dtype = shape(x)[0], x.dtype
        rows: Any = batch_size
        return self.zero_state(rows, self.dtype if dtype is None else dtype)


class BasicRNNCell(RNNCell):
    """A fully connected cell: ``output = state = activation([inputs, state] @ kernel + bias)``.

    Args:
        num_units: the size of the state.
        activation: a function, or its name in ``nn``; tanh by default.

    >>> from dualflow.compat import v1
    >>> cell = v1.nn.rnn_cell.BasicRNNCell(3)
    >>> outputs, state = cell(v1.ones([2, 4]), cell.zero_state(2, v1.float32))
    >>> outputs.shape, [v.name for v in cell.variables]
    ((2, 3), ['basic_rnn_cell/kernel:0', 'basic_rnn_cell/bias:0'])
    """

    def __init__(
        self,
        num_units: int,
        activation: Activation | str | None = None,
        reuse: bool | Reuse | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._units = int(num_units)
        self._activation = named_activation(activation) or tanh

    state_size = output_size = property(lambda self: self._units)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Create the kernel and the bias."""
        self._kernel = self.add_weight("kernel", [_width(input_shape) + self._units, self._units])
        self._bias = self.add_weight("bias", [self._units], initializer=Zeros())
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:
        """The outputs, which are the new state too."""
        output = self._activation(matmul(concat([inputs, state], 1), self._kernel) + self._bias)
        return output, output


class GRUCell(RNNCell):
    """A gated recurrent unit (Cho et al. 2014), whose reset gate is applied before the product.

    Args:
        num_units: the size of the state.
        activation: of the candidate, tanh by default.
        kernel_initializer, bias_initializer: by default the scope's; of the gates' bias ones.

    >>> from dualflow.compat import v1
    >>> cell = v1.nn.rnn_cell.GRUCell(3)
    >>> outputs, state = cell(v1.ones([2, 4]), cell.zero_state(2, v1.float32))
    >>> [(v.name, tuple(v.shape)) for v in cell.variables][:2]
    [('gru_cell/gates/kernel:0', (7, 6)), ('gru_cell/gates/bias:0', (6,))]
    """

    def __init__(
        self,
        num_units: int,
        activation: Activation | str | None = None,
        reuse: bool | Reuse | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._units = int(num_units)
        self._activation = named_activation(activation) or tanh
        self._initializers = kernel_initializer, bias_initializer

    state_size = output_size = property(lambda self: self._units)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Create the kernels and biases of the gates and of the candidate."""
        rows, (kernel, bias) = _width(input_shape) + self._units, self._initializers
        self._gates = (
            self.add_weight("gates/kernel", [rows, 2 * self._units], initializer=kernel),
            self.add_weight("gates/bias", [2 * self._units], initializer=Ones() if bias is None else bias),
        )
        self._candidate = (
            self.add_weight("candidate/kernel", [rows, self._units], initializer=kernel),
            self.add_weight("candidate/bias", [self._units], initializer=Zeros() if bias is None else bias),
        )
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:
        """The outputs, which are the new state too."""
        gates = sigmoid(matmul(concat([inputs, state], 1), self._gates[0]) + self._gates[1])
        reset, update = split(gates, 2, 1)
        kernel, bias = self._candidate
        candidate = self._activation(matmul(concat([inputs, reset * state], 1), kernel) + bias)
        output = update * state + (1 - update) * candidate
        return output, output


class LSTMCell(RNNCell):
    """A long short-term memory (Hochreiter and Schmidhuber 1997), with optional peepholes and projection.

    Args:
        num_units: the size of the memory.
        use_peepholes: whether gates read the memory (Sak et al. 2014).
        cell_clip: the bound of the memory's elements; none by default.
        initializer: of the kernels, by default the scope's.
        num_proj: the size to which the outputs are projected; none by default.
        proj_clip: the bound of the projected outputs.
        forget_bias: added to the forget gate.
        state_is_tuple: whether the state is an :class:`LSTMStateTuple`, rather than one tensor.
        activation: tanh by default.

    ``num_unit_shards`` and ``num_proj_shards`` are TensorFlow's, and ignored.

    >>> from dualflow.compat import v1
    >>> cell = v1.nn.rnn_cell.LSTMCell(3)
    >>> outputs, state = cell(v1.ones([2, 4]), cell.zero_state(2, v1.float32))
    >>> outputs.shape, state.c.shape, [v.name for v in cell.variables]
    ((2, 3), (2, 3), ['lstm_cell/kernel:0', 'lstm_cell/bias:0'])
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: object = None,
        num_proj_shards: object = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation | str | None = None,
        reuse: bool | Reuse | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._units = int(num_units)
        self._peepholes = use_peepholes
        self._clips = cell_clip, proj_clip
        self._initializer = initializer
        self._projected = num_proj
        self._forget_bias = forget_bias
        self._is_tuple = state_is_tuple
        self._activation = named_activation(activation) or tanh
        self._diagonals: list[Any] = []
        self._projection: Any = None

    @property
    def output_size(self) -> int:
        """The size of the outputs."""
        return self._units if self._projected is None else self._projected

    @property
    def state_size(self) -> Any:
        """The sizes of the memory and the outputs."""
        sizes = LSTMStateTuple(self._units, self.output_size)
        return sizes if self._is_tuple else sum(sizes)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Create the kernel, the bias, and the weights of peepholes and projection."""
        rows = _width(input_shape) + self.output_size
        self._kernel = self.add_weight("kernel", [rows, 4 * self._units], initializer=self._initializer)
        self._bias = self.add_weight("bias", [4 * self._units], initializer=Zeros())
        if self._peepholes:
            self._diagonals = [
                self.add_weight(f"w_{gate}_diag", [self._units], initializer=self._initializer)
                for gate in "fio"
            ]
        if self._projected is not None:
            shape_of_projection = [self._units, self._projected]
            self._projection = self.add_weight(
                "projection/kernel", shape_of_projection, initializer=self._initializer
            )
        super().build(input_shape)

    def call(self, inputs: Any, state: Any) -> Any:
        """The outputs, and the new state."""
        c, h = state if self._is_tuple else split(state, [self._units, self.output_size], 1)
        gates = matmul(concat([inputs, h], 1), self._kernel) + self._bias
        i, candidate, f, o = split(gates, 4, 1)
        if self._peepholes:
            f, i = f + self._diagonals[0] * c, i + self._diagonals[1] * c
        c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * self._activation(candidate)
        c = _clipped(c, self._clips[0])
        if self._peepholes:
            o = o + self._diagonals[2] * c
        h = sigmoid(o) * self._activation(c)
        if self._projection is not None:
            h = _clipped(matmul(h, self._projection), self._clips[1])
        return h, (LSTMStateTuple(c, h) if self._is_tuple else concat([c, h], 1))


class BasicLSTMCell(LSTMCell):
    """An LSTM cell without peepholes, clipping and projection.

    Args:
        num_units: the size of the state.
        forget_bias: added to the forget gate.
        state_is_tuple: whether the state is an :class:`LSTMStateTuple`, rather than one tensor.
        activation: tanh by default.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Activation | str | None = None,
        reuse: bool | Reuse | None = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            num_units,
            forget_bias=forget_bias,
            state_is_tuple=state_is_tuple,
            activation=activation,
            reuse=reuse,
            name=name,
            dtype=dtype,
        )


class MultiRNNCell(RNNCell):
    """Cells one above the other: the outputs of each are the inputs of the next.

    Args:
        cells: the cells, the lowest first.
        state_is_tuple: must be True: the state is a tuple of the cells' states.

    Raises:
        InvalidArgumentError: there are no cells, or ``state_is_tuple`` is false.
    """

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        if not cells or not state_is_tuple:
            raise InvalidArgumentError(
                "MultiRNNCell takes at least one cell, and its state is a tuple of the cells' states."
            )
        super().__init__()
        self._cells = list(cells)

    @property
    def state_size(self) -> tuple[Any, ...]:
        """The sizes of the cells' states."""
        return tuple([cell.state_size for cell in self._cells])

    @property
    def output_size(self) -> Any:
        """The size of the last cell's outputs."""
        return self._cells[-1].output_size

    def call(self, inputs: Any, state: Any) -> Any:
        """The outputs of the last cell, and the new states of all."""
        new_states = []
        with self._variable_scope():
            for i, (cell, cell_state) in enumerate(zip(self._cells, state, strict=True)):
                with variable_scope(f"cell_{i}"):
                    inputs, new_state = cell(inputs, cell_state)
                new_states.append(new_state)
        return inputs, tuple(new_states)


class DropoutWrapper(RNNCell):
    """A cell with dropout of its inputs, its outputs and its state; the memory of an LSTM is kept.

    Args:
        cell: the cell.
        input_keep_prob, output_keep_prob, state_keep_prob: the probabilities to keep an element.
        seed: of the random numbers.
    """

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        seed: int | None = None,
    ) -> None:
        super().__init__(dtype=float32)
        self._cell = cell
        self._keep = input_keep_prob, output_keep_prob, state_keep_prob
        self._seed = seed

    state_size = property(lambda self: self._cell.state_size)
    output_size = property(lambda self: self._cell.output_size)

    @entry
    def __call__(self, inputs: TensorLike, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """The outputs, and the new state."""
        outputs, new_state = self._cell(self._dropped(inputs, 0), state, scope, **kwargs)
        if isinstance(new_state, LSTMStateTuple):
            new_state = LSTMStateTuple(new_state.c, self._dropped(new_state.h, 2))
        else:
            new_state = tree.map_structure(lambda x: self._dropped(x, 2), new_state)
        return self._dropped(outputs, 1), new_state

    def _dropped(self, x: Any, which: int) -> Any:
        keep = self._keep[which]
        if isinstance(keep, int | float) and keep >= 1:
            return x
        # ops of a graph with equal seeds would drop the same elements
        return dropout(x, 1 - keep, seed=None if self._seed is None else self._seed + which)


class ResidualWrapper(RNNCell):
    """A cell whose inputs are added to its outputs.

    Args:
        cell: the cell, whose inputs and outputs have one size.
    """

    def __init__(self, cell: RNNCell) -> None:
        super().__init__(dtype=float32)
        self._cell = cell

    state_size = property(lambda self: self._cell.state_size)
    output_size = property(lambda self: self._cell.output_size)

    @entry
    def __call__(self, inputs: TensorLike, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """The outputs, and the new state."""
        outputs, new_state = self._cell(inputs, state, scope, **kwargs)
        return inputs + outputs, new_state


def _width(input_shape: Any) -> int:
    width = input_shape[-1]
    if width is None:
        raise InvalidArgumentError(
            "The last dimension of the inputs to a recurrent cell should be defined. Found None: give the "
            "placeholder its last size."
        )
    return int(width)


def _clipped(x: Any, bound: float | None) -> Any:
    return x if bound is None else clip_by_value(x, -bound, bound)
