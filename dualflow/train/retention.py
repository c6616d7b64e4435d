"""Which checkpoints of a folder are kept: the last few, and one in so many hours for good."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Retention:
    """The checkpoints that were saved, and how many stay.

    Attributes:
        limit: how many; None for all.
        hours: of the others, one is kept for good if so many hours have passed since the last one; or None.
        preserved: when the last one was saved that is kept for good.
        times: when each checkpoint was saved that may be removed later, the oldest first.
    """

    limit: int | None
    hours: float | None
    preserved: float
    times: dict[str, float] = field(default_factory=dict)

    def add(self, path: str, time: float) -> None:
        """Note a checkpoint that was saved now."""
        self.times.pop(path, None)
        self.times[path] = time

    def surplus(self) -> list[str]:
        """The checkpoints to remove, which are noted no longer."""
        found = []
        while self.limit is not None and len(self.times) > self.limit:
            path = next(iter(self.times))
            time = self.times.pop(path)
            if self.hours is not None and time - 3600 * self.hours >= self.preserved:
                self.preserved = time
            else:
                found.append(path)
        return found
