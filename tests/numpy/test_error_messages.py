"""Each error of ``df.numpy`` states what is wrong and what to do."""

from __future__ import annotations

import numpy as np
import pytest
from error_cases import ErrorCases

import dualflow as df
import dualflow.numpy as dnp
from dualflow.core.errors import DTypeError, InvalidArgumentError
from dualflow.function import SymbolicValueError
from dualflow.numpy.editing import static_positions

X = df.constant([1.0, 2.0])
M = df.ones([2, 2])


def watched(function):
    with df.GradientTape() as tape:
        tape.watch(X)
        return function(X)


def traced(function, *values, signature=None):
    return df.function(function, input_signature=signature)(*values or (X,))


CASES = {
    "no vectors": (
        lambda: dnp.apply_along_axis(dnp.sum, 0, dnp.ones((2, 0))),
        InvalidArgumentError,
        "no vector along",
    ),
    "nothing to vectorize": (lambda: dnp.vectorize(abs)([]), InvalidArgumentError, "no element to call"),
    "differences of a number": (lambda: dnp.diff(1.0), InvalidArgumentError, "diff takes one axis or more"),
    "an edge order": (
        lambda: dnp.gradient(X, edge_order=3),
        InvalidArgumentError,
        "edge_order is 1 or 2, not 3",
    ),
    "distances": (
        lambda: dnp.gradient(M, 1.0, 2.0, 3.0),
        InvalidArgumentError,
        "a distance for each of 2 axes",
    ),
    "few samples": (lambda: dnp.gradient([1.0]), InvalidArgumentError, "needs 2 samples or more"),
    "places of samples": (
        lambda: dnp.gradient(X, [1.0, 2.0, 3.0]),
        InvalidArgumentError,
        "not those of 2 samples",
    ),
    "coordinates": (
        lambda: dnp.trapezoid(X, [1.0, 2.0, 3.0]),
        InvalidArgumentError,
        "a coordinate for each sample: along the axis x has 3, y has 2",
    ),
    "a range without an end": (lambda: dnp.arange(None), DTypeError, "number of its end, not None"),
    "a step of 0": (lambda: dnp.arange(0, 5, 0), InvalidArgumentError, "arange: .*a step other than 0"),
    "an infinite range": (lambda: dnp.arange(np.inf), InvalidArgumentError, "arange: .*finite numbers"),
    "a range of words": (lambda: dnp.arange("a", "b"), DTypeError, "not supported.*; pass finite numbers"),
    "a negative identity": (lambda: dnp.eye(-1), InvalidArgumentError, "eye: .*no negative sizes"),
    "negative dimensions": (
        lambda: dnp.indices((2, -1)),
        InvalidArgumentError,
        "indices: .*no negative sizes",
    ),
    "part of a number": (
        lambda: dnp.frombuffer(b"123", "float32"),
        InvalidArgumentError,
        "float32 has 4 bytes: pass",
    ),
    "no buffer": (lambda: dnp.frombuffer(3), DTypeError, "bytes-like object.*that fit the buffer"),
    "few numbers": (lambda: dnp.fromiter([1], int, count=2), InvalidArgumentError, "fromiter: .*or count=-1"),
    "numbers of words": (
        lambda: dnp.fromiter(["a"], float),
        InvalidArgumentError,
        "fromiter: .*pass float64 numbers",
    ),
    "no exporter": (lambda: dnp.from_dlpack(3), DTypeError, "with __dlpack__, not 3; use asarray"),
    "no samples": (lambda: dnp.fft.fftfreq(0), InvalidArgumentError, "fftfreq: .*n >= 1 samples, not 0"),
    "negative samples": (
        lambda: dnp.fft.rfftfreq(-1),
        InvalidArgumentError,
        "rfftfreq: .*n >= 1 samples, not -1",
    ),
    "nothing to join": (
        lambda: dnp.concatenate([]),
        InvalidArgumentError,
        "one tensor or more, but the list is empty",
    ),
    "nothing to stack": (
        lambda: dnp.stack([]),
        InvalidArgumentError,
        "one tensor or more, but the list is empty",
    ),
    "no choices": (lambda: dnp.choose([0], []), InvalidArgumentError, "one choice or more"),
    "a number to compress by": (
        lambda: dnp.compress(True, X),
        InvalidArgumentError,
        "takes a vector of bools",
    ),
    "numbers to multiply as vectors": (
        lambda: dnp.vecdot(2.0, X),
        InvalidArgumentError,
        "along axis -1, which shapes",
    ),
    "numbers to cross": (
        lambda: dnp.linalg.cross(2.0, X),
        InvalidArgumentError,
        "linalg.cross takes 1 axes or more",
    ),
    "a number as bins": (
        lambda: dnp.digitize(X, 1.0),
        InvalidArgumentError,
        "bins are a vector, not of shape",
    ),
    "a word as bins": (lambda: dnp.histogram(X, "few"), InvalidArgumentError, "pass a number of bins"),
    "three widths": (lambda: dnp.pad(X, (1, 2, 3)), InvalidArgumentError, "a pair for each axis"),
    "widths of words": (lambda: dnp.pad(X, "a"), InvalidArgumentError, "a pair for each axis"),
    "one axis to rotate": (lambda: dnp.rot90(M, axes=(0,)), InvalidArgumentError, r"two axes, not of \(0,\)"),
    "points": (lambda: dnp.interp(1.0, [1.0, 2.0], [1.0]), InvalidArgumentError, "as many places as values"),
    "no vector to convolve": (
        lambda: dnp.convolve(M, X),
        InvalidArgumentError,
        "Vectors of one element or more",
    ),
    "a mode of convolution": (
        lambda: dnp.convolve(X, X, "all"),
        InvalidArgumentError,
        "'full', 'same' or 'valid'",
    ),
    "a negative number": (lambda: dnp.linspace(0, 1, -1), InvalidArgumentError, "0 numbers or more, not -1"),
    "an indexing": (lambda: dnp.meshgrid(X, indexing="yx"), InvalidArgumentError, "'xy' or 'ij', not 'yx'"),
    "a matrix to vander": (lambda: dnp.vander(M), InvalidArgumentError, "takes a vector"),
    "a matrix to trim": (lambda: dnp.trim_zeros(M), InvalidArgumentError, "takes a vector and trim"),
    "a place to insert": (
        lambda: dnp.insert(X, 5, 0.0),
        InvalidArgumentError,
        "out of range for an axis of size 2",
    ),
    "an index to delete": (lambda: dnp.delete(X, 5), InvalidArgumentError, "the indices are those of axis 0"),
    "symbolic indices": (
        lambda: traced(static_positions, df.constant(1)),
        DTypeError,
        "must be static",
    ),
    "a function to pad": (lambda: dnp.pad(X, 1, max), DTypeError, "no function as mode.*concatenate"),
    "a mode to pad": (lambda: dnp.pad(X, 1, "zeros"), InvalidArgumentError, "no mode 'zeros'.*the modes are"),
    "a negative width": (lambda: dnp.pad(X, -1), InvalidArgumentError, "widths are 0 or more"),
    "an odd reflection": (
        lambda: dnp.pad(X, 1, "reflect", reflect_type="odd"),
        InvalidArgumentError,
        "2 \\* edge - even",
    ),
    "nothing to reflect": (lambda: dnp.pad([], 1, "reflect"), InvalidArgumentError, "pad: .*empty"),
    "nothing to average": (lambda: dnp.pad([], 1, "mean"), InvalidArgumentError, "empty axis in mode 'mean'"),
    "a median to pad": (
        lambda: dnp.pad(X, 1, "median"),
        InvalidArgumentError,
        "pad with constants of your own",
    ),
    "lengths of a transform": (
        lambda: dnp.fft.fft2(M, s=(2, 2, 2)),
        InvalidArgumentError,
        "has as many lengths",
    ),
    "a negative length": (lambda: dnp.fft.fft(X, -1), InvalidArgumentError, "lengths are positive"),
    "a norm of a transform": (
        lambda: dnp.fft.fft(X, norm="both"),
        InvalidArgumentError,
        "'backward', 'ortho' or 'forward'",
    ),
    "floats to count": (lambda: dnp.bincount(X), DTypeError, "counts integers, not float32"),
    "a rule of bins": (
        lambda: traced(lambda x: dnp.histogram(x, "auto")),
        DTypeError,
        "give a number while tracing",
    ),
    "edges that fall": (lambda: dnp.histogram(X, [2, 1]), InvalidArgumentError, "sort them"),
    "no bins": (lambda: dnp.histogram(X, 0), InvalidArgumentError, "bins must be a positive integer"),
    "a range that falls": (
        lambda: dnp.histogram(X, 2, (3, 1)),
        InvalidArgumentError,
        "two finite numbers that rise",
    ),
    "infinite elements": (lambda: dnp.histogram([np.inf]), InvalidArgumentError, "give a range"),
    "bins of variables": (
        lambda: dnp.histogramdd(M, [2, 2, 2]),
        InvalidArgumentError,
        "2 variables, and bins for 3",
    ),
    "a mode of indices": (lambda: dnp.take(X, 0, mode="cut"), InvalidArgumentError, "raise, wrap, clip"),
    "axes of indices": (lambda: dnp.take_along_axis(M, [0], 0), InvalidArgumentError, "as many axes"),
    "half a choice": (lambda: dnp.where(X, X), InvalidArgumentError, "takes both x and y"),
    "a number's places": (lambda: dnp.nonzero(1.0), InvalidArgumentError, "use atleast_1d"),
    "conditions": (lambda: dnp.select([X > 0], []), InvalidArgumentError, "as many conditions as choices"),
    "functions": (
        lambda: dnp.piecewise(X, [X > 0], []),
        InvalidArgumentError,
        "as many functions as conditions",
    ),
    "a matrix of indices": (lambda: dnp.ix_(M), InvalidArgumentError, "ix_ takes vectors"),
    "an order of indices": (
        lambda: dnp.unravel_index(0, (2,), order="A"),
        InvalidArgumentError,
        "'C' or 'F'",
    ),
    "a diagonal's places": (
        lambda: dnp.diag_indices_from(X),
        InvalidArgumentError,
        "two or more axes of one size",
    ),
    "a triangle's places": (lambda: dnp.tril_indices_from(X), InvalidArgumentError, "A matrix is required"),
    "a vector's diagonal": (lambda: dnp.diagonal(X), InvalidArgumentError, "two axes or more"),
    "one axis twice": (
        lambda: dnp.diagonal(M, 0, 1, 1),
        InvalidArgumentError,
        "must differ, but both are axis 1",
    ),
    "a cube's diag": (lambda: dnp.diag(dnp.ones((1, 1, 1))), InvalidArgumentError, "a vector or a matrix"),
    "a number's triangle": (lambda: dnp.tril(1.0), InvalidArgumentError, "one axis or more"),
    "half precision": (
        lambda: dnp.linalg.inv(df.cast(M, df.float16)),
        DTypeError,
        "convert them with astype",
    ),
    "no square": (
        lambda: dnp.linalg.inv(dnp.ones((2, 3))),
        InvalidArgumentError,
        "square matrices are required",
    ),
    "one factor": (lambda: dnp.linalg.multi_dot([M]), InvalidArgumentError, "two tensors or more"),
    "the power of a vector": (
        lambda: dnp.linalg.matrix_power(X, 2),
        InvalidArgumentError,
        "takes square matrices",
    ),
    "vectors to cross": (lambda: dnp.linalg.cross(X, X), InvalidArgumentError, "numpy.cross takes two"),
    "matrices to linalg.outer": (
        lambda: dnp.linalg.outer(M, M),
        InvalidArgumentError,
        "numpy.outer takes all",
    ),
    "a mode of qr": (lambda: dnp.linalg.qr(M, "raw"), InvalidArgumentError, "'reduced', 'complete' or 'r'"),
    "a triangle": (lambda: dnp.linalg.eigh(M, "X"), InvalidArgumentError, "'L' or 'U'"),
    "no axes to invert": (lambda: dnp.linalg.tensorinv(M, 0), InvalidArgumentError, "positive, not 0"),
    "an order": (lambda: dnp.reshape(X, 2, order="K"), InvalidArgumentError, "'C', 'F' or 'A'"),
    "places to move to": (
        lambda: dnp.moveaxis(M, 0, (0, 1)),
        InvalidArgumentError,
        "a destination for each source",
    ),
    "a start": (lambda: dnp.rollaxis(M, 0, 5), InvalidArgumentError, r"start is in \[-2, 2\]"),
    "a number to join": (lambda: dnp.concatenate(1.0), DTypeError, "A sequence of tensors"),
    "no parts": (lambda: dnp.array_split(X, 0), InvalidArgumentError, "1 or more parts"),
    "unequal parts": (lambda: dnp.split([1, 2, 3], 2), InvalidArgumentError, "use array_split"),
    "few axes to cut": (lambda: dnp.vsplit(X, 1), InvalidArgumentError, "vsplit takes 2 axes"),
    "a negative size": (lambda: dnp.resize(X, (-1,)), InvalidArgumentError, "Sizes are 0 or more"),
    "axes of a norm": (
        lambda: dnp.linalg.norm(dnp.ones((1, 1, 1)), 2),
        InvalidArgumentError,
        "one axis or two, not 3",
    ),
    "a vector's norm": (lambda: dnp.linalg.norm(X, "fro"), InvalidArgumentError, "a number as ord"),
    "a matrix's norm": (lambda: dnp.linalg.norm(M, 5), InvalidArgumentError, "'fro', 'nuc'"),
    "no dtype": (lambda: dnp.zeros(2, "text"), DTypeError, "'text' is not a dtype"),
    "a number outside": (
        lambda: dnp.add(df.constant([1], df.int8), 300),
        InvalidArgumentError,
        "300 is outside of int8",
    ),
    "an output": (lambda: dnp.sum(X, out=np.zeros(())), DTypeError, "takes no out=.*assign the result"),
    "coefficients": (lambda: dnp.polyval(M, 1.0), InvalidArgumentError, "Coefficients are a vector"),
    "a negative derivative": (lambda: dnp.polyder(X, -1), InvalidArgumentError, "needs m >= 0"),
    "a negative integral": (lambda: dnp.polyint(X, -1), InvalidArgumentError, "needs m >= 0"),
    "constants": (lambda: dnp.polyint(X, 3, [1, 2]), InvalidArgumentError, "or 3 of them"),
    "roots": (lambda: dnp.poly(M), InvalidArgumentError, "the roots as a vector"),
    "a number's product": (lambda: dnp.matmul(2.0, X), InvalidArgumentError, "use multiply"),
    "a vector product": (lambda: dnp.cross([1.0], X), InvalidArgumentError, "two or three elements"),
    "vectors of two sizes": (lambda: dnp.vecdot(X, [1.0]), InvalidArgumentError, "vectors are of one size"),
    "no subscripts": (lambda: dnp.einsum(), DTypeError, "takes subscripts"),
    "a method": (lambda: watched(lambda x: np.add.reduce(x)), DTypeError, "use a reduction such as np.sum"),
    "a symbol for NumPy": (lambda: traced(np.packbits), SymbolicValueError, "hand the values to NumPy"),
    "a method of quantiles": (
        lambda: dnp.quantile(X, 0.5, method="best"),
        InvalidArgumentError,
        "no method 'best'",
    ),
    "complex quantiles": (lambda: dnp.quantile([1j], 0.5), DTypeError, "of real numbers"),
    "a share": (lambda: dnp.quantile(X, 1.5), InvalidArgumentError, "from 0 to 1"),
    "a weighted quantile": (
        lambda: dnp.quantile(X, 0.5, weights=X),
        InvalidArgumentError,
        "'inverted_cdf' only",
    ),
    "weights of quantiles": (
        lambda: dnp.quantile(M, 0.5, 0, method="inverted_cdf", weights=[1.0, 2.0, 3.0]),
        InvalidArgumentError,
        "fit neither",
    ),
    "chosen elements": (lambda: dnp.max(X, where=X > 1), InvalidArgumentError, "pass initial="),
    "a start of complex numbers": (
        lambda: dnp.max(df.constant([1j]), initial=0.0),
        InvalidArgumentError,
        "takes neither initial= nor where=",
        "select the elements",
    ),
    "no elements": (lambda: dnp.max([]), InvalidArgumentError, "pass initial="),
    "no complex elements": (
        lambda: dnp.max(dnp.zeros(0, complex)),
        InvalidArgumentError,
        "maximum of no elements is undefined",
    ),
    "two corrections": (
        lambda: dnp.var(X, ddof=1, correction=1),
        InvalidArgumentError,
        "two names of one argument",
    ),
    "weights": (lambda: dnp.average(M, weights=[1.0, 2.0, 3.0]), InvalidArgumentError, "fit neither shape"),
    "an axis to run along": (
        lambda: dnp.cumulative_sum(M),
        InvalidArgumentError,
        "needs axis=: only vectors",
    ),
    "a number to sort": (lambda: dnp.sort(1.0), InvalidArgumentError, "use atleast_1d"),
    "a place to sort": (lambda: dnp.partition(X, 5), InvalidArgumentError, "outside of an axis of size 2"),
    "no keys": (lambda: dnp.lexsort([]), InvalidArgumentError, "one key at least"),
    "no coefficients": (lambda: dnp.roots(M), InvalidArgumentError, "coefficients as a vector"),
    "no points": (lambda: dnp.polyfit(X, [1.0], 1), InvalidArgumentError, "as many values as points"),
    "a side": (lambda: dnp.searchsorted(X, X, "middle"), InvalidArgumentError, "'left' or 'right'"),
    "complex numbers to search": (lambda: dnp.searchsorted([1j], 1j), DTypeError, "among real numbers"),
    "a matrix to search": (lambda: dnp.searchsorted(M, 1.0), InvalidArgumentError, "searches a vector"),
    "bins in no order": (lambda: dnp.digitize(X, [1, 3, 2]), InvalidArgumentError, "sort them"),
    "degrees of freedom": (lambda: dnp.cov(X, ddof=0.5), InvalidArgumentError, "an integer, not 0.5"),
    "a cube's covariance": (lambda: dnp.cov(dnp.ones((1, 1, 1))), InvalidArgumentError, "one or two axes"),
    "a place for results": (lambda: dnp.add(X, X, where=X > 1), DTypeError, "df.numpy.where"),
    "a missing input": (lambda: dnp.add(X), DTypeError, "takes 2 inputs, not 1"),
    "a dtype NumPy refuses": (lambda: dnp.bitwise_and(X, X), DTypeError, "convert the inputs with astype"),
    "signs of complex numbers": (lambda: dnp.isposinf([1j]), DTypeError, "use their real or imaginary parts"),
    "a dtype by elements": (lambda: traced(dnp.real_if_close, df.constant(1j)), DTypeError, "use real"),
    "decimals of bools": (lambda: dnp.round(True, 1), DTypeError, "cast them"),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    internal = ("nothing to vectorize", "a method")  # dualflow has called NumPy, which calls it
    raised_in = ("numpy/*.py",)


def test_tracebacks_show_the_users_frames() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        dnp.max([])
    assert [entry.path.name for entry in caught.traceback] == ["test_error_messages.py"]
