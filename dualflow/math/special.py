"""Special functions: ``df.math.special``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.special_functions.bessel import bessel_i0 as bessel_i0
    from dualflow.ops.special_functions.bessel import bessel_i0e as bessel_i0e
    from dualflow.ops.special_functions.bessel import bessel_i1 as bessel_i1
    from dualflow.ops.special_functions.bessel import bessel_i1e as bessel_i1e
    from dualflow.ops.special_functions.bessel import bessel_j0 as bessel_j0
    from dualflow.ops.special_functions.bessel import bessel_j1 as bessel_j1
    from dualflow.ops.special_functions.bessel import bessel_k0 as bessel_k0
    from dualflow.ops.special_functions.bessel import bessel_k0e as bessel_k0e
    from dualflow.ops.special_functions.bessel import bessel_k1 as bessel_k1
    from dualflow.ops.special_functions.bessel import bessel_k1e as bessel_k1e
    from dualflow.ops.special_functions.bessel import bessel_y0 as bessel_y0
    from dualflow.ops.special_functions.bessel import bessel_y1 as bessel_y1
    from dualflow.ops.special_functions.integrals import dawsn as dawsn
    from dualflow.ops.special_functions.integrals import expint as expint
    from dualflow.ops.special_functions.integrals import fresnel_cos as fresnel_cos
    from dualflow.ops.special_functions.integrals import fresnel_sin as fresnel_sin
    from dualflow.ops.special_functions.integrals import spence as spence

_publish(
    globals(),
    lazy={
        "dualflow.ops.special_functions.bessel": (
            "bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 "
            "bessel_k1e bessel_y0 bessel_y1"
        ),
        "dualflow.ops.special_functions.integrals": "dawsn expint fresnel_cos fresnel_sin spence",
    },
)
