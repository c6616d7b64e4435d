"""What the documents show runs: their Python, as a reader would type it; and the README's two commands."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^([ ]*)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of one language in a document of the project's root."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return [textwrap.dedent(found[3]) for found in FENCE.finditer(text) if found[2] == language]


def as_session(block: str) -> str:
    """A block as an interactive session: statements without prompts are given them, output may have gaps."""
    if ">>>" in block:
        return re.sub(r"\n\n(?!>>>|$)", "\n<BLANKLINE>\n", block.rstrip())
    lines = block.splitlines()
    typed = []
    for statement in ast.parse(block).body:
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        source = lines[first - 1 : statement.end_lineno]
        typed.append("\n".join([f">>> {source[0]}", *(f"... {line}" for line in source[1:])]))
    return "\n".join(typed)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "docs/array_api.md"])
def test_the_python_of_a_document_runs(document: str, tmp_path: Path) -> None:
    session = "\n\n".join(map(as_session, blocks(document, "python")))
    assert ">>>" in session
    script = tmp_path / f"{Path(document).stem}.txt"
    script.write_text(session, encoding="utf-8")
    command = [sys.executable, "-m", "doctest", "-o", "ELLIPSIS", "-o", "NORMALIZE_WHITESPACE", str(script)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_opens_with_two_commands_of_one_line() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shell = [found for found in FENCE.finditer(text) if found[2] == "sh"]
    train, test = (found[3].strip() for found in shell[:2])
    assert "\n" not in train
    assert "\n" not in test
    assert train.endswith("examples/train_digits.py")
    assert test.endswith("-m pytest")
    assert len(text[: shell[0].start()].split()) < 120, "what it is comes in a few sentences"
    for command in (train, test):
        assert command.startswith("python3 -m venv"), "nothing is assumed to be installed"


def test_what_the_documents_name_exists() -> None:
    for document in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        paths = re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|ll|md))?)`", text)
        assert paths
        missing = [p for p in paths if not (ROOT / p).exists() and not (ROOT / "dualflow" / p).exists()]
        assert missing == [], document


@pytest.mark.parametrize("document", sorted(path.name for path in ROOT.glob("*.md")))
def test_nothing_in_a_document_waits_to_be_filled_in(document: str) -> None:
    assert not re.findall(r"@[A-Z]+@|\bTODO\b|\bTBD\b|<<<<<<<", (ROOT / document).read_text(encoding="utf-8"))
