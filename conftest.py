"""Imports the package before pytest collects doctests: its importlib mode would import each file anew."""

import gc
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import dualflow  # noqa: F401

# A machine that is busy with something else is no fault of a test; the same tree passes or fails each time.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("patient")
# Other examples at each run, to look for new faults: pytest --hypothesis-profile explore
settings.register_profile("explore", derandomize=False)
# For a suite that runs once more in another setting: pytest --hypothesis-profile brief
settings.register_profile("brief", max_examples=20)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part", metavar="I/N", help="only files of the I-th of N parts; each is in one of them"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run the whole suite on all processors, one file after another on each, if pytest-xdist is installed.

    A run that names files, a part, a number of processes or a debugger is left as it is.
    """
    option = config.option
    whole = config.args_source is config.ArgsSource.TESTPATHS and option.part is None
    alone = hasattr(config, "workerinput") or getattr(option, "usepdb", False)
    if whole and not alone and getattr(option, "numprocesses", 0) is None:
        option.numprocesses, option.dist = "auto", "loadfile"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of other parts. Which files share a process is the same each time."""
    part = config.getoption("part")
    if not part or collection_path.suffix != ".py":
        return None
    number, count = map(int, part.split("/"))
    name = collection_path.relative_to(config.rootpath).as_posix()
    return None if zlib.crc32(name.encode()) % count == number - 1 else True


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave the collected tests out of garbage collection, which takes seconds for so many objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _what_other_files_hold() -> None:
    """Leave it out of garbage collection, which takes a second where tens of thousands of tests have run."""
    gc.collect()
    gc.freeze()
