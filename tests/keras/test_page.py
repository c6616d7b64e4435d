"""The Python of ``docs/keras.md`` runs, as a reader would type it."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "keras.md"


def test_the_python_of_the_page_runs(keras: Any) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, PAGE.name, str(PAGE), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    told: list[str] = []
    assert runner.run(session, out=told.append).failed == 0, "".join(told)
