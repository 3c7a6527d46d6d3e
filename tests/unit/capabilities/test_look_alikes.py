"""``edit_file`` names characters that look like others; ``write_file`` says what it replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.capabilities.workspace.writing import replace_text, workspace_tools
from fireswarm.errors import InvalidInput

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("text", "old_text", "named"),
    [
        ("a\nprice = 5\u00a0EUR\n", "price = 5 EUR", "line 2 has U+00A0 (NO-BREAK SPACE) where old_text has a space"),
        ('x = "a"\n', "x = \u201ca\u201d", 'line 1 has " where old_text has U+201C (LEFT DOUBLE QUOTATION MARK)'),
        ("n\n\nit\u2019s\n", "it's", "line 3 has U+2019 (RIGHT SINGLE QUOTATION MARK) where old_text has '"),
        ("1 \u2212 2", "1 - 2", "line 1 has U+2212 (MINUS SIGN) where old_text has -"),
        ("s\u0441ope", "scope", "line 1 has U+0441 (CYRILLIC SMALL LETTER ES) where old_text has c"),
        ("zero\u200bwidth", "zerowidth", "line 1 has U+200B (ZERO WIDTH SPACE), which is invisible"),
        ("zerowidth", "zero\u200bwidth", "old_text has U+200B (ZERO WIDTH SPACE), which is invisible"),
        ("\uff21\uff22", "AB", "line 1 has U+FF21 (FULLWIDTH LATIN CAPITAL LETTER A) where old_text has A"),
    ],
)
def test_look_alike_is_named_with_its_line(text: str, old_text: str, named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        replace_text(text, old_text, "x")
    assert named in str(refused.value)


async def test_replaced_file_is_named_with_its_size_and_its_lines(tmp_path: Path) -> None:
    tool = workspace_tools(tmp_path)["write_file"]
    assert await tool.run({"path": "a.txt", "content": "one\n"}) == "wrote a.txt: 1 line"
    assert await tool.run({"path": "a.txt", "content": "one\n"}) == "wrote a.txt: 1 line"
    told = await tool.run({"path": "a.txt", "content": "two\n"})
    assert str(told).startswith("wrote a.txt: 1 line, in place of 1 line (4 bytes) that the file had\n")
    assert "-one\n+two" in str(told)
