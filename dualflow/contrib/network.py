"""``tfe.Network``: models of layers, as in TensorFlow 1's eager guides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dualflow.compat.v1.layers.base import Layer
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.eager.module import Module

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike


class Network(Layer):
    """The base class of models whose layers are tracked explicitly; :meth:`call` computes the outputs.

    Args:
        name: the name of the class in snake_case by default.

    >>> import dualflow.eager as tfe
    >>> from dualflow.compat import v1
    >>> class Model(tfe.Network):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = self.track_layer(v1.layers.Dense(4, activation="relu"))
    ...         self.out = self.track_layer(v1.layers.Dense(2))
    ...     def call(self, x):
    ...         return self.out(self.hidden(x))
    >>> model = Model()
    >>> model(v1.ones([3, 5])).shape, len(model.variables)
    ((3, 2), 4)
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name=name)
        self._layers: list[Any] = []

    @entry
    def track_layer(self, layer: object) -> Any:
        """Add the variables of ``layer``, a layer, a network or another module, to those of the network.

        Returns:
            ``layer``.

        Raises:
            DTypeError: ``layer`` is no module.
            InvalidArgumentError: a layer of that name is tracked already.
        """
        if not isinstance(layer, Module):
            raise DTypeError(
                "Network.track_layer() takes a layer, a network or a df.Module, not a "
                f"{type(layer).__name__}."
            )
        name = layer._requested_name if isinstance(layer, Layer) else None
        if name is not None and any(name == other.name for other in self._layers):
            raise InvalidArgumentError(
                f"Attempted to add two layers with the name '{name}' to the same Network; choose another "
                "name for one of them."
            )
        self._layers.append(layer)
        return layer

    @property
    def layers(self) -> list[Any]:
        """The layers, in the order in which they were tracked."""
        return list(self._layers)

    @entry
    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """A tracked layer, by its name or by its index.

        Raises:
            InvalidArgumentError: neither or both are passed, or there is no such layer.
        """
        if (name is None) == (index is None):
            raise InvalidArgumentError("get_layer takes either the name of a layer or its index.")
        if index is not None:
            if not -len(self._layers) <= index < len(self._layers):
                raise InvalidArgumentError(
                    f"The index {index} is out of range: the network has {len(self._layers)} layers."
                )
            return self._layers[index]
        for layer in self._layers:
            if layer.name == name:
                return layer
        raise InvalidArgumentError(
            f"No such layer: {name!r}; the layers are {[layer.name for layer in self._layers]}."
        )

    @property
    def weights(self) -> list[Any]:
        """The variables of the layers, in the order in which these were tracked, then all others."""
        of_layers = [v for layer in self._layers for v in getattr(layer, "weights", layer.variables)]
        return list({id(v): v for v in [*of_layers, *super().weights]}.values())


class Sequential(Network):
    """A network that composes its layers in order.

    Args:
        layers_funcs: layers, or functions of a tensor.
        name: by default ``sequential``.

    >>> import dualflow.eager as tfe
    >>> from dualflow.compat import v1
    >>> tfe.Sequential([v1.layers.Dense(4), v1.nn.relu, v1.layers.Dense(2)])(v1.ones([3, 5])).shape
    (3, 2)
    """

    def __init__(self, layers_funcs: Sequence[Callable[..., Any]] = (), name: str | None = None) -> None:
        super().__init__(name)
        self._steps: list[Callable[..., Any]] = []
        for layer_func in layers_funcs or ():
            self.add(layer_func)

    @entry
    def add(self, layer_func: Callable[..., Any]) -> None:
        """Append ``layer_func``, a layer or a function of a tensor.

        Raises:
            DTypeError: it is not callable.
        """
        if isinstance(layer_func, Module):
            self.track_layer(layer_func)
        elif not callable(layer_func):
            raise DTypeError(f"Sequential.add() takes a layer or a function, not {layer_func!r}.")
        self._steps.append(layer_func)

    def call(self, inputs: TensorLike, *args: Any, **kwargs: Any) -> Any:
        """The composition of the steps, applied to ``inputs``; other arguments are for the first step."""
        outputs = inputs
        for i, step in enumerate(self._steps):
            outputs = step(outputs, *args, **kwargs) if i == 0 else step(outputs)
        return outputs
