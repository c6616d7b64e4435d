"""Every function of the namespace gives what array-api-strict gives: values, dtypes and shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dualflow as df
import dualflow.array_api as xp

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SIGNED = INTEGERS[:4]
REALS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
FLOATS = REALS + COMPLEX
NUMBERS = INTEGERS + FLOATS
ANY = ["bool", *NUMBERS]
RTOL = {"float32": 2e-6, "complex64": 2e-6, "float64": 1e-13, "complex128": 1e-13}

KINDS = st.sampled_from(
    [
        *["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating"],
        *["numeric", np.dtype("int8"), ("bool", np.dtype("float32"))],
    ]
)

Draw = Callable[[st.DataObject], tuple[tuple[Any, ...], dict[str, Any]]]


def numbers(dtype: Any, low: float = -6, high: float = 6, whole: bool = False) -> st.SearchStrategy[Any]:
    """Numbers whose sums and products of a few are exact in every dtype: eighths between the bounds."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        return st.integers(int(max(low, 0 if dtype.kind == "u" else low)), int(high))
    eighths = st.integers(math.ceil(8 * low), math.floor(8 * high)).map(lambda n: n // 8 if whole else n / 8)
    return st.builds(complex, eighths, eighths) if dtype.kind == "c" else eighths


def array(
    dtypes: list[str],
    shape: Any = None,
    low: float = -6,
    high: float = 6,
    whole: bool = False,
    unique: bool = False,
) -> st.SearchStrategy[Any]:
    """NumPy arrays of one of the dtypes, of any shape if none is given."""
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4) if shape is None else shape
    return st.sampled_from(dtypes).flatmap(
        lambda t: hnp.arrays(t, shapes, elements=numbers(t, low, high, whole), unique=unique)
    )


SOME = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
MATRICES = st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(1, 4)).map(
    lambda s: (*[2] * s[0], s[1], s[2])
)


def axis_of(x: Any, data: st.DataObject, *, several: bool = False, none: bool = True) -> Any:
    """An axis of ``x``, counted from either end, or None, or several axes."""
    one = st.integers(-x.ndim, x.ndim - 1) if x.ndim else st.none()
    many = st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1).map(tuple) if x.ndim else st.none()
    return data.draw(st.one_of(one, *([st.none()] if none else []), *([many] if several else [])))


def name_of(dtype: Any) -> str:
    return dtype.name if isinstance(dtype, df.DType) else str(dtype).rpartition(".")[2]


def in_strict(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return strict.asarray(value.copy())
    if isinstance(value, np.dtype):
        return getattr(strict, value.name)
    return type(value)(in_strict(v) for v in value) if type(value) in (list, tuple) else value


def in_ours(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return xp.asarray(value)
    if isinstance(value, np.dtype):
        return getattr(xp, value.name)
    return type(value)(in_ours(v) for v in value) if type(value) in (list, tuple) else value


def in_numpy(value: Any) -> Any:
    """What either namespace returned, as NumPy's arrays and Python's values."""
    if isinstance(value, xp.Array):
        return np.asarray(value)
    if isinstance(value, type(strict.zeros(1))):
        return np.asarray(value._array)
    if isinstance(value, list | tuple):
        return [in_numpy(v) for v in value]
    return value


def assert_same(result: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, np.ndarray):
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        rtol = RTOL.get(expected.dtype.name, 0)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(result, expected, rtol=rtol, atol=8 * rtol)
    else:
        assert result == expected


@dataclass(frozen=True)
class Case:
    """How to call a function, and what to compare of its result."""

    draw: Draw
    shown: Callable[..., Any] = field(default=lambda result, *args: result)
    compiles: bool = True


def unary(dtypes: list[str], low: float = -6, high: float = 6) -> Case:
    return Case(lambda data: ((data.draw(array(dtypes, low=low, high=high)),), {}))


def binary(dtypes: list[str], low: float = -6, high: float = 6, least: float | None = None) -> Case:
    def draw(data: st.DataObject) -> Any:
        shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4))
        dtype = data.draw(st.sampled_from(dtypes))
        x, y = shapes.input_shapes
        second = data.draw(array([dtype], y, low if least is None else least, high))
        scalar = data.draw(numbers(dtype, max(1, low), high))
        first = data.draw(array([dtype], x, low, high))
        return data.draw(st.sampled_from([(first, second), (first, scalar)])), {}

    return Case(draw)


