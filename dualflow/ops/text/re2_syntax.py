r"""Regular expressions of RE2 in the syntax of Python's ``re``.

The two differ in what their classes hold (RE2's ``\d``, ``\w`` and ``\s`` are ASCII's), in ``$`` and ``\z``,
in flags inside of an expression, in classes such as ``[[:alpha:]]``, and in what only Python's has:
look-around, back references, possessive repetition. The text to match has lone surrogates for bytes that are
no UTF-8, which RE2's ``.`` and its classes do not match. https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = r"\t\n\f\r "
_WORD: Final = "0-9A-Za-z_"
_PERL: Final = {"d": "0-9", "s": _SPACE, "w": _WORD}
_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "word": _WORD,
    "xdigit": "0-9A-Fa-f",
}
_BROKEN: Final = r"\udc80-\udcff"
"""The characters to which ``surrogateescape`` decodes bytes that are not UTF-8."""
_PLAIN_ESCAPES: Final = {"a": r"\x07", "f": r"\f", "t": r"\t", "n": r"\n", "r": r"\r", "v": r"\x0b"}
_AT_ENDS: Final = {"A": r"\A", "z": r"\Z"}
_WORD_BOUNDARY: Final = f"(?:(?<![{_WORD}])(?=[{_WORD}])|(?<=[{_WORD}])(?![{_WORD}]))"
_NO_WORD_BOUNDARY: Final = f"(?:(?<![{_WORD}])(?![{_WORD}])|(?<=[{_WORD}])(?=[{_WORD}]))"
_REPEAT: Final = re.compile(r"\{(\d+)(,(\d*))?\}")
_FLAGS: Final = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_MAX_REPETITIONS: Final = 1000


def in_pythons_syntax(pattern: str) -> str:
    """The equivalent expression in Python's syntax.

    Raises:
        re.error: the pattern is none of RE2, or has a class by a property of Unicode.
    """
    return _Translation(pattern).run()


class _Translation:
    """The state of the translation of one pattern, from left to right.

    ``_flags[i]`` are the flags in force inside the ``i``-th open group. ``_scopes[i]`` are the ``(?i:``
    groups that were opened for its inline flags, and are closed with it.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        self._flags: list[frozenset[str]] = [frozenset()]
        self._scopes: list[list[str]] = [[]]
        self._repeatable = ""

    def run(self) -> str:
        while self._at < len(self._pattern):
            self._step(self._pattern[self._at])
        if len(self._flags) > 1:
            raise re.error(f"missing ): {self._pattern}")
        return "".join(self._out) + ")" * len(self._scopes[0])

    def _step(self, char: str) -> None:
        repeat = _REPEAT.match(self._pattern, self._at)
        if char in "*+?" or repeat:
            self._repetition(repeat[0] if repeat else char)
            return
        self._repeatable = char
        if char == "\\":
            self._escape()
        elif char == "[":
            self._put(self._class(), 0)
        elif char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char == ".":
            self._put(f"[^{_BROKEN}]" if "s" in self._flags[-1] else rf"[^\n{_BROKEN}]", 1)
        elif char == "$":
            self._put(r"(?=\n|\Z)" if "m" in self._flags[-1] else r"\Z", 1)
        elif char == "^":
            self._put(r"(?:\A|(?<=\n))" if "m" in self._flags[-1] else r"\A", 1)
        elif char == "|":
            scopes = self._scopes[-1]
            self._put(")" * len(scopes) + "|" + "".join(scopes), 1)
        else:
            self._put(re.escape(char), 1)

    def _put(self, text: str, length: int) -> None:
        """Append ``text``, and skip ``length`` characters of the pattern."""
        self._out.append(text)
        self._at += length

    def _repetition(self, sign: str) -> None:
        following = self._pattern[self._at + len(sign) :]
        if self._repeatable in ("", "(", "|"):
            raise re.error(f"no argument for repetition operator: {sign}")
        if self._repeatable == "repeated":
            raise re.error(f"bad repetition operator: {sign}")
        bounds = [int(n) for n in re.findall(r"\d+", sign)]
        if any(n > _MAX_REPETITIONS for n in bounds) or bounds != sorted(bounds):
            raise re.error(f"invalid repetition size: {sign}")
        lazy = following.startswith("?")
        self._at += len(sign) + lazy
        self._out.append(sign + ("?" if lazy != ("U" in self._flags[-1]) else ""))
        self._repeatable = "repeated"

    def _open(self) -> None:
        following = self._pattern[self._at :]
        flags = _FLAGS.match(following)
        named = re.match(r"\(\?P<(\w+)>", following)
        if flags:
            self._set_flags(flags)
            return
        if following.startswith("(?") and not named:
            raise re.error(f"invalid perl operator: {following[:3]}")
        self._push("(", self._flags[-1])
        self._at += len(named[0]) if named else 1
        self._repeatable = "("

    def _set_flags(self, match: re.Match[str]) -> None:
        """Translate flags: ``(?i)`` applies to the end of the enclosing group, ``(?i:...)`` to its own."""
        flags = (self._flags[-1] | set(match[1])) - set(match[2] or "")
        python = "i" if "i" in flags else ""
        opening = f"(?{python}:" if python else "(?-i:" if "i" in self._flags[-1] else "(?:"
        self._at += len(match[0])
        self._repeatable = "("
        if match[3] == ":":
            self._push(opening, frozenset(flags))
            return
        self._out.append(opening)
        self._flags[-1] = frozenset(flags)
        self._scopes[-1].append(opening)

    def _push(self, opening: str, flags: frozenset[str]) -> None:
        self._out.append(opening)
        self._flags.append(flags)
        self._scopes.append([])

    def _close(self) -> None:
        if len(self._flags) == 1:
            raise re.error(f"unexpected ): {self._pattern}")
        self._flags.pop()
        self._put(")" * len(self._scopes.pop()) + ")", 1)
        self._repeatable = ")"

    def _escape(self) -> None:
        char = self._pattern[self._at + 1 : self._at + 2]
        if char in _AT_ENDS:
            self._put(_AT_ENDS[char], 2)
        elif char in ("b", "B"):
            self._put(_WORD_BOUNDARY if char == "b" else _NO_WORD_BOUNDARY, 2)
        elif char == "C":
            raise re.error(r"\C, a single byte, is not supported: characters are those of UTF-8")
        elif char.lower() in _PERL:
            negated = f"^{_BROKEN}" if char.isupper() else ""
            self._put(f"[{negated}{_PERL[char.lower()]}]", 2)
        elif char == "Q":
            end = self._pattern.find(r"\E", self._at + 2)
            quoted = self._pattern[self._at + 2 : end if end >= 0 else None]
            self._out.append(re.escape(quoted))
            self._at = end + 2 if end >= 0 else len(self._pattern)
        else:
            self._out.append(self._character())

    def _character(self) -> str:
        """An escape for one character, outside of classes or in one."""
        following = self._pattern[self._at + 1 :]
        if not following:
            raise re.error("trailing \\ at end of expression")
        number = re.match(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}|([0-7]{3}|0[0-7]{0,2})", following)
        if number:
            code = int(number[1] or number[2] or number[3], 8 if number[3] else 16)
            if code > 0x10FFFF:
                raise re.error(f"invalid escape sequence: \\{number[0]}")
            self._at += 1 + len(number[0])
            return re.escape(chr(code))
        if following[0] in "pP":
            raise re.error(
                f"classes by properties of Unicode are not supported: \\{following[:2]}; list characters"
            )
        if following[0] not in _PLAIN_ESCAPES and (following[0].isalnum() or not following[0].isascii()):
            raise re.error(f"invalid escape sequence: \\{following[0]}")
        self._at += 2
        return _PLAIN_ESCAPES.get(following[0], re.escape(following[0]))

    def _class(self) -> str:
        start, self._at = self._at, self._at + 1
        negated = self._pattern.startswith("^", self._at)
        self._at += negated
        parts, first = [], True
        while first or not self._pattern.startswith("]", self._at):
            if self._at >= len(self._pattern):
                raise re.error(f"missing ]: {self._pattern[start:]}")
            parts.append(self._member())
            first = False
        self._at += 1
        return f"[^{_BROKEN}{''.join(parts)}]" if negated else f"[{''.join(parts)}]"

    def _member(self) -> str:
        named = re.match(r"\[:(\^?)(\w*):\]", self._pattern[self._at :])
        if named:
            if named[2] not in _POSIX:
                raise re.error(f"invalid character class range: {named[0]}")
            self._at += len(named[0])
            return _complement(_POSIX[named[2]]) if named[1] else _POSIX[named[2]]
        perl = self._pattern[self._at + 1 : self._at + 2] if self._pattern[self._at] == "\\" else ""
        if perl and perl.lower() in _PERL:
            self._at += 2
            return _complement(_PERL[perl.lower()]) if perl.isupper() else _PERL[perl.lower()]
        low = self._single()
        if not re.match(r"-[^\]]", self._pattern[self._at :]):
            return low
        self._at += 1
        return f"{low}-{self._single()}"

    def _single(self) -> str:
        char = self._pattern[self._at]
        if char == "\\":
            return self._character()
        self._at += 1
        return re.escape(char)


def _complement(members: str) -> str:
    """The members of a negated character class: all other characters, without invalid UTF-8 bytes."""
    inside = re.compile(f"[{members}]")
    ascii_part = "".join(re.escape(chr(i)) for i in range(128) if not inside.match(chr(i)))
    return ascii_part + r"\x80-\ud7ff\ue000-\U0010ffff"
