"""``df.contrib.summary``: the first guides' summaries, for the global step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from required_tools import require_module

import dualflow as df
from dualflow.compat import v1

require_module("tensorboardX")
accumulators = require_module("tensorboard.backend.event_processing.event_accumulator")


def steps(folder: Path, tag: str) -> list[int]:
    events: Any = accumulators.EventAccumulator(str(folder))
    events.Reload()
    return [e.step for e in events.Scalars(tag)]


def test_a_loop_writes_a_summary_every_n_steps(tmp_path: Path) -> None:
    summary = df.contrib.summary
    writer = summary.create_file_writer(str(tmp_path))
    count = v1.train.get_or_create_global_step()
    count.assign(0)
    with writer.as_default():
        for _ in range(6):
            count.assign_add(1)
            with summary.record_summaries_every_n_global_steps(2):
                summary.scalar("loss", 1.0)
            with summary.never_record_summaries():
                summary.scalar("loss", 1.0)
        with summary.always_record_summaries():
            summary.scalar("loss", 1.0, family="all")
            summary.histogram("h", [1.0], family="all")
            summary.image("i", df.zeros([1, 2, 2, 1]), max_images=1)
            summary.audio("a", df.zeros([1, 2, 1]), 8000)
    assert steps(tmp_path, "loss") == [2, 4, 6]
    assert steps(tmp_path, "all/loss") == [6]


def test_every_how_many_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="an n of at least 1, not 0"):
        df.contrib.summary.record_summaries_every_n_global_steps(0)
