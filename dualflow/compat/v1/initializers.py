"""How variables begin: functions of a shape and a dtype, for ``get_variable`` and layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dualflow import random
from dualflow.core.dtypes import float32
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.namespace import publish
from dualflow.ops import creation


@dataclass(frozen=True, slots=True)
class Zeros:
    """All zeros.

    >>> Zeros()([2]).numpy().tolist()
    [0.0, 0.0]
    """

    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return creation.zeros(shape, dtype or self.dtype)


@dataclass(frozen=True, slots=True)
class Ones:
    """All ones.

    >>> Ones()([2]).numpy().tolist()
    [1.0, 1.0]
    """

    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return creation.ones(shape, dtype or self.dtype)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value, or one number everywhere.

    >>> import dualflow as df
    >>> df.compat.v1.constant_initializer(3.0)([2]).numpy().tolist()
    [3.0, 3.0]
    """

    value: Any = 0
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return creation.constant(self.value, dtype or self.dtype, shape)


@dataclass(frozen=True, slots=True)
class RandomNormal:
    """Normal numbers of a mean and a standard deviation.

    >>> RandomNormal(5.0, 0.0)([2]).numpy().tolist()
    [5.0, 5.0]
    """

    mean: float = 0.0
    stddev: float = 1.0
    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return random.normal(shape, self.mean, self.stddev, dtype or self.dtype, self.seed)


@dataclass(frozen=True, slots=True)
class TruncatedNormal:
    """Normal numbers within two standard deviations of the mean.

    >>> bool(abs(TruncatedNormal()([100]).numpy()).max() <= 2.0)
    True
    """

    mean: float = 0.0
    stddev: float = 1.0
    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return random.truncated_normal(shape, self.mean, self.stddev, dtype or self.dtype, self.seed)


@dataclass(frozen=True, slots=True)
class RandomUniform:
    """Numbers of equal chance from ``minval`` up to ``maxval``.

    >>> bool(RandomUniform(3.0, 4.0)([100]).numpy().min() >= 3.0)
    True
    """

    minval: float = 0.0
    maxval: float = 1.0
    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return random.uniform(shape, self.minval, self.maxval, dtype or self.dtype, self.seed)


@dataclass(frozen=True, slots=True)
class GlorotUniform:
    """Numbers of equal chance between ``±sqrt(6 / (fan_in + fan_out))``: the default for floats.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.

    >>> bool(abs(GlorotUniform()([4, 2]).numpy()).max() <= 1.0)
    True
    """

    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        limit = math.sqrt(6.0 / max(1.0, sum(fans(shape))))
        return random.uniform(shape, -limit, limit, dtype or self.dtype, self.seed)


@dataclass(frozen=True, slots=True)
class GlorotNormal:
    """Normal numbers of variance ``2 / (fan_in + fan_out)``, cut at two deviations (Glorot and Bengio).

    >>> GlorotNormal()([4, 2]).shape
    (4, 2)
    """

    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        stddev = math.sqrt(2.0 / max(1.0, sum(fans(shape)))) / _CUT
        return random.truncated_normal(shape, 0.0, stddev, dtype or self.dtype, self.seed)


constant = Constant
glorot_normal = GlorotNormal
glorot_uniform = GlorotUniform
ones = Ones
random_normal = RandomNormal
random_uniform = RandomUniform
truncated_normal = TruncatedNormal
zeros = Zeros

_CUT = 0.87962566103423978
"""The standard deviation of standard normal numbers that are cut at two."""


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """How many inputs each output of a layer of such weights has, and how many outputs each input.

    Raises:
        InvalidArgumentError: an open size.

    >>> fans([3, 4]), fans([5, 5, 3, 4])
    ((3, 4), (75, 100))
    """
    sizes = list(shape)
    if any(n is None for n in sizes):
        raise InvalidArgumentError(
            f"A variable of shape {sizes} can't be initialized: every size must be known."
        )
    if len(sizes) < 2:
        return (sizes[0], sizes[0]) if sizes else (1, 1)
    field = math.prod(sizes[:-2])
    return field * sizes[-2], field * sizes[-1]


publish(
    globals(),
    internal=(
        "Any",
        "InvalidArgumentError",
        "Sequence",
        "annotations",
        "creation",
        "dataclass",
        "fans",
        "float32",
        "math",
        "publish",
        "random",
    ),
)
