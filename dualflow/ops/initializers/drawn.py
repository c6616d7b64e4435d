"""Initializers with random numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualflow.core.dtypes import float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.tracebacks import entry
from dualflow.ops.initializers.base import Initializer, fans, floating, source
from dualflow.ops.random_numbers import draws

if TYPE_CHECKING:
    from dualflow.core.argument_types import DTypeLike

_TRUNCATED_STDDEV: Final = 0.87962566103423978
"""The standard deviation of standard normal numbers that are cut at two."""
_SHARES: Final = {
    "fan_in": lambda inputs, outputs: inputs,
    "fan_out": lambda inputs, outputs: outputs,
    "fan_avg": lambda inputs, outputs: (inputs + outputs) / 2,
}
_DISTRIBUTIONS: Final = ("truncated_normal", "untruncated_normal", "uniform")


@entry
@dataclass(frozen=True)
class RandomNormal(Initializer):
    """Normal numbers.

    Args:
        mean: their mean.
        stddev: their standard deviation.
        seed: an integer for the same numbers at each call; None for new ones.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> df.random_normal_initializer(5.0, 0.0)([2]).numpy().tolist()
    [5.0, 5.0]
    """

    mean: float = 0.0
    stddev: float = 0.05
    seed: int | None = None
    dtype: DTypeLike = float32

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        kind = floating(dtype)
        return draws.normal(source(self.seed), sizes, self.mean, self.stddev, kind)


@entry
@dataclass(frozen=True)
class TruncatedNormal(Initializer):
    """Normal numbers within two standard deviations of the mean.

    Args:
        mean: their mean.
        stddev: the standard deviation before truncation.
        seed: an integer for the same numbers at each call; None for new ones.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> bool(abs(df.initializers.TruncatedNormal(stddev=1.0)([100]).numpy()).max() <= 2.0)
    True
    """

    mean: float = 0.0
    stddev: float = 0.05
    seed: int | None = None
    dtype: DTypeLike = float32

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        kind = floating(dtype)
        return draws.truncated_normal(source(self.seed), sizes, self.mean, self.stddev, kind)


@entry
@dataclass(frozen=True)
class RandomUniform(Initializer):
    """Uniformly distributed numbers.

    Args:
        minval: the lower bound.
        maxval: the upper bound, which is excluded.
        seed: an integer for the same numbers at each call; None for new ones.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> bool(df.random_uniform_initializer(3.0, 4.0)([100]).numpy().min() >= 3.0)
    True
    """

    minval: float = -0.05
    maxval: float | None = 0.05
    seed: int | None = None
    dtype: DTypeLike = float32

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        return draws.uniform(source(self.seed), sizes, self.minval, self.maxval, dtype)


def _scaled(
    sizes: tuple[int, ...], dtype: Any, scale: float, mode: str, distribution: str, seed: int | None
) -> Any:
    """Numbers of variance ``scale`` divided by a layer's inputs, outputs or their mean."""
    kind = floating(dtype)
    variance = scale / max(1.0, _SHARES[mode](*fans(sizes)))
    if distribution == "uniform":
        limit = math.sqrt(3.0 * variance)
        return draws.uniform(source(seed), sizes, -limit, limit, kind)
    if distribution == "untruncated_normal":
        return draws.normal(source(seed), sizes, 0.0, math.sqrt(variance), kind)
    return draws.truncated_normal(source(seed), sizes, 0.0, math.sqrt(variance) / _TRUNCATED_STDDEV, kind)


