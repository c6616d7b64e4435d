"""Tensors of which only some elements are stored: ``df.sparse``.

>>> import dualflow as df
>>> x = df.sparse.from_dense([[0, 3], [4, 0]])
>>> df.sparse.sparse_dense_matmul(x, [[1], [2]]).numpy().tolist()
[[6], [4]]
"""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.sparse.crossing import cross_hashed as cross_hashed
    from dualflow.ops.sparse.dense import eye as eye
    from dualflow.ops.sparse.dense import from_dense as from_dense
    from dualflow.ops.sparse.dense import map_values as map_values
    from dualflow.ops.sparse.dense import to_dense as to_dense
    from dualflow.ops.sparse.pairs import add as add
    from dualflow.ops.sparse.pairs import maximum as maximum
    from dualflow.ops.sparse.pairs import minimum as minimum
    from dualflow.ops.sparse.pairs import sampled_addmm as sampled_addmm
    from dualflow.ops.sparse.pairs import sparse_dense_matmul as sparse_dense_matmul
    from dualflow.ops.sparse.reductions import reduce_max as reduce_max
    from dualflow.ops.sparse.reductions import reduce_sum as reduce_sum
    from dualflow.ops.sparse.reductions import softmax as softmax
    from dualflow.ops.sparse.reductions import to_indicator as to_indicator
    from dualflow.ops.sparse.row_major import expand_dims as expand_dims
    from dualflow.ops.sparse.row_major import reorder as reorder
    from dualflow.ops.sparse.row_major import reset_shape as reset_shape
    from dualflow.ops.sparse.row_major import reshape as reshape
    from dualflow.ops.sparse.row_major import transpose as transpose
    from dualflow.ops.sparse.segments import segment_mean as segment_mean
    from dualflow.ops.sparse.segments import segment_sqrt_n as segment_sqrt_n
    from dualflow.ops.sparse.segments import segment_sum as segment_sum
    from dualflow.ops.sparse.selection import concat as concat
    from dualflow.ops.sparse.selection import fill_empty_rows as fill_empty_rows
    from dualflow.ops.sparse.selection import mask as mask
    from dualflow.ops.sparse.selection import retain as retain
    from dualflow.ops.sparse.selection import slice as slice
    from dualflow.ops.sparse.selection import split as split
    from dualflow.ops.sparse.sparse_tensor import SparseTensor as SparseTensor

_publish(
    globals(),
    lazy={
        "dualflow.ops.sparse.crossing": "cross_hashed",
        "dualflow.ops.sparse.dense": "eye from_dense map_values to_dense",
        "dualflow.ops.sparse.pairs": "add maximum minimum sampled_addmm sparse_dense_matmul",
        "dualflow.ops.sparse.selection": "concat fill_empty_rows mask retain slice split",
        "dualflow.ops.sparse.row_major": "expand_dims reorder reset_shape reshape transpose",
        "dualflow.ops.sparse.reductions": "reduce_max reduce_sum softmax to_indicator",
        "dualflow.ops.sparse.segments": "segment_mean segment_sqrt_n segment_sum",
        "dualflow.ops.sparse.sparse_tensor": "SparseTensor",
    },
)
