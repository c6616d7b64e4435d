"""Mathematical functions: ``df.math``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.math import special as special
    from dualflow.ops.arithmetic import abs as abs
    from dualflow.ops.arithmetic import add as add
    from dualflow.ops.arithmetic import add_n as add_n
    from dualflow.ops.arithmetic import divide as divide
    from dualflow.ops.arithmetic import divide_no_nan as divide_no_nan
    from dualflow.ops.arithmetic import floordiv as floordiv
    from dualflow.ops.arithmetic import maximum as maximum
    from dualflow.ops.arithmetic import minimum as minimum
    from dualflow.ops.arithmetic import mod as mod
    from dualflow.ops.arithmetic import multiply as multiply
    from dualflow.ops.arithmetic import multiply_no_nan as multiply_no_nan
    from dualflow.ops.arithmetic import negative as negative
    from dualflow.ops.arithmetic import sign as sign
    from dualflow.ops.arithmetic import square as square
    from dualflow.ops.arithmetic import squared_difference as squared_difference
    from dualflow.ops.arithmetic import subtract as subtract
    from dualflow.ops.broadcasting import reduce_sum as reduce_sum
    from dualflow.ops.comparison import equal as equal
    from dualflow.ops.comparison import greater as greater
    from dualflow.ops.comparison import greater_equal as greater_equal
    from dualflow.ops.comparison import isfinite as isfinite
    from dualflow.ops.comparison import isinf as isinf
    from dualflow.ops.comparison import isnan as isnan
    from dualflow.ops.comparison import less as less
    from dualflow.ops.comparison import less_equal as less_equal
    from dualflow.ops.comparison import logical_and as logical_and
    from dualflow.ops.comparison import logical_not as logical_not
    from dualflow.ops.comparison import logical_or as logical_or
    from dualflow.ops.comparison import logical_xor as logical_xor
    from dualflow.ops.comparison import not_equal as not_equal
    from dualflow.ops.complex_numbers import complex as complex
    from dualflow.ops.complex_numbers import conj as conj
    from dualflow.ops.complex_numbers import imag as imag
    from dualflow.ops.complex_numbers import real as real
    from dualflow.ops.counting.bins import bincount as bincount
    from dualflow.ops.counting.confusion import confusion_matrix as confusion_matrix
    from dualflow.ops.counting.confusion import zero_fraction as zero_fraction
    from dualflow.ops.cumulative.running import cumprod as cumprod
    from dualflow.ops.cumulative.running import cumulative_logsumexp as cumulative_logsumexp
    from dualflow.ops.elementary.quotients import reciprocal_no_nan as reciprocal_no_nan
    from dualflow.ops.elementary.quotients import scalar_mul as scalar_mul
    from dualflow.ops.elementary.values import accumulate_n as accumulate_n
    from dualflow.ops.elementary.values import angle as angle
    from dualflow.ops.elementary.values import nextafter as nextafter
    from dualflow.ops.elementary.values import polyval as polyval
    from dualflow.ops.exponential import exp as exp
    from dualflow.ops.exponential import expm1 as expm1
    from dualflow.ops.exponential import log1p as log1p
    from dualflow.ops.exponential import log_sigmoid as log_sigmoid
    from dualflow.ops.exponential import logaddexp as logaddexp
    from dualflow.ops.exponential import sigmoid as sigmoid
    from dualflow.ops.exponential import softplus as softplus
    from dualflow.ops.neural.activations import log_softmax as log_softmax
    from dualflow.ops.neural.activations import softmax as softmax
    from dualflow.ops.neural.activations import softsign as softsign
    from dualflow.ops.neural.normalization import l2_normalize as l2_normalize
    from dualflow.ops.ordering.extremes import top_k as top_k
    from dualflow.ops.ordering.permutations import invert_permutation as invert_permutation
    from dualflow.ops.ordering.permutations import is_non_decreasing as is_non_decreasing
    from dualflow.ops.ordering.permutations import is_strictly_increasing as is_strictly_increasing
    from dualflow.ops.ordering.tops import approx_max_k as approx_max_k
    from dualflow.ops.ordering.tops import approx_min_k as approx_min_k
    from dualflow.ops.ordering.tops import in_top_k as in_top_k
    from dualflow.ops.powers import log as log
    from dualflow.ops.powers import pow as pow
    from dualflow.ops.powers import reciprocal as reciprocal
    from dualflow.ops.powers import rsqrt as rsqrt
    from dualflow.ops.powers import sqrt as sqrt
    from dualflow.ops.reduction import argmax as argmax
    from dualflow.ops.reduction import argmin as argmin
    from dualflow.ops.reduction import reduce_all as reduce_all
    from dualflow.ops.reduction import reduce_any as reduce_any
    from dualflow.ops.reduction import reduce_max as reduce_max
    from dualflow.ops.reduction import reduce_min as reduce_min
    from dualflow.ops.reduction import reduce_prod as reduce_prod
    from dualflow.ops.rounding import ceil as ceil
    from dualflow.ops.rounding import floor as floor
    from dualflow.ops.rounding import round as round
    from dualflow.ops.rounding import trunc as trunc
    from dualflow.ops.scans import cumsum as cumsum
    from dualflow.ops.segments.segments import segment_max as segment_max
    from dualflow.ops.segments.segments import segment_mean as segment_mean
    from dualflow.ops.segments.segments import segment_min as segment_min
    from dualflow.ops.segments.segments import segment_prod as segment_prod
    from dualflow.ops.segments.segments import segment_sum as segment_sum
    from dualflow.ops.segments.segments import unsorted_segment_max as unsorted_segment_max
    from dualflow.ops.segments.segments import unsorted_segment_mean as unsorted_segment_mean
    from dualflow.ops.segments.segments import unsorted_segment_min as unsorted_segment_min
    from dualflow.ops.segments.segments import unsorted_segment_prod as unsorted_segment_prod
    from dualflow.ops.segments.segments import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
    from dualflow.ops.segments.segments import unsorted_segment_sum as unsorted_segment_sum
    from dualflow.ops.special import erf as erf
    from dualflow.ops.special import erfc as erfc
    from dualflow.ops.special_functions.bessel import bessel_i0 as bessel_i0
    from dualflow.ops.special_functions.bessel import bessel_i0e as bessel_i0e
    from dualflow.ops.special_functions.bessel import bessel_i1 as bessel_i1
    from dualflow.ops.special_functions.bessel import bessel_i1e as bessel_i1e
    from dualflow.ops.special_functions.gamma import betainc as betainc
    from dualflow.ops.special_functions.gamma import digamma as digamma
    from dualflow.ops.special_functions.gamma import igamma as igamma
    from dualflow.ops.special_functions.gamma import igammac as igammac
    from dualflow.ops.special_functions.gamma import lbeta as lbeta
    from dualflow.ops.special_functions.gamma import lgamma as lgamma
    from dualflow.ops.special_functions.gamma import polygamma as polygamma
    from dualflow.ops.special_functions.gamma import zeta as zeta
    from dualflow.ops.special_functions.inverse_error_functions import erfcinv as erfcinv
    from dualflow.ops.special_functions.inverse_error_functions import erfinv as erfinv
    from dualflow.ops.special_functions.inverse_error_functions import ndtri as ndtri
    from dualflow.ops.special_functions.sobol import sobol_sample as sobol_sample
    from dualflow.ops.special_functions.vanishing import xdivy as xdivy
    from dualflow.ops.special_functions.vanishing import xlog1py as xlog1py
    from dualflow.ops.special_functions.vanishing import xlogy as xlogy
    from dualflow.ops.statistics import count_nonzero as count_nonzero
    from dualflow.ops.statistics import reduce_euclidean_norm as reduce_euclidean_norm
    from dualflow.ops.statistics import reduce_logsumexp as reduce_logsumexp
    from dualflow.ops.statistics import reduce_mean as reduce_mean
    from dualflow.ops.statistics import reduce_std as reduce_std
    from dualflow.ops.statistics import reduce_variance as reduce_variance
    from dualflow.ops.trigonometric import acos as acos
    from dualflow.ops.trigonometric import acosh as acosh
    from dualflow.ops.trigonometric import asin as asin
    from dualflow.ops.trigonometric import asinh as asinh
    from dualflow.ops.trigonometric import atan as atan
    from dualflow.ops.trigonometric import atan2 as atan2
    from dualflow.ops.trigonometric import atanh as atanh
    from dualflow.ops.trigonometric import cos as cos
    from dualflow.ops.trigonometric import cosh as cosh
    from dualflow.ops.trigonometric import sin as sin
    from dualflow.ops.trigonometric import sinh as sinh
    from dualflow.ops.trigonometric import tan as tan
    from dualflow.ops.trigonometric import tanh as tanh

    floormod = mod
    truediv = divide
    is_finite, is_inf, is_nan = isfinite, isinf, isnan
    rint = round

_publish(
    globals(),
    lazy={
        "dualflow.math": "special",
        "dualflow.ops.arithmetic": (
            "abs add add_n divide divide_no_nan floordiv maximum minimum mod multiply multiply_no_nan "
            "negative sign square squared_difference subtract floormod=mod truediv=divide"
        ),
        "dualflow.ops.broadcasting": "reduce_sum",
        "dualflow.ops.comparison": (
            "equal greater greater_equal isfinite isinf isnan less less_equal logical_and logical_not "
            "logical_or logical_xor not_equal is_finite=isfinite is_inf=isinf is_nan=isnan"
        ),
        "dualflow.ops.complex_numbers": "complex conj imag real",
        "dualflow.ops.counting.bins": "bincount",
        "dualflow.ops.counting.confusion": "confusion_matrix zero_fraction",
        "dualflow.ops.cumulative.running": "cumprod cumulative_logsumexp",
        "dualflow.ops.elementary.quotients": "reciprocal_no_nan scalar_mul",
        "dualflow.ops.elementary.values": "accumulate_n angle nextafter polyval",
        "dualflow.ops.exponential": "exp expm1 log1p log_sigmoid logaddexp sigmoid softplus",
        "dualflow.ops.neural.activations": "log_softmax softmax softsign",
        "dualflow.ops.neural.normalization": "l2_normalize",
        "dualflow.ops.ordering.extremes": "top_k",
        "dualflow.ops.ordering.permutations": "invert_permutation is_non_decreasing is_strictly_increasing",
        "dualflow.ops.ordering.tops": "approx_max_k approx_min_k in_top_k",
        "dualflow.ops.powers": "log pow reciprocal rsqrt sqrt",
        "dualflow.ops.reduction": "argmax argmin reduce_all reduce_any reduce_max reduce_min reduce_prod",
        "dualflow.ops.rounding": "ceil floor round trunc rint=round",
        "dualflow.ops.scans": "cumsum",
        "dualflow.ops.segments.segments": (
            "segment_max segment_mean segment_min segment_prod segment_sum unsorted_segment_max "
            "unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n "
            "unsorted_segment_sum"
        ),
        "dualflow.ops.special": "erf erfc",
        "dualflow.ops.special_functions.bessel": "bessel_i0 bessel_i0e bessel_i1 bessel_i1e",
        "dualflow.ops.special_functions.gamma": "betainc digamma igamma igammac lbeta lgamma polygamma zeta",
        "dualflow.ops.special_functions.inverse_error_functions": "erfcinv erfinv ndtri",
        "dualflow.ops.special_functions.sobol": "sobol_sample",
        "dualflow.ops.special_functions.vanishing": "xdivy xlog1py xlogy",
        "dualflow.ops.statistics": (
            "count_nonzero reduce_euclidean_norm reduce_logsumexp reduce_mean reduce_std reduce_variance"
        ),
        "dualflow.ops.trigonometric": "acos acosh asin asinh atan atan2 atanh cos cosh sin sinh tan tanh",
    },
)
