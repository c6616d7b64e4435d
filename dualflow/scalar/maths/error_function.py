"""erf and erfc by polynomials, whose coefficients are minimax fits (Remez), rounded one by one.

For small x, ``erf(x) = x + x P(x**2)``. Above, erf is ``1 - exp(-Q(|x|))``. For erfc that would lose the
small values, so it is ``exp(-x**2) R(q) / (1 + 2 |x|)`` with ``q = (|x| - c) / (|x| + c)``, which maps all
numbers to -1..1 (after M. M. Shepherd and J. G. Laframboise, Math. Comp. 36, 1981).
"""

from __future__ import annotations

from dualflow.core.records import NamedTuple
from dualflow.scalar.maths.exponential import exp, exp_of_multiple
from dualflow.scalar.maths.floating import clip_above, polynomial, with_sign
from dualflow.scalar.tracing import Traced


class _ErfTables(NamedTuple):
    """The constants of one precision.

    The polynomials are P (`erf_near`, below `near`), Q (`erf_far`) and R (`erfc`), and `erfc_centre` is c.
    From `one` on, erf is 1; from `zero` on, erfc is 0.
    """

    near: float

    erf_near: tuple[float, ...]
    erf_far: tuple[float, ...]
    one: float
    erfc: tuple[float, ...]
    erfc_centre: float
    zero: float


_TABLES = {
    32: _ErfTables(
        near=0.9,
        erf_near=(
            0.12837915122509003,
            -0.3761250674724579,
            0.11281978338956833,
            -0.026773398742079735,
            0.005004345905035734,
            -0.0006053445977158844,
        ),
        erf_far=(
            0.00017052468319889158,
            1.1277786493301392,
            0.6370103359222412,
            0.10408107191324234,
            -0.022298304364085197,
            0.0030609627719968557,
            -0.00019773059466388077,
        ),
        one=3.92,
        erfc=(
            1.2769783735275269,
            -0.09276411682367325,
            -0.16603004932403564,
            0.16405729949474335,
            -0.0542173869907856,
            -0.008070667274296284,
            0.00867118313908577,
            0.0013434563297778368,
            -0.0012680684449151158,
            -0.00043193766032345593,
        ),
        erfc_centre=2.0,
        zero=10.1,
    ),
    64: _ErfTables(
        near=1.0,
        erf_near=(
            0.1283791670955126,
            -0.37612638903183754,
            0.11283791670955126,
            -0.02686617064513085,
            0.005223977625432183,
            -0.0008548327022429194,
            0.0001205533292124917,
            -1.4925648037261055e-05,
            1.64620538373359e-06,
            -1.6364746806077502e-07,
            1.4793292724180724e-08,
            -1.2169508572767404e-09,
            8.72517242492211e-11,
            -4.254356166178231e-12,
        ),
        erf_far=(
            1.7961812628484653e-07,
            1.128377329280687,
            0.6366284888633171,
            0.10274725220222522,
            -0.01907815491892044,
            -0.0002804902317894761,
            0.0017690029093991896,
            -0.0006411750084925718,
            4.4824292497755864e-05,
            7.036547840765727e-05,
            -4.503679301148943e-05,
            1.651371122042735e-05,
            -4.3269751819648416e-06,
            8.505597593951952e-07,
            -1.2570267207700138e-07,
            1.362644767590328e-08,
            -1.0256812104085378e-09,
            4.7959444012855773e-11,
            -1.0496004860042191e-12,
        ),
        one=5.93,
        erfc=(
            1.2329951186255526,
            -0.13962111684056344,
            0.01537965210260504,
            0.06809705425479143,
            -0.10103906603550482,
            0.09373283499535502,
            -0.06633036582946207,
            0.03716751557752274,
            -0.016197733864639748,
            0.005031969699833014,
            -0.0007577745588608971,
            -0.00019925564208220423,
            0.00015062687645385744,
            -2.4401196859811386e-05,
            -1.1235551783050217e-05,
            5.71033353455959e-06,
            3.158406599357632e-07,
            -8.207284243103328e-07,
            5.3372207960317357e-08,
            1.0128843080215024e-07,
            -7.336721748724312e-09,
            -8.101030832871267e-09,
        ),
        erfc_centre=4.0,
        zero=27.3,
    ),
}


def erf(x: Traced) -> Traced:
    """The error function."""
    tables = _TABLES[x.bits]
    magnitude = abs(x)
    y, scale = exp_of_multiple(polynomial(clip_above(magnitude, tables.one), tables.erf_far), -1.0)
    far = (-y).fma(scale, 1.0)
    return with_sign((magnitude < tables.near).select(_erf_near(magnitude), far), x)


def erfc(x: Traced) -> Traced:
    """``1 - erf(x)``, with all its digits where it is small."""
    tables = _TABLES[x.bits]
    a = clip_above(abs(x), tables.zero)
    q = (a - tables.erfc_centre) / (a + tables.erfc_centre)
    y = polynomial(q, tables.erfc) / (a + a + 1.0)
    square = a * a
    square_error = a.fma(a, -square)
    y = y * exp(-square, -square_error)
    return (a < 0.5).select(1.0 - _erf_near(x), (x < 0).select(2.0 - y, y))


def _erf_near(x: Traced) -> Traced:
    """The error function for small x."""
    return x.fma(polynomial(x * x, _TABLES[x.bits].erf_near), x)
