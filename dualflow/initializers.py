"""Initializers of variables, functions of a shape and a dtype: ``df.initializers``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.initializers.base import Initializer as Initializer
    from dualflow.ops.initializers.by_name import deserialize as deserialize
    from dualflow.ops.initializers.by_name import get as get
    from dualflow.ops.initializers.by_name import serialize as serialize
    from dualflow.ops.initializers.drawn import GlorotNormal as GlorotNormal
    from dualflow.ops.initializers.drawn import GlorotUniform as GlorotUniform
    from dualflow.ops.initializers.drawn import HeNormal as HeNormal
    from dualflow.ops.initializers.drawn import HeUniform as HeUniform
    from dualflow.ops.initializers.drawn import LecunNormal as LecunNormal
    from dualflow.ops.initializers.drawn import LecunUniform as LecunUniform
    from dualflow.ops.initializers.drawn import RandomNormal as RandomNormal
    from dualflow.ops.initializers.drawn import RandomUniform as RandomUniform
    from dualflow.ops.initializers.drawn import TruncatedNormal as TruncatedNormal
    from dualflow.ops.initializers.drawn import VarianceScaling as VarianceScaling
    from dualflow.ops.initializers.fixed import Constant as Constant
    from dualflow.ops.initializers.fixed import Identity as Identity
    from dualflow.ops.initializers.fixed import Ones as Ones
    from dualflow.ops.initializers.fixed import Zeros as Zeros
    from dualflow.ops.initializers.orthogonal import Orthogonal as Orthogonal

    IdentityInitializer = Identity
    OrthogonalInitializer = Orthogonal
    constant = Constant
    glorot_normal = GlorotNormal
    glorot_uniform = GlorotUniform
    he_normal = HeNormal
    he_uniform = HeUniform
    identity = Identity
    lecun_normal = LecunNormal
    lecun_uniform = LecunUniform
    ones = Ones
    orthogonal = Orthogonal
    random_normal = RandomNormal
    random_uniform = RandomUniform
    truncated_normal = TruncatedNormal
    variance_scaling = VarianceScaling
    zeros = Zeros

_publish(
    globals(),
    lazy={
        "dualflow.ops.initializers.base": "Initializer",
        "dualflow.ops.initializers.by_name": "deserialize get serialize",
        "dualflow.ops.initializers.drawn": (
            "GlorotNormal GlorotUniform HeNormal HeUniform LecunNormal LecunUniform RandomNormal "
            "RandomUniform TruncatedNormal VarianceScaling glorot_normal=GlorotNormal "
            "glorot_uniform=GlorotUniform he_normal=HeNormal he_uniform=HeUniform lecun_normal=LecunNormal "
            "lecun_uniform=LecunUniform random_normal=RandomNormal random_uniform=RandomUniform "
            "truncated_normal=TruncatedNormal variance_scaling=VarianceScaling"
        ),
        "dualflow.ops.initializers.fixed": (
            "Constant Identity Ones Zeros IdentityInitializer=Identity constant=Constant identity=Identity "
            "ones=Ones zeros=Zeros"
        ),
        "dualflow.ops.initializers.orthogonal": (
            "Orthogonal OrthogonalInitializer=Orthogonal orthogonal=Orthogonal"
        ),
    },
)
