"""Operations on the bits of integers: ``df.bitwise``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.bitwise import bitwise_and as bitwise_and
    from dualflow.ops.bitwise import bitwise_or as bitwise_or
    from dualflow.ops.bitwise import bitwise_xor as bitwise_xor
    from dualflow.ops.bitwise import invert as invert
    from dualflow.ops.bitwise import left_shift as left_shift
    from dualflow.ops.bitwise import right_shift as right_shift

_publish(
    globals(),
    lazy={"dualflow.ops.bitwise": "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift"},
)
