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