def reduction(dtypes: list[str], *, several: bool = True, **options: st.SearchStrategy[Any]) -> Case:
    def draw(data: st.DataObject) -> Any:
        x = data.draw(array(dtypes, SOME, whole=True))
        kwargs = {name: data.draw(value) for name, value in options.items()}
        return (x,), {
            "axis": axis_of(x, data, several=several),
            "keepdims": data.draw(st.booleans()),
            **kwargs,
        }

    return Case(draw)


def along(dtypes: list[str], **options: st.SearchStrategy[Any]) -> Case:
    """A function of an array along an axis."""

    def draw(data: st.DataObject) -> Any:
        x = data.draw(array(dtypes, SOME))
        return (x,), {"axis": axis_of(x, data, none=False)} | {n: data.draw(v) for n, v in options.items()}

    return Case(draw)


def with_axis(
    draw_more: Callable[[Any, st.DataObject], tuple[tuple[Any, ...], dict[str, Any]]],
    dtypes: list[str] = ANY,
) -> Case:
    def draw(data: st.DataObject) -> Any:
        x = data.draw(array(dtypes, SOME))
        args, kwargs = draw_more(x, data)
        return (x, *args), kwargs

    return Case(draw)


def of_shape(**options: st.SearchStrategy[Any]) -> Draw:
    dtypes = st.sampled_from([None, *map(np.dtype, ANY)])
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0) | st.integers(0, 3)
    return lambda data: (
        (data.draw(shapes), *[data.draw(v) for v in options.values()]),
        {"dtype": data.draw(dtypes)},
    )


def like(**options: st.SearchStrategy[Any]) -> Draw:
    dtypes = st.sampled_from([None, *map(np.dtype, NUMBERS)])
    return lambda data: (
        (data.draw(array(NUMBERS)), *[data.draw(v) for v in options.values()]),
        {"dtype": data.draw(dtypes)},
    )


def several(data: st.DataObject) -> tuple[list[Any], int]:
    """Arrays that can be joined along an axis."""
    dtype = data.draw(st.sampled_from(ANY))
    shape = list(data.draw(SOME))
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    return [data.draw(array([dtype], (*shape[:axis], n, *shape[axis + 1 :]))) for n in sizes], axis


def joined(data: st.DataObject) -> Any:
    arrays, axis = several(data)
    return (arrays,), {"axis": data.draw(st.sampled_from([axis, axis - arrays[0].ndim, None]))}


def stacked(data: st.DataObject) -> Any:
    x = data.draw(array(ANY))
    copies = [x] * data.draw(st.integers(1, 3))
    return (copies,), {"axis": data.draw(st.integers(-x.ndim - 1, x.ndim))}


def ranges(data: st.DataObject) -> Any:
    start, stop = data.draw(st.integers(-9, 9)), data.draw(st.integers(-9, 9) | st.none())
    step = data.draw(st.sampled_from([1, 2, -1, 3, 0.5, -0.25]))
    return (start, stop, step), {}


def spaced(data: st.DataObject) -> Any:
    start, stop = data.draw(numbers("float64")), data.draw(numbers("float64"))
    dtype = data.draw(st.sampled_from([None, *map(np.dtype, FLOATS)]))
    return (start, stop, data.draw(st.integers(0, 9))), {"endpoint": data.draw(st.booleans()), "dtype": dtype}