@entry
@dataclass(frozen=True)
class VarianceScaling(Initializer):
    """Numbers whose variance is ``scale`` divided by the number of inputs or outputs of a unit.

    Args:
        scale: above 0.
        mode: "fan_in" for the inputs of an output, "fan_out" for the outputs of an input, or "fan_avg" for
            their mean.
        distribution: "truncated_normal" (within two standard deviations), "untruncated_normal" or "uniform".
        seed: an integer for the same numbers at each call; None for new ones.
        dtype: the dtype of values for which none is requested; float32 by default.

    Raises:
        InvalidArgumentError: ``scale`` is not above 0, or the mode or distribution is unknown.

    >>> import dualflow as df
    >>> init = df.initializers.VarianceScaling(3.0, "fan_avg", "uniform")
    >>> bool(abs(init([4, 14]).numpy()).max() <= 1.0)
    True
    """

    scale: float = 1.0
    mode: str = "fan_in"
    distribution: str = "truncated_normal"
    seed: int | None = None
    dtype: DTypeLike = float32

    @entry
    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise InvalidArgumentError(f"scale is above 0, not {self.scale}.")
        if self.mode not in _SHARES:
            raise InvalidArgumentError(f"mode is one of {', '.join(_SHARES)}, not {self.mode!r}.")
        if self.distribution not in _DISTRIBUTIONS:
            raise InvalidArgumentError(
                f"distribution is one of {', '.join(_DISTRIBUTIONS)}, not {self.distribution!r}."
            )

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        return _scaled(sizes, dtype, self.scale, self.mode, self.distribution, self.seed)


@dataclass(frozen=True)
class _Scaled(Initializer):
    """The base of initializers whose variance depends on the fans."""

    seed: int | None = None
    dtype: DTypeLike = float32
    _options = (1.0, "fan_in", "truncated_normal")

    def _value(self, sizes: tuple[int, ...], dtype: Any) -> Any:
        return _scaled(sizes, dtype, *self._options, self.seed)


@entry
@dataclass(frozen=True)
class GlorotUniform(_Scaled):
    """Uniformly distributed numbers between ``±sqrt(6 / (fan_in + fan_out))``: the default of layers.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010).

    Args:
        seed: an integer for the same numbers at each call; None for new ones.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> bool(abs(df.initializers.GlorotUniform(seed=1)([4, 2]).numpy()).max() <= 1.0)
    True
    """

    _options = (1.0, "fan_avg", "uniform")


@entry
@dataclass(frozen=True)
class GlorotNormal(_Scaled):
    """Normal numbers of variance ``2 / (fan_in + fan_out)``, truncated at two deviations.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010).

    Args:
        seed: an integer for the same numbers at each call; None for new ones.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> df.initializers.GlorotNormal()([4, 2]).shape
    (4, 2)
    """

    _options = (1.0, "fan_avg", "truncated_normal")


@entry
@dataclass(frozen=True)
class HeNormal(_Scaled):
    """Normal numbers of variance ``2 / fan_in``, truncated at two deviations, for layers before a relu.

    He et al., "Delving Deep into Rectifiers" (2015).

    Args:
        seed: an integer for the same numbers at each call; None for new ones.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> df.initializers.HeNormal()([4, 2]).shape
    (4, 2)
    """

    _options = (2.0, "fan_in", "truncated_normal")


@entry
@dataclass(frozen=True)
class HeUniform(_Scaled):
    """Uniformly distributed numbers between ``±sqrt(6 / fan_in)``, for layers before a relu.

    He et al., "Delving Deep into Rectifiers" (2015).

    Args:
        seed: an integer for the same numbers at each call; None for new ones.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> bool(abs(df.initializers.HeUniform()([6, 2]).numpy()).max() <= 1.0)
    True
    """

    _options = (2.0, "fan_in", "uniform")


@entry
@dataclass(frozen=True)
class LecunNormal(_Scaled):
    """Normal numbers of variance ``1 / fan_in``, truncated at two deviations.

    Klambauer et al., "Self-Normalizing Neural Networks" (2017).

    Args:
        seed: an integer for the same numbers at each call; None for new ones.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> df.initializers.LecunNormal()([4, 2]).shape
    (4, 2)
    """


@entry
@dataclass(frozen=True)
class LecunUniform(_Scaled):
    """Uniformly distributed numbers between ``±sqrt(3 / fan_in)``.

    Args:
        seed: an integer for the same numbers at each call; None for new ones.
        dtype: the dtype of values for which none is requested; float32 by default.

    >>> import dualflow as df
    >>> bool(abs(df.initializers.LecunUniform()([3, 2]).numpy()).max() <= 1.0)
    True
    """

    _options = (1.0, "fan_in", "uniform")
