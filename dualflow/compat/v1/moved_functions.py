"""TensorFlow 1's names at its root for functions that version 2 has in other namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_TABLE: Final = """\
angle                        math.angle
assert_integer               debugging.assert_integer
assert_proper_iterable       debugging.assert_proper_iterable
assert_same_float_dtype      debugging.assert_same_float_dtype
assert_type                  debugging.assert_type
batch_to_space_nd            batch_to_space
betainc                      math.betainc
bincount                     math.bincount
check_numerics               debugging.check_numerics
cholesky                     linalg.cholesky
cholesky_solve               linalg.cholesky_solve
confusion_matrix             math.confusion_matrix  labels predictions num_classes dtype name weights
cross                        linalg.cross
cumprod                      math.cumprod
depth_to_space               nn.depth_to_space  input block_size name data_format
dequantize                   quantization.dequantize
diag                         linalg.tensor_diag
diag_part                    linalg.tensor_diag_part
digamma                      math.digamma
fake_quant_with_min_max_args  quantization.fake_quant_with_min_max_args
fake_quant_with_min_max_args_gradient  quantization.fake_quant_with_min_max_args_gradient
fake_quant_with_min_max_vars  quantization.fake_quant_with_min_max_vars
fake_quant_with_min_max_vars_gradient  quantization.fake_quant_with_min_max_vars_gradient
fake_quant_with_min_max_vars_per_channel  quantization.*
fake_quant_with_min_max_vars_per_channel_gradient  quantization.*
extract_image_patches        image.extract_patches  images ksizes strides rates padding name sizes
fft3d                        signal.fft3d
ifft2d                       signal.ifft2d
ifft3d                       signal.ifft3d
igamma                       math.igamma
igammac                      math.igammac
invert_permutation           math.invert_permutation
is_non_decreasing            math.is_non_decreasing
is_numeric_tensor            debugging.is_numeric_tensor
is_strictly_increasing       math.is_strictly_increasing
lbeta                        math.lbeta
lgamma                       math.lgamma
matrix_determinant           linalg.det
matrix_diag                  linalg.diag
matrix_diag_part             linalg.diag_part
matrix_inverse               linalg.inv
matrix_set_diag              linalg.set_diag
matrix_solve                 linalg.solve
matrix_solve_ls              linalg.lstsq
matrix_triangular_solve      linalg.triangular_solve
polygamma                    math.polygamma
qr                           linalg.qr
quantize                     quantization.quantize
quantized_concat             quantization.quantized_concat
reverse_v2                   reverse
segment_max                  math.segment_max
segment_mean                 math.segment_mean
segment_min                  math.segment_min
segment_prod                 math.segment_prod
segment_sum                  math.segment_sum
self_adjoint_eig             linalg.eigh
self_adjoint_eigvals         linalg.eigvalsh
space_to_depth               nn.space_to_depth  input block_size name data_format
sparse_concat                sparse.concat  axis sp_inputs name
sparse_fill_empty_rows       sparse.fill_empty_rows
sparse_mask                  sparse.mask
sparse_maximum               sparse.maximum
sparse_minimum               sparse.minimum
sparse_reduce_max            sparse.reduce_max  sp_input axis keepdims reduction_axes keep_dims
sparse_reduce_sum            sparse.reduce_sum  sp_input axis keepdims reduction_axes keep_dims
sparse_reorder               sparse.reorder
sparse_reset_shape           sparse.reset_shape
sparse_reshape               sparse.reshape
sparse_retain                sparse.retain
sparse_segment_mean          sparse.segment_mean  data indices segment_ids name num_segments sparse_gradient
sparse_segment_sqrt_n        sparse.segment_sqrt_n  data indices segment_ids name num_segments sparse_gradient
sparse_segment_sum           sparse.segment_sum  data indices segment_ids name num_segments sparse_gradient
sparse_slice                 sparse.slice
sparse_softmax               sparse.softmax
sparse_split                 sparse.split
sparse_tensor_dense_matmul   sparse.sparse_dense_matmul
sparse_to_indicator          sparse.to_indicator
sparse_transpose             sparse.transpose
string_to_hash_bucket        strings.to_hash_bucket  string_tensor num_buckets name input
string_to_hash_bucket_fast   strings.to_hash_bucket_fast
string_to_hash_bucket_strong strings.to_hash_bucket_strong
svd                          linalg.svd
tensor_scatter_sub           tensor_scatter_nd_sub
tuple                        tuple  tensors name control_inputs
unsorted_segment_max         math.unsorted_segment_max
unsorted_segment_mean        math.unsorted_segment_mean
unsorted_segment_min         math.unsorted_segment_min
unsorted_segment_prod        math.unsorted_segment_prod
unsorted_segment_sqrt_n      math.unsorted_segment_sqrt_n
unsorted_segment_sum         math.unsorted_segment_sum
zeta                         math.zeta
"""


def _rows() -> Iterator[tuple[str, list[str]]]:
    """The rows of the table; ``*`` is the name itself."""
    for line in _TABLE.splitlines():
        name, path, *order = line.split(maxsplit=2)
        yield name, [path.replace("*", name), *order]


MOVED: Final = dict(_rows())
"""For each name the path of dualflow's function, and TensorFlow 1's arguments if their order differs."""
