"""Words that the code base has retired stay out of the packages that are clean of them.

A package enters ``CLEAN`` once none of the words occurs in it, except for the places in ``ALLOWED``. Both
change in one direction: packages are added, allowed places removed.
"""

from __future__ import annotations

import re
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import dualflow

ROOT = Path(dualflow.__file__).parent

CLEAN = (
    "array_api",
    "backends/interpreter.py",
    "backends/llvm",
    "backends/numba",
    "backends/runtime",
    "cli",
    "compat",
    "config",
    "contrib",
    "core",
    "data",
    "distribute",
    "dtypes",
    "eager",
    "experimental",
    "function/arguments",
    "function/autograph",
    "function/batching",
    "function/calls",
    "function/control",
    "function/debugging",
    "function/inspect",
    "function/tracing",
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "function").glob("*.py"))),
    "gradient",
    "graph",
    "graph_mode",
    "io",
    "keras.py",
    "math",
    "nest.py",
    "nn",
    "numpy",
    "ops",
    "profiler",
    "random",
    "rewrite.py",
    "rewrites",
    "saved",
    "saved_model.py",
    "scalar",
    "schedule",
    "sequences",
    "sizes",
    "summary",
    "sysconfig.py",
    "train",
    "types",
)
"""The packages, nested packages and modules of dualflow that are clean."""

OTHER_FOLDERS = ("benchmarks", "examples", "keras_dualflow", "tests")
"""Clean folders next to the package."""

RETIRED_NAMES = {
    "found": "the name of the value",
    "given": "the name of the value, or bound",
    "known": "the name of the value, or static_value",
    "made": "the name of the value",
    "moving": "the name of the value",
    "rest": "remaining, remainder",
    "resting": "the name of the value",
    "seen": "visited",
    "told": "dynamic, has_layout",
    "wanted": "requested, limit, dtype",
    "Atom": "SizeFactor, SizeVariable",
    "Cursor": "StageIterator",
    "Extent": "SymInt",
    "FirstValue": "DeferredInitialValue",
    "RowMap": "Vmap",
    "Shelf": "BoundedQueue",
    "adopt": "lift",
    "cursor": "iterator",
    "look_again": "restore_deferred",
    "pull": "next",
    "stretch": "span",
    "stretches": "spans",
    "take_seed": "set_own_seed",
}
"""Identifiers, and what to write instead."""

RETIRED_PHRASES = {
    r"\bnobody\b|\bsomebody\b|\bwhoever\b": "name the caller, thread or process",
    r"\bso many\b|\bso-manieth\b": "the number of",
    r"\bway back\b": "backward pass",
    r"\bonly (?:a|the) run tells\b": "known at run time",
    r"\bopen (?:sizes?|ax[ei]s|batch(?:es)?|shapes?|dimensions?)\b": "dynamic",
    r"\bsizes? (?:are |is |left )?open\b": "dynamic",
    r"\btells?\b|\btold\b": "reports, returns",
    r"\basks?\b|\basked\b": "reads, requests, calls",
    r"\bsays?\b|\bsaid\b": "returns, reports, has",
    r"\bknows?\b": "has",
    r"\bwants?\b": "requires, needs",
    r"\bstretch(?:es)?\b": "span, chunk",
    r"\brooms?\b": "package, space",
    r"\bturns?\b": "iteration",
    r"\bshort way\b|\blong way\b": "fast path, slow path",
    r"\bwant of\b": "lack of, out of",
    r"\bbehind\b": "after",
    r"\bbeside\b": "next to, in the folder of, compared with",
    r"\bcursors?\b": "iterator",
    r"(?<!loop )(?<![\"'`])\bextents?\b": "symbolic size, loop extent",
    r"\bin the place of\b": "instead of, replaced by",
    r"\blet go\b|\blets go\b": "release",
}
"""Patterns in comments and strings, and what to write instead."""

ALLOWED: dict[tuple[str, str], int] = {}
"""How often a word or pattern still occurs in a file; the numbers only fall."""


