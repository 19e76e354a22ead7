"""Pages of notebooks/*.py: each is executed, and its text, code, outputs and pictures become a page.

jupytext reads the file, nbclient executes it in a process of its own, nbconvert writes Markdown. An error in
a cell ends the build.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jupytext
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))

# Pictures are sharp and their words large enough for a telephone. Kernels would warn of plain text.
KERNEL = ["--InlineBackend.rc={'figure.dpi': 160, 'font.size': 12}", "--IPKernelApp.log_level=ERROR"]

# nbconvert's own Markdown, with outputs that differ from code, and words in place of a picture for those who
# hear the page. What goes to stderr is about the machine: a font cache, progress.
TEMPLATE = """
{%- extends 'markdown/index.md.j2' -%}
{% block stream %}{% if output.name == "stdout" %}
``` { .text .notebook-output .no-copy }
{{ output.text }}```
{% endif %}{% endblock %}
{% block data_png %}
![{{ cell.metadata.alt }}]({{ output.metadata.filenames['image/png'] | path2url }})
{% endblock %}
"""


def on_files(files: Files, config: Any) -> Files:
    """Add the page and the pictures of every notebook."""
    for path in NOTEBOOKS:
        for name, content in executed(path.stem, path.read_text(encoding="utf-8")).items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


@cache  # `mkdocs serve` builds again after every change of a page
def executed(name: str, text: str) -> dict[str, str | bytes]:
    """Execute a notebook; return the files that it makes on the site, by name."""
    notebook = jupytext.reads(text, fmt="py:percent")
    with tempfile.TemporaryDirectory() as place:
        here = {"metadata": {"path": place}}
        NotebookClient(
            notebook, timeout=1200, extra_arguments=KERNEL, coalesce_streams=True, resources=here
        ).execute()
    body, made = MarkdownExporter(raw_template=TEMPLATE).from_notebook_node(notebook, {"unique_key": name})
    return {f"{name}.md": body, **made["outputs"]}
