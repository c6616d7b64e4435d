"""Parallel compilation gives the code of sequential compilation; an invalid module is an error."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dualflow.backends.llvm.runtime import compiler, parallel_compile
from dualflow.backends.llvm.runtime.background_compile import compilation
from dualflow.core.errors import InternalError


def scaled(factor: int) -> str:
    body = "".join(f"  %x{i + 1} = fmul double %x{i}, {factor}.0\n" for i in range(factor % 7 * 20))
    return f"define double @scaled(double %x0) {{\n{body}  ret double %x{factor % 7 * 20}\n}}\n"


TEXTS = [scaled(factor) for factor in range(2, 30)]


def codes(texts: list[str]) -> list[bytes]:
    return [module.code for module in compiler.build_all(texts, 128)]


def test_the_code_is_that_of_one_after_another() -> None:
    assert codes(TEXTS) == [compiler.build(text, 128).code for text in TEXTS]


def test_no_modules() -> None:
    assert codes([]) == []


def test_each_has_the_cost_of_its_stages() -> None:
    modules = compiler.build_all(TEXTS, 128)
    assert min(min(code.parse_ms, code.optimise_ms, code.emit_ms) for code in modules) > 0


@pytest.mark.parametrize("place", [0, 13, len(TEXTS)])
def test_an_invalid_module_fails_the_batch_and_leaves_the_compiler_usable(place: int) -> None:
    wrong = "define double @f(double %x) { ret double %z }"
    with pytest.raises(InternalError, match="undefined value '%z'"):
        codes([*TEXTS[:place], wrong, *TEXTS[place:]])
    assert codes(TEXTS[:3]) == [compiler.build(text, 128).code for text in TEXTS[:3]]


def test_all_threads_end() -> None:
    before = set(threading.enumerate())
    codes(TEXTS)
    assert set(threading.enumerate()) <= before


def test_the_caller_compiles_if_the_system_refuses_threads() -> None:
    previous = threading.stack_size(1 << 46)  # no thread has so much memory
    try:
        with pytest.raises(RuntimeError, match="can't start new thread"):
            threading.Thread(target=print).start()
        compiled = codes(TEXTS)
    finally:
        threading.stack_size(previous)
    assert compiled == [compiler.build(text, 128).code for text in TEXTS]


def test_no_shipped_module_has_functions_for_which_passes_read_stacks_of_ended_threads() -> None:
    modules = list(Path(compiler.__file__).parent.glob("*.ll"))
    assert modules
    assert not [path.name for path in modules if "optnone" in path.read_text()]


def test_modules_may_be_added_one_by_one() -> None:
    with compilation(128) as queue:
        for text in TEXTS:
            queue.add(text)
        modules = queue.results()
    assert [code.code for code in modules] == codes(TEXTS)


def test_an_abandoned_compile_leaves_no_thread_and_the_compiler_usable() -> None:
    before = set(threading.enumerate())
    with compilation(128) as queue:
        for text in TEXTS:
            queue.add(text)
    assert set(threading.enumerate()) <= before
    assert codes(TEXTS[:3]) == [compiler.build(text, 128).code for text in TEXTS[:3]]


def test_there_are_no_more_threads_than_modules() -> None:
    assert parallel_compile.threads_for(1) == 1
    assert all(
        1 <= parallel_compile.threads_for(n) <= min(n, parallel_compile.MAX_THREADS) for n in range(1, 40)
    )
