"""Errors of ``core``: each states what is wrong and what to do."""

from __future__ import annotations

import numpy as np
from error_cases import ErrorCases, Frames

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError, ResourceExhaustedError
from dualflow.core.log_topics import topics
from dualflow.core.registered_conversions import CONVERSIONS
from dualflow.core.shape import normalize_axis
from dualflow.core.tree import flatten, map_structure, unflatten


class Huge:
    """An array that NumPy has no memory for."""

    def __array__(self, dtype=None, copy=None):
        return np.broadcast_to(np.float32(0), (1 << 40, 1 << 10))


class Own:
    """A class that becomes no tensor by itself."""


def converted_to_no_tensor():
    df.register_tensor_conversion_function(Own, lambda x, **options: "text", priority=0)
    try:
        df.add(Own(), 1.0)
    finally:
        del CONVERSIONS[0]


CASES = {
    "two floats of 8 bits": (
        lambda: df.concat([df.cast([1.0], "float8_e5m2"), df.cast([1.0], "float8_e4m3fn")], 0),
        DTypeError,
        "float8_e5m2 and float8_e4m3fn have no common dtype",
        "cast them to bfloat16 or float32",
    ),
    "an integer outside uint8": (
        lambda: df.constant([1, 300], df.uint8),
        InvalidArgumentError,
        "integer 300 is outside uint8, which holds 0 to 255",
        "a wider dtype, or wrap it around with df.cast",
    ),
    "an integer outside int32": (
        lambda: df.constant(2**40, df.int32),
        InvalidArgumentError,
        "integer 1099511627776 is outside int32",
        "name a wider dtype",
    ),
    "a negative integer": (
        lambda: df.fill([2], df.constant(-1, df.uint32)),
        InvalidArgumentError,
        "-1 is outside uint32",
        "wider",
    ),
    "a topic to log": (
        lambda: topics("trace,compiles"),
        InvalidArgumentError,
        "DUALFLOW_LOG='trace,compiles': there is no topic 'compiles' to log",
        "the topics are trace, compile, cache, memory",
    ),
    "an object": (lambda: df.constant(object()), DTypeError, "type object can't become a tensor", "<object"),
    "a date": (
        lambda: df.constant(np.array(["2026-01-01"], "M8[D]")),
        DTypeError,
        "dtype datetime64",
        "convert them to numbers",
    ),
    "a text as a number": (
        lambda: df.constant("1", df.int32),
        DTypeError,
        "Cannot convert '1' to a tensor of dtype int32",
        "df.strings.to_number",
    ),
    "texts as numbers": (
        lambda: df.constant([np.array(["1"])], df.int32),
        DTypeError,
        "to a tensor of dtype int32",
        "df.strings.to_number",
    ),
    "a number as a string": (
        lambda: df.constant(1, df.string),
        DTypeError,
        "Cannot convert 1 to a tensor of dtype string",
        "df.as_string",
    ),
    "an array as strings": (
        lambda: df.constant(np.arange(2), df.string),
        DTypeError,
        "to a tensor of dtype string",
        "df.as_string",
    ),
    "an array of arrays": (
        lambda: df.constant(np.array([np.ones(2), np.ones(3)], object)),
        DTypeError,
        "array of Python objects can't make a tensor: it holds array",
        "rows of different lengths with df.ragged.constant",
    ),
    "a text among numbers": (
        lambda: df.constant([1, "a"]),
        DTypeError,
        "'a' stands among numbers",
        "one tensor",
    ),
    "a number among texts": (
        lambda: df.constant(["a", 1]),
        DTypeError,
        "1 stands among strings",
        "str or bytes",
    ),
    "texts of two lengths": (
        lambda: df.constant([["a"], ["b", "c"]]),
        InvalidArgumentError,
        "Rows of different lengths",
        "['b', 'c']",
    ),
    "half of a surrogate pair": (
        lambda: df.constant("\udcff"),
        InvalidArgumentError,
        "has half of a surrogate pair",
        "os.fsencode",
    ),
    "the smallest string": (
        lambda: df.string.min,
        DTypeError,
        "Strings have no smallest",
        "a dtype of numbers",
    ),
    "strings with numbers": (
        lambda: df.constant("a") + df.constant(1),
        DTypeError,
        "string and int32 have no common dtype",
        "df.strings.to_number",
    ),
    "a float as an int": (lambda: df.constant(1.5, df.int32), DTypeError, "int32 from 1.5", "df.cast"),
    "rows of two lengths": (
        lambda: df.constant([[1], [1, 2]]),
        InvalidArgumentError,
        "different lengths",
        r"\[\[1\], \[1, 2\]\]",
    ),
    "a masked element": (
        lambda: df.constant(np.ma.array([1.0, 2.0], mask=[False, True])),
        InvalidArgumentError,
        "no values at its masked elements",
        r"x\.filled\(value\)",
    ),
    "a large int": (lambda: df.constant([1 << 70]), InvalidArgumentError, "outside int64", "give floats"),
    "a large lone int": (
        lambda: df.constant(1 << 63),
        InvalidArgumentError,
        "outside int64",
        "name its dtype, uint64",
    ),
    "dtypes that do not meet": (
        lambda: df.constant([1], df.uint64) + df.constant([1], df.int64),
        DTypeError,
        "uint64 and int64 have no common integer dtype",
        "cast one",
    ),
    "shapes that no tensor has both": (
        lambda: df.TensorShape([2]).merge_with([3]),
        InvalidArgumentError,
        r"Shapes \(2,\) and \(3,\) are incompatible",
        "reshape one",
    ),
    "too few axes": (
        lambda: df.TensorShape([2]).with_rank_at_least(2),
        InvalidArgumentError,
        r"\(2,\) must have rank at least 2",
        "reshape",
    ),
    "a dynamic size": (
        lambda: df.TensorShape([None]).assert_is_fully_defined(),
        InvalidArgumentError,
        "not fully defined",
        "give each size",
    ),
    "no dtype at all": (lambda: df.cast(1, None), DTypeError, "None is not a dtype", "use one of"),
    "no dtype": (lambda: df.cast(1, "text"), DTypeError, "'text' is not a dtype", "use one of"),
    "a negative size": (
        lambda: df.zeros([-1]),
        InvalidArgumentError,
        r"negative sizes, but got \(-1,\)",
        "df.reshape",
    ),
    "too many elements": (
        lambda: df.zeros([1 << 62, 8]),
        ResourceExhaustedError,
        "more elements than memory",
        "make it smaller",
    ),
    "no shape": (lambda: df.TensorSpec(0.5), DTypeError, "not 0.5", "a sequence of integers"),
    "sizes that differ": (
        lambda: df.ones([2, 3]) + df.ones([2]),
        InvalidArgumentError,
        r"add\(float32\[2, 3\], float32\[2\]\): .* sizes 2 and 3 meet on one axis",
        "reshape or transpose one",
    ),
    "an axis too far": (
        lambda: df.reduce_sum([1], axis=1),
        InvalidArgumentError,
        "axis 1 .* of rank 1",
        r"use -1\.\.0",
    ),
    "an axis twice": (
        lambda: df.reduce_sum([[1]], axis=[0, -2]),
        InvalidArgumentError,
        "names an axis twice",
        "name each once",
    ),
    "a broken axis": (lambda: normalize_axis(0.5, 1), DTypeError, "not 0.5", "a Python integer"),
    "an unknown rank": (
        lambda: len(df.TensorSpec(None).shape),
        InvalidArgumentError,
        "rank of a tensor is unknown",
        r"Give the placeholder, or the spec, a shape: \[\] for a number",
    ),
    "leaves too few": (
        lambda: unflatten(flatten([1, 2])[1], [1]),
        InvalidArgumentError,
        "2 leaves was given 1",
        "one .* each",
    ),
    "structures that differ": (
        lambda: map_structure(max, [1], (1,)),
        DTypeError,
        r"\[1\] and \(1,\)",
        "trees of one structure",
    ),
    "a conversion of no class": (
        lambda: df.register_tensor_conversion_function("Own", lambda x: x),
        DTypeError,
        "base_type is a class",
        "not 'Own'",
    ),
    "a conversion of floats": (
        lambda: df.register_tensor_conversion_function((Own, float), lambda x: x),
        DTypeError,
        "float become tensors already",
        "a class of your own",
    ),
    "a conversion by no function": (
        lambda: df.register_tensor_conversion_function(Own, 3),
        DTypeError,
        "conversion_func is a function, not 3",
    ),
    "a conversion to no tensor": (
        converted_to_no_tensor,
        DTypeError,
        "registered for Own returned 'text'",
        "returns a tensor",
    ),
    "an attribute that signatures lack": (
        lambda: df.einsum.__signature__.returns,
        AttributeError,
        "returns",
    ),
}
OTHERWISE_TESTED = {
    "core/convert.py": "short memory, in tests of bad input",
    "core/device_names.py": "in tests/array_api/test_error_messages.py",
    "core/numpy_protocols.py": "NumPy takes it for an absent method; in tests/eager/test_numpy_on_tapes.py",
    "core/dispatch.py": "an engine is installed when dualflow is imported",
    "core/atomic_files.py": "in test_atomic_files.py",
    "core/system_errors.py": "in tests of files",
    "core/api_dispatch.py": "in tests/ops/extension_types/test_error_messages.py",
    "core/composite_tensor.py": "in tests/ops/extension_types/test_error_messages.py",
    "core/type_spec.py": "in tests/ops/extension_types/test_type_spec.py",
    "core/records.py": "in test_records.py",
    "core/exception_names.py": "in tests/saved/test_hostile.py, as only texts of graphs name other classes",
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    frames = Frames.ANY
    tested_elsewhere = OTHERWISE_TESTED
    raised_in = ("core/*.py",)
