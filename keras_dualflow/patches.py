"""Replacements of functions and classes of Keras, applied after their modules are loaded.

The originals have a fixed list of backends, or import TensorFlow.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import Any, Final

import numpy as np

from dualflow.eager.replicas import INITIAL_VALUE, gathered_wholes
from dualflow.train.shared_files import WRITE_ONCE
from keras_dualflow.all_or_none import loading_all_or_none
from keras_dualflow.branches import structure_error
from keras_dualflow.choice import NAME


@dataclass(frozen=True)
class Patch:
    """A change of a loaded module.

    Attributes:
        names: the names of the module, and attributes of its classes, that it replaces or requires.
        apply: a function that changes the module's namespace.
    """

    names: tuple[str, ...]
    apply: Callable[[dict[str, Any]], None]

    def missing_from(self, module: ModuleType) -> list[str]:
        """The names that the patch changes and the module lacks."""
        return [name for name in self.names if not _has(module, name)]


def patch(module: ModuleType) -> None:
    """Apply the patch of a module of Keras.

    Raises:
        ImportError: the module lacks a name that is patched.
    """
    change = PATCHES[module.__name__]
    missing = change.missing_from(module)
    if missing:
        raise structure_error(
            module.__name__, f"the names {', '.join(change.names)}", f"has no {', '.join(missing)}"
        )
    change.apply(vars(module))


def _has(module: ModuleType, name: str) -> bool:
    try:
        attrgetter(name)(module)
    except AttributeError:
        return False
    return True


def _keep_float64(names: dict[str, Any]) -> None:
    """Keep float64 for results of float64, as with TensorFlow."""
    names["BIT64_TO_BIT32_DTYPE"]["float64"] = "float64"


def _write_with_dualflow(names: dict[str, Any]) -> None:
    """Let the TensorBoard callback write with ``df.summary``, without TensorFlow."""
    names["TensorBoard"].summary = property(lambda callback: import_module("dualflow.summary"))
    names["keras_model_summary"] = model_summary


def model_summary(name: str, data: Any, step: Any = None) -> bool:
    """Write a model's configuration, as JSON, as a text of the current writer of ``df.summary``."""
    written: bool = import_module("dualflow.summary").text(name, data.to_json(), step=step)
    return written


def _change_saving(names: dict[str, Any]) -> None:
    """Let loads be complete or without effect, and the workers of a job write a file once."""
    names["load_weights"] = loading_all_or_none(names["load_weights"])
    for name in ("save_model", "save_weights"):
        names[name] = _write_once(names[name])


