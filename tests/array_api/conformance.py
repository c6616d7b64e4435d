"""The public conformance suite of the Array API, for dualflow and for NumPy: the counts of docs/array_api.md.

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests
    python -m pip install -r array-api-tests/requirements.txt
    python tests/array_api/conformance.py array-api-tests --max-examples 20

prints a table in Markdown, and the checks that fail. The exit status is 1 where dualflow passes fewer checks
than NumPy.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree

VERSION = "2024.12"
MODULES = ("dualflow.array_api", "numpy")
SKIPPED = "skipped"
Results = dict[str, str]
"""Each check, ``file::name``, and how it ended: passed, failed or skipped."""


def results(suite: Path, module: str, examples: int) -> Results:
    """How the checks of the suite end for a module, each time on the same examples."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "array_api_tests", "--tb=no", f"--junitxml={report}"]
        command += [f"--max-examples={examples}", "--disable-deadline", "--derandomize"]
        chosen = os.environ | {"ARRAY_API_TESTS_MODULE": module, "ARRAY_API_TESTS_VERSION": VERSION}
        ended = subprocess.run(command, cwd=suite, env=chosen, capture_output=True, text=True, check=False)
        if not report.exists():
            sys.exit(f"The suite did not run on {module}:\n{ended.stdout}{ended.stderr}")
        return {
            f"{case.get('classname', '').split('.')[1]}::{case.get('name')}": outcome(case)
            for case in ElementTree.parse(report).getroot().iter("testcase")
        }


def outcome(case: ElementTree.Element) -> str:
    tags = {child.tag for child in case}
    return "failed" if tags & {"failure", "error"} else SKIPPED if SKIPPED in tags else "passed"


def table(columns: dict[str, Results]) -> str:
    """The numbers of passes by file, a column for each module, in Markdown."""
    passes = {
        module: Counter(name.split("::")[0] for name, how in ends.items() if how == "passed")
        for module, ends in columns.items()
    }
    checks = Counter(name.split("::")[0] for name in columns[MODULES[0]])
    lines = ["| checks | number | " + " | ".join(MODULES) + " |", "| :--- " + "| ---: " * 3 + "|"]
    for file in sorted(checks):
        row = [str(checks[file]), *[str(passes[module][file]) for module in MODULES]]
        lines.append(f"| {file.removeprefix('test_').replace('_', ' ')} | " + " | ".join(row) + " |")
    total = [str(checks.total()), *[str(passes[module].total()) for module in MODULES]]
    return "\n".join([*lines, "| **all** | " + " | ".join(f"**{count}**" for count in total) + " |"])


def failures(ends: Results) -> str:
    by_function = defaultdict(list)
    for name, how in ends.items():
        if how == "failed":
            by_function[name.split("[")[0]].append(name)
    return "\n".join(f"- {function}: {len(names)}" for function, names in sorted(by_function.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suite", type=Path, help="the folder of the suite")
    parser.add_argument("--max-examples", type=int, default=20, help="examples for each check")
    options = parser.parse_args()
    tables = {module: results(options.suite, module, options.max_examples) for module in MODULES}
    print(table(tables))
    for module, ends in tables.items():
        print(f"\nFailing with {module}:\n\n{failures(ends)}")
    ours, numpys = (Counter(tables[module].values())["passed"] for module in MODULES)
    return int(ours < numpys)


if __name__ == "__main__":
    sys.exit(main())
