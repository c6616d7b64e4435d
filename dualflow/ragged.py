"""Ragged tensors, whose rows have different lengths: ``df.ragged``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.ragged.creation import boolean_mask as boolean_mask
    from dualflow.ops.ragged.creation import constant as constant
    from dualflow.ops.ragged.creation import map_flat_values as map_flat_values
    from dualflow.ops.ragged.creation import ragged_range as _ragged_range
    from dualflow.ops.ragged.creation import row_splits_to_segment_ids as row_splits_to_segment_ids
    from dualflow.ops.ragged.creation import segment_ids_to_row_splits as segment_ids_to_row_splits
    from dualflow.ops.ragged.creation import stack as stack
    from dualflow.ops.ragged.creation import stack_dynamic_partitions as stack_dynamic_partitions

    range = _ragged_range

_publish(
    globals(),
    lazy={
        "dualflow.ops.ragged.creation": (
            "boolean_mask constant map_flat_values range=ragged_range row_splits_to_segment_ids "
            "segment_ids_to_row_splits stack stack_dynamic_partitions"
        ),
    },
)
