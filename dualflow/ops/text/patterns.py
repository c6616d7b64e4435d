"""Regular expressions on strings, in the syntax of RE2."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from dualflow.core import dispatch
from dualflow.core.convert import Array
from dualflow.core.dtypes import bool_
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.spec import TensorSpec
from dualflow.core.string_arrays import string
from dualflow.ops.printing import as_text
from dualflow.ops.samples import Domain, Sample
from dualflow.ops.text.mapping import filled, of_strings, one_word, text_op
from dualflow.ops.text.re2_syntax import in_pythons_syntax

if TYPE_CHECKING:
    from dualflow.core.argument_types import TensorLike
    from dualflow.ops.tensor import Tensor

_TOKEN: Final = re.compile(rb"\\(.?)|[^\\]+", re.DOTALL)


@lru_cache(maxsize=256)
def _compiled(pattern: bytes) -> re.Pattern[str]:
    """The compiled expression; it matches text decoded with ``surrogateescape``, which keeps all bytes."""
    try:
        return re.compile(in_pythons_syntax(pattern.decode("utf-8", "surrogateescape")))
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidArgumentError(f"Invalid pattern: {as_text(pattern)}, error: {error}") from None


def _replaced(x: Array, pattern: Array, rewrite: Array, everywhere: bool) -> Array:
    """The kernel: each string with its first match, or all matches, replaced by ``rewrite``."""
    expression = _compiled(pattern.item())
    pieces = _rewrite(rewrite.item())
    if max((p for p in pieces if isinstance(p, int)), default=0) > expression.groups:
        return x  # RE2 replaces nothing then
    return filled([_rewritten(text, expression, pieces, everywhere) for text in x.ravel().tolist()], x.shape)


def _rewritten(
    text: bytes, expression: re.Pattern[str], pieces: list[bytes | int], everywhere: bool
) -> bytes:
    """A string with its matches rewritten; no empty match follows directly after another match."""
    decoded = text.decode("utf-8", "surrogateescape")
    pieces_so_far, done, last = [], 0, -1
    for match in expression.finditer(decoded):
        if match.start() == match.end() == last:
            continue
        pieces_so_far.append(_encoded(decoded[done : match.start()]))
        pieces_so_far += [p if isinstance(p, bytes) else _encoded(match[p] or "") for p in pieces]
        done = last = match.end()
        if not everywhere:
            break
    return b"".join([*pieces_so_far, _encoded(decoded[done:])])


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _rewrite(rewrite: bytes) -> list[bytes | int]:
    r"""The parts of a rewrite: text, and the numbers of groups, which are written ``\0`` to ``\9``."""
    pieces: list[bytes | int] = []
    for token in _TOKEN.finditer(rewrite):
        escaped = token[1]
        if escaped is None:
            pieces.append(token[0])
        elif escaped == b"\\":
            pieces.append(b"\\")
        elif escaped.isdigit():
            pieces.append(int(escaped))
        else:
            raise InvalidArgumentError(
                f"The rewrite {as_text(rewrite)} has {as_text(token[0])}; "
                r"write \0 for the match, \1 for a group in parentheses, and \\ for a backslash."
            )
    return pieces


def _fully_matched(x: Array, pattern: Array) -> Array:
    expression = _compiled(pattern.item())
    texts = [text.decode("utf-8", "surrogateescape") for text in x.ravel().tolist()]
    return filled([expression.fullmatch(text) is not None for text in texts], x.shape, bool_)


_TEXTS: Final = Domain(kinds="O", shape=(2, 3))
_REPLACE: Final = text_op(
    "string_regex_replace",
    "Strings in which what a regular expression matches is rewritten.",
    infer=lambda x, pattern, rewrite, everywhere: TensorSpec.of(x.shape, string),
    kernel=_replaced,
    samples=[
        Sample((_TEXTS, one_word(b"[a-m]+|(.)"), one_word(rb"<\1>")), {"everywhere": everywhere})
        for everywhere in (True, False)
    ],
)
_MATCH: Final = text_op(
    "string_regex_full_match",
    "Whether a regular expression matches all of each string.",
    infer=lambda x, pattern: TensorSpec.of(x.shape, bool_),
    kernel=_fully_matched,
    samples=[Sample((_TEXTS, one_word(b"[a-z]*")))],
)


def regex_replace(
    input: TensorLike,
    pattern: TensorLike,
    rewrite: TensorLike,
    replace_global: bool = True,
    name: str | None = None,
) -> Tensor:
    r"""Strings with the matches of a regular expression replaced.

    Args:
        input: strings of any shape.
        pattern: a scalar string: an expression in RE2's syntax, which has no look-around and no back
            references. Characters are those of UTF-8; invalid bytes are matched by no ``.`` and no class.
        rewrite: a scalar string, in which ``\1`` to ``\9`` are the groups of the match and ``\0`` all of it.
            If it has a group that the pattern lacks, nothing is replaced, as in TensorFlow.
        replace_global: whether all matches are replaced, or the first one.

    Returns:
        A tensor of strings with the shape of ``input``.

    Raises:
        InvalidArgumentError: ``pattern`` is not an expression, ``rewrite`` has a backslash before anything
            but a digit or a backslash, or either is not a scalar.
        DTypeError: an argument holds numbers.

    >>> import dualflow as df
    >>> df.strings.regex_replace("hello", "(l+)(o)", r"\2\1").numpy()
    b'heoll'
    """
    inputs = of_strings(input, "regex_replace"), _scalar(pattern, "pattern"), _scalar(rewrite, "rewrite")
    return dispatch.current().apply(_REPLACE, inputs, {"everywhere": bool(replace_global)})


def regex_full_match(input: TensorLike, pattern: TensorLike, name: str | None = None) -> Tensor:
    """Whether a regular expression matches the whole of each string.

    Args:
        input: strings of any shape.
        pattern: a scalar string: an expression in RE2's syntax, see :func:`regex_replace`.

    Returns:
        A bool tensor with the shape of ``input``.

    Raises:
        InvalidArgumentError: ``pattern`` is not an expression, or not a scalar.
        DTypeError: an argument holds numbers.

    >>> import dualflow as df
    >>> df.strings.regex_full_match(["abc", "abcd"], "a.c").numpy()
    array([ True, False])
    """
    inputs = of_strings(input, "regex_full_match"), _scalar(pattern, "pattern")
    return dispatch.current().apply(_MATCH, inputs, {})


def _scalar(x: Any, what: str) -> Any:
    tensor = of_strings(x, "a regular expression")
    if len(tensor.shape):
        raise InvalidArgumentError(f"The {what} is one string, but its shape is {tensor.shape}.")
    return tensor
