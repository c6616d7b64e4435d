"""Pages: their Python runs as a reader would type it, what they name exists, and they are short."""

from __future__ import annotations

import ast
import os
import re
import textwrap
from pathlib import Path

import pytest
from forked_programs import run_forked

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "dualflow", ROOT / "keras_dualflow")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *(p for r in PACKAGES for p in r.rglob("*.md"))])
FENCE = re.compile(r"^([ ]*)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"")


def name_of(page: Path) -> str:
    """The path of a page from the project's root."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language in a page."""
    text = page.read_text(encoding="utf-8")
    return [textwrap.dedent(match[3]) for match in FENCE.finditer(text) if match[2] == language]


def is_of_a_package(page: Path) -> bool:
    """Whether a page is in the folder of a package."""
    return any(root in page.parents for root in PACKAGES)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub derives them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


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


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    session = "\n\n".join(map(as_session, blocks(page, "python")))
    assert ">>>" in session
    script = tmp_path / f"{page.stem}.txt"
    script.write_text(session, encoding="utf-8")
    words = ["-m", "doctest", "-o", "ELLIPSIS", "-o", "NORMALIZE_WHITESPACE", str(script)]
    done = run_forked(words, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_opens_with_two_commands_of_one_line() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shell = [match for match in FENCE.finditer(text) if match[2] == "sh"]
    train, test = (match[3].strip() for match in shell)
    assert "\n" not in train
    assert "\n" not in test
    assert train.endswith("examples/train_digits.py")
    assert test.endswith("-m pytest")
    assert len(text[: shell[0].start()].split()) < 120, "what it is comes in a few sentences"
    for command in (train, test):
        assert command.startswith("python3 -m venv"), "nothing is assumed to be installed"


@pytest.mark.parametrize(("name", "most"), [("README.md", 150), ("ARCHITECTURE.md", 150)])
def test_a_page_that_is_read_first_is_short(name: str, most: int) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= most


@pytest.mark.parametrize("page", [page for page in PAGES if is_of_a_package(page)], ids=name_of)
def test_the_page_of_a_package_is_short_and_names_files_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    files = re.findall(r"`([\w/]+\.(?:py|ll))`", text)
    folders = (page.parent, ROOT / "dualflow", ROOT)
    assert [file for file in files if not any((folder / file).is_file() for folder in folders)] == []


def test_each_large_package_has_a_page() -> None:
    folders = [ROOT / "keras_dualflow", *(ROOT / "dualflow").iterdir()]
    large = [folder for folder in folders if len(list(folder.glob("*.py"))) > 4]
    assert [name_of(folder) for folder in large if not (folder / "README.md").exists()] == []


def test_the_glossary_is_short() -> None:
    terms = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("## Terms")[2].partition("\n## ")[0]
    assert 1 < len(re.findall(r"^\| (?!term|:)", terms, re.MULTILINE)) <= 20


def test_the_architecture_links_the_page_of_each_package() -> None:
    linked = {target for target, _ in LINK.findall((ROOT / "ARCHITECTURE.md").read_text("utf-8"))}
    assert {name_of(page) for page in PAGES if is_of_a_package(page)} <= linked


def test_the_index_of_the_site_lists_each_page() -> None:
    listed = re.findall(r"^(\w+)$", (ROOT / "docs" / "index.md").read_text("utf-8"), re.MULTILINE)
    assert {page.stem for page in ROOT.glob("docs/*.md")} == {*listed, "index"}


def test_the_picture_in_the_readme_is_of_its_example() -> None:
    picture = (ROOT / "docs" / "step.png").read_bytes()
    example = blocks(ROOT / "README.md", "python")[0].encode()
    assert example in picture, "run python tests/harness/readme_picture.py"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for target in (link or image for link, image in LINK.findall(text)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.is_file() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_on_pages_exist(page: Path) -> None:
    paths = re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|ll|md))?)`", page.read_text(encoding="utf-8"))
    folders = (ROOT, ROOT / "dualflow", page.parent)
    assert [path for path in paths if not any((folder / path).exists() for folder in folders)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_nothing_in_a_page_waits_to_be_filled_in(page: Path) -> None:
    assert not re.findall(r"@[A-Z]+@|\bTODO\b|\bTBD\b|<<<<<<<", page.read_text(encoding="utf-8"))
