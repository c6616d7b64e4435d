"""A long search for faults: prints each distinct one with the smallest script that shows it.

    python -m program_generator.explore FOLDER --examples 20000 --seed 1

run in ``tests/programs``. A fault's script is ``FOLDER/KEY.py``, whose docstring is the fault. The file
``FOLDER/count`` has the number of programs so far.
"""

from __future__ import annotations

import argparse
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from .records import Options, Program, Step
from .source import source
from .strategies import dynamic_programs, programs
from .worker import Died, Worker

PER_ROUND = 500


def faults_of(worker: Worker, program: Program) -> list[str]:
    """The faults of a program; the end of its process is one."""
    try:
        return worker.check(source(program))
    except Died as error:
        return [f"died: {error}"]


def faults_alone(program: Program) -> list[str]:
    """The faults of a program in a process that has run no other."""
    with Worker() as worker:
        return faults_of(worker, program)


def key(fault: str) -> str:
    """The fault without numbers and names, so that the same one in two programs has one key."""
    line = fault.split("where the reference")[0].replace("\n", " ")[:600]
    line = re.sub(r"^(eager|compiled), call \d+( again)?", r"\1", line)
    return re.sub(r"\[[^\]]*\]|[-\d.]+|\b(b?float|u?int|complex|bool)\d*\b", "#", line)[:90]


def smaller(program: Program) -> Iterator[Program]:
    """Programs with less in them."""
    for i in range(len(program.calls)):
        if len(program.calls) > 1:
            yield replace(program, calls=program.calls[:i] + program.calls[i + 1 :])
    if program.options.function:
        yield replace(program, options=replace(program.options, function=()))
    if program.options.open_signature:
        yield replace(program, options=replace(program.options, open_signature=False))
    if program.options.transform != "values":
        yield replace(program, options=replace(program.options, transform=Options().transform))
    if len(program.results) > 1:
        yield from (replace(program, results=(r,)) for r in program.results)
    for steps in smaller_steps(program.steps):
        yield replace(program, steps=steps)
    for i in range(len(program.inputs)):
        if len(program.inputs) > 1:
            yield replace(program, inputs=program.inputs[:i] + program.inputs[i + 1 :])


def smaller_steps(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    for i, step in enumerate(steps):
        yield steps[:i] + steps[i + 1 :]
        for name in ("body", "otherwise"):
            for inner in smaller_steps(getattr(step, name)):
                yield (*steps[:i], replace(step, **{name: inner}), *steps[i + 1 :])
        for name in ("i", "j"):
            if getattr(step, name):
                yield (*steps[:i], replace(step, **{name: 0}), *steps[i + 1 :])


def shrunk(program: Program, failure: str, max_tries: int) -> Program:
    """The smallest program near this one whose faults have the same key."""
    progress, tries = True, 0
    with Worker() as worker:
        while progress and tries < max_tries:
            progress = False
            for candidate in smaller(program):
                tries += 1
                if failure in map(key, faults_of(worker, candidate)):
                    program, progress = candidate, True
                    break
    return program


def explore(
    folder: Path, examples: int, first_seed: int, large_share: int, tries: int, *, dynamic_sizes: bool = False
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    worker, count, saved = Worker(), 0, {p.stem for p in folder.glob("*.py")}

    def look(program: Program) -> None:
        nonlocal count
        count += 1
        if not count % 100:
            (folder / "count").write_text(f"{count} programs\n")
        for fault in faults_of(worker, program)[:1]:
            name = f"{zlib.crc32(key(fault).encode()):08x}"
            if name in saved:
                with (folder / f"{name}.count").open("a") as file:
                    file.write(".")
                continue
            saved.add(name)
            history = worker.history[:-1]
            again = [f for f in faults_alone(program) if key(f) == key(fault)]
            text = source(shrunk(program, key(fault), tries) if again else program)
            if not again:
                text = "\n#########\n".join([*history[-100:], text])
            (folder / f"{name}.py").write_text(
                f'"""{fault[:3000]}"""\n{"" if again else "# after others"}\n{text}'
            )
            print(f"{count}: {name} {key(fault)}", flush=True)

    round_number = 0
    while count < examples:
        large = round_number % large_share == large_share - 1
        run = settings(
            max_examples=PER_ROUND,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        strategy = dynamic_programs() if dynamic_sizes else programs(large=large)
        seed(first_seed * 1000 + round_number)(run(given(strategy)(look)))()
        round_number += 1
        worker.close()
        (folder / "count").write_text(f"{count} programs\n")
    sys.exit(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--examples", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--large-share", type=int, default=8, help="one of this number of rounds has large sizes"
    )
    parser.add_argument("--tries", type=int, default=60, help="programs to look at for a smaller one")
    parser.add_argument("--dynamic-sizes", action="store_true", help="call each program at ten sizes")
    chosen = parser.parse_args()
    explore(
        chosen.folder,
        chosen.examples,
        chosen.seed,
        chosen.large_share,
        chosen.tries,
        dynamic_sizes=chosen.dynamic_sizes,
    )
