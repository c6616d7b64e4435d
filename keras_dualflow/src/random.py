"""``keras.random``: stateless random numbers, with seeds drawn from a seed generator."""

from __future__ import annotations

from typing import Any

from keras.src.backend import floatx, standardize_dtype
from keras.src.random.seed_generator import SeedGenerator as SeedGenerator
from keras.src.random.seed_generator import draw_seed
from keras.src.random.seed_generator import make_default_seed as make_default_seed

import dualflow as df
from keras_dualflow.src.ops.core import cast, shape
from keras_dualflow.src.ops.promotion import floats, tensor

_Shape = Any


def _float_dtype_name(dtype: Any) -> str:
    name: str = standardize_dtype(dtype or floatx())
    return name


def normal(shape: _Shape, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    return df.random.stateless_normal(shape, draw_seed(seed), mean, stddev, _float_dtype_name(dtype))


def uniform(shape: _Shape, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    return df.random.stateless_uniform(shape, draw_seed(seed), minval, maxval, _float_dtype_name(dtype))


def randint(shape: _Shape, minval: Any, maxval: Any, dtype: Any = "int32", seed: Any = None) -> Any:
    dtype = standardize_dtype(dtype)
    inner = dtype if dtype in ("int32", "int64") else "int64"
    ends = cast(minval, inner), cast(maxval, inner)
    return cast(df.random.stateless_uniform(shape, draw_seed(seed), *ends, inner), dtype)


def truncated_normal(
    shape: _Shape, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None
) -> Any:
    return df.random.stateless_truncated_normal(
        shape, draw_seed(seed), mean, stddev, _float_dtype_name(dtype)
    )


def categorical(logits: Any, num_samples: int, dtype: Any = "int64", seed: Any = None) -> Any:
    return cast(df.random.stateless_categorical(floats(logits), num_samples, draw_seed(seed)), dtype)


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
    inputs = tensor(inputs)
    if rate == 0.0:
        return inputs
    if rate == 1.0:
        return df.zeros_like(inputs)
    sizes = shape(inputs)
    if noise_shape is not None:
        sizes = tuple(sizes[i] if size is None else size for i, size in enumerate(noise_shape))
    drawn = df.random.stateless_uniform(sizes, draw_seed(seed))
    return df.where(drawn >= rate, inputs * (1.0 / (1.0 - rate)), df.zeros_like(inputs))


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> Any:
    x = tensor(x)
    keys = df.random.stateless_uniform([shape(x)[axis]], draw_seed(seed), None, None, "int64")
    return df.gather(x, df.argsort(keys), axis=axis)


def gamma(shape: _Shape, alpha: Any, dtype: Any = None, seed: Any = None) -> Any:
    dtype = _float_dtype_name(dtype)
    return cast(
        df.random.stateless_gamma(
            shape, draw_seed(seed), cast(alpha, _compute_dtype(dtype)), dtype=_compute_dtype(dtype)
        ),
        dtype,
    )


def _compute_dtype(dtype: str) -> str:
    """The dtype to compute in."""
    return "float64" if dtype == "float64" else "float32"


def binomial(shape: _Shape, counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None) -> Any:
    dtype = _float_dtype_name(dtype)
    drawn = df.random.stateless_binomial(
        shape, draw_seed(seed), cast(counts, "float64"), cast(probabilities, "float64"), "int64"
    )
    return cast(drawn, dtype)


def beta(shape: _Shape, alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> Any:
    """Random numbers of the beta distribution: ``a / (a + b)`` of two gamma numbers."""
    dtype = _float_dtype_name(dtype)
    compute_dtype = _compute_dtype(dtype)
    first, second = df.unstack(df.random.split(draw_seed(seed)))
    a = df.random.stateless_gamma(shape, first, cast(alpha, compute_dtype), dtype=compute_dtype)
    b = df.random.stateless_gamma(shape, second, cast(beta, compute_dtype), dtype=compute_dtype)
    return cast(a / (a + b), dtype)
