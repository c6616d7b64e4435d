"""Quantization: ``df.quantization``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.integer_product import group_weights as group_weights
    from dualflow.ops.integer_product import integer_product as integer_product
    from dualflow.ops.quantization.fake import fake_quant_with_min_max_args as fake_quant_with_min_max_args
    from dualflow.ops.quantization.fake import (
        fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient,
    )
    from dualflow.ops.quantization.fake import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
    from dualflow.ops.quantization.fake import (
        fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient,
    )
    from dualflow.ops.quantization.fake import (
        fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel,
    )
    from dualflow.ops.quantization.fake import (
        fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient,  # noqa: E501  the name twice
    )
    from dualflow.ops.quantization.integers import dequantize as dequantize
    from dualflow.ops.quantization.integers import quantize as quantize
    from dualflow.ops.quantization.integers import quantized_concat as quantized_concat
    from dualflow.ops.quantization.quantize_and_dequantize import (
        quantize_and_dequantize as quantize_and_dequantize,
    )
    from dualflow.ops.quantization.quantize_and_dequantize import (
        quantize_and_dequantize_v2 as quantize_and_dequantize_v2,
    )
    from dualflow.rewrites.calibration import Calibration as Calibration
    from dualflow.rewrites.calibration import calibrate as calibrate
    from dualflow.rewrites.int8 import int8 as int8

_publish(
    globals(),
    lazy={
        "dualflow.ops.quantization.fake": (
            "fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient "
            "fake_quant_with_min_max_vars fake_quant_with_min_max_vars_gradient "
            "fake_quant_with_min_max_vars_per_channel fake_quant_with_min_max_vars_per_channel_gradient"
        ),
        "dualflow.ops.integer_product": "group_weights integer_product",
        "dualflow.ops.quantization.integers": "dequantize quantize quantized_concat",
        "dualflow.ops.quantization.quantize_and_dequantize": (
            "quantize_and_dequantize quantize_and_dequantize_v2"
        ),
        "dualflow.rewrites.calibration": "Calibration calibrate",
        "dualflow.rewrites.int8": "int8",
    },
)
