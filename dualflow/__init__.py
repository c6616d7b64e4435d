"""dualflow: operations that run now on NumPy, and the same Python compiled as a graph.

The public names are TensorFlow 2's, so ``import dualflow as tf`` runs programs written for it.

>>> import dualflow as df
>>> x = df.constant([[1.0, 2.0]])
>>> df.matmul(x, x, transpose_b=True)
<tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[5.]], dtype=float32)>
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualflow.core.garbage_collection import collection_paused as _collection_paused

with _collection_paused():  # which takes 8 ms of 100 otherwise
    # In this order: with the last one alone, imports nest so deeply that their stack costs as much.
    from dualflow import config as config
    from dualflow import eager as eager
    from dualflow.function import function as function

from dualflow import errors as errors
from dualflow import version as version
from dualflow.core.after_import import import_after as _import_after
from dualflow.core.defer_slot import DEFER as _DEFER
from dualflow.core.dtypes import DType as DType
from dualflow.core.dtypes import as_dtype as as_dtype
from dualflow.core.dtypes import bool_ as bool_
from dualflow.core.dtypes import complex64 as complex64
from dualflow.core.dtypes import complex128 as complex128
from dualflow.core.dtypes import float16 as float16
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
from dualflow.core.numpy_protocols import OVERRIDES as _OVERRIDES
from dualflow.core.shape import Shape as Shape
from dualflow.core.spec import TensorSpec as TensorSpec
from dualflow.core.type_spec import TypeSpec as TypeSpec
from dualflow.eager import executing_eagerly as executing_eagerly
from dualflow.eager.device_tensor import UPLOAD as _UPLOAD
from dualflow.eager.devices import GPU_COUNT as _GPU_COUNT
from dualflow.eager.devices import device as device
from dualflow.eager.kernel_slot import KERNELS as _KERNELS
from dualflow.eager.placed_ops import DEVICE_PROGRAMS as _DEVICE_PROGRAMS
from dualflow.eager.tape import GradientTape as GradientTape
from dualflow.eager.unconnected import UnconnectedGradients as UnconnectedGradients
from dualflow.eager.variable import Variable as Variable
from dualflow.gradient.custom import custom_gradient as custom_gradient
from dualflow.gradient.vmap_slot import VMAP as _VMAP
from dualflow.graph.control_ops import COND_GRADIENT as _COND_GRADIENT
from dualflow.graph.control_ops import LOOP_GRADIENT as _LOOP_GRADIENT
from dualflow.graph.draw import install as _install_drawing
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
from dualflow.ops.arithmetic import negative as negative
from dualflow.ops.arithmetic import sign as sign
from dualflow.ops.arithmetic import square as square
from dualflow.ops.arithmetic import squared_difference as squared_difference
from dualflow.ops.arithmetic import subtract as subtract
from dualflow.ops.arithmetic import truncatemod as truncatemod
from dualflow.ops.arrangement import expand_dims as expand_dims
from dualflow.ops.arrangement import reshape as reshape
from dualflow.ops.arrangement import squeeze as squeeze
from dualflow.ops.arrangement import transpose as transpose
from dualflow.ops.broadcasting import broadcast_to as broadcast_to
from dualflow.ops.broadcasting import reduce_sum as reduce_sum
from dualflow.ops.clipping import clip_by_global_norm as clip_by_global_norm
from dualflow.ops.clipping import clip_by_norm as clip_by_norm
from dualflow.ops.clipping import clip_by_value as clip_by_value
from dualflow.ops.clipping import global_norm as global_norm
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
from dualflow.ops.contraction import matmul as matmul
from dualflow.ops.conversion import cast as cast
from dualflow.ops.conversion import identity as identity
from dualflow.ops.conversion import stop_gradient as stop_gradient
from dualflow.ops.creation import constant as constant
from dualflow.ops.creation import convert_to_tensor as convert_to_tensor
from dualflow.ops.creation import fill as fill
from dualflow.ops.creation import ones as ones
from dualflow.ops.creation import ones_like as ones_like
from dualflow.ops.creation import zeros as zeros
from dualflow.ops.creation import zeros_like as zeros_like
from dualflow.ops.exponential import exp as exp
from dualflow.ops.exponential import expm1 as expm1
from dualflow.ops.exponential import log1p as log1p
from dualflow.ops.exponential import logaddexp as logaddexp
from dualflow.ops.exponential import sigmoid as sigmoid
from dualflow.ops.exponential import softplus as softplus
from dualflow.ops.joining import concat as concat
from dualflow.ops.joining import split as split
from dualflow.ops.joining import stack as stack
from dualflow.ops.joining import unstack as unstack
from dualflow.ops.masking import boolean_mask as boolean_mask
from dualflow.ops.positions import eye as eye
from dualflow.ops.positions import linspace as linspace
from dualflow.ops.positions import meshgrid as meshgrid
from dualflow.ops.positions import one_hot as one_hot
from dualflow.ops.positions import range as range
from dualflow.ops.positions import sequence_mask as sequence_mask
from dualflow.ops.powers import log as log
from dualflow.ops.powers import pow as pow
from dualflow.ops.powers import reciprocal as reciprocal
from dualflow.ops.powers import rsqrt as rsqrt
from dualflow.ops.powers import sqrt as sqrt
from dualflow.ops.printing import print as print
from dualflow.ops.products import einsum as einsum
from dualflow.ops.products import tensordot as tensordot
from dualflow.ops.reduction import argmax as argmax
from dualflow.ops.reduction import argmin as argmin
from dualflow.ops.reduction import reduce_all as reduce_all
from dualflow.ops.reduction import reduce_any as reduce_any
from dualflow.ops.reduction import reduce_max as reduce_max
from dualflow.ops.reduction import reduce_min as reduce_min
from dualflow.ops.reduction import reduce_prod as reduce_prod
from dualflow.ops.repetition import pad as pad
from dualflow.ops.repetition import repeat as repeat
from dualflow.ops.repetition import reverse as reverse
from dualflow.ops.repetition import roll as roll
from dualflow.ops.repetition import tile as tile
from dualflow.ops.rounding import ceil as ceil
from dualflow.ops.rounding import floor as floor
from dualflow.ops.rounding import round as round
from dualflow.ops.rounding import trunc as trunc
from dualflow.ops.scans import cumsum as cumsum
from dualflow.ops.scattering import gather_nd as gather_nd
from dualflow.ops.scattering import scatter_nd as scatter_nd
from dualflow.ops.scattering import tensor_scatter_nd_add as tensor_scatter_nd_add
from dualflow.ops.scattering import tensor_scatter_nd_update as tensor_scatter_nd_update
from dualflow.ops.selection import where as where
from dualflow.ops.shapes import ensure_shape as ensure_shape
from dualflow.ops.shapes import rank as rank
from dualflow.ops.shapes import shape as shape
from dualflow.ops.shapes import size as size
from dualflow.ops.slicing import slice as slice
from dualflow.ops.sorting import argsort as argsort
from dualflow.ops.sorting import sort as sort
from dualflow.ops.special import erf as erf
from dualflow.ops.special import erfc as erfc
from dualflow.ops.statistics import count_nonzero as count_nonzero
from dualflow.ops.statistics import reduce_euclidean_norm as reduce_euclidean_norm
from dualflow.ops.statistics import reduce_logsumexp as reduce_logsumexp
from dualflow.ops.statistics import reduce_mean as reduce_mean
from dualflow.ops.statistics import reduce_std as reduce_std
from dualflow.ops.statistics import reduce_variance as reduce_variance
from dualflow.ops.taking import gather as gather
from dualflow.ops.tensor import Tensor as Tensor
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
from keras_dualflow.startup import watch as _await_keras

_await_keras()
_install_drawing()
_OVERRIDES.fill("dualflow.numpy.protocols")
_DEFER.fill_from("dualflow.function.fill_defer_slot")
_GPU_COUNT.fill_from("dualflow.function.fill_device_slot")
_UPLOAD.fill_from("dualflow.function.fill_device_slot")
_DEVICE_PROGRAMS.fill_from("dualflow.function.device_programs")
_KERNELS.fill_from("dualflow.function.eager_kernels")
_VMAP.fill_from("dualflow.function.fill_vmap_slot")
_COND_GRADIENT.fill_from("dualflow.function.fill_gradient_slots")
_LOOP_GRADIENT.fill_from("dualflow.function.fill_gradient_slots")
_import_after("einops._backends", "dualflow.array_api.einops_backend")
__version__, __git_version__ = version.VERSION, version.GIT_VERSION
__compiler_version__ = version.COMPILER_VERSION
bool, double, half = bool_, float64, float16
qint8, quint8, qint16, quint16, qint32 = int8, uint8, int16, uint16, int32
TensorShape = Shape
newaxis = None

if TYPE_CHECKING:
    from dualflow import array_api as array_api
    from dualflow import audio as audio
    from dualflow import autodiff as autodiff
    from dualflow import bitwise as bitwise
    from dualflow import compat as compat
    from dualflow import contrib as contrib
    from dualflow import data as data
    from dualflow import debugging as debugging
    from dualflow import distribute as distribute
    from dualflow import dtypes as dtypes
    from dualflow import experimental as experimental
    from dualflow import graph_util as graph_util
    from dualflow import image as image
    from dualflow import initializers as initializers
    from dualflow import io as io
    from dualflow import keras as keras
    from dualflow import linalg as linalg
    from dualflow import lookup as lookup
    from dualflow import math as math
    from dualflow import nest as nest
    from dualflow import nn as nn
    from dualflow import numpy as numpy
    from dualflow import onnx as onnx
    from dualflow import profiler as profiler
    from dualflow import quantization as quantization
    from dualflow import ragged as ragged
    from dualflow import random as random
    from dualflow import raw_ops as raw_ops
    from dualflow import rewrite as rewrite
    from dualflow import saved_model as saved_model
    from dualflow import sets as sets
    from dualflow import signal as signal
    from dualflow import sparse as sparse
    from dualflow import strings as strings
    from dualflow import summary as summary
    from dualflow import sysconfig as sysconfig
    from dualflow import test as test
    from dualflow import train as train
    from dualflow import types as types
    from dualflow import xla as xla
    from dualflow.config.bug_report import bug_report as bug_report
    from dualflow.config.report import show_config as show_config
    from dualflow.core.device_names import DeviceSpec as DeviceSpec
    from dualflow.core.narrow_floats import bfloat16 as bfloat16
    from dualflow.core.program_logger import get_logger as get_logger
    from dualflow.core.registered_conversions import (
        register_tensor_conversion_function as register_tensor_conversion_function,
    )
    from dualflow.core.string_arrays import string as string
    from dualflow.eager.clock import timestamp as timestamp
    from dualflow.eager.module import Module as Module
    from dualflow.eager.python_call import numpy_function as numpy_function
    from dualflow.eager.python_call import py_function as py_function
    from dualflow.eager.recompute import grad_pass_through as grad_pass_through
    from dualflow.eager.recompute import recompute_grad as recompute_grad
    from dualflow.eager.replicas import AggregationMethod as AggregationMethod
    from dualflow.eager.replicas import VariableAggregation as VariableAggregation
    from dualflow.eager.replicas import VariableSynchronization as VariableSynchronization
    from dualflow.eager.scope import name_scope as name_scope
    from dualflow.eager.variable_creators import variable_creator_scope as variable_creator_scope
    from dualflow.function import autograph as autograph
    from dualflow.function.batching.vmap import vectorized_map as vectorized_map
    from dualflow.function.control.control_flow import case as case
    from dualflow.function.control.control_flow import cond as cond
    from dualflow.function.control.control_flow import switch_case as switch_case
    from dualflow.function.control.control_flow import while_loop as while_loop
    from dualflow.function.control.maps import foldl as foldl
    from dualflow.function.control.maps import foldr as foldr
    from dualflow.function.control.maps import map_fn as map_fn
    from dualflow.function.control.maps import scan as scan
    from dualflow.function.control.tensor_array import TensorArray as TensorArray
    from dualflow.function.debugging.assertions import Assert as Assert
    from dualflow.function.debugging.assertions import assert_equal as assert_equal
    from dualflow.function.debugging.assertions import assert_greater as assert_greater
    from dualflow.function.debugging.assertions import assert_less as assert_less
    from dualflow.function.debugging.static_assertions import assert_rank as assert_rank
    from dualflow.function.inspect.compare import compare as compare
    from dualflow.function.inspect.verify import verify as verify
    from dualflow.graph_mode import ExplicitGraph as _ExplicitGraph
    from dualflow.graph_mode import Operation as Operation
    from dualflow.graph_mode import control_dependencies as control_dependencies
    from dualflow.graph_mode import gradients as gradients
    from dualflow.graph_mode import group as group
    from dualflow.graph_mode import no_op as no_op
    from dualflow.graph_mode.contexts import get_current_name_scope as get_current_name_scope
    from dualflow.graph_mode.contexts import get_static_value as get_static_value
    from dualflow.graph_mode.contexts import init_scope as init_scope
    from dualflow.graph_mode.contexts import inside_function as inside_function
    from dualflow.graph_mode.contexts import is_symbolic_tensor as is_symbolic_tensor
    from dualflow.graph_mode.contexts import is_tensor as is_tensor
    from dualflow.graph_mode.contexts import type_spec_from_value as type_spec_from_value
    from dualflow.graph_mode.graph_def_import import import_graph_def as import_graph_def
    from dualflow.graph_mode.tuples import tuple as tuple
    from dualflow.keras import losses as losses
    from dualflow.keras import metrics as metrics
    from dualflow.keras import optimizers as optimizers
    from dualflow.ops.counting.bins import histogram_fixed_width as histogram_fixed_width
    from dualflow.ops.counting.bins import histogram_fixed_width_bins as histogram_fixed_width_bins
    from dualflow.ops.elementary.quotients import realdiv as realdiv
    from dualflow.ops.elementary.quotients import scalar_mul as scalar_mul
    from dualflow.ops.elementary.quotients import truncatediv as truncatediv
    from dualflow.ops.elementary.values import bitcast as bitcast
    from dualflow.ops.elementary.values import saturate_cast as saturate_cast
    from dualflow.ops.initializers.drawn import RandomNormal as _RandomNormal
    from dualflow.ops.initializers.drawn import RandomUniform as _RandomUniform
    from dualflow.ops.initializers.fixed import Ones as _Ones
    from dualflow.ops.initializers.fixed import TypedConstant as _OwnConstant
    from dualflow.ops.initializers.fixed import Zeros as _Zeros
    from dualflow.ops.linear_algebra.eigenvalues import eig as eig
    from dualflow.ops.linear_algebra.eigenvalues import eigvals as eigvals
    from dualflow.ops.linear_algebra.matrix_functions import sqrtm as _sqrtm
    from dualflow.ops.linear_algebra.norms import norm as norm
    from dualflow.ops.ordering.distinct import unique as unique
    from dualflow.ops.ordering.distinct import unique_with_counts as unique_with_counts
    from dualflow.ops.ordering.search import searchsorted as searchsorted
    from dualflow.ops.ragged.ragged_spec import RaggedTensorSpec as RaggedTensorSpec
    from dualflow.ops.ragged.ragged_tensor import RaggedTensor as RaggedTensor
    from dualflow.ops.rearranging.blocks import batch_to_space as batch_to_space
    from dualflow.ops.rearranging.blocks import (
        required_space_to_batch_paddings as required_space_to_batch_paddings,
    )
    from dualflow.ops.rearranging.blocks import space_to_batch as space_to_batch
    from dualflow.ops.rearranging.passing import guarantee_const as guarantee_const
    from dualflow.ops.rearranging.sequences import reverse_sequence as reverse_sequence
    from dualflow.ops.rearranging.shapes import broadcast_dynamic_shape as broadcast_dynamic_shape
    from dualflow.ops.rearranging.shapes import broadcast_static_shape as broadcast_static_shape
    from dualflow.ops.rearranging.shapes import identity_n as identity_n
    from dualflow.ops.rearranging.shapes import shape_n as shape_n
    from dualflow.ops.rearranging.shapes import unravel_index as unravel_index
    from dualflow.ops.segments.joins import tensor_scatter_nd_max as tensor_scatter_nd_max
    from dualflow.ops.segments.joins import tensor_scatter_nd_min as tensor_scatter_nd_min
    from dualflow.ops.segments.joins import tensor_scatter_nd_sub as tensor_scatter_nd_sub
    from dualflow.ops.segments.partitions import dynamic_partition as dynamic_partition
    from dualflow.ops.segments.partitions import dynamic_stitch as dynamic_stitch
    from dualflow.ops.segments.partitions import parallel_stack as parallel_stack
    from dualflow.ops.signal.fourier import fftnd as fftnd
    from dualflow.ops.signal.fourier import ifftnd as ifftnd
    from dualflow.ops.signal.fourier import irfftnd as irfftnd
    from dualflow.ops.signal.fourier import rfftnd as rfftnd
    from dualflow.ops.sparse.edit_distances import edit_distance as edit_distance
    from dualflow.ops.sparse.indexed_slices import IndexedSlices as IndexedSlices
    from dualflow.ops.sparse.indexed_slices import IndexedSlicesSpec as IndexedSlicesSpec
    from dualflow.ops.sparse.sparse_tensor import SparseTensor as SparseTensor
    from dualflow.ops.sparse.sparse_tensor import SparseTensorSpec as SparseTensorSpec
    from dualflow.ops.text.numbers import as_string as as_string

    Graph = _ExplicitGraph
    truediv = divide
    constant_initializer = _OwnConstant
    matrix_square_root = _sqrtm
    ones_initializer = _Ones
    random_normal_initializer = _RandomNormal
    random_uniform_initializer = _RandomUniform
    space_to_batch_nd = space_to_batch
    zeros_initializer = _Zeros

_publish(
    globals(),
    modules=("config", "eager", "errors", "version"),
    lazy={
        "dualflow": (
            "array_api audio autodiff bitwise compat contrib data debugging distribute dtypes experimental "
            "graph_util image initializers io keras linalg lookup math nest nn numpy onnx profiler "
            "quantization ragged random raw_ops rewrite saved_model sets signal sparse strings summary "
            "sysconfig test train types xla"
        ),
        "dualflow.config.bug_report": "bug_report",
        "dualflow.config.report": "show_config",
        "dualflow.core.device_names": "DeviceSpec",
        "dualflow.core.narrow_floats": "bfloat16",
        "dualflow.core.program_logger": "get_logger",
        "dualflow.core.registered_conversions": "register_tensor_conversion_function",
        "dualflow.core.string_arrays": "string",
        "dualflow.eager.clock": "timestamp",
        "dualflow.eager.module": "Module",
        "dualflow.eager.python_call": "numpy_function py_function",
        "dualflow.eager.recompute": "grad_pass_through recompute_grad",
        "dualflow.eager.replicas": "AggregationMethod VariableAggregation VariableSynchronization",
        "dualflow.eager.scope": "name_scope",
        "dualflow.eager.variable_creators": "variable_creator_scope",
        "dualflow.function": "autograph",
        "dualflow.function.batching.vmap": "vectorized_map",
        "dualflow.function.control.control_flow": "case cond switch_case while_loop",
        "dualflow.function.control.maps": "foldl foldr map_fn scan",
        "dualflow.function.control.tensor_array": "TensorArray",
        "dualflow.function.debugging.assertions": "Assert assert_equal assert_greater assert_less",
        "dualflow.function.debugging.static_assertions": "assert_rank",
        "dualflow.function.inspect.compare": "compare",
        "dualflow.function.inspect.verify": "verify",
        "dualflow.graph_mode": "Graph=ExplicitGraph Operation control_dependencies gradients group no_op",
        "dualflow.graph_mode.tuples": "tuple",
        "dualflow.graph_mode.graph_def_import": "import_graph_def",
        "dualflow.graph_mode.contexts": (
            "get_current_name_scope get_static_value init_scope inside_function is_symbolic_tensor "
            "is_tensor type_spec_from_value"
        ),
        "dualflow.keras": "losses metrics optimizers",
        "dualflow.ops.arithmetic": "truediv=divide",
        "dualflow.ops.counting.bins": "histogram_fixed_width histogram_fixed_width_bins",
        "dualflow.ops.elementary.quotients": "realdiv scalar_mul truncatediv",
        "dualflow.ops.elementary.values": "bitcast saturate_cast",
        "dualflow.ops.initializers.drawn": (
            "random_normal_initializer=RandomNormal random_uniform_initializer=RandomUniform"
        ),
        "dualflow.ops.initializers.fixed": (
            "constant_initializer=TypedConstant ones_initializer=Ones zeros_initializer=Zeros"
        ),
        "dualflow.ops.linear_algebra.eigenvalues": "eig eigvals",
        "dualflow.ops.linear_algebra.matrix_functions": "matrix_square_root=sqrtm",
        "dualflow.ops.linear_algebra.norms": "norm",
        "dualflow.ops.ordering.distinct": "unique unique_with_counts",
        "dualflow.ops.ordering.search": "searchsorted",
        "dualflow.ops.ragged.ragged_spec": "RaggedTensorSpec",
        "dualflow.ops.ragged.ragged_tensor": "RaggedTensor",
        "dualflow.ops.rearranging.blocks": (
            "batch_to_space required_space_to_batch_paddings space_to_batch space_to_batch_nd=space_to_batch"
        ),
        "dualflow.ops.rearranging.passing": "guarantee_const",
        "dualflow.ops.rearranging.sequences": "reverse_sequence",
        "dualflow.ops.rearranging.shapes": (
            "broadcast_dynamic_shape broadcast_static_shape identity_n shape_n unravel_index"
        ),
        "dualflow.ops.segments.joins": "tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub",
        "dualflow.ops.segments.partitions": "dynamic_partition dynamic_stitch parallel_stack",
        "dualflow.ops.signal.fourier": "fftnd ifftnd irfftnd rfftnd",
        "dualflow.ops.sparse.edit_distances": "edit_distance",
        "dualflow.ops.sparse.indexed_slices": "IndexedSlices IndexedSlicesSpec",
        "dualflow.ops.sparse.sparse_tensor": "SparseTensor SparseTensorSpec",
        "dualflow.ops.text.numbers": "as_string",
    },
    requires={"keras": "keras losses metrics optimizers"},
)
