"""``edit_file`` when the passage is not in the file, or is not changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.capabilities.workspace.writing import replace_text, workspace_tools
from fireswarm.errors import InvalidInput

pytestmark = pytest.mark.anyio

CODE = "import os\n\nclass Alpha:\n    def go(self):\n        return self.value\n\nALPHA = 1\nalpha = 2\n"


@pytest.mark.parametrize(
    ("old_text", "nearest"),
    [
        ("CLASS ALPHA:", "     3\tclass Alpha:"),
        ("CLASS ALPHA:\n    def go(self):", "     3\tclass Alpha:\n     4\t    def go(self):"),
        ("class Alpha:\n    DEF GO(SELF):", "     3\tclass Alpha:\n     4\t    def go(self):"),
        (
            "    DEF GO(SELF):\n        RETURN SELF.VALUE",
            "     4\t    def go(self):\n     5\t        return self.value",
        ),
        ("alpha = 3", "     8\talpha = 2"),
        ("ALPHA = 3", "     7\tALPHA = 1"),
    ],
)
def test_nearest_passage_is_found_whatever_the_case(old_text: str, nearest: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        replace_text(CODE, old_text, "x")
    assert str(refused.value) == f"old_text was not found.\nThe nearest passage is:\n{nearest}"


def test_passage_that_resembles_nothing_gets_no_nearest_one() -> None:
    with pytest.raises(InvalidInput, match="^old_text was not found$"):
        replace_text(CODE, "while 77 > 55", "x")


@pytest.mark.parametrize("more", [{}, {"replace_all": True}])
async def test_edit_that_changes_nothing_is_refused(more: dict[str, bool], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\none\r\n")
    tool = workspace_tools(tmp_path)["edit_file"]
    assert tool.preview is not None
    for text in ("one", "one\ntwo"):
        given = {"path": "a.txt", "old_text": text, "new_text": text, **more}
        for call in (tool.run, tool.preview):
            with pytest.raises(InvalidInput, match="are the same: nothing would change"):
                await call(given)


async def test_edit_that_removes_only_hidden_characters_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\x1b[1mb\n")
    await workspace_tools(tmp_path)["edit_file"].run({"path": "a.txt", "old_text": "ab", "new_text": "ab"})
    assert (tmp_path / "a.txt").read_bytes() == b"ab\n"
