"""NumPy's functions on tensors, by NumPy's names, arguments and promotion: ``df.numpy``.

Arguments are tensors, variables, arrays, Python numbers or lists of them; results are tensors. Dtypes are
those of NumPy 2: Python's numbers have 64 bits on their own, and adapt to a tensor that they are combined
with. All are composed of ops, so they have gradients and compile. Tensors don't change: no function takes
``out``.

>>> import dualflow as df
>>> import dualflow.numpy as dnp
>>> x = df.constant([3.0, 4.0])
>>> with df.GradientTape() as tape:
...     tape.watch(x)
...     y = dnp.sqrt(dnp.sum(x**2))
>>> y.numpy(), tape.gradient(y, x).numpy()
(np.float32(5.0), array([0.6, 0.8], dtype=float32))
"""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.numpy import fft as fft
    from dualflow.numpy import linalg as linalg
    from dualflow.numpy import random as random
    from dualflow.numpy.accumulation import cumprod as cumprod
    from dualflow.numpy.accumulation import cumsum as cumsum
    from dualflow.numpy.accumulation import cumulative_prod as cumulative_prod
    from dualflow.numpy.accumulation import cumulative_sum as cumulative_sum
    from dualflow.numpy.applying import apply_along_axis as apply_along_axis
    from dualflow.numpy.applying import apply_over_axes as apply_over_axes
    from dualflow.numpy.applying import vectorize as vectorize
    from dualflow.numpy.averages import average as average
    from dualflow.numpy.averages import mean as mean
    from dualflow.numpy.averages import std as std
    from dualflow.numpy.averages import var as var
    from dualflow.numpy.behaviour import (
        experimental_enable_numpy_behavior as experimental_enable_numpy_behavior,
    )
    from dualflow.numpy.calculus import convolve as convolve
    from dualflow.numpy.calculus import correlate as correlate
    from dualflow.numpy.calculus import diff as diff
    from dualflow.numpy.calculus import ediff1d as ediff1d
    from dualflow.numpy.calculus import gradient as gradient
    from dualflow.numpy.calculus import interp as interp
    from dualflow.numpy.calculus import trapezoid as trapezoid
    from dualflow.numpy.calculus import unwrap as unwrap
    from dualflow.numpy.comparisons import bitwise_and as bitwise_and
    from dualflow.numpy.comparisons import bitwise_count as bitwise_count
    from dualflow.numpy.comparisons import bitwise_invert as bitwise_invert
    from dualflow.numpy.comparisons import bitwise_left_shift as bitwise_left_shift
    from dualflow.numpy.comparisons import bitwise_not as bitwise_not
    from dualflow.numpy.comparisons import bitwise_or as bitwise_or
    from dualflow.numpy.comparisons import bitwise_right_shift as bitwise_right_shift
    from dualflow.numpy.comparisons import bitwise_xor as bitwise_xor
    from dualflow.numpy.comparisons import equal as equal
    from dualflow.numpy.comparisons import greater as greater
    from dualflow.numpy.comparisons import greater_equal as greater_equal
    from dualflow.numpy.comparisons import invert as invert
    from dualflow.numpy.comparisons import isfinite as isfinite
    from dualflow.numpy.comparisons import isinf as isinf
    from dualflow.numpy.comparisons import isnan as isnan
    from dualflow.numpy.comparisons import left_shift as left_shift
    from dualflow.numpy.comparisons import less as less
    from dualflow.numpy.comparisons import less_equal as less_equal
    from dualflow.numpy.comparisons import logical_and as logical_and
    from dualflow.numpy.comparisons import logical_not as logical_not
    from dualflow.numpy.comparisons import logical_or as logical_or
    from dualflow.numpy.comparisons import logical_xor as logical_xor
    from dualflow.numpy.comparisons import not_equal as not_equal
    from dualflow.numpy.comparisons import right_shift as right_shift
    from dualflow.numpy.concatenation import append as append
    from dualflow.numpy.concatenation import block as block
    from dualflow.numpy.concatenation import column_stack as column_stack
    from dualflow.numpy.concatenation import concat as concat
    from dualflow.numpy.concatenation import concatenate as concatenate
    from dualflow.numpy.concatenation import dstack as dstack
    from dualflow.numpy.concatenation import hstack as hstack
    from dualflow.numpy.concatenation import stack as stack
    from dualflow.numpy.concatenation import unstack as unstack
    from dualflow.numpy.concatenation import vstack as vstack
    from dualflow.numpy.constants import e as e
    from dualflow.numpy.constants import euler_gamma as euler_gamma
    from dualflow.numpy.constants import inf as inf
    from dualflow.numpy.constants import nan as nan
    from dualflow.numpy.constants import newaxis as newaxis
    from dualflow.numpy.constants import pi as pi
    from dualflow.numpy.creation import array as array
    from dualflow.numpy.creation import asanyarray as asanyarray
    from dualflow.numpy.creation import asarray as asarray
    from dualflow.numpy.creation import ascontiguousarray as ascontiguousarray
    from dualflow.numpy.creation import astype as astype
    from dualflow.numpy.creation import copy as copy
    from dualflow.numpy.creation import empty as empty
    from dualflow.numpy.creation import empty_like as empty_like
    from dualflow.numpy.creation import full as full
    from dualflow.numpy.creation import full_like as full_like
    from dualflow.numpy.creation import ones as ones
    from dualflow.numpy.creation import ones_like as ones_like
    from dualflow.numpy.creation import zeros as zeros
    from dualflow.numpy.creation import zeros_like as zeros_like
    from dualflow.numpy.data_types import bool as bool
    from dualflow.numpy.data_types import bool_ as bool_
    from dualflow.numpy.data_types import can_cast as can_cast
    from dualflow.numpy.data_types import cdouble as cdouble
    from dualflow.numpy.data_types import common_type as common_type
    from dualflow.numpy.data_types import complex64 as complex64
    from dualflow.numpy.data_types import complex128 as complex128
    from dualflow.numpy.data_types import complex_ as complex_
    from dualflow.numpy.data_types import csingle as csingle
    from dualflow.numpy.data_types import double as double
    from dualflow.numpy.data_types import dtype as dtype
    from dualflow.numpy.data_types import finfo as finfo
    from dualflow.numpy.data_types import float16 as float16
    from dualflow.numpy.data_types import float32 as float32
    from dualflow.numpy.data_types import float64 as float64
    from dualflow.numpy.data_types import float_ as float_
    from dualflow.numpy.data_types import half as half
    from dualflow.numpy.data_types import iinfo as iinfo
    from dualflow.numpy.data_types import int8 as int8
    from dualflow.numpy.data_types import int16 as int16
    from dualflow.numpy.data_types import int32 as int32
    from dualflow.numpy.data_types import int64 as int64
    from dualflow.numpy.data_types import int_ as int_
    from dualflow.numpy.data_types import isdtype as isdtype
    from dualflow.numpy.data_types import issubdtype as issubdtype
    from dualflow.numpy.data_types import min_scalar_type as min_scalar_type
    from dualflow.numpy.data_types import ndarray as ndarray
    from dualflow.numpy.data_types import promote_types as promote_types
    from dualflow.numpy.data_types import result_type as result_type
    from dualflow.numpy.data_types import single as single
    from dualflow.numpy.data_types import uint as uint
    from dualflow.numpy.data_types import uint8 as uint8
    from dualflow.numpy.data_types import uint16 as uint16
    from dualflow.numpy.data_types import uint32 as uint32
    from dualflow.numpy.data_types import uint64 as uint64
    from dualflow.numpy.diagonals import diag as diag
    from dualflow.numpy.diagonals import diagflat as diagflat
    from dualflow.numpy.diagonals import diagonal as diagonal
    from dualflow.numpy.diagonals import trace as trace
    from dualflow.numpy.diagonals import tril as tril
    from dualflow.numpy.diagonals import triu as triu
    from dualflow.numpy.distinct import intersect1d as intersect1d
    from dualflow.numpy.distinct import isin as isin
    from dualflow.numpy.distinct import setdiff1d as setdiff1d
    from dualflow.numpy.distinct import setxor1d as setxor1d
    from dualflow.numpy.distinct import union1d as union1d
    from dualflow.numpy.distinct import unique as unique
    from dualflow.numpy.distinct import unique_all as unique_all
    from dualflow.numpy.distinct import unique_counts as unique_counts
    from dualflow.numpy.distinct import unique_inverse as unique_inverse
    from dualflow.numpy.distinct import unique_values as unique_values
    from dualflow.numpy.editing import delete as delete
    from dualflow.numpy.editing import insert as insert
    from dualflow.numpy.editing import pad as pad
    from dualflow.numpy.editing import trim_zeros as trim_zeros
    from dualflow.numpy.einsum import einsum as einsum
    from dualflow.numpy.einsum import einsum_path as einsum_path
    from dualflow.numpy.elementwise import abs as abs
    from dualflow.numpy.elementwise import absolute as absolute
    from dualflow.numpy.elementwise import acos as acos
    from dualflow.numpy.elementwise import acosh as acosh
    from dualflow.numpy.elementwise import add as add
    from dualflow.numpy.elementwise import arccos as arccos
    from dualflow.numpy.elementwise import arccosh as arccosh
    from dualflow.numpy.elementwise import arcsin as arcsin
    from dualflow.numpy.elementwise import arcsinh as arcsinh
    from dualflow.numpy.elementwise import arctan as arctan
    from dualflow.numpy.elementwise import arctan2 as arctan2
    from dualflow.numpy.elementwise import arctanh as arctanh
    from dualflow.numpy.elementwise import asin as asin
    from dualflow.numpy.elementwise import asinh as asinh
    from dualflow.numpy.elementwise import atan as atan
    from dualflow.numpy.elementwise import atan2 as atan2
    from dualflow.numpy.elementwise import atanh as atanh
    from dualflow.numpy.elementwise import cbrt as cbrt
    from dualflow.numpy.elementwise import ceil as ceil
    from dualflow.numpy.elementwise import conj as conj
    from dualflow.numpy.elementwise import conjugate as conjugate
    from dualflow.numpy.elementwise import copysign as copysign
    from dualflow.numpy.elementwise import cos as cos
    from dualflow.numpy.elementwise import cosh as cosh
    from dualflow.numpy.elementwise import deg2rad as deg2rad
    from dualflow.numpy.elementwise import degrees as degrees
    from dualflow.numpy.elementwise import divide as divide
    from dualflow.numpy.elementwise import divmod as divmod
    from dualflow.numpy.elementwise import exp as exp
    from dualflow.numpy.elementwise import exp2 as exp2
    from dualflow.numpy.elementwise import expm1 as expm1
    from dualflow.numpy.elementwise import fabs as fabs
    from dualflow.numpy.elementwise import float_power as float_power
    from dualflow.numpy.elementwise import floor as floor
    from dualflow.numpy.elementwise import floor_divide as floor_divide
    from dualflow.numpy.elementwise import fmax as fmax
    from dualflow.numpy.elementwise import fmin as fmin
    from dualflow.numpy.elementwise import fmod as fmod
    from dualflow.numpy.elementwise import frexp as frexp
    from dualflow.numpy.elementwise import gcd as gcd
    from dualflow.numpy.elementwise import heaviside as heaviside
    from dualflow.numpy.elementwise import hypot as hypot
    from dualflow.numpy.elementwise import lcm as lcm
    from dualflow.numpy.elementwise import ldexp as ldexp
    from dualflow.numpy.elementwise import log as log
    from dualflow.numpy.elementwise import log1p as log1p
    from dualflow.numpy.elementwise import log2 as log2
    from dualflow.numpy.elementwise import log10 as log10
    from dualflow.numpy.elementwise import logaddexp as logaddexp
    from dualflow.numpy.elementwise import logaddexp2 as logaddexp2
    from dualflow.numpy.elementwise import maximum as maximum
    from dualflow.numpy.elementwise import minimum as minimum
    from dualflow.numpy.elementwise import mod as mod
    from dualflow.numpy.elementwise import modf as modf
    from dualflow.numpy.elementwise import multiply as multiply
    from dualflow.numpy.elementwise import negative as negative
    from dualflow.numpy.elementwise import nextafter as nextafter
    from dualflow.numpy.elementwise import positive as positive
    from dualflow.numpy.elementwise import pow as pow
    from dualflow.numpy.elementwise import power as power
    from dualflow.numpy.elementwise import rad2deg as rad2deg
    from dualflow.numpy.elementwise import radians as radians
    from dualflow.numpy.elementwise import reciprocal as reciprocal
    from dualflow.numpy.elementwise import remainder as remainder
    from dualflow.numpy.elementwise import rint as rint
    from dualflow.numpy.elementwise import sign as sign
    from dualflow.numpy.elementwise import signbit as signbit
    from dualflow.numpy.elementwise import sin as sin
    from dualflow.numpy.elementwise import sinh as sinh
    from dualflow.numpy.elementwise import spacing as spacing
    from dualflow.numpy.elementwise import sqrt as sqrt
    from dualflow.numpy.elementwise import square as square
    from dualflow.numpy.elementwise import subtract as subtract
    from dualflow.numpy.elementwise import tan as tan
    from dualflow.numpy.elementwise import tanh as tanh
    from dualflow.numpy.elementwise import true_divide as true_divide
    from dualflow.numpy.elementwise import trunc as trunc
    from dualflow.numpy.equality import allclose as allclose
    from dualflow.numpy.equality import array_equal as array_equal
    from dualflow.numpy.equality import array_equiv as array_equiv
    from dualflow.numpy.equality import isclose as isclose
    from dualflow.numpy.fitting import polyfit as polyfit
    from dualflow.numpy.fitting import roots as roots
    from dualflow.numpy.histograms import bincount as bincount
    from dualflow.numpy.histograms import histogram as histogram
    from dualflow.numpy.histograms import histogram2d as histogram2d
    from dualflow.numpy.histograms import histogram_bin_edges as histogram_bin_edges
    from dualflow.numpy.histograms import histogramdd as histogramdd
    from dualflow.numpy.index_grids import diag_indices as diag_indices
    from dualflow.numpy.index_grids import diag_indices_from as diag_indices_from
    from dualflow.numpy.index_grids import ix_ as ix_
    from dualflow.numpy.index_grids import mask_indices as mask_indices
    from dualflow.numpy.index_grids import ravel_multi_index as ravel_multi_index
    from dualflow.numpy.index_grids import tril_indices as tril_indices
    from dualflow.numpy.index_grids import tril_indices_from as tril_indices_from
    from dualflow.numpy.index_grids import triu_indices as triu_indices
    from dualflow.numpy.index_grids import triu_indices_from as triu_indices_from
    from dualflow.numpy.index_grids import unravel_index as unravel_index
    from dualflow.numpy.index_notation import c_ as c_
    from dualflow.numpy.index_notation import index_exp as index_exp
    from dualflow.numpy.index_notation import mgrid as mgrid
    from dualflow.numpy.index_notation import ogrid as ogrid
    from dualflow.numpy.index_notation import r_ as r_
    from dualflow.numpy.index_notation import s_ as s_
    from dualflow.numpy.indexing import argwhere as argwhere
    from dualflow.numpy.indexing import choose as choose
    from dualflow.numpy.indexing import compress as compress
    from dualflow.numpy.indexing import extract as extract
    from dualflow.numpy.indexing import flatnonzero as flatnonzero
    from dualflow.numpy.indexing import nonzero as nonzero
    from dualflow.numpy.indexing import piecewise as piecewise
    from dualflow.numpy.indexing import put_along_axis as put_along_axis
    from dualflow.numpy.indexing import select as select
    from dualflow.numpy.indexing import take as take
    from dualflow.numpy.indexing import take_along_axis as take_along_axis
    from dualflow.numpy.indexing import where as where
    from dualflow.numpy.manipulation import atleast_1d as atleast_1d
    from dualflow.numpy.manipulation import atleast_2d as atleast_2d
    from dualflow.numpy.manipulation import atleast_3d as atleast_3d
    from dualflow.numpy.manipulation import broadcast_arrays as broadcast_arrays
    from dualflow.numpy.manipulation import broadcast_shapes as broadcast_shapes
    from dualflow.numpy.manipulation import broadcast_to as broadcast_to
    from dualflow.numpy.manipulation import expand_dims as expand_dims
    from dualflow.numpy.manipulation import matrix_transpose as matrix_transpose
    from dualflow.numpy.manipulation import moveaxis as moveaxis
    from dualflow.numpy.manipulation import ndim as ndim
    from dualflow.numpy.manipulation import permute_dims as permute_dims
    from dualflow.numpy.manipulation import ravel as ravel
    from dualflow.numpy.manipulation import reshape as reshape
    from dualflow.numpy.manipulation import rollaxis as rollaxis
    from dualflow.numpy.manipulation import shape as shape
    from dualflow.numpy.manipulation import size as size
    from dualflow.numpy.manipulation import squeeze as squeeze
    from dualflow.numpy.manipulation import swapaxes as swapaxes
    from dualflow.numpy.manipulation import transpose as transpose
    from dualflow.numpy.matrices import eye as eye
    from dualflow.numpy.matrices import from_dlpack as from_dlpack
    from dualflow.numpy.matrices import frombuffer as frombuffer
    from dualflow.numpy.matrices import fromfunction as fromfunction
    from dualflow.numpy.matrices import fromiter as fromiter
    from dualflow.numpy.matrices import identity as identity
    from dualflow.numpy.matrices import indices as indices
    from dualflow.numpy.matrices import meshgrid as meshgrid
    from dualflow.numpy.matrices import tri as tri
    from dualflow.numpy.matrices import vander as vander
    from dualflow.numpy.number_parts import angle as angle
    from dualflow.numpy.number_parts import around as around
    from dualflow.numpy.number_parts import clip as clip
    from dualflow.numpy.number_parts import fix as fix
    from dualflow.numpy.number_parts import i0 as i0
    from dualflow.numpy.number_parts import imag as imag
    from dualflow.numpy.number_parts import iscomplex as iscomplex
    from dualflow.numpy.number_parts import iscomplexobj as iscomplexobj
    from dualflow.numpy.number_parts import isneginf as isneginf
    from dualflow.numpy.number_parts import isposinf as isposinf
    from dualflow.numpy.number_parts import isreal as isreal
    from dualflow.numpy.number_parts import isrealobj as isrealobj
    from dualflow.numpy.number_parts import isscalar as isscalar
    from dualflow.numpy.number_parts import iterable as iterable
    from dualflow.numpy.number_parts import nan_to_num as nan_to_num
    from dualflow.numpy.number_parts import real as real
    from dualflow.numpy.number_parts import real_if_close as real_if_close
    from dualflow.numpy.number_parts import round as round
    from dualflow.numpy.number_parts import sinc as sinc
    from dualflow.numpy.polynomials import poly as poly
    from dualflow.numpy.polynomials import polyadd as polyadd
    from dualflow.numpy.polynomials import polyder as polyder
    from dualflow.numpy.polynomials import polydiv as polydiv
    from dualflow.numpy.polynomials import polyint as polyint
    from dualflow.numpy.polynomials import polymul as polymul
    from dualflow.numpy.polynomials import polysub as polysub
    from dualflow.numpy.polynomials import polyval as polyval
    from dualflow.numpy.products import cross as cross
    from dualflow.numpy.products import dot as dot
    from dualflow.numpy.products import inner as inner
    from dualflow.numpy.products import kron as kron
    from dualflow.numpy.products import matmul as matmul
    from dualflow.numpy.products import matvec as matvec
    from dualflow.numpy.products import outer as outer
    from dualflow.numpy.products import tensordot as tensordot
    from dualflow.numpy.products import vdot as vdot
    from dualflow.numpy.products import vecdot as vecdot
    from dualflow.numpy.products import vecmat as vecmat
    from dualflow.numpy.quantiles import median as median
    from dualflow.numpy.quantiles import nanmedian as nanmedian
    from dualflow.numpy.quantiles import nanpercentile as nanpercentile
    from dualflow.numpy.quantiles import nanquantile as nanquantile
    from dualflow.numpy.quantiles import percentile as percentile
    from dualflow.numpy.quantiles import quantile as quantile
    from dualflow.numpy.ranges import arange as arange
    from dualflow.numpy.ranges import geomspace as geomspace
    from dualflow.numpy.ranges import linspace as linspace
    from dualflow.numpy.ranges import logspace as logspace
    from dualflow.numpy.reductions import all as all
    from dualflow.numpy.reductions import amax as amax
    from dualflow.numpy.reductions import amin as amin
    from dualflow.numpy.reductions import any as any
    from dualflow.numpy.reductions import argmax as argmax
    from dualflow.numpy.reductions import argmin as argmin
    from dualflow.numpy.reductions import count_nonzero as count_nonzero
    from dualflow.numpy.reductions import max as max
    from dualflow.numpy.reductions import min as min
    from dualflow.numpy.reductions import prod as prod
    from dualflow.numpy.reductions import ptp as ptp
    from dualflow.numpy.reductions import sum as sum
    from dualflow.numpy.reordering import flip as flip
    from dualflow.numpy.reordering import fliplr as fliplr
    from dualflow.numpy.reordering import flipud as flipud
    from dualflow.numpy.reordering import repeat as repeat
    from dualflow.numpy.reordering import resize as resize
    from dualflow.numpy.reordering import roll as roll
    from dualflow.numpy.reordering import rot90 as rot90
    from dualflow.numpy.reordering import tile as tile
    from dualflow.numpy.sorting import argpartition as argpartition
    from dualflow.numpy.sorting import argsort as argsort
    from dualflow.numpy.sorting import digitize as digitize
    from dualflow.numpy.sorting import lexsort as lexsort
    from dualflow.numpy.sorting import partition as partition
    from dualflow.numpy.sorting import searchsorted as searchsorted
    from dualflow.numpy.sorting import sort as sort
    from dualflow.numpy.sorting import sort_complex as sort_complex
    from dualflow.numpy.splitting import array_split as array_split
    from dualflow.numpy.splitting import dsplit as dsplit
    from dualflow.numpy.splitting import hsplit as hsplit
    from dualflow.numpy.splitting import split as split
    from dualflow.numpy.splitting import vsplit as vsplit
    from dualflow.numpy.statistics import corrcoef as corrcoef
    from dualflow.numpy.statistics import cov as cov
    from dualflow.numpy.windows import bartlett as bartlett
    from dualflow.numpy.windows import blackman as blackman
    from dualflow.numpy.windows import hamming as hamming
    from dualflow.numpy.windows import hanning as hanning
    from dualflow.numpy.windows import kaiser as kaiser
    from dualflow.numpy.without_nan import nanargmax as nanargmax
    from dualflow.numpy.without_nan import nanargmin as nanargmin
    from dualflow.numpy.without_nan import nancumprod as nancumprod
    from dualflow.numpy.without_nan import nancumsum as nancumsum
    from dualflow.numpy.without_nan import nanmax as nanmax
    from dualflow.numpy.without_nan import nanmean as nanmean
    from dualflow.numpy.without_nan import nanmin as nanmin
    from dualflow.numpy.without_nan import nanprod as nanprod
    from dualflow.numpy.without_nan import nanstd as nanstd
    from dualflow.numpy.without_nan import nansum as nansum
    from dualflow.numpy.without_nan import nanvar as nanvar

