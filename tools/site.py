"""Build the site of the documents into ``site/``, and check that it works offline.

Warnings are errors: a link without a target, a page outside of the contents, an unknown language. Then no page may load
a script, style, font or picture from another host, and the search index has to name every page.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "site"
REMOTE = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["'](?:https?:)?//[^"']+"""
    r"""|<link\b[^>]*\bhref=["'](?:https?:)?//[^"']+"""
    r"""|@import\s+(?:url\()?["']?(?:https?:)?//[^"')]+"""
    r"""|url\(["']?(?:https?:)?//[^"')]+""",
    re.IGNORECASE,
)
INDEX = re.compile(r"^Search\.setIndex\((.*)\)$", re.DOTALL)


def build(source: Path, site: Path) -> int:
    """Build the pages of *source* strictly into *site*, and return Sphinx's exit code."""
    options = ["-b", "html", "--fail-on-warning", "--keep-going", "--nitpicky", "--fresh-env", "--quiet"]
    command = [sys.executable, "-m", "sphinx", *options, "-c", str(source / "docs"), str(source), str(site)]
    return subprocess.run(command, cwd=source, check=False).returncode


def remote_loads(site: Path) -> Iterator[str]:
    """Yield what the pages and styles of *site* load from other hosts."""
    for path in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        for found in REMOTE.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: {found}"


def searchable(site: Path) -> set[str]:
    """Return the names of the pages in the search index of *site*."""
    found = INDEX.match((site / "searchindex.js").read_text(encoding="utf-8").strip())
    if found is None:
        raise ValueError("searchindex.js has another form than expected")
    return set(json.loads(found[1])["docnames"])


def main() -> int:
    """Build and check the site, print its size, and return the exit code."""
    began = time.monotonic()
    if code := build(ROOT, SITE):
        return code
    faults = list(remote_loads(SITE))
    pages = searchable(SITE)
    written = {page.relative_to(SITE).with_suffix("").as_posix() for page in SITE.rglob("*.html")}
    faults += [f"{page}: not in the search index" for page in sorted(written - pages - {"index", "search"})]
    for fault in faults:
        print(fault)
    print(f"site/index.html: {len(pages)} pages in {time.monotonic() - began:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