def _write_once(save: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(save)
    def once(model: Any, filepath: Any, *args: Any, **kwargs: Any) -> None:
        optimizer = getattr(model, "optimizer", None)
        with gathered_wholes([v.value for v in getattr(optimizer, "variables", ())]):
            WRITE_ONCE.value(str(filepath), lambda: save(model, filepath, *args, **kwargs))

    return once


def _share_backup(names: dict[str, Any]) -> None:
    """Let the workers of a job create the folder of a backup, and delete it once all have written it."""
    end, save = names["BackupAndRestore"].on_train_end, names["BackupAndRestore"]._save_model

    @functools.wraps(save)
    def save_model(self: Any) -> None:
        os.makedirs(self.backup_dir, exist_ok=True)  # Keras fails if another worker does so meanwhile
        save(self)

    @functools.wraps(end)
    def on_train_end(self: Any, logs: Any = None) -> None:
        WRITE_ONCE.value(str(self.backup_dir), lambda: end(self, logs))

    names["BackupAndRestore"].on_train_end = on_train_end
    names["BackupAndRestore"]._save_model = save_model


def _add_reset_states(names: dict[str, Any]) -> None:
    """Give metrics the method ``reset_states``, the name before Keras 3, which TensorFlow's guides call."""
    names["Metric"].reset_states = names["Metric"].reset_state


def _add_dynamic_backend(names: dict[str, Any]) -> None:
    """Make ``DynamicBackend`` accept this backend's name; a trace of dualflow is no graph of TensorFlow."""
    dynamic_backend, in_tf_graph = names["DynamicBackend"], names["in_tf_graph"]
    current = import_module("keras.src.backend")
    other_attribute, choose_other = dynamic_backend.__getattr__, dynamic_backend.set_backend

    def attribute(self: Any, name: str) -> Any:
        return getattr(current, name) if self.name == NAME else other_attribute(self, name)

    def choose(self: Any, backend: str) -> None:
        if backend == NAME:
            dynamic_backend.__init__(self, backend)
        else:
            choose_other(self, backend)

    dynamic_backend.__getattr__, dynamic_backend.set_backend = attribute, choose
    names["in_tf_graph"] = lambda: not _tensorflow_is_dualflow() and in_tf_graph()


def _hide_stand_in(names: dict[str, Any]) -> None:
    """Make Keras's ``tensorflow`` unavailable if it is dualflow; its names remain.

    Keras reads ``available`` before it tests for TensorFlow's types.
    """

    lazy_module: Any = names["LazyModule"]

    class TensorFlow(lazy_module):  # type: ignore[misc]  # Keras has no types
        @property
        def available(self) -> bool:
            return bool(super().available) and not _tensorflow_is_dualflow()

    names["tensorflow"] = TensorFlow("tensorflow")


def _accept_datasets(names: dict[str, Any]) -> None:
    """Let ``split_dataset`` take ``df.data.Dataset``, batched or not, as it takes TensorFlow's datasets."""
    is_tf_dataset, is_batched, get_batch_size = (
        names[name] for name in ("is_tf_dataset", "is_batched", "get_batch_size")
    )

    def is_dataset(dataset: Any) -> bool:
        return isinstance(dataset, import_module("dualflow.data.dataset").Dataset) or is_tf_dataset(dataset)

    def batched(dataset: Any) -> bool:
        batching = import_module("dualflow.data.batching")
        stage = getattr(dataset, "stage", None)
        return isinstance(stage, batching.BatchStage | batching.PaddedBatchStage)

    def batch_size(dataset: Any) -> int | None:
        size: int | None = dataset.stage.size if batched(dataset) else get_batch_size(dataset)
        return size

    names["is_tf_dataset"], names["get_batch_size"] = is_dataset, batch_size
    names["is_batched"] = lambda dataset: batched(dataset) or is_batched(dataset)


def _seed_dualflow(names: dict[str, Any]) -> None:
    """Make ``keras.utils.set_random_seed`` seed dualflow too."""
    seed_others = names["set_random_seed"]

    @functools.wraps(seed_others)
    def set_random_seed(seed: int) -> None:
        seed_others(seed)
        import_module("dualflow.random").set_seed(seed)

    names["set_random_seed"] = set_random_seed


def _export_onnx(names: dict[str, Any]) -> None:
    """Make ``model.export(path, format="onnx")`` use the exporter that this backend's archives have."""
    archives = import_module("keras.src.export.saved_model").BackendSavedModelExportArchive
    names["export_onnx"] = archives.export_onnx


def _scale_losses(names: dict[str, Any]) -> None:
    """Scale losses by the replica's part of the batch, as Keras does on TensorFlow."""
    names["scale_loss_for_distribution"] = _replica_function("scaled_loss")
    names["unscale_loss_for_distribution"] = _replica_function("unscaled_loss")


def _replica_function(name: str) -> Callable[[Any], Any]:
    """A function of a loss, of :mod:`keras_dualflow.replicas`, which is loaded in a strategy's scope only."""

    def call(value: Any) -> Any:
        if INITIAL_VALUE.get() is None:
            return value
        return getattr(import_module("keras_dualflow.replicas"), name)(value)

    return call


def _sum_gradients(class_name: str) -> Callable[[dict[str, Any]], None]:
    """A patch of ``apply`` of an optimizer, which adds the gradients of all replicas first."""

    def patch_class(names: dict[str, Any]) -> None:
        apply = names[class_name].apply

        @functools.wraps(apply)
        def apply_in_replicas(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
            if INITIAL_VALUE.get() is None:
                return apply(self, grads, trainable_variables)
            replicas = import_module("keras_dualflow.replicas")
            return replicas.apply_to_sums(apply, self, grads, trainable_variables)

        names[class_name].apply = apply_in_replicas

    return patch_class


def _change_optimizers(names: dict[str, Any]) -> None:
    """Let optimizers add the gradients of all replicas, and divide their slots if the strategy does."""
    _sum_gradients("BaseOptimizer")(names)
    optimizer = names["BaseOptimizer"]
    add, clip, key = optimizer.add_variable_from_reference, optimizer._clip_gradients, optimizer._var_key
    average = optimizer._update_model_variables_moving_average
    overwrite = optimizer._overwrite_model_variables_with_average_value

    @functools.wraps(add)
    def add_variable_from_reference(
        self: Any, reference_variable: Any, name: Any = None, initializer: Any = "zeros"
    ) -> Any:
        if INITIAL_VALUE.get() is None:
            return add(self, reference_variable, name, initializer)
        replicas = import_module("keras_dualflow.replicas")
        return replicas.add_slot(add, self, reference_variable, name, initializer)

    @functools.wraps(clip)
    def clip_gradients(self: Any, grads: Any) -> Any:
        if INITIAL_VALUE.get() is None:
            return clip(self, grads)
        return import_module("keras_dualflow.replicas").clipped(clip, self, grads)

    @functools.wraps(key)
    def variable_key(self: Any, variable: Any) -> Any:
        return key(self, getattr(variable, "whole", variable))

    @functools.wraps(average)
    def update_averages(self: Any, trainable_variables: Any) -> None:
        if INITIAL_VALUE.get() is None:
            average(self, trainable_variables)
            return
        import_module("keras_dualflow.replicas").update_averages(average, self, trainable_variables)

    @functools.wraps(overwrite)
    def overwrite_with_averages(self: Any, trainable_variables: Any) -> None:
        replicas = import_module("keras_dualflow.replicas")
        replicas.overwrite_with_averages(overwrite, self, trainable_variables)

    optimizer.add_variable_from_reference = add_variable_from_reference
    optimizer._clip_gradients, optimizer._var_key = clip_gradients, variable_key
    optimizer._update_model_variables_moving_average = update_averages
    optimizer._overwrite_model_variables_with_average_value = overwrite_with_averages


def _standardize_in_traces(names: dict[str, Any]) -> None:
    """Let a traced TextVectorization call a function for ``standardize`` with the tensor, as on TensorFlow.

    On other backends Keras calls it with an array of NumPy, which a traced tensor isn't.
    """
    layer = names["TextVectorization"]
    apply_to_arrays = layer._apply_standardize_with_np_arrays

    @functools.wraps(apply_to_arrays)
    def apply(self: Any, inputs: Any) -> Any:
        is_traced = _holds_strings(inputs) and not hasattr(inputs, "numpy")
        return self._standardize(inputs) if is_traced else apply_to_arrays(self, inputs)

    layer._apply_standardize_with_np_arrays = apply


def _distribute_over_time(names: dict[str, Any]) -> None:
    """Let TimeDistributed apply its layer to each time step where their number is known only at run time.

    Keras iterates over as many time steps as the batch has elements then.
    """
    layer = names["TimeDistributed"]
    static_call, vectorized_map, ops = layer.call, names["backend"].vectorized_map, names["ops"]

    def time_first(x: Any) -> Any:
        return ops.transpose(x, (1, 0, *range(2, len(x.shape))))

    @functools.wraps(static_call)
    def call(self: Any, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        batch_sizes = {x.shape[0] for x in (inputs, mask) if x is not None and len(x.shape) > 1} - {None}
        if inputs.shape[1] is not None or len(batch_sizes) > 1 or (mask is not None and len(mask.shape) < 2):
            return static_call(self, inputs, training=training, mask=mask)
        options = {"training": training} if self.layer._call_has_training_arg else {}
        if mask is None or not self.layer._call_has_mask_arg:
            outputs = vectorized_map(lambda x: self.layer.call(x, **options), time_first(inputs))
        else:
            rows = time_first(inputs), time_first(mask)
            outputs = vectorized_map(lambda row: self.layer.call(row[0], mask=row[1], **options), rows)
        return time_first(outputs)

    layer.call = call


def _slice_strings(names: dict[str, Any]) -> None:
    """Let ``fit`` and ``predict`` take tensors of strings, whose arrays hold objects, which Keras refuses."""
    convert, sliceable = names["convert_to_sliceable"], names["NumpySliceable"]
    map_structure = import_module("keras.src.tree").map_structure

    def converted(x: Any, target_backend: str | None) -> Any:
        return sliceable(np.asarray(x)) if _holds_strings(x) else convert(x, target_backend)

    @functools.wraps(convert)
    def convert_to_sliceable(arrays: Any, target_backend: str | None = None) -> Any:
        return map_structure(lambda x: converted(x, target_backend), arrays)

    names["convert_to_sliceable"] = convert_to_sliceable


def _holds_strings(x: Any) -> bool:
    """Whether ``x`` is a tensor of strings of dualflow."""
    return bool(getattr(getattr(x, "dtype", None), "is_string", False))


def _tensorflow_is_dualflow() -> bool:
    """Whether ``import tensorflow`` imports dualflow."""
    # two different defaults, so that the result is False if neither is imported
    return sys.modules.get("tensorflow") is sys.modules.get("dualflow", sys)


PATCHES: Final = {
    "keras.src.backend.common.dtypes": Patch(("BIT64_TO_BIT32_DTYPE",), _keep_float64),
    "keras.src.callbacks.backup_and_restore": Patch(
        ("BackupAndRestore.on_train_end", "BackupAndRestore._save_model"), _share_backup
    ),
    "keras.src.callbacks.tensorboard": Patch(
        ("TensorBoard.summary", "keras_model_summary"), _write_with_dualflow
    ),
    "keras.src.export.onnx": Patch(("export_onnx",), _export_onnx),
    "keras.src.layers.preprocessing.text_vectorization": Patch(
        ("TextVectorization._apply_standardize_with_np_arrays",), _standardize_in_traces
    ),
    "keras.src.layers.rnn.time_distributed": Patch(("TimeDistributed.call",), _distribute_over_time),
    "keras.src.losses.loss": Patch(
        ("scale_loss_for_distribution", "unscale_loss_for_distribution"), _scale_losses
    ),
    "keras.src.metrics.metric": Patch(("Metric.reset_state",), _add_reset_states),
    "keras.src.optimizers.base_optimizer": Patch(
        (
            "BaseOptimizer.apply",
            "BaseOptimizer.add_variable_from_reference",
            "BaseOptimizer._clip_gradients",
            "BaseOptimizer._var_key",
            "BaseOptimizer._update_model_variables_moving_average",
            "BaseOptimizer._overwrite_model_variables_with_average_value",
        ),
        _change_optimizers,
    ),
    "keras.src.optimizers.loss_scale_optimizer": Patch(
        ("LossScaleOptimizer.apply",), _sum_gradients("LossScaleOptimizer")
    ),
    "keras.src.saving.saving_api": Patch(("load_weights", "save_model", "save_weights"), _change_saving),
    "keras.src.trainers.data_adapters.array_slicing": Patch(
        ("convert_to_sliceable", "NumpySliceable"), _slice_strings
    ),
    "keras.src.utils.backend_utils": Patch(
        (
            "DynamicBackend.__getattr__",
            "DynamicBackend.set_backend",
            "DynamicBackend.name",
            "in_tf_graph",
        ),
        _add_dynamic_backend,
    ),
    "keras.src.utils.dataset_utils": Patch(
        ("is_tf_dataset", "is_batched", "get_batch_size"), _accept_datasets
    ),
    "keras.src.utils.module_utils": Patch(("LazyModule.available", "tensorflow"), _hide_stand_in),
    "keras.src.utils.rng_utils": Patch(("set_random_seed",), _seed_dualflow),
}
"""The modules that are patched."""
