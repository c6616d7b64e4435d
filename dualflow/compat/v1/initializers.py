"""Initializers of variables, functions of a shape and a dtype, with TensorFlow 1's defaults."""

from __future__ import annotations

from dataclasses import dataclass

from dualflow.core.argument_types import DTypeLike, TensorLike
from dualflow.core.dtypes import float32
from dualflow.core.namespace import publish
from dualflow.core.tracebacks import entry
from dualflow.ops.initializers import drawn, fixed
from dualflow.ops.initializers.drawn import (
    GlorotNormal as GlorotNormal,
)
from dualflow.ops.initializers.drawn import (
    GlorotUniform as GlorotUniform,
)
from dualflow.ops.initializers.drawn import (
    HeNormal as HeNormal,
)
from dualflow.ops.initializers.drawn import (
    HeUniform as HeUniform,
)
from dualflow.ops.initializers.drawn import (
    LecunNormal as LecunNormal,
)
from dualflow.ops.initializers.drawn import (
    LecunUniform as LecunUniform,
)
from dualflow.ops.initializers.drawn import (
    VarianceScaling as VarianceScaling,
)
from dualflow.ops.initializers.fixed import Identity as Identity
from dualflow.ops.initializers.fixed import Ones as Ones
from dualflow.ops.initializers.fixed import Zeros as Zeros
from dualflow.ops.initializers.orthogonal import Orthogonal as Orthogonal


@entry
@dataclass(frozen=True)
class ConstantV1(fixed.Constant):
    """A tensor, or one number for all elements; 0 by default. ``verify_shape`` is ignored.

    >>> import dualflow as df
    >>> df.compat.v1.constant_initializer(3.0)([2]).numpy().tolist()
    [3.0, 3.0]
    """

    value: TensorLike = 0
    dtype: DTypeLike | None = float32
    verify_shape: bool = False


@entry
@dataclass(frozen=True)
class RandomNormalV1(drawn.RandomNormal):
    """Normal numbers, of standard deviation 1 by default.

    >>> import dualflow as df
    >>> df.compat.v1.random_normal_initializer(5.0, 0.0)([2]).numpy().tolist()
    [5.0, 5.0]
    """

    stddev: float = 1.0


@entry
@dataclass(frozen=True)
class TruncatedNormalV1(drawn.TruncatedNormal):
    """Normal numbers within two standard deviations, 1 by default, of the mean.

    >>> import dualflow as df
    >>> bool(abs(df.compat.v1.truncated_normal_initializer()([100]).numpy()).max() <= 2.0)
    True
    """

    stddev: float = 1.0


@entry
@dataclass(frozen=True)
class RandomUniformV1(drawn.RandomUniform):
    """Uniform numbers, from 0 up to 1 by default.

    >>> import dualflow as df
    >>> bool(df.compat.v1.random_uniform_initializer()([100]).numpy().min() >= 0.0)
    True
    """

    minval: float = 0.0
    maxval: float | None = None


constant = ConstantV1
glorot_normal = GlorotNormal
glorot_uniform = GlorotUniform
he_normal = HeNormal
he_uniform = HeUniform
identity = Identity
lecun_normal = LecunNormal
lecun_uniform = LecunUniform
ones = Ones
orthogonal = Orthogonal
random_normal = RandomNormalV1
random_uniform = RandomUniformV1
truncated_normal = TruncatedNormalV1
variance_scaling = VarianceScaling
zeros = Zeros

publish(
    globals(),
    internal=("DTypeLike", "TensorLike", "Any", "annotations", "dataclass", "entry", "float32", "publish"),
)
