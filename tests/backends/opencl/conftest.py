"""Tests on a device: each skips without pyopencl or a driver, and has the marker ``opencl``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opencl_driver import count_cpus, require_opencl

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = {path: HERE in path.parents for path in {item.path for item in items}}
    for item in items:
        if here[item.path]:
            item.add_marker("opencl")


@pytest.fixture(autouse=True, scope="module")
def _cpus_are_devices() -> Iterator[None]:
    """Let CPUs count as devices in these tests alone: others expect none.

    Drivers are loaded here rather than when a file is collected: each process of a run collects all files.
    """
    require_opencl()
    from dualflow.backends.opencl import tile_selection  # it imports pyopencl

    with pytest.MonkeyPatch.context() as patch:
        count_cpus(patch)
        patch.setattr(tile_selection, "MEASURED_SIDE", 128)  # a 64th of the work; the tile changes no bits
        yield