def clipped(data: st.DataObject) -> Any:
    dtype = data.draw(st.sampled_from(INTEGERS + REALS))
    bounds = sorted([data.draw(numbers(dtype)), data.draw(numbers(dtype))])
    return (data.draw(array([dtype])), *[data.draw(st.sampled_from([b, None])) for b in bounds]), {}


def contracted(data: st.DataObject) -> Any:
    dtype = data.draw(st.sampled_from(NUMBERS))
    x = data.draw(array([dtype], SOME, whole=True, high=3, low=-3))
    count = data.draw(st.integers(0, x.ndim))
    y = data.draw(array([dtype], (*x.shape[x.ndim - count :], 2), whole=True, high=3, low=-3))
    pairs = [list(range(x.ndim - count, x.ndim)), list(range(count))]
    return (x, y), {"axes": data.draw(st.sampled_from([count, tuple(map(tuple, pairs))]))}


def factors(data: st.DataObject) -> Any:
    dtype, k = data.draw(st.sampled_from(NUMBERS)), data.draw(st.integers(1, 4))
    left = data.draw(st.sampled_from([(k,), (3, k), (2, 3, k), (1, 2, k)]))
    right = data.draw(st.sampled_from([(k,), (k, 2), (2, k, 3)]))
    return tuple(data.draw(array([dtype], s, whole=True, high=3, low=-3)) for s in (left, right)), {}


def vectors(length: int | None = None) -> Draw:
    def draw(data: st.DataObject) -> Any:
        dtype, n = data.draw(st.sampled_from(NUMBERS)), length or data.draw(st.integers(1, 4))
        shapes = data.draw(st.sampled_from([((n,), (n,)), ((2, n), (n,)), ((2, 1, n), (3, n))]))
        return tuple(data.draw(array([dtype], s, whole=True, high=3, low=-3)) for s in shapes), {}

    return draw


def ordered(data: st.DataObject) -> Any:
    dtype = data.draw(st.sampled_from(INTEGERS + REALS))
    x = data.draw(array([dtype], st.integers(0, 6).map(lambda n: (n,))))
    kwargs: dict[str, Any] = {"side": data.draw(st.sampled_from(["left", "right"]))}
    if data.draw(st.booleans()):
        kwargs["sorter"] = np.argsort(x)
    else:
        x = np.sort(x)
    return (x, data.draw(array([dtype], SOME))), kwargs


def square(data: st.DataObject) -> Any:
    """Matrices that are far from singular."""
    n, batch = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([(), (2,)]))
    x = data.draw(array(FLOATS, (*batch, n, n), low=-1, high=1))
    return (x + 6 * np.eye(n, dtype=x.dtype)).astype(x.dtype)


def positive(data: st.DataObject) -> Any:
    x = square(data)
    return (x @ np.swapaxes(x, -1, -2).conj()).astype(x.dtype)


def tall(data: st.DataObject) -> Any:
    """Matrices of full rank, of any sizes."""
    x = data.draw(array(FLOATS, MATRICES, low=-1, high=1))
    return (x + 4 * np.eye(*x.shape[-2:], dtype=x.dtype)).astype(x.dtype)


def sides(data: st.DataObject) -> Any:
    a = square(data)
    b = data.draw(st.sampled_from([(a.shape[-1],), (a.shape[-1], 2), (2, a.shape[-1], 1)]))
    return (a, data.draw(array([a.dtype.name], b))), {}


NORMS = st.sampled_from(["backward", "ortho", "forward"])


def signal(dtypes: list[str]) -> Case:
    """A transform along one axis."""

    def draw(data: st.DataObject) -> Any:
        x = data.draw(array(dtypes, hnp.array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=5)))
        n = data.draw(st.none() | st.integers(2, 6))
        return (x,), {"n": n, "axis": axis_of(x, data, none=False), "norm": data.draw(NORMS)}

    return Case(draw)


