"""The base class of ``v1.layers``: creates and names a layer's variables, and collects its losses."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from dualflow import nn
from dualflow.compat.v1.collection import GraphKeys
from dualflow.compat.v1.scopes import (
    REGULARIZATION_LOSSES,
    Reuse,
    VariableScope,
    get_variable,
    variable_scope,
)
from dualflow.core import tree
from dualflow.core.dispatch import TENSORS
from dualflow.core.dtypes import as_dtype, float32
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.records import NamedTuple
from dualflow.core.tracebacks import entry
from dualflow.eager.module import Module
from dualflow.graph_mode import name_scope, recording_graph
from dualflow.ops.conversion import cast
from dualflow.ops.creation import convert_to_tensor

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike, ShapeLike, TensorLike
    from dualflow.ops.tensor import Tensor


class WeightOptions(NamedTuple):
    """The options of a layer's variable, by the names of the arguments of :meth:`Layer.add_weight`."""

    initializer: Any
    regularizer: Callable[[Any], Any] | None
    constraint: Callable[..., Any] | None


class Layer(Module):
    """The base of layers: ``build`` creates variables for the first inputs, ``call`` computes the outputs.

    The variables are in a variable scope of the layer's name, and are shared by all calls.

    Args:
        trainable: whether optimizers update the layer's variables by default.
        name: of the scope, by default the class's in snake_case, with a number if it is taken.
        dtype: of the variables, float32 by default.
        activity_regularizer: a function of the outputs whose result is added to :attr:`losses`.
        _reuse: whether variables are reused, as ``reuse`` of :func:`variable_scope`.
        _scope: the variable scope in place of one of the layer's name; or only the name scope of its ops.

    >>> from dualflow.compat import v1
    >>> class Scale(v1.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.by = self.add_variable("by", [input_shape[-1]], initializer=v1.ones_initializer())
    ...     def call(self, inputs):
    ...         return inputs * self.by
    >>> layer = Scale()
    >>> layer(v1.constant([[2.0, 3.0]])).numpy().tolist(), [v.name for v in layer.variables]
    ([[2.0, 3.0]], ['scale/by:0'])
    """

    min_ndim: ClassVar[int] = 0
    """The fewest axes that inputs may have."""

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike | None = None,
        activity_regularizer: Callable[[Any], Any] | None = None,
        _reuse: bool | Reuse | None = None,
        _scope: VariableScope | str | None = None,
    ) -> None:
        super().__init__(_snake_case(type(self).__name__) if name is None else name)
        self.trainable = trainable
        self.dtype = float32 if dtype is None else as_dtype(dtype)
        self.activity_regularizer = activity_regularizer
        self.built = False
        self._weights: dict[str, Any] = {}
        self._loss_functions: list[Callable[[], Any]] = []
        self._losses: list[Any] = []
        self._updates: list[Any] = []
        self._requested_name = name
        self._reuse = _reuse
        self._scope: VariableScope | None = None
        self._op_scope: str | None = None
        if isinstance(_scope, str):
            self._op_scope = _scope
        elif _scope is not None:
            self._scope, self._op_scope = _scope, _scope.original_name_scope

    # For subclasses

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Create the variables for inputs of ``input_shape``: for nested inputs, a structure of shapes."""
        self.built = True

    def call(self, inputs: Tensor, *args: Any, **kwargs: Any) -> Any:
        """The outputs for ``inputs``; by default the inputs."""
        return inputs

    def add_weight(
        self,
        name: str,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        initializer: TensorLike | Callable[..., Any] | None = None,
        regularizer: Callable[[Any], Any] | None = None,
        trainable: bool | None = None,
        constraint: Callable[..., Any] | None = None,
        **ignored: Any,
    ) -> Any:
        """A variable of the layer.

        Args:
            name: the name in the layer's scope.
            shape: of the variable, a scalar by default.
            dtype: the layer's by default.
            initializer: as for :func:`get_variable`.
            regularizer: a function of the variable whose result is added to :attr:`losses`.
            trainable: whether optimizers update it by default, if the layer is trainable.
            constraint: a function that optimizers apply to the value after each update.
            ignored: ``use_resource``, ``synchronization``, ``aggregation`` and ``partitioner``.

        Raises:
            DTypeError: another argument.
        """
        unexpected = ignored.keys() - {"use_resource", "synchronization", "aggregation", "partitioner"}
        if unexpected:
            raise DTypeError(f"add_weight() got an unexpected keyword argument {min(unexpected)!r}.")
        graph = recording_graph()
        before = 0 if graph is None else len(graph.get_collection(REGULARIZATION_LOSSES))
        with self._variable_scope():
            variable = get_variable(
                name,
                () if shape is None and (initializer is None or callable(initializer)) else shape,
                self.dtype if dtype is None else dtype,
                initializer,
                regularizer,
                self.trainable and trainable is not False,
                constraint=constraint,
            )
        self._weights[name] = variable
        if graph is not None:
            for penalty in graph.get_collection(REGULARIZATION_LOSSES)[before:]:
                self._loss_functions.append(functools.partial(_identity, penalty))
        elif regularizer is not None:
            self._loss_functions.append(functools.partial(regularizer, variable))
        return variable

    add_variable = add_weight

    def _weight(self, name: str, shape: ShapeLike, options: WeightOptions) -> Any:
        """A trainable variable of the layer."""
        return self.add_weight(
            name,
            shape,
            initializer=options.initializer,
            regularizer=options.regularizer,
            constraint=options.constraint,
        )

    def add_loss(self, losses: object, inputs: object = None) -> None:
        """Add a loss, or several, to :attr:`losses`; in eager mode the next call removes it.

        Args:
            losses: a tensor, a function without arguments that returns one, or a list of them.
            inputs: TensorFlow's, and ignored.
        """
        graph = recording_graph()
        for loss in losses if isinstance(losses, list | tuple) else [losses]:
            if graph is not None:
                tensor = loss() if callable(loss) else loss
                graph.add_to_collection(REGULARIZATION_LOSSES, tensor)
                self._loss_functions.append(functools.partial(_identity, tensor))
            elif callable(loss):
                self._loss_functions.append(loss)
            else:
                self._losses.append(loss)

    def add_update(self, updates: object, inputs: object = None) -> None:
        """Add a graph's operation, or several, to :attr:`updates` and ``GraphKeys.UPDATE_OPS``.

        Eagerly the update has run already, and is not stored.
        """
        graph = recording_graph()
        if graph is not None:
            for update in updates if isinstance(updates, list | tuple) else [updates]:
                graph.add_to_collection(GraphKeys.UPDATE_OPS, update)
                self._updates.append(update)

    # For users

    @property
    def weights(self) -> list[Any]:
        """The variables of the layer in the order of their creation, then those of its submodules."""
        inner = [m for m in self.submodules if isinstance(m, Layer)]
        weights = [
            *self._weights.values(),
            *(v for m in inner for v in m._weights.values()),
            *super().variables,
        ]
        return list({id(v): v for v in weights}.values())

    @property
    def variables(self) -> tuple[Any, ...]:
        """:attr:`weights` as a tuple."""
        return tuple(self.weights)

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables among :attr:`weights` that optimizers update by default."""
        return [v for v in self.weights if v.trainable]

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables among :attr:`weights` that optimizers don't update by default."""
        return [v for v in self.weights if not v.trainable]

    @property
    def losses(self) -> list[Any]:
        """The losses of the regularizers of this layer and of its sublayers, as tensors."""
        layers = [self, *(m for m in self.submodules if isinstance(m, Layer))]
        return [loss for layer in layers for loss in (*(p() for p in layer._loss_functions), *layer._losses)]

    @property
    def updates(self) -> list[Any]:
        """The operations of a graph that each training step should run."""
        layers = [self, *(m for m in self.submodules if isinstance(m, Layer))]
        return [update for layer in layers for update in layer._updates]

    @property
    def scope_name(self) -> str:
        """The name of the variable scope.

        Raises:
            InvalidArgumentError: before the first call.
        """
        if self._scope is None:
            raise InvalidArgumentError(f"The layer {self.name!r} has no scope before its first call.")
        return self._scope.name

    def count_params(self) -> int:
        """The number of elements of the layer's variables.

        Raises:
            InvalidArgumentError: before the first call.
        """
        if not self.built:
            raise InvalidArgumentError(
                f"The layer {self.name!r} has no variables before its first call; call it, or its build()."
            )
        return sum(int(np.prod(v.shape)) for v in self.weights)

    @entry
    def __call__(self, inputs: TensorLike, *args: Any, **kwargs: Any) -> Any:
        """The layer's outputs for ``inputs``, a tensor or a structure of tensors.

        The other arguments are those of the layer's ``call``.

        Raises:
            InvalidArgumentError: the layer does not support the shape of the inputs.
        """
        tensors = _as_tensors(inputs)
        self._require_axes(tensors)
        if not self.built:
            self._build_for(tensors)
        self._losses.clear()
        with name_scope(self.name if self._op_scope is None else self._op_scope):
            outputs = self.call(tensors, *args, **kwargs)
        if self.activity_regularizer is not None:
            self.add_loss([self.activity_regularizer(x) for x in tree.leaves(outputs)])
        return outputs

    apply = __call__

    def _build_for(self, inputs: Any) -> None:
        shapes = tree.map_structure(lambda x: x.shape, inputs)
        try:
            with self._variable_scope():
                self.build(shapes)
        except Exception:
            self._weights.clear()
            self._loss_functions.clear()
            raise
        self.built = True

    def _variable_scope(self) -> Any:
        """A context in the layer's variable scope, whose name is chosen by the first call."""
        if self._scope is None:
            new_scope = variable_scope(
                self._requested_name, self._name, reuse=self._reuse, auxiliary_name_scope=False
            )
            with new_scope as self._scope:
                self._name = self._scope.name.rpartition("/")[2]
        return variable_scope(self._scope, reuse=self._reuse, auxiliary_name_scope=False)

    def _require_axes(self, inputs: Any) -> None:
        if self.min_ndim and len(inputs.shape) < self.min_ndim:
            self._reject_rank(f"min_ndim={self.min_ndim}", inputs.shape)

    def _reject_rank(self, expected: str, shape: Any) -> NoReturn:
        raise InvalidArgumentError(
            f"Input 0 of layer {self.name} is incompatible with the layer: expected {expected}, found "
            f"ndim={len(shape)}. Full shape received: {shape}"
        )

    def _cast_inputs(self, inputs: Any) -> Any:
        return inputs if inputs.dtype is self.dtype else cast(inputs, self.dtype)