@cache
def occurrences() -> Counter[tuple[str, str]]:
    """The number of occurrences of each retired word, by file and word."""
    phrases = re.compile("|".join(RETIRED_PHRASES), re.IGNORECASE)
    counts: Counter[tuple[str, str]] = Counter()
    folders = [*(ROOT / package for package in CLEAN), *(ROOT.parent / name for name in OTHER_FOLDERS)]
    for folder in folders:
        for path in sorted(folder.glob("**/*.py")) or [folder]:
            file = path.relative_to(ROOT.parent).as_posix()
            if path == Path(__file__) or not may_have_retired_words(path.read_text(encoding="utf-8")):
                continue
            with path.open("rb") as source:
                for token in tokenize.tokenize(source.readline):
                    if token.type == tokenize.NAME and token.string in RETIRED_NAMES:
                        counts[file, token.string] += not is_hypothesis(token)
                    elif token.type in (tokenize.STRING, tokenize.COMMENT) and phrases.search(token.string):
                        for pattern in RETIRED_PHRASES:
                            number = len(re.findall(pattern, token.string, re.IGNORECASE))
                            if number:
                                counts[file, pattern] += number
    return counts


ASSERTIONS = re.compile(r"\(\?<![^)]*\)|\\b")
BEGINNINGS = re.compile(r"\b(?:" + ASSERTIONS.sub("", "|".join(RETIRED_PHRASES)) + ")")
"""Matches where a retired phrase begins, and elsewhere too; faster than the phrases."""
STRINGS_AND_COMMENTS = re.compile(r"""(\"{3}|'{3}|["'])(?:\\.|[^\\])*?\1|#[^\n]*""", re.DOTALL)


def may_have_retired_words(text: str) -> bool:
    """Whether a text has a retired word in code, a comment or a string; true for some that have none."""
    without_hypothesis = re.sub(r"from hypothesis import.*|\bgiven\(", "", text)
    return BEGINNINGS.search(text.lower()) is not None or (
        has_retired_names(without_hypothesis)
        and has_retired_names(STRINGS_AND_COMMENTS.sub("", without_hypothesis))
    )


def has_retired_names(text: str) -> bool:
    return not RETIRED_NAMES.keys().isdisjoint(re.findall(r"\w+", text))


def is_hypothesis(token: tokenize.TokenInfo) -> bool:
    """Whether the token is hypothesis's decorator ``given``, imported or applied."""
    return token.string == "given" and re.search(r"from hypothesis import|\bgiven\(", token.line) is not None


def advice(word: str) -> str:
    return RETIRED_NAMES.get(word) or RETIRED_PHRASES[word]


def test_clean_packages_have_no_retired_words() -> None:
    excess = {key: n for key, n in occurrences().items() if n > ALLOWED.get(key, 0)}
    listed = [f"{file}: {word!r} ({n}); write: {advice(word)}" for (file, word), n in sorted(excess.items())]
    assert not listed, "\n".join(listed)


def test_the_list_of_allowed_words_only_shrinks() -> None:
    stale = {key: n for key, n in ALLOWED.items() if n > occurrences()[key]}
    assert not stale, f"lower these numbers, or remove the entries: {stale}"


def test_pages_have_no_retired_phrases() -> None:
    generated = ROOT.parent / "docs" / "coverage.md"
    folders = (ROOT.parent.glob("*.md"), ROOT.parent.glob("docs/*.md"), ROOT.rglob("*.md"))
    listed = []
    for page in (page for pages in folders for page in pages if page != generated):
        text = re.sub(r"(?ms)^([ ]*)```.*?^\1```$|`[^`]*`", "", page.read_text(encoding="utf-8"))
        for pattern, remedy in RETIRED_PHRASES.items():
            words = re.findall(pattern, text, re.IGNORECASE)
            listed += [f"{page.relative_to(ROOT.parent)}: {word!r}; write: {remedy}" for word in words]
    assert not listed, "\n".join(listed)


@pytest.mark.parametrize("package", CLEAN)
def test_clean_packages_exist(package: str) -> None:
    assert (ROOT / package).suffix == ".py" or (ROOT / package / "__init__.py").is_file()
    assert (ROOT / package).exists()
