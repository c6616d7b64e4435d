"""Errors of functions of strings: each states the rejected input and what to do."""

from __future__ import annotations

from error_cases import ErrorCases

import dualflow as df
from dualflow.core.errors import DTypeError, InvalidArgumentError, OutOfRangeError

S = df.strings
AB = df.constant(["a", "b"])

CASES = {
    "no buckets": (lambda: S.to_hash_bucket_fast(AB, 0), InvalidArgumentError, "at least 1, not 0"),
    "a key of one integer": (
        lambda: S.to_hash_bucket_strong(AB, 3, [1]),
        InvalidArgumentError,
        r"two integers, not \[1\]",
    ),
    "an axis of rows": (
        lambda: S.reduce_join(df.ragged.constant([["a"]]), axis=0),
        InvalidArgumentError,
        "its last axis, 1, not 0",
        "join x.to_tensor",
    ),
    "bytes that are no text": (
        lambda: S.unicode_decode(b"a\xff", "UTF-8", errors="strict"),
        InvalidArgumentError,
        "is not UTF-8: .* at byte 1",
        'errors="replace"',
    ),
    "integers that are no code points": (
        lambda: S.unicode_encode([-1], "UTF-8", errors="strict"),
        InvalidArgumentError,
        "-1 is no code point",
        "replace",
    ),
    "a replacement": (
        lambda: S.unicode_split("a", "UTF-8", replacement_char=-1),
        InvalidArgumentError,
        "replacement_char is a code point of Unicode, not -1",
    ),
    "an encoding of code points": (
        lambda: S.unicode_encode([97], "US-ASCII"),
        InvalidArgumentError,
        "'UTF-32-BE', not 'US-ASCII'",
    ),
    "code points of rows of floats": (
        lambda: S.unicode_encode(df.ragged.constant([[97.0]]), "UTF-8"),
        DTypeError,
        "integers, not float32",
        "df.cast",
    ),
    "code points that are strings": (
        lambda: S.unicode_encode(["a"], "UTF-8"),
        DTypeError,
        "code points, which are integers, not string",
        "unicode_decode of strings",
    ),
    "a single code point": (
        lambda: S.unicode_encode(97, "UTF-8"),
        InvalidArgumentError,
        "not a scalar",
        r"use \[x\]",
    ),
    "the width of n-grams": (lambda: S.ngrams(AB, 0), InvalidArgumentError, "at least 1, not 0"),
    "no widths of n-grams": (lambda: S.ngrams(AB, []), InvalidArgumentError, "at least 1"),
    "a pad of no text": (lambda: S.ngrams(AB, 2, pad_values=(1, 2)), DTypeError, "a pair of strings or None"),
    "the width of pads": (
        lambda: S.ngrams(AB, 2, pad_values="_", padding_width=0),
        InvalidArgumentError,
        "padding_width is at least 1",
        "leave pad_values out",
    ),
    "n-grams of rows of numbers": (
        lambda: S.ngrams(df.ragged.constant([[1, 2]]), 2),
        DTypeError,
        "ngrams takes strings, not int32",
        "as_string",
    ),
    "n-grams of a scalar": (lambda: S.ngrams("a", 2), InvalidArgumentError, "not a scalar", "data"),
    "a template of no text": (
        lambda: S.format(1, "a"),
        DTypeError,
        "the template is a Python string",
        "not 1",
    ),
    "a placeholder of no text": (lambda: S.format("{}", "a", 1), DTypeError, "the placeholder", "not 1"),
    "numbers": (lambda: S.strip(df.constant(1)), DTypeError, "strip takes strings, not int32", "as_string"),
    "strings of other shapes": (
        lambda: S.join([AB, ["x", "y", "z"]]),
        InvalidArgumentError,
        r"\(2,\), \(3,\)",
        "reshape",
    ),
    "strings of other ranks": (
        lambda: S.join([AB, [["x"]]]),
        InvalidArgumentError,
        r"\(2,\), \(1, 1\)",
        "broadcast_to",
    ),
    "another unit": (lambda: S.length("a", unit="WORD"), InvalidArgumentError, "'WORD'", "'UTF8_CHAR'"),
    "another encoding": (
        lambda: S.lower("A", encoding="latin-1"),
        InvalidArgumentError,
        "'latin-1'",
        "'utf-8'",
    ),
    "a lone string": (lambda: S.join("ab"), DTypeError, "not 'ab'", "list"),
    "another separator": (lambda: S.join(["a"], separator=1), DTypeError, "not 1", "Python string"),
    "an axis that is not there": (lambda: S.reduce_join(AB, axis=1), OutOfRangeError, "no axis 1", r"\(2,\)"),
    "an axis twice": (lambda: S.reduce_join([AB], axis=[0, -2]), InvalidArgumentError, "twice", "once"),
    "too few placeholders": (
        lambda: S.format("x", 1),
        InvalidArgumentError,
        "0 placeholders '{}'",
        "one for each",
    ),
    "a place outside": (lambda: S.substr("hello", 6, 1), OutOfRangeError, "pos 6 out of range", "length 5"),
    "places that are no integers": (
        lambda: S.substr("a", 0.0, 1.0),
        DTypeError,
        "float32 and float32",
        "df.cast",
    ),
    "several separators": (lambda: S.split(AB, AB), InvalidArgumentError, r"one separator, not .* \(2,\)"),
    "no number": (lambda: S.to_number(["1", "1_0"]), InvalidArgumentError, "b'1_0' to float32", "out_type"),
    "another type of numbers": (lambda: S.to_number("1", df.uint8), DTypeError, "uint8", "df.cast"),
    "two notations": (
        lambda: S.as_string(1.0, scientific=True, shortest=True),
        InvalidArgumentError,
        "scientific or shortest",
        "choose",
    ),
    "another fill": (lambda: S.as_string(1, fill="x"), InvalidArgumentError, "'x'", "'0'"),
    "digits of integers": (lambda: S.as_string(1, precision=2), InvalidArgumentError, "int32", "floats only"),
    "no expression": (
        lambda: S.regex_replace("a", "(", "b"),
        InvalidArgumentError,
        r"Invalid pattern: \(",
        r"missing \)",
    ),
    "an escape that is none": (
        lambda: S.regex_replace("a", "a", r"\x"),
        InvalidArgumentError,
        r"has \\x",
        "parentheses",
    ),
    "several patterns": (
        lambda: S.regex_replace("a", AB, "b"),
        InvalidArgumentError,
        "pattern is one string",
        r"\(2,\)",
    ),
    "a closing parenthesis": (
        lambda: S.regex_full_match("a", "a)"),
        InvalidArgumentError,
        r"unexpected \)",
        "Invalid",
    ),
    "nothing repeated": (lambda: S.regex_full_match("a", "|*"), InvalidArgumentError, "no argument", r"\*"),
    "repeated twice": (
        lambda: S.regex_full_match("a", "a**"),
        InvalidArgumentError,
        "bad repetition operator",
        r"\*",
    ),
    "possessive": (
        lambda: S.regex_full_match("a", "a*+"),
        InvalidArgumentError,
        "bad repetition operator",
        r"\+",
    ),
    "too often": (
        lambda: S.regex_full_match("a", "a{1001}"),
        InvalidArgumentError,
        "repetition size",
        "1001",
    ),
    "a look ahead": (
        lambda: S.regex_full_match("a", "a(?=b)"),
        InvalidArgumentError,
        "invalid perl operator",
        r"\(\?=",
    ),
    "a back reference": (
        lambda: S.regex_full_match("a", r"(a)\1"),
        InvalidArgumentError,
        "escape sequence",
        "1",
    ),
    "a code that is none": (
        lambda: S.regex_full_match("a", r"\x{110000}"),
        InvalidArgumentError,
        "escape sequence",
        "x",
    ),
    "a single byte": (lambda: S.regex_full_match("a", r"\C"), InvalidArgumentError, "not supported", "UTF-8"),
    "a property": (lambda: S.regex_full_match("a", r"\pL"), InvalidArgumentError, "not supported", "pL"),
    "a backslash": (lambda: S.regex_full_match("a", "a\\"), InvalidArgumentError, "trailing", "end"),
    "an open class": (lambda: S.regex_full_match("a", "[a"), InvalidArgumentError, "missing ]", r"\[a"),
    "another class": (
        lambda: S.regex_full_match("a", "[[:foo:]]"),
        InvalidArgumentError,
        "class range",
        "foo",
    ),
    "a class back to front": (
        lambda: S.regex_full_match("a", "[b-a]"),
        InvalidArgumentError,
        "Invalid pattern",
        "b-a",
    ),
}


class TestErrorMessages(ErrorCases):
    cases = CASES
    raised_in = ("ops/text/*.py",)
