"""``model.export`` and ``keras.export.ExportArchive``: models as saved models of dualflow, and as ONNX."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from keras.src import layers, models, tree
from keras.src.export.export_utils import get_input_signature
from keras.src.utils import io_utils

import dualflow as df
from dualflow.function.calls.exports import write_onnx


class SavedModelExportArchive:
    """Collects functions of models, and writes them as a saved model, which ``df.saved_model.load`` reads.

    As with TensorFlow's backend, each endpoint is a function of the loaded object and a signature; the first
    one is also the signature "serving_default".
    """

    def __init__(self) -> None:
        self._root: Any = df.Module(name="exported")
        self._endpoints: dict[str, Any] = {}
        self._variables: dict[int, Any] = {}

    @property
    def variables(self) -> list[Any]:
        """The variables of all tracked layers."""
        return list(self._variables.values())

    @property
    def trainable_variables(self) -> list[Any]:
        """The trainable ones among :attr:`variables`."""
        return [v for v in self.variables if v.trainable]

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The non-trainable ones among :attr:`variables`."""
        return [v for v in self.variables if not v.trainable]

    def track(self, resource: Any) -> None:
        """Save the variables of a layer or model.

        Raises:
            ValueError: it is not built yet, or no layer.
        """
        if not isinstance(resource, layers.Layer):
            raise ValueError(f"Expected a Keras `Layer` or `Model`, received {resource!r}.")
        if not resource.built:
            raise ValueError("The layer provided has not yet been built. It must be built before export.")
        self._variables.update({id(v): v for v in resource.variables})

    def add_endpoint(self, name: str, fn: Any, input_signature: Any = None, **kwargs: Any) -> Any:
        """Add a function under a name.

        Args:
            name: the name in the loaded object, and that of the signature.
            fn: a function; without an ``input_signature`` one of ``df.function`` that has one trace.
            input_signature: for each argument a structure of ``keras.InputSpec``, or of tensors or specs.
            **kwargs: none.

        Returns:
            The traced function.

        Raises:
            ValueError: the name is used already, or the function has no signature.
        """
        if name in self._endpoints:
            raise ValueError(f"Endpoint name '{name}' is already taken.")
        if kwargs:
            raise ValueError(f"{sorted(kwargs)} are options of other backends; omit them.")
        if input_signature is None:
            if not hasattr(fn, "get_concrete_function"):
                raise ValueError(
                    "If the `fn` argument provided is not a `df.function`, you must provide an "
                    "`input_signature` argument to specify the shape and dtype of the function arguments."
                )
            traced = fn
        else:
            traced = _traced_function(fn, input_signature, name)
        self._endpoints[name] = traced
        return traced

    def track_and_add_endpoint(self, name: str, resource: Any, input_signature: Any, **kwargs: Any) -> Any:
        """Save the variables of a layer, and add its call under a name."""
        self.track(resource)
        return self.add_endpoint(name, resource.__call__, input_signature, **kwargs)

    def add_variable_collection(self, name: str, variables: Sequence[Any]) -> None:
        """Save a list of variables as an attribute of the loaded object."""
        setattr(self._root, name, list(variables))

    def write_out(self, filepath: str | os.PathLike[str], options: Any = None, verbose: bool = True) -> None:
        """Write the saved model.

        Raises:
            ValueError: there is no endpoint.
        """
        if not self._endpoints:
            raise ValueError("No endpoints have been set yet. Call add_endpoint().")
        root = self._root
        root.all_variables = self.variables
        for name, function in self._endpoints.items():
            setattr(root, name, function)
        first = next(iter(self._endpoints.values()))
        df.saved_model.save(root, filepath, {"serving_default": first, **self._endpoints}, options)
        if verbose:
            names = ", ".join(self._endpoints)
            io_utils.print_msg(f"Saved model at '{filepath}'. Its endpoints are: {names}.")

    @staticmethod
    def export_onnx(
        model: Any,
        filepath: str | os.PathLike[str],
        verbose: bool | None = None,
        input_signature: Any = None,
        opset_version: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Write a model's call as ONNX: its weights are initializers, named by their paths.

        Args:
            model: a model that is built.
            filepath: the file, which is replaced.
            verbose: whether to print a message; None for True.
            input_signature: for each argument a structure of ``keras.InputSpec``, or of tensors or specs;
                None for that of the model.
            opset_version: None: the model has the version that its ops need.
            **kwargs: none.

        Raises:
            ValueError: the model is not built, or an option has no meaning for this backend.
        """
        if kwargs:
            raise ValueError(f"{sorted(kwargs)} are options of other backends; omit them.")
        if opset_version is not None:
            raise ValueError("opset_version follows from the model's ops with this backend; omit it.")
        signature = get_input_signature(model) if input_signature is None else input_signature
        traced = _traced_function(model.__call__, signature, model.name).get_concrete_function()
        names = {id(v.value): v.path for v in model.variables}
        path = os.fspath(filepath)
        write_onnx(traced.graph, traced.options, traced.structured_outputs, path, force=True, names=names)
        if verbose is not False:
            io_utils.print_msg(f"ONNX model at '{path}'.")


def default_signature(layer: Any) -> Any:
    """The call of a model as a traced function; None for layers and models without inputs yet."""
    if not isinstance(layer, models.Model) or not layer.built:
        return None
    try:
        signature = get_input_signature(layer)
    except ValueError:  # a model of a subclass that has been built without a call
        return None
    return _traced_function(layer.__call__, signature, layer.name)


def _traced_function(fn: Callable[..., Any], input_signature: Any, name: str) -> Any:
    """``fn`` as a traced function with an input signature."""
    specs = tree.map_structure(_spec, input_signature)

    def serve(*inputs: Any) -> Any:
        return fn(*inputs)

    traced = df.function(serve, input_signature=list(specs), autograph=False, name=name)
    traced.get_concrete_function()
    return traced


def _spec(value: Any) -> Any:
    """The spec of an ``InputSpec``, a Keras tensor or a tensor."""
    if value.shape is None or value.dtype is None:
        raise ValueError(f"{value!r} has no shape or no dtype, and an exported function needs both.")
    return df.TensorSpec(tuple(value.shape), value.dtype, getattr(value, "name", None))