def signals(dtypes: list[str]) -> Case:
    """A transform over several axes."""

    def draw(data: st.DataObject) -> Any:
        x = data.draw(array(dtypes, (3, 4, 2)))
        axes = data.draw(st.sampled_from([None, (0,), (-1, 0), (0, 1, 2)]))
        count = len(axes or ())
        s = data.draw(st.none() | st.tuples(*[st.integers(2, 5)] * count)) if axes else None
        return (x,), {"s": s, "axes": axes, "norm": data.draw(NORMS)}

    return Case(draw)


CASES: dict[str, Case] = {
    **{name: unary(FLOATS) for name in ("cos", "cosh", "exp", "expm1", "sin", "sinh", "tan", "tanh")},
    **{name: unary(FLOATS) for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "sqrt")},
    **{name: unary(FLOATS) for name in ("log", "log1p", "log2", "log10", "reciprocal")},
    **{name: unary(NUMBERS) for name in ("abs", "negative", "positive", "square", "sign", "round")},
    **{name: unary(NUMBERS) for name in ("isfinite", "isinf", "isnan")},
    **{name: unary(INTEGERS + REALS) for name in ("ceil", "floor", "trunc")},
    **{name: unary(COMPLEX) for name in ("conj", "imag", "real")},
    "signbit": unary(REALS),
    "logical_not": unary(["bool"]),
    "bitwise_invert": unary(["bool", *INTEGERS]),
    **{name: binary(NUMBERS, low=0) for name in ("add", "multiply")},
    **{name: binary(SIGNED + FLOATS) for name in ("subtract", "equal", "not_equal")},
    **{name: binary(INTEGERS + REALS, least=1) for name in ("floor_divide", "remainder")},
    **{name: binary(INTEGERS + REALS) for name in ("less", "less_equal", "greater", "greater_equal")},
    **{name: binary(INTEGERS + REALS) for name in ("maximum", "minimum")},
    **{name: binary(REALS) for name in ("atan2", "copysign", "hypot", "logaddexp", "nextafter")},
    **{name: binary(["bool"]) for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: binary(["bool", *INTEGERS]) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{name: binary(INTEGERS, low=0, high=3) for name in ("bitwise_left_shift", "bitwise_right_shift")},
    "divide": binary(FLOATS, least=1),
    "pow": binary(INTEGERS + FLOATS, low=1, high=3),
    "clip": Case(clipped),
    # Creation
    "arange": Case(ranges),
    "asarray": Case(
        lambda data: ((data.draw(array(["bool", "int64", "float64", "complex128"])).tolist(),), {})
    ),
    **{name: Case(of_shape()) for name in ("zeros", "ones")},
    "empty": Case(of_shape(), lambda x, *_: (x.shape, name_of(x.dtype)), compiles=False),
    "full": Case(lambda data: ((data.draw(SOME), data.draw(numbers("float64") | st.booleans())), {})),
    **{name: Case(like()) for name in ("zeros_like", "ones_like")},
    "empty_like": Case(like(), lambda x, *_: (x.shape, name_of(x.dtype)), compiles=False),
    "full_like": Case(like(fill_value=st.integers(0, 6))),
    "eye": Case(
        lambda data: (
            (data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4) | st.none())),
            {
                "k": data.draw(st.integers(-5, 5)),
                "dtype": data.draw(st.sampled_from([None, np.dtype("int8")])),
            },
        )
    ),
    "linspace": Case(spaced),
    "from_dlpack": Case(lambda data: ((data.draw(array(NUMBERS)),), {"copy": True}), compiles=False),
    "meshgrid": Case(
        lambda data: (
            tuple(data.draw(st.lists(array(["int32"], (3,)), min_size=1, max_size=3))),
            {"indexing": data.draw(st.sampled_from(["xy", "ij"]))},
        )
    ),
    **{
        name: Case(lambda data: ((data.draw(array(ANY, MATRICES)),), {"k": data.draw(st.integers(-4, 4))}))
        for name in ("tril", "triu")
    },
    # Data types
    "astype": Case(
        lambda data: (
            (data.draw(array(INTEGERS + REALS, low=0)), np.dtype(data.draw(st.sampled_from(NUMBERS)))),
            {},
        )
    ),
    "isdtype": Case(
        lambda data: (
            (
                np.dtype(data.draw(st.sampled_from(ANY))),
                data.draw(KINDS),
            ),
            {},
        ),
        compiles=False,
    ),
    "result_type": Case(
        lambda data: (
            tuple(
                map(
                    np.dtype,
                    data.draw(
                        st.sampled_from([SIGNED, INTEGERS[4:], FLOATS]).flatmap(
                            lambda kinds: st.lists(st.sampled_from(kinds), min_size=1, max_size=3)
                        )
                    ),
                )
            ),
            {},
        ),
        lambda dtype, *_: name_of(dtype),
        compiles=False,
    ),
    "can_cast": Case(
        lambda data: (
            tuple(map(np.dtype, data.draw(st.tuples(st.sampled_from(SIGNED), st.sampled_from(SIGNED))))),
            {},
        ),
        compiles=False,
    ),
    "finfo": Case(
        lambda data: ((np.dtype(data.draw(st.sampled_from(FLOATS))),), {}),
        lambda info, *_: (info.bits, info.eps, info.max, info.min, info.smallest_normal),
        compiles=False,
    ),
    "iinfo": Case(
        lambda data: ((np.dtype(data.draw(st.sampled_from(INTEGERS))),), {}),
        lambda info, *_: (info.bits, info.max, info.min),
        compiles=False,
    ),
    # Manipulation
    "broadcast_to": Case(
        lambda data: ((data.draw(array(ANY, (3, 1))), (2, 3, data.draw(st.integers(0, 4)))), {})
    ),
    "broadcast_arrays": Case(
        lambda data: (
            tuple(
                data.draw(array(ANY, shape))
                for shape in data.draw(hnp.mutually_broadcastable_shapes(num_shapes=3)).input_shapes
            ),
            {},
        )
    ),
    "concat": Case(joined),
    "stack": Case(stacked),
    "unstack": along(ANY),
    "expand_dims": with_axis(lambda x, data: ((), {"axis": data.draw(st.integers(-x.ndim - 1, x.ndim))})),
    "squeeze": Case(
        lambda data: ((data.draw(array(ANY, (1, 3, 1))), data.draw(st.sampled_from([0, 2, -1, (0, 2)]))), {})
    ),
    "reshape": Case(
        lambda data: (
            (data.draw(array(ANY, (2, 6))), data.draw(st.sampled_from([(12,), (3, -1), (2, 2, 3)]))),
            {"copy": data.draw(st.sampled_from([None, True]))},
        )
    ),
    "permute_dims": with_axis(lambda x, data: ((tuple(data.draw(st.permutations(range(x.ndim)))),), {})),
    "moveaxis": with_axis(lambda x, data: ((axis_of(x, data, none=False), axis_of(x, data, none=False)), {})),
    "flip": with_axis(lambda x, data: ((), {"axis": axis_of(x, data, several=True)})),
    "roll": with_axis(lambda x, data: ((data.draw(st.integers(-5, 5)),), {"axis": axis_of(x, data)})),
    "repeat": with_axis(lambda x, data: ((data.draw(st.integers(0, 3)),), {"axis": axis_of(x, data)})),
    "tile": with_axis(
        lambda x, data: ((tuple(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=4))),), {})
    ),
    # Statistics
    "sum": reduction(NUMBERS, dtype=st.sampled_from([None, np.dtype("float64"), np.dtype("complex128")])),
    "prod": reduction(NUMBERS),
    "mean": reduction(REALS + COMPLEX),
    "var": reduction(REALS, correction=st.sampled_from([0.0, 1.0, 0.5])),
    "std": reduction(REALS, correction=st.sampled_from([0.0, 0.25])),
    "max": reduction(INTEGERS + REALS),
    "min": reduction(INTEGERS + REALS),
    "cumulative_prod": along(NUMBERS, include_initial=st.booleans()),
    "cumulative_sum": along(NUMBERS, include_initial=st.booleans()),
    "all": reduction(ANY),
    "any": reduction(ANY),
    "diff": along(SIGNED + FLOATS, n=st.integers(0, 3)),
    # Searching, sorting, sets
    "argmax": reduction(INTEGERS + REALS, several=False),
    "argmin": reduction(INTEGERS + REALS, several=False),
    "count_nonzero": reduction(ANY),
    "nonzero": Case(lambda data: ((data.draw(array(ANY, SOME)),), {}), compiles=False),
    "searchsorted": Case(ordered),
    "where": Case(
        lambda data: (
            (
                data.draw(array(["bool"], (3, 1))),
                *data.draw(st.tuples(array(["int16"], (4,)), array(["int16"], ()))),
            ),
            {},
        )
    ),
    "take": with_axis(
        lambda x, data: (
            (np.array([0, x.shape[-1] - 1, 0]),),
            {"axis": -1},
        )
    ),
    "take_along_axis": with_axis(lambda x, data: ((np.argsort(x, -1)[..., :2],), {"axis": -1})),
    "sort": along(INTEGERS + REALS, descending=st.booleans(), stable=st.booleans()),
    "argsort": along(INTEGERS + REALS, descending=st.booleans()),
    **{
        name: Case(lambda data: ((data.draw(array(ANY, SOME)),), {}), compiles=False)
        for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")
    },
    # Linear algebra
    "matmul": Case(factors),
    "matrix_transpose": Case(lambda data: ((data.draw(array(ANY, MATRICES)),), {})),
    "tensordot": Case(contracted),
    "vecdot": Case(vectors()),
    "linalg.cross": Case(vectors(3)),
    "linalg.outer": Case(
        lambda data: (tuple(data.draw(array(["int32"], (n,))) for n in (2, data.draw(st.integers(0, 3)))), {})
    ),
    "linalg.diagonal": Case(
        lambda data: ((data.draw(array(ANY, MATRICES)),), {"offset": data.draw(st.integers(-4, 4))})
    ),
    "linalg.trace": Case(
        lambda data: ((data.draw(array(NUMBERS, MATRICES)),), {"offset": data.draw(st.integers(-4, 4))})
    ),
    "linalg.vector_norm": Case(
        lambda data: (
            (data.draw(array(FLOATS, (2, 3))),),
            {
                "axis": data.draw(st.sampled_from([None, 0, -1, (0, 1)])),
                "keepdims": data.draw(st.booleans()),
                "ord": data.draw(st.sampled_from([2, 1, 0, 3, xp.inf, -xp.inf])),
            },
        )
    ),
    "linalg.matrix_norm": Case(
        lambda data: (
            (tall(data),),
            {
                "keepdims": data.draw(st.booleans()),
                "ord": data.draw(st.sampled_from(["fro", "nuc", 1, -1, 2, -2, xp.inf, -xp.inf])),
            },
        )
    ),
    "linalg.matrix_power": Case(lambda data: ((square(data), data.draw(st.integers(-2, 4))), {})),
    "linalg.matrix_rank": Case(lambda data: ((tall(data),), {})),
    "linalg.cholesky": Case(lambda data: ((positive(data),), {"upper": data.draw(st.booleans())})),
    "linalg.det": Case(lambda data: ((square(data),), {})),
    "linalg.slogdet": Case(lambda data: ((square(data),), {})),
    "linalg.inv": Case(lambda data: ((square(data),), {})),
    "linalg.solve": Case(sides),
    "linalg.pinv": Case(lambda data: ((tall(data),), {})),
    "linalg.svdvals": Case(lambda data: ((tall(data),), {})),
    "linalg.eigvalsh": Case(lambda data: ((positive(data),), {})),
    # Decompositions are not unique: what they multiply to is compared
    "linalg.eigh": Case(
        lambda data: ((positive(data),), {}),
        lambda result, x: [
            result.eigenvalues,
            x @ result.eigenvectors - result.eigenvectors * result.eigenvalues[..., None, :],
        ],
    ),
    "linalg.qr": Case(
        lambda data: ((tall(data),), {"mode": data.draw(st.sampled_from(["reduced", "complete"]))}),
        lambda result, x: [result.Q @ result.R, tuple(result.Q.shape), tuple(result.R.shape)],
    ),
    "linalg.svd": Case(
        lambda data: ((tall(data),), {"full_matrices": data.draw(st.booleans())}),
        lambda result, x: [result.S, tuple(result.U.shape), tuple(result.Vh.shape)],
    ),
    # Fourier transforms
    **{f"fft.{name}": signal(COMPLEX) for name in ("fft", "ifft", "irfft", "hfft")},
    **{f"fft.{name}": signal(REALS) for name in ("rfft", "ihfft")},
    **{f"fft.{name}": signals(COMPLEX) for name in ("fftn", "ifftn", "irfftn")},
    "fft.rfftn": signals(REALS),
    **{
        f"fft.{name}": Case(
            lambda data: (
                (data.draw(st.integers(1, 9)),),
                {
                    "d": data.draw(st.sampled_from([1.0, 0.25])),
                    "dtype": data.draw(st.sampled_from([None, np.dtype("float32")])),
                },
            )
        )
        for name in ("fftfreq", "rfftfreq")
    },
    **{
        f"fft.{name}": with_axis(
            lambda x, data: ((), {"axes": axis_of(x, data, several=True)}), dtypes=FLOATS
        )
        for name in ("fftshift", "ifftshift")
    },
}
OUTSIDE = {"Array"}
"""Public functions and classes that are no functions of the standard."""


