"""dualflow runs out of a zip archive, as Python's other packages do."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import dualflow

PACKAGE = Path(dualflow.__file__).parent

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import dualflow as df

@df.function
def grown(x):
    while df.reduce_sum(x) < 100.0:
        x = x * 2.0
    return df.matmul(df.nn.softmax(x), df.ones([3, 2]))

v = df.Variable(df.zeros([2, 2]))
step = df.function(lambda x: v.assign_add(grown(x)))
for _ in range(3):
    step(df.ones([2, 3]))
print(json.dumps([df.__file__.startswith(sys.argv[1]), v.numpy().tolist(), grown.status()]))
"""


def test_it_runs_out_of_a_zip_archive(tmp_path: Path, answer: Any) -> None:
    archive = tmp_path / "dualflow.zip"
    with zipfile.ZipFile(archive, "w") as target:
        for path in sorted(PACKAGE.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                target.write(path, path.relative_to(PACKAGE.parent))
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    runner = "import runpy, sys; del sys.path[0]; runpy.run_path(sys.argv[2])"
    from_zip, value, status = answer(runner, str(archive), str(tmp_path / "program.py"), PYTHONPATH="")
    assert from_zip
    assert value == [[3.0, 3.0], [3.0, 3.0]]
    assert "native: " in status
