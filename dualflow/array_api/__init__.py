"""The Array API standard, version 2024.12, on dualflow's tensors: ``import dualflow.array_api as xp``.

All functions return :class:`Array`, which holds a tensor and can be assigned to; they take arrays, tensors,
variables and NumPy's arrays. Inside traced functions they make nodes, and on tapes they are differentiated.
Python's numbers have the default dtypes int64, float64 and complex128.

The functions check arguments and choose dtypes by the standard, and compute by an op or a function of
:mod:`dualflow.numpy`. All of them raise ``DTypeError`` for an argument that is not an array or has a dtype
that they don't support, ``OutOfRangeError`` for an axis that an array doesn't have, and
``InvalidArgumentError`` for an axis that occurs twice or a device other than the CPU; their docstrings name
the other errors.

>>> import dualflow as df
>>> x = df.constant([1.0, 2.0, 3.0])
>>> xp = x.__array_namespace__()
>>> xp.sum(xp.square(x))
Array(14., dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.array_api.inspection import __array_api_version__ as __array_api_version__
from dualflow.array_api.inspection import __array_namespace_info__ as __array_namespace_info__
from dualflow.core.dtypes import bool_ as _bool
from dualflow.core.dtypes import complex64 as complex64
from dualflow.core.dtypes import complex128 as complex128
from dualflow.core.dtypes import float32 as float32
from dualflow.core.dtypes import float64 as float64
from dualflow.core.dtypes import int8 as int8
from dualflow.core.dtypes import int16 as int16
from dualflow.core.dtypes import int32 as int32
from dualflow.core.dtypes import int64 as int64
from dualflow.core.dtypes import uint8 as uint8
from dualflow.core.dtypes import uint16 as uint16
from dualflow.core.dtypes import uint32 as uint32
from dualflow.core.dtypes import uint64 as uint64
from dualflow.core.namespace import publish as _publish

bool = _bool
newaxis = None

if TYPE_CHECKING:
    from dualflow.array_api import fft as fft
    from dualflow.array_api import linalg as linalg
    from dualflow.array_api.array import Array as Array
    from dualflow.array_api.constants import e as e
    from dualflow.array_api.constants import inf as inf
    from dualflow.array_api.constants import nan as nan
    from dualflow.array_api.constants import pi as pi
    from dualflow.array_api.creation import arange as arange
    from dualflow.array_api.creation import asarray as asarray
    from dualflow.array_api.creation import empty as empty
    from dualflow.array_api.creation import empty_like as empty_like
    from dualflow.array_api.creation import from_dlpack as from_dlpack
    from dualflow.array_api.creation import full as full
    from dualflow.array_api.creation import full_like as full_like
    from dualflow.array_api.creation import linspace as linspace
    from dualflow.array_api.creation import ones as ones
    from dualflow.array_api.creation import ones_like as ones_like
    from dualflow.array_api.creation import zeros as zeros
    from dualflow.array_api.creation import zeros_like as zeros_like
    from dualflow.array_api.data_types import astype as astype
    from dualflow.array_api.data_types import can_cast as can_cast
    from dualflow.array_api.data_types import finfo as finfo
    from dualflow.array_api.data_types import iinfo as iinfo
    from dualflow.array_api.data_types import isdtype as isdtype
    from dualflow.array_api.data_types import result_type as result_type
    from dualflow.array_api.elementwise import abs as abs
    from dualflow.array_api.elementwise import acos as acos
    from dualflow.array_api.elementwise import acosh as acosh
    from dualflow.array_api.elementwise import add as add
    from dualflow.array_api.elementwise import asin as asin
    from dualflow.array_api.elementwise import asinh as asinh
    from dualflow.array_api.elementwise import atan as atan
    from dualflow.array_api.elementwise import atan2 as atan2
    from dualflow.array_api.elementwise import atanh as atanh
    from dualflow.array_api.elementwise import bitwise_and as bitwise_and
    from dualflow.array_api.elementwise import bitwise_invert as bitwise_invert
    from dualflow.array_api.elementwise import bitwise_left_shift as bitwise_left_shift
    from dualflow.array_api.elementwise import bitwise_or as bitwise_or
    from dualflow.array_api.elementwise import bitwise_right_shift as bitwise_right_shift
    from dualflow.array_api.elementwise import bitwise_xor as bitwise_xor
    from dualflow.array_api.elementwise import ceil as ceil
    from dualflow.array_api.elementwise import clip as clip
    from dualflow.array_api.elementwise import conj as conj
    from dualflow.array_api.elementwise import copysign as copysign
    from dualflow.array_api.elementwise import cos as cos
    from dualflow.array_api.elementwise import cosh as cosh
    from dualflow.array_api.elementwise import divide as divide
    from dualflow.array_api.elementwise import equal as equal
    from dualflow.array_api.elementwise import exp as exp
    from dualflow.array_api.elementwise import expm1 as expm1
    from dualflow.array_api.elementwise import floor as floor
    from dualflow.array_api.elementwise import floor_divide as floor_divide
    from dualflow.array_api.elementwise import greater as greater
    from dualflow.array_api.elementwise import greater_equal as greater_equal
    from dualflow.array_api.elementwise import hypot as hypot
    from dualflow.array_api.elementwise import imag as imag
    from dualflow.array_api.elementwise import isfinite as isfinite
    from dualflow.array_api.elementwise import isinf as isinf
    from dualflow.array_api.elementwise import isnan as isnan
    from dualflow.array_api.elementwise import less as less
    from dualflow.array_api.elementwise import less_equal as less_equal
    from dualflow.array_api.elementwise import log as log
    from dualflow.array_api.elementwise import log1p as log1p
    from dualflow.array_api.elementwise import log2 as log2
    from dualflow.array_api.elementwise import log10 as log10
    from dualflow.array_api.elementwise import logaddexp as logaddexp
    from dualflow.array_api.elementwise import logical_and as logical_and
    from dualflow.array_api.elementwise import logical_not as logical_not
    from dualflow.array_api.elementwise import logical_or as logical_or
    from dualflow.array_api.elementwise import logical_xor as logical_xor
    from dualflow.array_api.elementwise import maximum as maximum
    from dualflow.array_api.elementwise import minimum as minimum
    from dualflow.array_api.elementwise import multiply as multiply
    from dualflow.array_api.elementwise import negative as negative
    from dualflow.array_api.elementwise import nextafter as nextafter
    from dualflow.array_api.elementwise import not_equal as not_equal
    from dualflow.array_api.elementwise import positive as positive
    from dualflow.array_api.elementwise import pow as pow
    from dualflow.array_api.elementwise import real as real
    from dualflow.array_api.elementwise import reciprocal as reciprocal
    from dualflow.array_api.elementwise import remainder as remainder
    from dualflow.array_api.elementwise import round as round
    from dualflow.array_api.elementwise import sign as sign
    from dualflow.array_api.elementwise import signbit as signbit
    from dualflow.array_api.elementwise import sin as sin
    from dualflow.array_api.elementwise import sinh as sinh
    from dualflow.array_api.elementwise import sqrt as sqrt
    from dualflow.array_api.elementwise import square as square
    from dualflow.array_api.elementwise import subtract as subtract
    from dualflow.array_api.elementwise import tan as tan
    from dualflow.array_api.elementwise import tanh as tanh
    from dualflow.array_api.elementwise import trunc as trunc
    from dualflow.array_api.manipulation import broadcast_arrays as broadcast_arrays
    from dualflow.array_api.manipulation import broadcast_to as broadcast_to
    from dualflow.array_api.manipulation import concat as concat
    from dualflow.array_api.manipulation import expand_dims as expand_dims
    from dualflow.array_api.manipulation import flip as flip
    from dualflow.array_api.manipulation import moveaxis as moveaxis
    from dualflow.array_api.manipulation import permute_dims as permute_dims
    from dualflow.array_api.manipulation import repeat as repeat
    from dualflow.array_api.manipulation import reshape as reshape
    from dualflow.array_api.manipulation import roll as roll
    from dualflow.array_api.manipulation import squeeze as squeeze
    from dualflow.array_api.manipulation import stack as stack
    from dualflow.array_api.manipulation import tile as tile
    from dualflow.array_api.manipulation import unstack as unstack
    from dualflow.array_api.matrices import eye as eye
    from dualflow.array_api.matrices import meshgrid as meshgrid
    from dualflow.array_api.matrices import tril as tril
    from dualflow.array_api.matrices import triu as triu
    from dualflow.array_api.products import matmul as matmul
    from dualflow.array_api.products import matrix_transpose as matrix_transpose
    from dualflow.array_api.products import tensordot as tensordot
    from dualflow.array_api.products import vecdot as vecdot
    from dualflow.array_api.searching import argmax as argmax
    from dualflow.array_api.searching import argmin as argmin
    from dualflow.array_api.searching import argsort as argsort
    from dualflow.array_api.searching import count_nonzero as count_nonzero
    from dualflow.array_api.searching import nonzero as nonzero
    from dualflow.array_api.searching import searchsorted as searchsorted
    from dualflow.array_api.searching import sort as sort
    from dualflow.array_api.searching import take as take
    from dualflow.array_api.searching import take_along_axis as take_along_axis
    from dualflow.array_api.searching import where as where
    from dualflow.array_api.sets import unique_all as unique_all
    from dualflow.array_api.sets import unique_counts as unique_counts
    from dualflow.array_api.sets import unique_inverse as unique_inverse
    from dualflow.array_api.sets import unique_values as unique_values
    from dualflow.array_api.statistical import cumulative_prod as cumulative_prod
    from dualflow.array_api.statistical import cumulative_sum as cumulative_sum
    from dualflow.array_api.statistical import max as max
    from dualflow.array_api.statistical import mean as mean
    from dualflow.array_api.statistical import min as min
    from dualflow.array_api.statistical import prod as prod
    from dualflow.array_api.statistical import std as std
    from dualflow.array_api.statistical import sum as sum
    from dualflow.array_api.statistical import var as var
    from dualflow.array_api.utility import all as all
    from dualflow.array_api.utility import any as any
    from dualflow.array_api.utility import diff as diff

_publish(
    globals(),
    lazy={
        "dualflow.array_api": "fft linalg",
        "dualflow.array_api.array": "Array",
        "dualflow.array_api.constants": "e inf nan pi",
        "dualflow.array_api.creation": (
            "arange asarray empty empty_like from_dlpack full full_like linspace ones ones_like zeros "
            "zeros_like"
        ),
        "dualflow.array_api.data_types": "astype can_cast finfo iinfo isdtype result_type",
        "dualflow.array_api.elementwise": (
            "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift "
            "bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp "
            "expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal "
            "log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum "
            "multiply negative nextafter not_equal positive pow real reciprocal remainder round sign "
            "signbit sin sinh sqrt square subtract tan tanh trunc"
        ),
        "dualflow.array_api.matrices": "eye meshgrid tril triu",
        "dualflow.array_api.products": "matmul matrix_transpose tensordot vecdot",
        "dualflow.array_api.manipulation": (
            "broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape "
            "roll squeeze stack tile unstack"
        ),
        "dualflow.array_api.searching": (
            "argmax argmin argsort count_nonzero nonzero searchsorted sort take take_along_axis where"
        ),
        "dualflow.array_api.sets": "unique_all unique_counts unique_inverse unique_values",
        "dualflow.array_api.statistical": "cumulative_prod cumulative_sum max mean min prod std sum var",
        "dualflow.array_api.utility": "all any diff",
    },
)
