"""The documentation site: it builds without a warning, its links lead somewhere, and it needs no network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from inspect import isroutine
from pathlib import Path
from urllib.parse import unquote

import pytest
from api_reference import namespace_pages, namespaces
from chromium import Page, chromium
from client_table import CLIENTS, clients_page
from error_index import error_classes, error_page, raised_messages
from forked_kernels import forked_kernels
from required_tools import require_installed

ROOT = Path(__file__).parents[1]


class Links(HTMLParser):
    """The anchors of a page, the files and anchors that it links, and the files that it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") == "stylesheet":
            self.loaded.append(values["href"])
        elif "src" in values:
            self.loaded.append(values["src"])


@cache
def links_of(path: Path) -> Links:
    return Links(path.read_text(encoding="utf-8"))


def is_elsewhere(link: str) -> bool:
    """Whether a link leaves the site."""
    return re.match(r"(https?|mailto|data):", link) is not None


def is_broken(page: Path, link: str) -> bool:
    """Whether a link of a page leads to no file of the site, or to no anchor of it."""
    path, _, anchor = link.partition("#")
    file = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
    return not file.is_file() or (anchor != "" and unquote(anchor) not in links_of(file).anchors)


# What is generated from the code


def test_the_api_reference_has_each_function_and_class_of_each_namespace() -> None:
    pages = namespace_pages()
    described = set(
        re.findall(r"^\.\. auto(?:function|class):: (\S+)$", "\n".join(pages.values()), re.MULTILINE)
    )
    missing = []
    for name, namespace in namespaces().items():
        if name not in pages and name.startswith("dualflow.compat."):
            continue  # all of its names are described in other namespaces
        linked = set(re.findall(r"`(\w+) <", pages[name]))
        for member in dir(namespace):
            value = getattr(namespace, member)
            if isinstance(value, type) or isroutine(value):
                missing += [] if member in linked or f"{name}.{member}" in described else [f"{name}.{member}"]
    assert missing == []


def test_the_api_reference_describes_a_name_once() -> None:
    text = "\n".join(namespace_pages().values())
    assert text.count(":: dualflow.abs\n") == 1
    assert ":: dualflow.math.abs\n" not in text
    assert ":py:obj:`abs <dualflow.abs>`" in text


def test_the_api_reference_has_the_names_of_tensorflow_1() -> None:
    pages = namespace_pages()
    assert ".. autofunction:: dualflow.compat.v1.placeholder\n" in pages["dualflow.compat.v1"]
    assert ".. autofunction:: dualflow.compat.v1.layers.dense\n" in pages["dualflow.compat.v1.layers"]
    assert "dualflow.compat.v1.version" not in pages


def test_the_page_of_clients_has_each_client_and_each_known_failure() -> None:
    page = clients_page()
    for name, client in CLIENTS.items():
        assert re.search(rf"^\| {name} \| [\d.]+ \| .* \| {client.floor:,} \| [\d,]* \|$", page, re.MULTILINE)
    failures = (ROOT / "tests" / "clients" / "known_failures.txt").read_text(encoding="utf-8").splitlines()
    items = page.partition("## Tests that fail")[2].count("\n* ")
    assert items == len([line for line in failures if line and not line.startswith("#")])


def test_the_error_index_has_each_class_and_its_messages() -> None:
    page = error_page()
    assert [name for name in error_classes() if f"\n## {name}\n" not in page] == []
    assert {"InvalidArgumentError", "NotNativeError", "RetracingWarning"} <= set(error_classes())
    assert "`An axis is an integer, such as 0 or -1, not ….`" in page
    assert sum(map(len, raised_messages().values())) > 1000


# Notebooks


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/notebooks/*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_listed_has_a_title_and_no_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert "".join(cells[0]["source"]).startswith("# ")
    assert [cell["outputs"] for cell in code if cell["outputs"] or cell["execution_count"]] == []
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").splitlines()
    assert f"../examples/notebooks/{path.stem}" in index


# The site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, for which its notebooks were executed."""
    for module in ("sphinx", "furo", "myst_nb", "sphinx_copybutton", "keras", "sklearn"):
        require_installed(module)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-c", "docs", "."]
    command.append(str(folder))
    with forked_kernels() as env:
        built = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Page]:
    with chromium(tmp_path / "profile") as page:
        yield page


@pytest.mark.exhaustive
def test_links_of_the_site_lead_somewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 100
    links = [(page, link) for page in pages for link in links_of(page).links if not is_elsewhere(link)]
    assert [(page.name, link) for page, link in links if is_broken(page, link)] == []


@pytest.mark.exhaustive
def test_pages_load_only_files_of_the_site(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = links_of(page).loaded
        assert [file for file in loaded if not file.startswith("data:") and is_broken(page, file)] == []


@pytest.mark.exhaustive
def test_the_first_page_leads_to_the_index(site: Path, browser: Page) -> None:
    assert links_of(site / "index.html").links == ["docs/index.html"]
    browser.open(site / "docs" / "index.html")
    assert browser.value("document.querySelector('h1').textContent").startswith("dualflow")
    assert browser.errors == []


RESULTS = """new Promise((done) => {
    const look = () => {
        if (!document.querySelector("#search-results").textContent.includes("Search finished"))
            return requestAnimationFrame(look)
        const links = document.querySelectorAll("ul.search li > a")
        done([...links].map((link) => link.getAttribute("href")))
    }
    look()
})"""
"""The links of the search's results, as soon as the search has ended."""


@pytest.mark.exhaustive
def test_the_search_works_on_files_alone(site: Path, browser: Page) -> None:
    browser.open(site / "search.html", "?q=collatz")
    pages = [re.split("[?#]", link)[0] for link in browser.value(RESULTS)]
    assert "docs/control_flow.html" in pages
    assert browser.errors == []
