"""Retention of checkpoints: the most recent ones, and one per time interval permanently."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Retention:
    """The checkpoints that may be removed, and how many to keep.

    Attributes:
        limit: how many to keep; None for all.
        hours: the interval in hours at which a surplus checkpoint is kept permanently; None for never.
        preserved: the time of the last checkpoint that is kept permanently.
        times: the times of the checkpoints that may be removed later, the oldest first.
    """

    limit: int | None
    hours: float | None
    preserved: float
    times: dict[str, float] = field(default_factory=dict)

    def add(self, path: str, time: float) -> None:
        """Add a checkpoint saved at ``time``."""
        self.times.pop(path, None)
        self.times[path] = time

    def pop_surplus(self) -> list[str]:
        """Remove the surplus checkpoints from the record, and return their paths."""
        paths = []
        while self.limit is not None and len(self.times) > self.limit:
            path = next(iter(self.times))
            time = self.times.pop(path)
            if self.hours is not None and time - 3600 * self.hours >= self.preserved:
                self.preserved = time
            else:
                paths.append(path)
        return paths
