"""Random programs have the same results and gradients in Python, eagerly and compiled."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dualflow as df

NAMES = ("a", "b", "c")
COMPARISONS = ("<", ">", "==", "!=", "<=", ">=")


@dataclass(frozen=True)
class Language:
    """What the programs compute with: expressions of the variables ``x`` and ``y`` and a number ``n``."""

    numbers: tuple[str, ...]
    vectors: tuple[str, ...] = ()
    scalars: tuple[str, ...] = ()
    """Numbers made of the vector ``v``."""
    count: str = "({x} + {n}) % 6"
    """How often a loop iterations, an integer."""


INTEGERS = Language(("({x} + {n} + {y}) % 97", "({x} - {n} + {y}) % 97", "({x} * {n} + {y}) % 97"))
FLOATS = Language(
    ("0.3 * {x} - 0.2{n} * {y}", "0.1 * {x} * {y} + 0.4{n}", "{x} / (1.1{n} + {y} * {y})", "0.9{n} - {x}"),
    count="int(abs(3.7 * {x})) % 4",
)
VECTORS = Language(
    FLOATS.numbers,
    ("0.5 * v + {x}", "v * {x} - 0.3{n}", "v * v * 0.2{n} + {y}", "df.where(v > {x}, v, 0.7 * v)"),
    ("df.reduce_sum(v) * 0.3{n}", "df.reduce_max(v) + {x}", "v[1] * 0.6{n}"),
    "df.cast(df.abs(3.7 * {x}), df.int32) % 4",
)


class Writer:
    """Writes the body of a function of three numbers: nested conditionals and finite loops."""

    def __init__(self, seed: int, language: Language) -> None:
        self._draw = random.Random(seed)
        self._language = language
        self._loops = 0

    def program(self, depth: int = 3) -> str:
        result = (
            "v * {} + {} - {}".format(*NAMES) if self._language.vectors else "{} + {} * {}".format(*NAMES)
        )
        lines = [*self._block(depth, in_loop=False), f"return {result}"]
        arguments = ", ".join([*NAMES, *(["v"] if self._language.vectors else [])])
        text = "\n".join([f"def f({arguments}):", *(f"    {line}" for line in lines)])
        return f"import dualflow as df\n\n{text}\n"

    def _block(self, depth: int, *, in_loop: bool) -> list[str]:
        return [line for _ in range(self._draw.randint(1, 3)) for line in self._statement(depth, in_loop)]

    def _statement(self, depth: int, in_loop: bool) -> list[str]:
        kinds = [self._assignment] * 2
        if depth:
            kinds += [self._cond, self._cond, self._while, self._for]
            kinds += [self._leave] * (1 + in_loop)
        kind = self._draw.choice(kinds)
        return kind(depth - 1, in_loop)

    def _assignment(self, depth: int, in_loop: bool) -> list[str]:
        if self._language.vectors and self._draw.random() < 0.4:
            return [f"v = {self._filled(self._language.vectors)}"]
        return [f"{self._draw.choice(NAMES)} = {self._number()}"]

    def _cond(self, depth: int, in_loop: bool) -> list[str]:
        lines = [f"if {self._condition()}:", *self._indented(depth, in_loop)]
        if self._draw.random() < 0.4:
            lines += [f"elif {self._condition()}:", *self._indented(depth, in_loop)]
        if self._draw.random() < 0.5:
            lines += ["else:", *self._indented(depth, in_loop)]
        return lines

    def _while(self, depth: int, in_loop: bool) -> list[str]:
        self._loops += 1
        k = f"k{self._loops}"
        test = f"while {k} > 0 and ({self._condition()}):"
        lines = [f"{k} = {self._count()}", test, f"    {k} -= 1", *self._indented(depth, in_loop=True)]
        return lines + self._otherwise(depth, in_loop)

    def _for(self, depth: int, in_loop: bool) -> list[str]:
        self._loops += 1
        i = f"i{self._loops}"
        count = self._count() if self._draw.random() < 0.7 else "4"
        step = "a = (a + {}) % 97" if self._language is INTEGERS else "a = 0.6 * a + 0.1 * a * {}"
        lines = [f"for {i} in range({count}):", f"    {step.format(i)}", *self._indented(depth, in_loop=True)]
        return lines + self._otherwise(depth, in_loop)

    def _otherwise(self, depth: int, in_loop: bool) -> list[str]:
        """Now and then an ``else`` of a loop."""
        return ["else:", *self._indented(depth, in_loop)] if self._draw.random() < 0.2 else []

    def _leave(self, depth: int, in_loop: bool) -> list[str]:
        kind = self._draw.choice(["break", "continue", "return"] if in_loop else ["return"])
        leave = f"return {self._result()}" if kind == "return" else kind
        return [f"if {self._condition()}:", f"    {leave}"]

    def _indented(self, depth: int, in_loop: bool) -> list[str]:
        return [f"    {line}" for line in self._block(depth, in_loop=in_loop)]

    def _result(self) -> str:
        return self._filled(self._language.vectors or self._language.numbers)

    def _number(self) -> str:
        return self._filled(self._language.numbers + self._language.scalars)

    def _count(self) -> str:
        return self._filled((self._language.count,))

    def _filled(self, expressions: tuple[str, ...]) -> str:
        x, y = self._draw.choice(NAMES), self._draw.choice(NAMES)
        return self._draw.choice(expressions).format(x=x, y=y, n=self._draw.randint(1, 9))

    def _condition(self) -> str:
        tests = [
            f"{self._draw.choice(NAMES)} {self._draw.choice(COMPARISONS)} {self._number()}"
            for _ in range(self._draw.randint(1, 2))
        ]
        negated = [f"not {t}" if self._draw.random() < 0.2 else t for t in tests]
        return self._draw.choice([" and ", " or "]).join(negated)


def seeds(count: int) -> list[Any]:
    """The seeds of ``count`` programs, all but the first four of which are exhaustive."""
    return [pytest.param(seed, marks=pytest.mark.exhaustive if seed >= 4 else ()) for seed in range(count)]


@pytest.mark.parametrize("seed", seeds(24))
def test_a_program_of_integers_has_one_result_everywhere(seed, tmp_path, load):
    f = load(tmp_path, Writer(seed, INTEGERS).program())
    compiled = df.function(f)
    draw = random.Random(seed)
    for _ in range(8):
        numbers = [draw.randint(0, 96) for _ in NAMES]
        tensors = [df.constant(x) for x in numbers]
        expected = f(*numbers)
        assert int(f(*tensors)) == expected
        assert int(compiled(*tensors)) == expected


def around(f):
    """The result of ``f``, and its gradient by a tape around the call."""

    def run(*tensors):
        with df.GradientTape() as tape:
            tape.watch(tensors)
            answer = f(*tensors)
        return answer, *tape.gradient(answer, tensors, unconnected_gradients="zero")

    return run


@pytest.mark.parametrize("seed", seeds(10))
def test_a_program_of_floats_has_one_result_and_one_gradient_everywhere(seed, tmp_path, load):
    f = load(tmp_path, Writer(seed, FLOATS).program())
    draw = random.Random(seed)
    compiled, inside = df.function(f), df.function(around(f))
    for _ in range(5):
        numbers = [draw.uniform(-2.0, 2.0) for _ in NAMES]
        tensors = [df.constant(x, df.float64) for x in numbers]
        expected = around(f)(*tensors)
        np.testing.assert_allclose(f(*numbers), expected[0].numpy(), rtol=1e-9)
        for result in (around(compiled)(*tensors), inside(*tensors)):
            for x, y in zip(result, expected, strict=True):
                np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", seeds(8))
def test_a_program_of_vectors_has_one_result_and_one_gradient_everywhere(seed, tmp_path, load):
    f = load(tmp_path, Writer(seed, VECTORS).program(depth=2))
    draw = random.Random(seed)
    compiled, inside = df.function(f), df.function(around(f))
    for _ in range(4):
        tensors = [df.constant(draw.uniform(-2.0, 2.0), df.float64) for _ in NAMES]
        tensors.append(df.constant([draw.uniform(-1.0, 1.0) for _ in range(3)], df.float64))
        expected = around(f)(*tensors)
        for result in (around(compiled)(*tensors), inside(*tensors)):
            for x, y in zip(result, expected, strict=True):
                np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-9, atol=1e-12)
