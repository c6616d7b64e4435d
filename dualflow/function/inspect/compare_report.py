"""The result of :func:`dualflow.compare`: its measurements as a table and as a page."""

from __future__ import annotations

import os
from importlib import import_module

from dualflow.core.atomic_files import write_atomically
from dualflow.core.errors import InvalidArgumentError
from dualflow.core.report_text import escaped
from dualflow.core.tracebacks import entry
from dualflow.function.inspect.compare_table import table
from dualflow.function.inspect.measurements import Measurements


class Comparison(Measurements):
    """The measurements of a function, eager and compiled. Print it for a table."""

    __slots__ = ()

    def table(self) -> str:
        """The measurements as a table of at most 88 columns."""
        return table(self)

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def page(self, *others: Comparison) -> str:
        """The measurements as a self-contained HTML page.

        It has the timelines of both calls, time and memory, the cost before the first result, the number of
        calls after which compiling has paid, the graph after each pass with the source lines, the kernels,
        and their speed compared with the limits of this machine. Devices have their timelines and times. If
        ``others`` has a function at several sizes, the page has its times over the size.

        Args:
            others: measurements of other functions or sizes, shown on the same page.

        Returns:
            The text of the page.
        """
        text: str = import_module("dualflow.function.inspect.compare_page").page([self, *others])
        return text

    @entry
    def save(self, path: str | os.PathLike[str], *others: Comparison) -> None:
        """Write the measurements as one HTML page; see :meth:`page`. The file is written atomically.

        Args:
            path: the file; its extension is .html.
            others: measurements of other functions or sizes, shown on the same page.

        Raises:
            InvalidArgumentError: the file extension is unknown.
            OSError: the file can't be written.

        >>> import os, tempfile
        >>> import dualflow as df
        >>> report = df.compare(lambda x: df.exp(x) * 2.0, df.ones([8]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report.save(os.path.join(folder, "report.html"))
        ...     os.listdir(folder)
        ['report.html']
        """
        target = os.fspath(path)
        if not target.lower().endswith((".html", ".htm")):
            raise InvalidArgumentError(f"A comparison is saved as a page: {target!r} doesn't end with .html.")
        write_atomically(target, self.page(*others).encode())

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style does not change that of the notebook."""
        page = escaped(self.page()).replace('"', "&quot;")
        style = "width: 100%; height: 60rem; border: 0"
        title = escaped(f"comparison of {self.name}").replace('"', "&quot;")
        return f'<iframe title="{title}" style="{style}" srcdoc="{page}"></iframe>'
