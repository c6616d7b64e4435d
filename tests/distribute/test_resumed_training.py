"""Training whose workers are killed again and again, and continue from the last checkpoint."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from workers import launch

PROGRAM = Path(__file__).with_name("programs") / "resumed_training.py"
ROWS, STEPS_OF_AN_EPOCH = 48, 6
KILLS = int(os.environ.get("DUALFLOW_TEST_KILLS", "2"))
"""The number of workers that are killed, one after another: of rank 0, then of rank 1, and so on."""
SECONDS = 10.0
"""The time in which the other workers end."""


def train(folder: Path, epochs: int, *kill: object) -> tuple[int, str]:
    """The exit status and the errors of two workers."""
    folder.mkdir(exist_ok=True)
    ended = launch([str(PROGRAM), *map(str, (folder, epochs, *kill))], 2)
    return ended.returncode, ended.stderr


def steps_of(folder: Path) -> list[tuple[str, list[list[int]]]]:
    """The loss of each step, and the rows of each worker; of repeated steps, those of the last repetition."""
    workers = []
    for rank in (0, 1):
        lines = (folder / f"{rank}.lines").read_text(encoding="utf-8").splitlines()
        steps = {line["step"]: line for line in map(json.loads, lines)}
        workers.append([steps[number] for number in sorted(steps)])
    assert [line["loss"] for line in workers[0]] == [line["loss"] for line in workers[1]]
    return [(a["loss"], [a["rows"], b["rows"]]) for a, b in zip(*workers, strict=True)]


def rows_of(steps: Sequence[tuple[str, list[list[int]]]]) -> list[int]:
    return sorted(row for _, workers in steps for rows in workers for row in rows)


@pytest.mark.exhaustive
def test_killed_workers_end_the_others_and_training_resumes_as_if_nothing_had_happened(
    tmp_path: Path,
) -> None:
    epochs = 2 * KILLS + 2
    status, errors = train(tmp_path / "whole", epochs)
    assert status == 0, errors
    draw = random.Random(7)
    moments = sorted(draw.randrange((epochs - 1) * STEPS_OF_AN_EPOCH) for _ in range(KILLS))
    folder = tmp_path / "killed"
    for kill, moment in enumerate(moments):
        rank = kill % 2
        status, errors = train(folder, epochs, rank, moment, draw.uniform(0.0, 0.01))
        ended = time.time()
        assert status != 0
        died = rf"Worker {rank} \((process \d+ on \S+|the first machine)\) has died|rank {rank} .* signal 9"
        assert re.search(died, " ".join(errors.split())), errors
        assert ended - float((folder / "killed").read_text(encoding="utf-8")) < SECONDS
        (folder / "killed").unlink()
    status, errors = train(folder, epochs)
    assert status == 0, errors
    steps = steps_of(folder)
    assert steps == steps_of(tmp_path / "whole")
    for begin in range(0, len(steps), STEPS_OF_AN_EPOCH):
        assert rows_of(steps[begin : begin + STEPS_OF_AN_EPOCH]) == list(range(ROWS))
