"""The build of the site is strict, and its check finds what would need a network."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tools import site

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small source with the configuration of the site."""
    folder = tmp_path / "source"
    (folder / "docs" / "start").mkdir(parents=True)
    shutil.copy2(ROOT / "docs" / "conf.py", folder / "docs" / "conf.py")
    shutil.copy2(ROOT / "docs" / "start" / "index.html", folder / "docs" / "start" / "index.html")
    (folder / "docs" / "index.md").write_text("# First\n\n[The lease](page.md#renewing)\n")
    (folder / "docs" / "page.md").write_text("# Page\n\n## Renewing\n\nA lease is renewed.\n")
    (folder / "docs" / "tutorials").mkdir()
    (folder / "docs" / "tutorials" / "index.md").write_text("# Tutorials\n\n[Page](../page.md)\n")
    (folder / "docs" / "index.md").write_text(
        "# First\n\n[The lease](page.md#renewing), [tutorials](tutorials/index.md)\n"
    )
    return folder


def test_pages_are_built_searchable_and_linked(source: Path, tmp_path: Path) -> None:
    assert site.build(source, tmp_path / "site") == 0
    assert site.searchable(tmp_path / "site") == {"docs/index", "docs/page", "docs/tutorials/index"}
    first = (tmp_path / "site" / "docs" / "index.html").read_text()
    assert 'href="page.html#renewing"' in first
    assert 'href="tutorials/index.html"' in first
    assert list(site.remote_loads(tmp_path / "site")) == []


@pytest.mark.parametrize(
    "fault", ["[gone](gone.md)", "[no heading](page.md#nowhere)", "```nolanguage\nx\n```", "![no picture](none.svg)"]
)
def test_a_fault_of_a_page_fails_the_build(source: Path, tmp_path: Path, fault: str) -> None:
    with (source / "docs" / "page.md").open("a") as page:
        page.write(f"\n{fault}\n")
    assert site.build(source, tmp_path / "site") != 0


def test_a_page_that_no_index_links_to_fails_the_build(source: Path, tmp_path: Path) -> None:
    (source / "docs" / "lost.md").write_text("# Lost\n")
    assert site.build(source, tmp_path / "site") != 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script defer src="https://cdn.example/x.js"></script>'),
        ("a.html", "<link rel='stylesheet' href='//fonts.example/css'>"),
        ("a.css", "@import url(https://fonts.example/css);"),
        ("a.css", "body { background: url('https://example.org/a.png') }"),
    ],
)
def test_what_a_page_loads_from_another_host_is_found(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert len(list(site.remote_loads(tmp_path))) == 1


def test_a_link_to_another_host_is_no_load(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://example.org">there</a><script src="own.js"></script>')
    assert list(site.remote_loads(tmp_path)) == []