def _snake_case(name: str) -> str:
    """``name`` in snake case, where a digit and the next letter are one: ``conv2d_transpose``."""
    return re.sub("([a-z])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)).lower()


def _identity(value: Any) -> Any:
    return value


def _as_tensors(inputs: Any) -> Any:
    """Inputs as tensors: a structure with tensors or arrays as a structure, anything else as one tensor."""
    if isinstance(inputs, TENSORS):
        return inputs
    if isinstance(inputs, list | tuple | dict) and any(
        isinstance(x, (*TENSORS, np.ndarray)) for x in tree.leaves(inputs)
    ):
        return tree.map_structure(convert_to_tensor, inputs)
    return convert_to_tensor(inputs)


def named_activation(activation: Callable[[Any], Any] | str | None) -> Callable[[Any], Any] | None:
    """The activation function, which may be a name in ``nn``; None for "linear" and None."""
    if not isinstance(activation, str):
        return activation
    if activation == "linear":
        return None
    if activation not in dir(nn):
        raise InvalidArgumentError(
            f"{activation!r} names no function of df.nn; give a name such as 'relu', or a function."
        )
    function: Callable[[Any], Any] = getattr(nn, activation)
    return function


def ints_per_axis(value: Any, axes: int, what: str) -> tuple[int, ...]:
    """An integer for each axis, from a sequence or from one integer for all axes.

    Raises:
        InvalidArgumentError: another number of integers, or one below 1.
    """
    integers = tuple(value) if isinstance(value, Sequence) else (value,) * axes
    if len(integers) != axes or not all(isinstance(n, int | np.integer) and n > 0 for n in integers):
        raise InvalidArgumentError(f"The `{what}` argument must be {axes} positive integers, not {value!r}.")
    return tuple(map(int, integers))


def data_format_of(axes: int, channels_first: bool) -> str:
    """``data_format`` as functions of ``nn`` require it, such as "NHWC"."""
    spatial = "DHW"[-axes:]
    return f"NC{spatial}" if channels_first else f"N{spatial}C"


def is_channels_first(data_format: str) -> bool:
    """Whether the axis of channels comes right after the batch.

    Raises:
        InvalidArgumentError: ``data_format`` is neither "channels_last" nor "channels_first".
    """
    word = data_format.lower() if isinstance(data_format, str) else data_format
    if word not in ("channels_first", "channels_last"):
        raise InvalidArgumentError(
            'The `data_format` argument must be one of "channels_first", "channels_last", not '
            f"{data_format!r}."
        )
    return word == "channels_first"


def checked_padding(padding: str) -> str:
    """The padding in upper case, as functions of ``nn`` require it.

    Raises:
        InvalidArgumentError: ``padding`` is neither "valid" nor "same".
    """
    word = padding.lower() if isinstance(padding, str) else padding
    if word not in ("valid", "same"):
        raise InvalidArgumentError(f'The `padding` argument must be "valid" or "same", not {padding!r}.')
    return str(word).upper()


def as_function(layer: type[Layer], name: str, example: str) -> Callable[..., Any]:
    """A function that creates a layer and calls it: its arguments are the inputs, then those of the class.

    Args:
        layer: the class.
        name: of the function.
        example: a doctest for its docstring.
    """
    parameters = list(inspect.signature(layer.__init__).parameters.values())[1:]
    parameters = [
        p
        for p in parameters
        if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in ("dtype", "_reuse", "_scope")
    ]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    inputs = inspect.Parameter("inputs", kind, annotation=Any)
    last = inspect.Parameter("reuse", kind, default=None, annotation="bool | Reuse | None")
    signature = inspect.Signature([inputs, *parameters, last], return_annotation=Any)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise DTypeError(f"{name}() {error}") from None
        x = convert_to_tensor(arguments.pop("inputs"))
        reuse = arguments.pop("reuse", None)
        return layer(**arguments, dtype=x.dtype if x.dtype.is_inexact else float32, _reuse=reuse)(x)

    call.__name__ = call.__qualname__ = name
    call.__module__ = layer.__module__
    call.__signature__ = signature  # type: ignore[attr-defined]  # functions take any attribute
    call.__doc__ = f"""The outputs of a new :class:`{layer.__name__}` layer for ``inputs``.

    The other arguments are those of the class. In a scope that reuses variables, or with ``reuse``, the
    layer uses the variables of the layer of that name.

    {example}
    """
    return entry(call)
