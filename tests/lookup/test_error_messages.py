"""What lookup tables refuse: what was wrong, and what to do about it."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, FailedPreconditionError, InvalidArgumentError

T = df.lookup
LINE, NUMBER = T.TextFileIndex.WHOLE_LINE, T.TextFileIndex.LINE_NUMBER
FILE = Path(mkdtemp()) / "words.txt"
FILE.write_text("a\nb\n", encoding="utf-8")
WORDS = T.KeyValueTensorInitializer(["a", "b"], [0, 1])
TABLE = T.StaticHashTable(WORDS, -1)
MUTABLE = T.experimental.MutableHashTable(df.string, df.int64, 0)


class Empty(T.KeyValueTensorInitializer):
    """An initializer that fills nothing, as that of Keras."""

    def initialize(self, table: Any) -> None:
        pass


class Late(T.KeyValueTensorInitializer):
    """An initializer that computes its keys in a function."""

    def initialize(self, table: Any) -> None:
        df.function(lambda x: table.fill(x, x))(df.constant([1]))


def of_file(*args: Any, **kwargs: Any) -> Any:
    return T.StaticHashTable(T.TextFileInitializer(str(FILE), *args, **kwargs), -1)


CASES = {
    "values that differ": (
        lambda: T.StaticHashTable(T.KeyValueTensorInitializer(["a", "a"], [1, 2]), -1),
        FailedPreconditionError,
        "different values for the key b'a': 1 and 2",
        "leave one of them out",
    ),
    "a table that was never filled": (
        lambda: T.StaticHashTable(Empty(["a"], [1]), -1).lookup("a"),
        FailedPreconditionError,
        "no entries yet",
    ),
    "a table filled twice": (lambda: TABLE.fill(["a"], [1]), FailedPreconditionError, "already", "another"),
    "a vector as default": (
        lambda: T.StaticHashTable(WORDS, [1]),
        InvalidArgumentError,
        r"not of shape \(1,\)",
    ),
    "keys of floats": (
        lambda: T.experimental.MutableHashTable(df.float32, df.int64, 0),
        DTypeError,
        "integers or strings, not float32",
        "as_string",
    ),
    "keys of another dtype": (
        lambda: TABLE.lookup(df.constant(1)),
        DTypeError,
        "string, not int32",
        "df.cast",
    ),
    "sizes that differ": (
        lambda: T.KeyValueTensorInitializer(["a", "b"], [1]),
        InvalidArgumentError,
        r"not of shapes \(2,\) and \(1,\)",
    ),
    "symbolic keys": (
        lambda: df.function(lambda x: T.KeyValueTensorInitializer(x, x).key_dtype)(df.constant([1])),
        DTypeError,
        "must have values",
        "init_scope",
    ),
    "symbolic entries": (
        lambda: T.StaticHashTable(Late([1], [1]), -1),
        DTypeError,
        "must have values",
        "MutableHashTable",
    ),
    "an index": (lambda: of_file(df.string, -3, df.int64, NUMBER), InvalidArgumentError, "not -3"),
    "line numbers of another dtype": (
        lambda: of_file(df.string, LINE, df.int32, NUMBER),
        DTypeError,
        "values are int32",
        "use df.int64",
    ),
    "whole lines of floats": (
        lambda: of_file(df.string, LINE, df.float32, LINE),
        DTypeError,
        "strings or integers",
    ),
    "too few lines": (
        lambda: of_file(df.string, LINE, df.int64, NUMBER, vocab_size=3),
        InvalidArgumentError,
        "has 2 lines, and vocab_size is 3",
        "leave vocab_size out",
    ),
    "a missing column": (
        lambda: of_file(df.string, 0, df.int64, 1),
        InvalidArgumentError,
        "has 1 columns",
        "numbered from 0",
    ),
    "text that is no number": (
        lambda: of_file(df.string, LINE, df.int64, LINE),
        InvalidArgumentError,
        "b'a' in .* is not a number of int64",
        "another column",
    ),
    "no buckets": (
        lambda: T.StaticVocabularyTable(WORDS, 0),
        InvalidArgumentError,
        "num_oov_buckets is at least 1, not 0",
    ),
    "no dtype": (
        lambda: T.StaticVocabularyTable(None, 1),
        DTypeError,
        "needs lookup_key_dtype",
        "df.string",
    ),
    "ids of another dtype": (
        lambda: T.StaticVocabularyTable(WORDS, 1),
        DTypeError,
        "not int32",
        "value_dtype",
    ),
    "two kinds of keys": (
        lambda: T.StaticVocabularyTable(
            T.KeyValueTensorInitializer(["a"], [0], value_dtype=df.int64), 1, lookup_key_dtype=df.int64
        ),
        DTypeError,
        "lookup_key_dtype is int64, and the table's keys are string",
    ),
    "a vocabulary with keys of floats": (
        lambda: T.StaticVocabularyTable(
            T.KeyValueTensorInitializer([1], [0], df.int64, df.int64), 1, lookup_key_dtype=df.float32
        ),
        DTypeError,
        "integers or strings, not float32",
    ),
    "keys of another dtype in a vocabulary": (
        lambda: T.StaticVocabularyTable(None, 1, lookup_key_dtype=df.string).lookup(df.constant(1)),
        DTypeError,
        "string, not int32",
        "as_string",
    ),
    "values of another shape": (
        lambda: MUTABLE.insert(["a", "b"], [1]),
        InvalidArgumentError,
        r"values of shape \(2,\) .* not of shape \(1,\)",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("lookup/*.py",)
