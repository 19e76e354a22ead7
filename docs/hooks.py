"""What mkdocs does besides: links that leave docs/ become names, and KaTeX is put into the site.

gradio's wheel carries KaTeX (script, styles, fonts): the script as a module, which no browser loads from a
file, the styles for gradio's own pages alone. Here they become a plain script and styles for any page.
"""

from __future__ import annotations

import re
from importlib.metadata import files
from pathlib import Path
from typing import Any

SCOPE = re.compile(r"\.gradio-container[\w-]* ")
EXPORT = re.compile(r"export\s*\{\s*(\w+) as default\s*\};?\s*$")


LEAVING = re.compile(r"\[`?([^]`]+)`?\]\(\.\./[^)]+\)")
NOTEBOOK = re.compile(r"\(\.\./(notebooks/[\w-]+)\.py\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A notebook has a page on the site; of any other file outside docs/ the name will do."""
    return re.sub(LEAVING, r"`\1`", re.sub(NOTEBOOK, r"(\1.md)", markdown))


def on_post_build(config: Any) -> None:
    """Write site/katex/."""
    place = Path(config["site_dir"]) / "katex"
    place.mkdir(parents=True, exist_ok=True)
    script, export = re.subn(
        EXPORT, r"window.katex = \1;", carried("katex-*.js")[0].read_text(encoding="utf-8")
    )
    if export != 1 or re.search(r"\bimport\b\s*[\w{*\"'(]", script):
        raise RuntimeError("gradio's KaTeX is no longer one module with a default export")
    (place / "katex.js").write_text(f"(() => {{{script}}})();\n", encoding="utf-8")
    (place / "katex.css").write_text(
        re.sub(SCOPE, "", carried("katex-*.css")[0].read_text(encoding="utf-8")), encoding="utf-8"
    )
    for font in carried("KaTeX_*.woff2"):
        (place / font.name).write_bytes(font.read_bytes())


def carried(pattern: str) -> list[Path]:
    """Files of gradio's pages."""
    found = [
        Path(str(file.locate()))
        for file in files("gradio") or []
        if file.match(f"gradio/templates/frontend/assets/{pattern}")
    ]
    if not found:
        raise RuntimeError(f"gradio no longer carries {pattern}")
    return found
