"""``df.keras``: Keras 3 with dualflow as its backend, under the names of ``tf.keras``.

Keras is an optional dependency: ``pip install "dualflow[keras]"``. It is imported at the first use of
``df.keras``, which requires that the program has not imported Keras with another backend.

>>> import dualflow as df
>>> model = df.keras.Sequential([df.keras.layers.Dense(2, kernel_initializer="ones")])
>>> model(df.constant([[1.0, 2.0]])).numpy()
array([[3., 3.]], dtype=float32)
"""

from typing import TYPE_CHECKING

from keras_dualflow.df_keras import tf_keras as _tf_keras

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Self

    import numpy as np
    from keras._tf_keras.keras import DTypePolicy as DTypePolicy
    from keras._tf_keras.keras import FloatDTypePolicy as FloatDTypePolicy
    from keras._tf_keras.keras import Function as Function
    from keras._tf_keras.keras import Initializer as Initializer
    from keras._tf_keras.keras import Input as Input
    from keras._tf_keras.keras import InputSpec as InputSpec
    from keras._tf_keras.keras import KerasTensor as KerasTensor
    from keras._tf_keras.keras import Loss as Loss
    from keras._tf_keras.keras import Metric as Metric
    from keras._tf_keras.keras import Operation as Operation
    from keras._tf_keras.keras import Optimizer as Optimizer
    from keras._tf_keras.keras import Quantizer as Quantizer
    from keras._tf_keras.keras import Regularizer as Regularizer
    from keras._tf_keras.keras import RematScope as RematScope
    from keras._tf_keras.keras import StatelessScope as StatelessScope
    from keras._tf_keras.keras import SymbolicScope as SymbolicScope
    from keras._tf_keras.keras import Variable as Variable
    from keras._tf_keras.keras import activations as activations
    from keras._tf_keras.keras import applications as applications
    from keras._tf_keras.keras import backend as backend
    from keras._tf_keras.keras import callbacks as callbacks
    from keras._tf_keras.keras import config as config
    from keras._tf_keras.keras import constraints as constraints
    from keras._tf_keras.keras import datasets as datasets
    from keras._tf_keras.keras import device as device
    from keras._tf_keras.keras import distillation as distillation
    from keras._tf_keras.keras import distribution as distribution
    from keras._tf_keras.keras import dtype_policies as dtype_policies
    from keras._tf_keras.keras import export as export
    from keras._tf_keras.keras import initializers as initializers
    from keras._tf_keras.keras import layers as layers
    from keras._tf_keras.keras import legacy as legacy
    from keras._tf_keras.keras import losses as losses
    from keras._tf_keras.keras import metrics as metrics
    from keras._tf_keras.keras import mixed_precision as mixed_precision
    from keras._tf_keras.keras import models as models
    from keras._tf_keras.keras import name_scope as name_scope
    from keras._tf_keras.keras import ops as ops
    from keras._tf_keras.keras import optimizers as optimizers
    from keras._tf_keras.keras import preprocessing as preprocessing
    from keras._tf_keras.keras import quantizers as quantizers
    from keras._tf_keras.keras import random as random
    from keras._tf_keras.keras import regularizers as regularizers
    from keras._tf_keras.keras import remat as remat
    from keras._tf_keras.keras import tree as tree
    from keras._tf_keras.keras import utils as utils
    from keras._tf_keras.keras import version as version
    from keras._tf_keras.keras import visualization as visualization
    from keras._tf_keras.keras import wrappers as wrappers

    # Keras has few annotations, and checkers infer types that are too narrow from its defaults.

    class KerasLayer:
        """A part of a model: variables, and a function of tensors that uses them."""

        name: str
        built: bool
        trainable: bool

        def __init__(self, *args: Any, **options: Any) -> None: ...
        def __call__(self, *args: Any, **options: Any) -> Any: ...
        def build(self, *shapes: Any, **named_shapes: Any) -> None: ...
        def call(self, *args: Any, **options: Any) -> Any: ...
        def add_weight(self, shape: Sequence[int] | None = None, *args: Any, **options: Any) -> Any: ...
        def add_loss(self, loss: Any) -> None: ...
        def count_params(self) -> int: ...
        def get_config(self) -> dict[str, Any]: ...
        @classmethod
        def from_config(cls, config: dict[str, Any]) -> Self: ...
        def get_weights(self) -> list[np.ndarray[Any, Any]]: ...
        def set_weights(self, weights: Sequence[Any]) -> None: ...
        @property
        def weights(self) -> list[Any]: ...
        @property
        def variables(self) -> list[Any]: ...
        @property
        def trainable_weights(self) -> list[Any]: ...
        @property
        def trainable_variables(self) -> list[Any]: ...
        @property
        def non_trainable_variables(self) -> list[Any]: ...
        @property
        def losses(self) -> list[Any]: ...

    class KerasModel(KerasLayer):
        """A layer that can be trained, evaluated and saved."""

        @property
        def layers(self) -> list[Any]: ...
        @property
        def metrics(self) -> list[Any]: ...
        @property
        def metrics_names(self) -> list[str]: ...
        @property
        def inputs(self) -> list[Any]: ...
        @property
        def outputs(self) -> list[Any]: ...
        def compile(
            self,
            optimizer: Any = "rmsprop",
            loss: Any = None,
            loss_weights: Any = None,
            metrics: Any = None,
            weighted_metrics: Any = None,
            run_eagerly: bool = False,
            steps_per_execution: int = 1,
            jit_compile: bool | str = "auto",
            auto_scale_loss: bool = True,
        ) -> None: ...
        def fit(
            self,
            x: Any = None,
            y: Any = None,
            batch_size: int | None = None,
            epochs: int = 1,
            verbose: int | str = "auto",
            callbacks: Sequence[Any] | None = None,
            validation_split: float = 0.0,
            validation_data: Any = None,
            shuffle: bool = True,
            class_weight: dict[int, float] | None = None,
            sample_weight: Any = None,
            initial_epoch: int = 0,
            steps_per_epoch: int | None = None,
            validation_steps: int | None = None,
            validation_batch_size: int | None = None,
            validation_freq: int | Sequence[int] = 1,
        ) -> Any: ...
        def evaluate(
            self,
            x: Any = None,
            y: Any = None,
            batch_size: int | None = None,
            verbose: int | str = "auto",
            sample_weight: Any = None,
            steps: int | None = None,
            callbacks: Sequence[Any] | None = None,
            return_dict: bool = False,
        ) -> Any: ...
        def predict(
            self,
            x: Any,
            batch_size: int | None = None,
            verbose: int | str = "auto",
            steps: int | None = None,
            callbacks: Sequence[Any] | None = None,
        ) -> Any: ...
        def train_on_batch(self, x: Any, y: Any = None, *args: Any, **options: Any) -> Any: ...
        def test_on_batch(self, x: Any, y: Any = None, *args: Any, **options: Any) -> Any: ...
        def predict_on_batch(self, x: Any) -> Any: ...
        def train_step(self, data: Any) -> Any: ...
        def test_step(self, data: Any) -> Any: ...
        def predict_step(self, data: Any) -> Any: ...
        def get_layer(self, name: str | None = None, index: int | None = None) -> Any: ...
        def save(self, filepath: Any, overwrite: bool = True, **options: Any) -> None: ...
        def save_weights(self, filepath: Any, overwrite: bool = True, **options: Any) -> None: ...
        def load_weights(self, filepath: Any, skip_mismatch: bool = False, **options: Any) -> None: ...
        def summary(
            self,
            line_length: int | None = None,
            positions: Sequence[float] | None = None,
            print_fn: Callable[..., Any] | None = None,
            expand_nested: bool = False,
            show_trainable: bool = False,
            layer_range: Sequence[str] | None = None,
        ) -> None: ...

    class KerasSequential(KerasModel):
        """A model whose layers are applied one after another."""

        def __init__(
            self, layers: Iterable[Any] | None = None, trainable: bool = True, name: str | None = None
        ) -> None: ...
        def add(self, layer: Any, rebuild: bool = True) -> None: ...
        def pop(self, rebuild: bool = True) -> Any: ...

    Layer = KerasLayer
    Model = KerasModel
    Sequential = KerasSequential

_names = vars(_tf_keras())
globals().update({name: value for name, value in _names.items() if not name.startswith("_")})
__version__: str = _names["__version__"]
# So that `import dualflow.keras.layers` searches the folders of Keras.
__path__ = list(_names["__path__"])


def __dir__() -> list[str]:
    return sorted(name for name in _names if not name.startswith("_"))
