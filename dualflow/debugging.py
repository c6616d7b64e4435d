"""Tools to inspect and check programs: ``df.debugging``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.core.tracebacks import disable_traceback_filtering as disable_traceback_filtering
    from dualflow.core.tracebacks import enable_traceback_filtering as enable_traceback_filtering
    from dualflow.core.tracebacks import is_traceback_filtering_enabled as is_traceback_filtering_enabled
    from dualflow.eager.placement_log import get_log_device_placement as get_log_device_placement
    from dualflow.eager.placement_log import set_log_device_placement as set_log_device_placement
    from dualflow.function.debugging.assertions import Assert as Assert
    from dualflow.function.debugging.assertions import assert_all_finite as assert_all_finite
    from dualflow.function.debugging.assertions import assert_equal as assert_equal
    from dualflow.function.debugging.assertions import assert_greater as assert_greater
    from dualflow.function.debugging.assertions import assert_greater_equal as assert_greater_equal
    from dualflow.function.debugging.assertions import assert_less as assert_less
    from dualflow.function.debugging.assertions import assert_less_equal as assert_less_equal
    from dualflow.function.debugging.assertions import assert_near as assert_near
    from dualflow.function.debugging.assertions import assert_negative as assert_negative
    from dualflow.function.debugging.assertions import assert_non_negative as assert_non_negative
    from dualflow.function.debugging.assertions import assert_non_positive as assert_non_positive
    from dualflow.function.debugging.assertions import assert_none_equal as assert_none_equal
    from dualflow.function.debugging.assertions import assert_positive as assert_positive
    from dualflow.function.debugging.assertions import check_numerics as check_numerics
    from dualflow.function.debugging.static_assertions import assert_integer as assert_integer
    from dualflow.function.debugging.static_assertions import assert_proper_iterable as assert_proper_iterable
    from dualflow.function.debugging.static_assertions import assert_rank as assert_rank
    from dualflow.function.debugging.static_assertions import assert_rank_at_least as assert_rank_at_least
    from dualflow.function.debugging.static_assertions import assert_rank_in as assert_rank_in
    from dualflow.function.debugging.static_assertions import (
        assert_same_float_dtype as assert_same_float_dtype,
    )
    from dualflow.function.debugging.static_assertions import assert_scalar as assert_scalar
    from dualflow.function.debugging.static_assertions import assert_shapes as assert_shapes
    from dualflow.function.debugging.static_assertions import assert_type as assert_type
    from dualflow.function.debugging.static_assertions import is_numeric_tensor as is_numeric_tensor
    from dualflow.function.debugging.stepping import Step as Step
    from dualflow.function.inspect.check_numerics import disable_check_numerics as disable_check_numerics
    from dualflow.function.inspect.check_numerics import enable_check_numerics as enable_check_numerics

_publish(
    globals(),
    lazy={
        "dualflow.core.tracebacks": (
            "disable_traceback_filtering enable_traceback_filtering is_traceback_filtering_enabled"
        ),
        "dualflow.eager.placement_log": "get_log_device_placement set_log_device_placement",
        "dualflow.function.debugging.assertions": (
            "Assert assert_all_finite assert_equal assert_greater assert_greater_equal assert_less "
            "assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive "
            "assert_none_equal assert_positive check_numerics"
        ),
        "dualflow.function.debugging.static_assertions": (
            "assert_integer assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in "
            "assert_same_float_dtype assert_scalar assert_shapes assert_type is_numeric_tensor"
        ),
        "dualflow.function.debugging.stepping": "Step",
        "dualflow.function.inspect.check_numerics": "disable_check_numerics enable_check_numerics",
    },
)