_publish(
    globals(),
    lazy={
        "dualflow.numpy": "fft linalg random",
        "dualflow.numpy.accumulation": "cumprod cumsum cumulative_prod cumulative_sum",
        "dualflow.numpy.applying": "apply_along_axis apply_over_axes vectorize",
        "dualflow.numpy.averages": "average mean std var",
        "dualflow.numpy.behaviour": "experimental_enable_numpy_behavior",
        "dualflow.numpy.calculus": "convolve correlate diff ediff1d gradient interp trapezoid unwrap",
        "dualflow.numpy.comparisons": (
            "bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or "
            "bitwise_right_shift bitwise_xor equal greater greater_equal invert isfinite isinf isnan "
            "left_shift less less_equal logical_and logical_not logical_or logical_xor not_equal "
            "right_shift"
        ),
        "dualflow.numpy.concatenation": (
            "append block column_stack concat concatenate dstack hstack stack unstack vstack"
        ),
        "dualflow.numpy.constants": "e euler_gamma inf nan newaxis pi",
        "dualflow.numpy.creation": (
            "array asanyarray asarray ascontiguousarray astype copy empty empty_like full full_like ones "
            "ones_like zeros zeros_like"
        ),
        "dualflow.numpy.data_types": (
            "bool bool_ can_cast cdouble common_type complex128 complex64 complex_ csingle double dtype "
            "finfo float16 float32 float64 float_ half iinfo int16 int32 int64 int8 int_ isdtype issubdtype "
            "min_scalar_type ndarray promote_types result_type single uint uint16 uint32 uint64 uint8"
        ),
        "dualflow.numpy.diagonals": "diag diagflat diagonal trace tril triu",
        "dualflow.numpy.distinct": (
            "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse "
            "unique_values"
        ),
        "dualflow.numpy.editing": "delete insert pad trim_zeros",
        "dualflow.numpy.einsum": "einsum einsum_path",
        "dualflow.numpy.elementwise": (
            "abs absolute acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh "
            "atan atan2 atanh cbrt ceil conj conjugate copysign cos cosh deg2rad degrees divide divmod exp "
            "exp2 expm1 fabs float_power floor floor_divide fmax fmin fmod frexp gcd heaviside hypot lcm "
            "ldexp log log10 log1p log2 logaddexp logaddexp2 maximum minimum mod modf multiply negative "
            "nextafter positive pow power rad2deg radians reciprocal remainder rint sign signbit sin sinh "
            "spacing sqrt square subtract tan tanh true_divide trunc"
        ),
        "dualflow.numpy.equality": "allclose array_equal array_equiv isclose",
        "dualflow.numpy.fitting": "polyfit roots",
        "dualflow.numpy.index_notation": "c_ index_exp mgrid ogrid r_ s_",
        "dualflow.numpy.histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
        "dualflow.numpy.index_grids": (
            "diag_indices diag_indices_from ix_ mask_indices ravel_multi_index tril_indices "
            "tril_indices_from triu_indices triu_indices_from unravel_index"
        ),
        "dualflow.numpy.indexing": (
            "argwhere choose compress extract flatnonzero nonzero piecewise put_along_axis select take "
            "take_along_axis where"
        ),
        "dualflow.numpy.manipulation": (
            "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to expand_dims "
            "matrix_transpose moveaxis ndim permute_dims ravel reshape rollaxis shape size squeeze swapaxes "
            "transpose"
        ),
        "dualflow.numpy.matrices": (
            "eye from_dlpack frombuffer fromfunction fromiter identity indices meshgrid tri vander"
        ),
        "dualflow.numpy.number_parts": (
            "angle around clip fix i0 imag iscomplex iscomplexobj isneginf isposinf isreal isrealobj "
            "isscalar iterable nan_to_num real real_if_close round sinc"
        ),
        "dualflow.numpy.polynomials": "poly polyadd polyder polydiv polyint polymul polysub polyval",
        "dualflow.numpy.products": ("cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat"),
        "dualflow.numpy.quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
        "dualflow.numpy.ranges": "arange geomspace linspace logspace",
        "dualflow.numpy.reductions": ("all amax amin any argmax argmin count_nonzero max min prod ptp sum"),
        "dualflow.numpy.reordering": "flip fliplr flipud repeat resize roll rot90 tile",
        "dualflow.numpy.sorting": (
            "argpartition argsort digitize lexsort partition searchsorted sort sort_complex"
        ),
        "dualflow.numpy.splitting": "array_split dsplit hsplit split vsplit",
        "dualflow.numpy.statistics": "corrcoef cov",
        "dualflow.numpy.windows": "bartlett blackman hamming hanning kaiser",
        "dualflow.numpy.without_nan": (
            "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar"
        ),
    },
)
