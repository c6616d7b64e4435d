"""Programs drawn at random give the same answer over Python's ints, eagerly, and compiled."""

from __future__ import annotations

import importlib.util
import random

import pytest

import dualflow as df

NAMES = ("a", "b", "c")
COMPARISONS = ("<", ">", "==", "!=", "<=", ">=")


class Writer:
    """Writes the body of a function of three integers: choices and loops in each other, all of which end."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._loops = 0

    def program(self) -> str:
        lines = [*self._block(3, in_loop=False), f"return {self._number()}"]
        return "\n".join(["def f(a, b, c):", *(f"    {line}" for line in lines)]) + "\n"

    def _block(self, depth: int, *, in_loop: bool) -> list[str]:
        return [line for _ in range(self._draw.randint(1, 3)) for line in self._statement(depth, in_loop)]

    def _statement(self, depth: int, in_loop: bool) -> list[str]:
        kinds = [self._assignment] * 2
        if depth:
            kinds += [self._choice, self._choice, self._while, self._for]
            kinds += [self._leave] * (1 + in_loop)
        kind = self._draw.choice(kinds)
        return kind(depth - 1, in_loop)

    def _assignment(self, depth: int, in_loop: bool) -> list[str]:
        return [f"{self._draw.choice(NAMES)} = {self._number()}"]

    def _choice(self, depth: int, in_loop: bool) -> list[str]:
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
        return [f"{k} = {self._number()} % 6", test, f"    {k} -= 1", *self._indented(depth, in_loop=True)]

    def _for(self, depth: int, in_loop: bool) -> list[str]:
        self._loops += 1
        i = f"i{self._loops}"
        lines = self._indented(depth, in_loop=True)
        return [f"for {i} in range({self._number()} % 6):", f"    a = (a + {i}) % 97", *lines]

    def _leave(self, depth: int, in_loop: bool) -> list[str]:
        kind = self._draw.choice(["break", "continue", "return"] if in_loop else ["return"])
        leave = f"return {self._number()}" if kind == "return" else kind
        return [f"if {self._condition()}:", f"    {leave}"]

    def _indented(self, depth: int, in_loop: bool) -> list[str]:
        return [f"    {line}" for line in self._block(depth, in_loop=in_loop)]

    def _number(self) -> str:
        x, y = (self._draw.choice([*NAMES, str(self._draw.randint(0, 9))]) for _ in range(2))
        return f"({self._draw.choice(NAMES)} {self._draw.choice('+-*')} {x} + {y}) % 97"

    def _condition(self) -> str:
        tests = [
            f"{self._draw.choice(NAMES)} {self._draw.choice(COMPARISONS)} {self._number()}"
            for _ in range(self._draw.randint(1, 2))
        ]
        negated = [f"not {t}" if self._draw.random() < 0.2 else t for t in tests]
        return self._draw.choice([" and ", " or "]).join(negated)


@pytest.mark.parametrize("seed", range(24))
def test_a_program_gives_one_answer_everywhere(seed, tmp_path):
    path = tmp_path / f"program_{seed}.py"
    path.write_text(Writer(seed).program(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    compiled = df.function(module.f)
    draw = random.Random(seed)
    for _ in range(8):
        numbers = [draw.randint(0, 96) for _ in NAMES]
        tensors = [df.constant(x) for x in numbers]
        expected = module.f(*numbers)
        assert int(module.f(*tensors)) == expected
        assert int(compiled(*tensors)) == expected
