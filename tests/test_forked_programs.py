"""A fork of the tests' template ends, prints and fails as a process of its own does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from forked_programs import run_forked

ROOT = Path(__file__).parents[1]
PROGRAM = """
import os, sys
import dualflow as df

print(__name__, sys.argv[1:], os.getcwd(), sys.path[0], os.environ.get("SEEN"), input())
print(df.function(lambda x: x + 1.0)(df.constant(2.0)).numpy(), file=sys.stderr)
"""
ENDS = {
    "well": "",
    "with a status": "sys.exit(3)",
    "with a message": "sys.exit('no such disk')",
    "with an error": "def f():\n    raise KeyError('x')\nf()",
    "with an error of ours": "df.ones([2]) + df.ones([3])",
    "by a signal": "sys.stdout.flush()\nos.kill(os.getpid(), 9)",
}


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "SEEN": "here"}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_a_script_does_what_it_does_in_a_process(
    end: str, environment: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + end)
    words = [str(path), "a", "-b"]
    forked = run_forked(words, cwd=tmp_path, env=environment, input="typed\n")
    real = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path,
        env=environment,
        input="typed\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (real.returncode, real.stdout, real.stderr)


def test_a_program_or_module_is_run_by_its_words(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("import sys\nprint(__name__, sys.argv[1:], sys.path[0])")
    assert run_forked(["-m", "module", "x"], cwd=tmp_path, env=environment).stdout == (
        f"__main__ ['x'] {tmp_path}\n"
    )
    program = "import sys\nprint(__name__, sys.argv, repr(sys.path[0]))"
    assert run_forked(["-c", program, "x"], env=environment).stdout == "__main__ ['-c', 'x'] ''\n"


def test_forks_share_nothing_that_they_change(environment: dict[str, str]) -> None:
    program = "import os, dualflow as df\nprint(hasattr(df, 'mark'), len(os.environ))\n"
    program += "df.mark = os.environ['x'] = '1'"
    first, second = (run_forked(["-c", program], env=environment) for _ in range(2))
    assert first.stdout == second.stdout == f"False {len(environment)}\n"


def test_a_fork_that_takes_too_long_is_killed() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_forked(["-c", "import time\ntime.sleep(100)"], timeout=1)
    assert run_forked(["-c", "print(1)"]).stdout == "1\n"
    assert run_forked(["-c", "import os\nos.abort()"]).returncode == -signal.SIGABRT
