"""Registers the elementwise functions of tensors that are no op's public function: ``cast``, ``lower``, ...

A handler of elementwise functions of one argument computes them of extension types. Of ragged tensors, they
are the functions of the innermost values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from dualflow.core.api_dispatch import ELEMENTWISE_FUNCTIONS
from dualflow.ops.clipping import clip_by_value
from dualflow.ops.conversion import cast
from dualflow.ops.creation import ones_like, zeros_like
from dualflow.ops.elementary.values import bitcast, saturate_cast
from dualflow.ops.neural.activations import elu, gelu, leaky_relu, selu, silu
from dualflow.ops.text.hash_buckets import to_hash_bucket, to_hash_bucket_fast, to_hash_bucket_strong
from dualflow.ops.text.joins import join
from dualflow.ops.text.letters import length, lower, strip, upper
from dualflow.ops.text.numbers import as_string, to_number
from dualflow.ops.text.patterns import regex_full_match, regex_replace
from dualflow.ops.text.substrings import substr

FUNCTIONS_WITHOUT_OP: Final[tuple[Callable[..., Any], ...]] = (
    as_string,
    bitcast,
    cast,
    clip_by_value,
    elu,
    gelu,
    join,
    leaky_relu,
    length,
    lower,
    ones_like,
    regex_full_match,
    regex_replace,
    saturate_cast,
    selu,
    silu,
    strip,
    substr,
    to_hash_bucket,
    to_hash_bucket_fast,
    to_hash_bucket_strong,
    to_number,
    upper,
    zeros_like,
)

ELEMENTWISE_FUNCTIONS.update([inspect.unwrap(function) for function in FUNCTIONS_WITHOUT_OP])
