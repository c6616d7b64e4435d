"""Dot-product attention."""

from __future__ import annotations

import math
from typing import Any

import dualflow as df
from keras_dualflow.src.ops.core import cast, convert_to_tensor
from keras_dualflow.src.ops.promotion import promote, result_type

_MASK_VALUE = -0.7 * 3.38953e38
"""The logit of an excluded key, as in Keras's NumPy backend: finite, so that a row without keys isn't nan."""


def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    scale: Any = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Any:
    if flash_attention:
        raise ValueError("Flash attention is not supported in dualflow backend.")
    query, key, value = promote(query, key, value)
    if len(query.shape) != 4:
        raise ValueError(
            "`dot_product_attention` only supports 4D inputs. Received: "
            f"query.shape={query.shape}, key.shape={key.shape}, value.shape={value.shape}."
        )
    key, value = _repeat_heads(key, query.shape[2]), _repeat_heads(value, query.shape[2])
    logits = df.einsum("BTNH,BSNH->BNTS", query, key)
    logits = cast(logits, result_type(query.dtype, "float32"))
    logits = logits * (1.0 / math.sqrt(key.shape[-1]) if scale is None else cast(scale, logits.dtype.name))
    if bias is not None:
        logits = logits + convert_to_tensor(bias, logits.dtype.name)
    weights = cast(df.nn.softmax(_apply_mask(logits, mask, is_causal)), key.dtype.name)
    return df.einsum("BNTS,BSNH->BTNH", weights, value)


def _repeat_heads(x: Any, heads: int | None) -> Any:
    """Keys or values with each head repeated for the query heads that share it."""
    key_heads = x.shape[2]
    if heads is None or key_heads is None or key_heads == 1 or key_heads >= heads:
        return x
    return df.repeat(x, heads // key_heads, axis=2)


def _apply_mask(logits: Any, mask: Any, is_causal: bool) -> Any:
    """``logits``, with a large negative number where the mask excludes a key."""
    if mask is not None:
        mask = cast(mask, "bool")
    if is_causal:
        queries, keys = df.shape(logits)[2], df.shape(logits)[3]
        causal_mask = df.expand_dims(df.range(queries), 1) >= df.range(keys)
        mask = causal_mask if mask is None else df.logical_and(mask, causal_mask)
    if mask is None:
        return logits
    return df.where(mask, logits, _MASK_VALUE)
