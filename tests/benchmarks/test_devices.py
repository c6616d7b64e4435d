"""The table of devices at tiny sizes: a line for each row, and counts that follow from the row."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from opencl_driver import require_opencl

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.opencl


@pytest.fixture(autouse=True, scope="module")
def _driver() -> None:
    require_opencl()


def run(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.devices", "--quick", "--seconds", "0", *options]
    env = os.environ | {"DUALFLOW_OPENCL": "all"} | environment
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_rows_have_their_kernels_and_bytes_on_the_cpu_and_the_device(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    ended = run("--rows", "gelu,sum of squares,sort rows", "--json", str(path))
    assert ended.returncode == 0, ended.stderr
    about, table = ended.stdout.split("\n\n")
    assert [text.split(":")[0] for text in about.splitlines()] == ["device", "driver", "a launch"]
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert [text.split("|")[1].strip() for text in table.splitlines()[2:]] == list(rows)
    assert len({text.count("|") for text in table.splitlines()}) == 1
    gelu, total, ordered = (rows[name] for name in ("gelu, 4M", "sum of squares, 4M", "sort rows, 4096x1024"))
    count = 4 << 12
    assert gelu["cpu"] == {"kernels": 1, "host_calls": 0, "nbytes": 2 * count, "transferred": 0}
    assert gelu["device"] == gelu["cpu"] | {"transferred": 2 * count}
    assert (total["cpu"]["kernels"], total["device"]["kernels"]) == (1, 2)
    assert total["device"]["nbytes"] == total["cpu"]["nbytes"] == count + 4
    assert (ordered["device"]["kernels"], ordered["device"]["host_calls"]) == (0, 1)
    for row in rows.values():
        assert min(row[f"{place}_seconds"] for place in ("cpu", "device", "transfer")) > 0


@pytest.mark.exhaustive
def test_every_row_agrees_with_the_cpu_and_moves_no_more_bytes(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    ended = run("--json", str(path))
    assert ended.returncode == 0, ended.stderr
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert len(rows) >= 20
    for name, row in rows.items():
        assert row["device"]["nbytes"] <= row["cpu"]["nbytes"], name


def test_without_a_device_the_command_says_what_to_install() -> None:
    ended = run(OCL_ICD_VENDORS="/nonexistent")
    assert ended.returncode == 1
    assert "There is no OpenCL driver. Install" in ended.stderr