def found_in(namespace: Any, name: str) -> Any:
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


def test_every_function_has_a_case() -> None:
    public = {name for name in dir(xp) if isinstance(getattr(xp, name), FunctionType)}
    public |= {f"fft.{name}" for name in dir(xp.fft)}
    public |= {f"linalg.{name}" for name in dir(xp.linalg) if name not in dir(xp)}
    assert public - OUTSIDE - set(CASES) == set()


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=8)
@given(data=st.data())
def test_function(name: str, data: st.DataObject) -> None:
    args, kwargs = CASES[name].draw(data)
    inputs = in_strict(list(args))
    with np.errstate(all="ignore"):
        expected = found_in(strict, name)(*inputs, **{k: in_strict(v) for k, v in kwargs.items()})
        expected = in_numpy(CASES[name].shown(expected, *inputs))
    inputs = in_ours(list(args))
    result = found_in(xp, name)(*inputs, **{k: in_ours(v) for k, v in kwargs.items()})
    assert_same(in_numpy(CASES[name].shown(result, *inputs)), expected)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.compiles])
@settings(max_examples=2)
@given(data=st.data())
def test_function_compiled(name: str, data: st.DataObject) -> None:
    args, kwargs = CASES[name].draw(data)
    kwargs = {k: in_ours(v) for k, v in kwargs.items()}
    where = [i for i, x in enumerate(args) if isinstance(x, np.ndarray | list)]

    def call(*arrays: Any) -> Any:
        full = list(args)
        for i, x in zip(where, arrays, strict=True):
            full[i] = x
        inputs = in_ours(full)
        return CASES[name].shown(found_in(xp, name)(*inputs, **kwargs), *inputs)

    inputs = [in_ours(args[i]) for i in where]
    expected = in_numpy(call(*inputs))
    assert_same(in_numpy(df.function(call)(*inputs)), expected)
