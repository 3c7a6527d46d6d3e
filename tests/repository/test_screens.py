"""The pictures of the documents show what the commands print."""

from __future__ import annotations

import html
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tools import screens

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudoterminal")


def words_of(svg: str) -> set[str]:
    """The words of a picture, whatever the lines that they are on."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return set(html.unescape(" ".join(texts)).replace("\xa0", " ").split())


def test_pictures_of_the_agent_are_what_it_prints() -> None:
    for path, content in screens.pictures(["run", "continue", "chat"]):
        assert path.read_text(encoding="utf-8") == content, f"run `python -m tools.screens`: {path.name} differs"


@pytest.mark.parametrize("width", screens.WIDTHS)
def test_picture_of_the_demo_has_the_words_that_it_prints(width: int, tmp_path: Path) -> None:
    printed = screens.screen("demo", width, tmp_path)
    assert "+    return float" in printed
    drawn = screens.draw(printed, width, "swarm demo")
    assert words_of((screens.SCREENS / f"demo-{width}.svg").read_text(encoding="utf-8")) == words_of(drawn)


@pytest.mark.parametrize("path", sorted(screens.SCREENS.glob("*.svg")), ids=lambda path: path.name)
def test_picture_is_well_formed_and_fetches_nothing(path: Path) -> None:
    content = path.read_text(encoding="utf-8")
    ET.fromstring(content)
    fetched = re.sub(r"(<text\b[^>]*>)[^<]*", r"\1", content)  # an address that is printed is not fetched
    assert set(re.findall(r"https?://[^\s\"<)]+", fetched)) <= {
        "http://www.w3.org/2000/svg",
        "https://www.textualize.io",
    }
    assert "@import" not in content and "<script" not in content
    assert "/tmp" not in content and "/root" not in content and "/home/" not in content
