"""Sphinx configuration of the site. The sources are the Markdown pages as they stand in the repository."""

from __future__ import annotations

import os
import re
from pathlib import PurePosixPath

from sphinx.application import Sphinx

from fireswarm import __version__

project = "fireswarm"
author = "the authors of fireswarm"
release = version = __version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "packages/*/README.md",
    "benchmarks/*/README.md",
]
"""The folder of the sources is that of the repository, so that each link between pages is the same on a forge."""
exclude_patterns = [".*", "node_modules", "site", "runs", "dist", "tests", "src"]
myst_heading_anchors = 4
myst_all_links_external = False
html_theme = "furo"
html_title = f"fireswarm {__version__}"
html_extra_path = ["start"]
html_copy_source = False
html_use_index = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}

INDEXES = {
    "docs/index",
    "docs/tutorials/index",
    "docs/how-to/index",
    "docs/reference/index",
    "docs/explanation/index",
    "docs/adr/README",
}
ALONE = {"README", "benchmarks/agent_tasks/README", "benchmarks/shapes/README", "benchmarks/team_tasks/README"}
"""Pages that others link to, outside of the sidebar."""

LINK = re.compile(r"\]\(([^)#\s]+\.md)\)")


def add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Append the pages that an index links to as its contents, so that the sidebar follows the links of the pages."""
    if name in ALONE:
        source[0] = f"---\norphan: true\n---\n\n{source[0]}"
    if name not in INDEXES:
        return
    folder = PurePosixPath(name).parent
    pages = [os.path.normpath(folder / link).removesuffix(".md") for link in LINK.findall(source[0])]
    if name == "docs/index":
        pages = [page for page in pages if page in INDEXES]
    entries = "\n".join(f"/{page}" for page in dict.fromkeys(pages) if page not in {name, "docs/index"})
    source[0] += f"\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def setup(app: Sphinx) -> None:
    """Connect the contents."""
    app.connect("source-read", add_contents)
