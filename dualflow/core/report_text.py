"""Text of reports: what a REPL or a notebook shows of them is the text itself."""

from __future__ import annotations


class ReportText(str):
    """A string of several lines whose ``repr`` is its text, without quotes and escapes.

    >>> ReportText("one\\ntwo")
    one
    two
    """

    __slots__ = ()
    __repr__ = str.__str__

    def _repr_html_(self) -> str:
        return preformatted(self)


def preformatted(text: str) -> str:
    """The text as HTML in a font of equal widths.

    >>> preformatted("<lambda>(x)")
    '<pre>&lt;lambda&gt;(x)</pre>'
    """
    return f"<pre>{escaped(text)}</pre>"


def escaped(text: str) -> str:
    """The text with entities for the characters that HTML reads as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def duration(seconds: float) -> str:
    """A time with its unit.

    >>> duration(3.2e-7), duration(0.0421), duration(3.5)
    ('0.32 us', '42.1 ms', '3.5 s')
    """
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{_rounded(seconds / unit)} {name}"
    return f"{_rounded(seconds / 1e-6)} us"


def amount(number: float) -> str:
    """A number in thousands, millions or billions.

    >>> amount(640), amount(52_100), amount(2.5e6), amount(3.25e9)
    ('640', '52.1 thousand', '2.5 million', '3.25 billion')
    """
    for unit, name in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if number >= unit:
            return f"{_rounded(number / unit)} {name}"
    return f"{number:,.0f}"


def size(nbytes: int) -> str:
    """A number of bytes with its unit.

    >>> size(640), size(50_000), size(3 << 20)
    ('640 B', '48.8 KiB', '3 MiB')
    """
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{_rounded(nbytes / unit)} {name}"
    return f"{nbytes} B"


def _rounded(number: float) -> str:
    """A number with three digits, or with all before the point if there are more."""
    return f"{number:.3g}" if number < 999.5 else f"{number:.0f}"
