"""Test inputs for every op, generated from the op's samples; each engine's op matrix runs on them.

A case is one sample in one dtype and one layout: empty, without axes, transposed, strided, with negative
strides, broadcast, or with inf and nan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from dualflow.core.records import dataclass
from dualflow.ops.record import Op
from dualflow.ops.samples import Domain, Sample

Array = np.ndarray[Any, Any]

_DTYPES: Final = {
    "f": ("float32", "float64"),
    "i": ("int32", "int64"),
    "u": ("uint8",),
    "b": ("bool",),
    "c": ("complex64",),
    "O": ("object",),
}
_FREE: Final[dict[str, tuple[tuple[int, ...], ...]]] = {
    "plain": ((3, 4), (3, 4), (3, 4)),
    "vector": ((17,), (17,), (17,)),
    "scalar": ((), (), ()),
    "empty": ((0, 3), (0, 3), (0, 3)),
    "one": ((1, 1), (1, 1), (1, 1)),
    "broadcast": ((3, 1, 4), (2, 1), (1,)),
    "with a scalar": ((3, 4), (), (3, 4)),
}
_LAYOUTS: Final = ("contiguous", "transposed", "strided", "backwards")
_WORDS: Final = (b"", b"a", b"Bc", " \u00e9t\u00e9 ".encode(), b"a\0b\0", b"\xff\xfe", b"1", b"x" * 40)
SPECIAL: Final = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0)


@dataclass(frozen=True, slots=True)
class Case:
    """Arrays and attributes with which to call ``op``."""

    op: Op
    inputs: tuple[Array, ...]
    attrs: dict[str, Any]
    label: str
    domains: tuple[Domain, ...] = ()

    def __str__(self) -> str:
        return f"{self.op.name}-{self.label}"

    def allowed(self, i: int, change: Array) -> Array:
        """``change``, to be added to input ``i``, made symmetric if the input has to be."""
        symmetric = bool(self.domains) and self.domains[i].symmetric
        return (change + np.conjugate(change.swapaxes(-1, -2))) / 2 if symmetric else change


def draw(domain: Domain, rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    """An array of random values from ``domain``, none of them within 0.05 of its kinks."""
    target = np.dtype(dtype)
    if domain.values is not None:
        return np.array(domain.values, target)
    if target.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), target)
    if target.kind == "O":
        words = np.array(_WORDS, object)
        return np.asarray(words[rng.integers(0, len(words), shape)], object)
    if target.kind in "iu":
        low = max(int(np.ceil(domain.low)), 0 if target.kind == "u" else np.iinfo(target).min)
        return np.asarray(rng.integers(low, max(int(domain.high), low + 1), shape), target)
    values = np.asarray(rng.uniform(domain.low, domain.high, shape))
    for kink in domain.kinks:
        near = np.abs(values - kink) < 0.05
        values = np.where(near, values + 0.1, values)
    if target.kind == "c":
        values = values + 1j * rng.uniform(domain.low, domain.high, shape)
    return np.asarray(values, target)


def cases(op: Op, seed: int = 0) -> Iterator[Case]:
    """All cases of ``op``: each sample in each dtype of its domains and each layout."""
    for number, sample in enumerate(op.samples):
        rng = np.random.default_rng([seed, number])
        kinds = dict.fromkeys(sample.inputs[0].kinds if sample.inputs else "")
        for kind in kinds or "-":
            for dtype in _DTYPES.get(kind, ("",)):
                yield from _of_dtype(op, sample, number, dtype, rng)


def _of_dtype(op: Op, sample: Sample, number: int, dtype: str, rng: np.random.Generator) -> Iterator[Case]:
    """The cases of one sample in one dtype."""
    dtypes = [_supported_dtype(domain, dtype) for domain in sample.inputs]
    if not any(domain.shape is None for domain in sample.inputs):
        shapes = [domain.shape or () for domain in sample.inputs]
        plain = [draw(*drawn) for drawn in _arguments(sample, rng, dtypes, shapes)]
        for layout in _LAYOUTS if plain else _LAYOUTS[:1]:
            arrays = tuple(_laid_out(a, layout) for a in plain)
            yield Case(op, arrays, sample.attrs, f"{number}-{dtype}-{layout}", sample.inputs)
        return
    for pattern, free in _FREE.items():
        shapes = [free[i] if d.shape is None else d.shape for i, d in enumerate(sample.inputs)]
        arrays = tuple(draw(*drawn) for drawn in _arguments(sample, rng, dtypes, shapes))
        yield Case(op, arrays, sample.attrs, f"{number}-{dtype}-{pattern}")
        if pattern == "plain":
            for layout in _LAYOUTS[1:]:
                yield Case(
                    op,
                    tuple(_laid_out(a, layout) for a in arrays),
                    sample.attrs,
                    f"{number}-{dtype}-{layout}",
                )
    if dtype.startswith("float"):
        yield Case(op, tuple(_special(dtypes)), sample.attrs, f"{number}-{dtype}-special values")


def _arguments(sample: Sample, rng: Any, dtypes: list[str], shapes: list[tuple[int, ...]]) -> Any:
    return [(d, rng, t, s) for d, t, s in zip(sample.inputs, dtypes, shapes, strict=True)]


def _supported_dtype(domain: Domain, dtype: str) -> str:
    """``dtype`` if the domain includes its kind; otherwise the first dtype that it includes."""
    if domain.dtype is not None:
        return domain.dtype
    return dtype if np.dtype(dtype).kind in domain.kinds else _DTYPES[domain.kinds[0]][0]


def _laid_out(array: Array, layout: str) -> Array:
    """A copy of ``array`` with the strides of ``layout``."""
    if layout == "transposed":
        return np.asarray(array.T.copy().T)
    if layout == "strided" and array.ndim:
        wide = np.repeat(array, 2, axis=-1)
        return np.asarray(wide[..., ::2])
    if layout == "backwards" and array.ndim:
        reverse = (slice(None, None, -1),) * array.ndim
        return np.asarray(array[reverse].copy()[reverse])
    return array


def _special(dtypes: list[str]) -> Iterator[Array]:
    """Arrays, one for each input, that broadcast to every combination of the special values."""
    for axis, dtype in enumerate(dtypes):
        shape = [1] * len(dtypes)
        shape[axis] = len(SPECIAL)
        values = np.array(SPECIAL) if np.dtype(dtype).kind == "f" else np.arange(len(SPECIAL)) % 2
        yield values.astype(dtype).reshape(shape)
