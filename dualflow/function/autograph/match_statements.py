"""Lowers ``match`` to a chain of ``if``."""

from __future__ import annotations

import ast

from dualflow.function.autograph.nodes import assigned, call, load, with_location
from dualflow.function.autograph.scope_analysis import Namer


class UnsupportedSyntax(Exception):
    """A statement or expression that can't be converted."""


def lowered_match(node: ast.Match, namer: Namer) -> list[ast.stmt]:
    """The statements that replace a ``match``.

    Raises:
        UnsupportedSyntax: a pattern can't be expressed by comparisons.
    """
    subject = namer.new("ag__subject")
    chain: list[ast.stmt] = []
    for case in reversed(node.cases):
        chain = with_location(_case(case, load(subject), chain), case.pattern)
    return [*with_location([assigned(subject, node.subject)], node), *chain]


def _case(case: ast.match_case, subject: ast.expr, orelse: list[ast.stmt]) -> list[ast.stmt]:
    """``case`` as an ``if`` with the other cases in its ``else``."""
    tests, bound = _pattern(case.pattern, subject)
    if case.guard is not None and bound and tests:
        raise _unsupported(case.pattern, "captures a part and has a guard")
    if case.guard is not None:
        tests.append(case.guard)
    if not tests:
        return [*bound, *case.body]
    test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    if case.guard is not None:
        return [*bound, ast.If(test, case.body, orelse)]
    return [ast.If(test, [*bound, *case.body], orelse)]


def _pattern(pattern: ast.pattern, subject: ast.expr) -> tuple[list[ast.expr], list[ast.stmt]]:
    """The conditions for a match of ``pattern``, and the assignments that follow from it."""
    match pattern:
        case ast.MatchValue():
            return [ast.Compare(subject, [ast.Eq()], [pattern.value])], []
        case ast.MatchSingleton():
            return [ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)])], []
        case ast.MatchAs():
            tests, bound = ([], []) if pattern.pattern is None else _pattern(pattern.pattern, subject)
            return tests, bound + ([] if pattern.name is None else [assigned(pattern.name, subject)])
        case ast.MatchOr():
            return _alternatives(pattern, subject)
        case ast.MatchSequence():
            return _sequence(pattern, subject)
    raise _unsupported(pattern, "names a class or a mapping")


def _alternatives(pattern: ast.MatchOr, subject: ast.expr) -> tuple[list[ast.expr], list[ast.stmt]]:
    alternatives = [_pattern(p, subject) for p in pattern.patterns]
    if any(bound for _, bound in alternatives):
        raise _unsupported(pattern, "captures in alternatives")
    if not all(tests for tests, _ in alternatives):
        return [], []
    conditions = [t[0] if len(t) == 1 else ast.BoolOp(ast.And(), t) for t, _ in alternatives]
    return [ast.BoolOp(ast.Or(), conditions)], []


def _sequence(pattern: ast.MatchSequence, subject: ast.expr) -> tuple[list[ast.expr], list[ast.stmt]]:
    if any(isinstance(p, ast.MatchStar) for p in pattern.patterns):
        raise _unsupported(pattern, "has a star")
    tests: list[ast.expr] = [call("is_sequence", subject, ast.Constant(len(pattern.patterns)))]
    bound: list[ast.stmt] = []
    for i, part in enumerate(pattern.patterns):
        part_tests, part_bound = _pattern(part, ast.Subscript(subject, ast.Constant(i), ast.Load()))
        tests += part_tests
        bound += part_bound
    return tests, bound


def _unsupported(pattern: ast.pattern, what: str) -> UnsupportedSyntax:
    return UnsupportedSyntax(
        f"the pattern in line {pattern.lineno} of it {what}; write the `match` as `if` and `elif`"
    )
