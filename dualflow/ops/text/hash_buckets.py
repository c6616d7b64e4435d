"""Strings hashed to a number of buckets: the bucket of a string is the same in every process and release."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import int64
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.ops.samples import Sample
from dualflow.ops.static import ints, static_int
from dualflow.ops.text.hashes import fingerprint64, hash_strings, murmur64, siphash
from dualflow.ops.text.mapping import WORDS, of_strings, text_op, words

if TYPE_CHECKING:
    from dualflow.core.argument_types import IntLike, TensorLike
    from dualflow.ops.tensor import Tensor

_HASHES: Final[dict[str, Callable[..., Any]]] = {
    "farmhash": fingerprint64,
    "murmur": murmur64,
    "siphash": siphash,
}


def _buckets(x: Array, function: str, buckets: int, **options: Any) -> Array:
    hashes = hash_strings(x.ravel().tolist(), partial(_HASHES[function], **options))
    return (hashes % np.uint64(buckets)).astype(np.int64).reshape(x.shape)


_BUCKET: Final = text_op(
    "string_bucket",
    "The bucket of each string: its hash modulo ``buckets``.",
    infer=lambda x, **attrs: TensorSpec.of(x.shape, int64),
    kernel=_buckets,
    samples=[
        Sample((WORDS,), {"function": "farmhash", "buckets": 1000}),
        Sample((WORDS,), {"function": "murmur", "buckets": 1000}),
        Sample((words("", "a", "bc", "d" * 70),), {"function": "siphash", "buckets": 7, "key": (1, 2)}),
    ],
)


def to_hash_bucket_fast(input: TensorLike, num_buckets: IntLike, name: str | None = None) -> Tensor:
    """The bucket of each string: FarmHash's Fingerprint64 modulo ``num_buckets``.

    The buckets are TensorFlow's. The hash has no key, so that strings can be chosen that share one bucket:
    for untrusted strings use :func:`to_hash_bucket_strong`.

    Args:
        input: strings of any shape.
        num_buckets: the number of buckets, 1 or more.

    Returns:
        An int64 tensor with the shape of ``input``, of integers below ``num_buckets``.

    Raises:
        InvalidArgumentError: ``num_buckets`` is less than 1.
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3).numpy()
    array([0, 2, 2])
    """
    return _apply(input, "to_hash_bucket_fast", "farmhash", num_buckets)


def to_hash_bucket(input: TensorLike, num_buckets: IntLike, name: str | None = None) -> Tensor:
    """The bucket of each string: MurmurHash64A modulo ``num_buckets``, as in early TensorFlow.

    Args:
        input: strings of any shape.
        num_buckets: the number of buckets, 1 or more.

    Returns:
        An int64 tensor with the shape of ``input``, of integers below ``num_buckets``.

    Raises:
        InvalidArgumentError: ``num_buckets`` is less than 1.
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.to_hash_bucket(["a", "b", "a"], 10).shape
    (3,)
    """
    return _apply(input, "to_hash_bucket", "murmur", num_buckets)


def to_hash_bucket_strong(
    input: TensorLike, num_buckets: IntLike, key: TensorLike, name: str | None = None
) -> Tensor:
    """The bucket of each string: SipHash-2-4 modulo ``num_buckets``.

    Strings that share a bucket can't be chosen without the key.

    Args:
        input: strings of any shape.
        num_buckets: the number of buckets, 1 or more.
        key: two integers.

    Returns:
        An int64 tensor with the shape of ``input``, of integers below ``num_buckets``.

    Raises:
        InvalidArgumentError: ``num_buckets`` is less than 1, or ``key`` is not two integers.
        DTypeError: ``input`` holds numbers.

    >>> import dualflow as df
    >>> df.strings.to_hash_bucket_strong(["Hello", "TF"], 3, [1, 2]).numpy()
    array([2, 0])
    """
    numbers = ints(key, "key")
    if len(numbers) != 2:
        raise InvalidArgumentError(f"The key of a strong hash is two integers, not {list(numbers)}.")
    return _apply(input, "to_hash_bucket_strong", "siphash", num_buckets, key=numbers)


def _apply(input: Any, name: str, function: str, num_buckets: Any, **attrs: Any) -> Any:
    buckets = static_int(num_buckets, "num_buckets")
    if buckets < 1:
        raise InvalidArgumentError(f"num_buckets is at least 1, not {buckets}.")
    attrs |= {"function": function, "buckets": buckets}
    return dispatch.current().apply(_BUCKET, (of_strings(input, name),), attrs)
