"""A model reads placeholders in place of secrets; what it writes to that file gets the secrets again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace.reading import MAX_MATCHES
from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.errors import InvalidInput
from fireswarm.redaction import REDACTED, FileSecrets, Redactor, sanitize, tag_secret

pytestmark = pytest.mark.anyio

KNOWN = "4f8e" * 5
FIRST, SECOND = "Zk3" + "vQ9" * 5, "Wm7" + "tR2" * 5
BODY = [f"MII{number}" + "aB3dE5" * 9 for number in range(4)]
KEY = "\n".join([f"-----BEGIN {'RSA'} PRIVATE KEY-----", *BODY, "-----END RSA PRIVATE KEY-----"])
SETTINGS = f"""# settings
DB_PASSWORD={FIRST}
PORT=5432
api_key: "{SECOND}"
url = https://me:{FIRST}@host/db
mark = {KNOWN}
"""


async def call(folder: Path, name: str, **given: Any) -> str:
    tools = workspace_tools(folder, folder / "out", redact=Redactor([KNOWN]))
    return str(await tools[name].run(given))


async def shown(folder: Path, name: str = ".env") -> str:
    """Return a file as a model reads it, without the numbers of its lines."""
    page = sanitize(await call(folder, "read_file", path=name))
    return re.sub(r"(?m)^ *\d+\t", "", page) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / ".env").write_text(SETTINGS)
    return tmp_path


async def test_a_file_that_is_written_back_as_it_was_read_keeps_its_secrets(folder: Path) -> None:
    text = await shown(folder)
    assert not any(secret in text for secret in (FIRST, SECOND, KNOWN))
    await call(folder, "write_file", path=".env", content=text.replace("5432", "5433"))
    assert (folder / ".env").read_text() == SETTINGS.replace("5432", "5433")


async def test_lines_that_move_and_change_keep_their_own_secrets(folder: Path) -> None:
    lines = (await shown(folder)).splitlines()
    changed = [f"export {line}" for line in reversed(lines)]
    await call(folder, "write_file", path=".env", content="\n".join(changed))
    assert (folder / ".env").read_text() == "\n".join(f"export {line}" for line in reversed(SETTINGS.splitlines()))


async def test_removing_one_secret_does_not_shift_the_others(folder: Path) -> None:
    text = await shown(folder)
    rest = [line for line in text.splitlines() if not line.startswith("DB_PASSWORD")]
    await call(folder, "write_file", path=".env", content="\n".join(rest))
    await call(folder, "write_file", path=".env", content="\n".join(rest))
    kept = [line for line in SETTINGS.splitlines() if not line.startswith("DB_PASSWORD")]
    assert (folder / ".env").read_text() == "\n".join(kept)


async def test_an_edit_whose_passage_spans_a_placeholder_works(folder: Path) -> None:
    text = await shown(folder)
    old = text[text.index("DB_PASSWORD") : text.index("api_key")]
    await call(folder, "edit_file", path=".env", old_text=old, new_text=f"export {old.replace('5432', '1')}")
    expected = SETTINGS.replace("DB_PASSWORD", "export DB_PASSWORD").replace("5432", "1")
    assert (folder / ".env").read_text() == expected


async def test_a_placeholder_without_a_tag_is_known_by_its_line(folder: Path) -> None:
    """A command's output, and the transcript of a process that has ended, have no tags of this one."""
    plain = Redactor([KNOWN]).text(SETTINGS)
    await call(folder, "write_file", path=".env", content=plain.replace("5432", "1"))
    assert (folder / ".env").read_text() == SETTINGS.replace("5432", "1")
    foreign = plain.replace(REDACTED, "[redacted:aaaa]")
    await call(
        folder, "edit_file", path=".env", old_text=foreign.splitlines()[1], new_text=f"A=1\n{foreign.splitlines()[1]}"
    )
    assert (folder / ".env").read_text() == SETTINGS.replace("DB_P", "A=1\nDB_P").replace("5432", "1")


@pytest.mark.parametrize("placeholder", [REDACTED, "[redacted:aaaa]"])
@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
async def test_a_placeholder_that_nothing_explains_does_not_replace_a_secret(
    folder: Path, tool: str, placeholder: str
) -> None:
    given = {"content": f"export DB_PASSWORD={placeholder}\n"}
    if tool == "edit_file":
        old = (await shown(folder)).splitlines()[1]
        given = {"old_text": old, "new_text": f"PASSWORD={placeholder}"}
    with pytest.raises(InvalidInput, match="nothing was written"):
        await call(folder, tool, path=".env", **given)
    preview = workspace_tools(folder, redact=Redactor([KNOWN]))[tool].preview
    assert preview is not None
    with pytest.raises(InvalidInput, match="nothing was written"):
        await preview({"path": ".env", **given})
    assert (folder / ".env").read_text() == SETTINGS


async def test_lines_that_differ_in_their_secret_only_need_their_tags(folder: Path) -> None:
    both = f"[a]\npassword={FIRST}\n[b]\npassword={SECOND}\n"
    (folder / "two.ini").write_text(both)
    with pytest.raises(InvalidInput, match="nothing was written"):
        await call(folder, "write_file", path="two.ini", content=Redactor().text(both).replace("[a]", "[c]"))
    text = await shown(folder, "two.ini")
    await call(folder, "write_file", path="two.ini", content=text.replace("[a]", "[c]"))
    assert (folder / "two.ini").read_text() == both.replace("[a]", "[c]")


@pytest.mark.parametrize("target", ["copy.env", "out/copy.env", "other.env", "log.txt"])
async def test_a_secret_is_not_copied_to_another_file(folder: Path, target: str) -> None:
    (folder / "other.env").write_text(f"DB_PASSWORD={SECOND[::-1]}\n")
    (folder / "log.txt").write_text("nothing\n")
    before = (folder / target).read_text() if (folder / target).exists() else ""
    try:
        said = await call(folder, "write_file", path=target, content=await shown(folder))
    except InvalidInput:
        assert (folder / target).read_text() == before
    else:
        assert "written as text" in said
    assert not any(secret in (folder / target).read_text() for secret in (FIRST, SECOND, KNOWN))


async def test_a_key_of_many_lines_is_put_back_line_by_line(folder: Path) -> None:
    text = f"before\n{KEY}\nafter\n"
    (folder / "key.pem").write_text(text)
    read = await shown(folder, "key.pem")
    assert read.count("\n") == text.count("\n")
    await call(folder, "write_file", path="key.pem", content=read.replace("after", "behind"))
    assert (folder / "key.pem").read_text() == text.replace("after", "behind")
    old = "\n".join((await shown(folder, "key.pem")).splitlines()[2:8])
    await call(folder, "edit_file", path="key.pem", old_text=old, new_text=old.replace("behind", "end"))
    assert (folder / "key.pem").read_text() == text.replace("after", "end")


async def test_a_page_and_a_search_within_a_key_show_nothing_of_it(folder: Path) -> None:
    (folder / "key.pem").write_text(f"before\n{KEY}\nafter\n")
    pages = [
        await call(folder, "read_file", path="key.pem", offset=4, limit=2),
        await call(folder, "search_files", pattern="aB3|after", context=3),
        await call(folder, "search_files", pattern="MII1"),
    ]
    for number in (1, 2):
        change = {"path": "key.pem", "old_text": "before" * number, "new_text": "before" * (number + 1)}
        preview = workspace_tools(folder)["edit_file"].preview
        assert preview is not None
        pages += [str(await preview(change)), await call(folder, "edit_file", **change)]
    assert not any("aB3dE5" in page for page in pages)
    assert "[no matches]" in pages[2]


async def test_a_search_does_not_tell_how_a_secret_begins(folder: Path) -> None:
    hit = await call(folder, "search_files", pattern=f"DB_PASSWORD={FIRST[:3]}")
    miss = await call(folder, "search_files", pattern="DB_PASSWORD=xyz")
    assert hit == miss
    assert "PASSWORD=[redacted:" in await call(folder, "search_files", pattern="DB_PASSWORD")


async def test_a_text_about_placeholders_can_be_edited(folder: Path) -> None:
    (folder / "doc.md").write_text("It prints `[redacted]` for a secret.\nIt prints nothing else.\n")
    await call(folder, "edit_file", path="doc.md", old_text="It prints nothing", new_text="It never prints [redacted]")
    text = await shown(folder, "doc.md")
    await call(folder, "write_file", path="doc.md", content=f"{text}more [redacted]\n")
    assert (folder / "doc.md").read_text() == (
        "It prints `[redacted]` for a secret.\nIt never prints [redacted] else.\nmore [redacted]\n"
    )


async def test_ends_of_lines_and_hidden_characters_do_not_hide_a_placeholder(folder: Path) -> None:
    text = f"a\x1b[0m\r\nDB_PASSWORD={FIRST}\r\nPORT=1\r\n"
    (folder / "dos.env").write_bytes(text.encode())
    old = "\n".join((await shown(folder, "dos.env")).splitlines()[:3])
    await call(folder, "edit_file", path="dos.env", old_text=old, new_text=old.replace("PORT=1", "PORT=2"))
    assert f"DB_PASSWORD={FIRST}\r\nPORT=2\r\n".encode() in (folder / "dos.env").read_bytes()


def test_placeholders_are_left_alone_by_redaction_and_say_nothing_of_their_values() -> None:
    tagged = Redactor().text(SETTINGS, mark=tag_secret)
    assert Redactor().text(tagged, mark=tag_secret) == Redactor().text(tagged) == tagged
    assert tag_secret(FIRST) == tag_secret(FIRST) != tag_secret(SECOND)
    assert FileSecrets.find("PORT=1\n", Redactor()).put_back(tag_secret(FIRST)) == tag_secret(FIRST)


@pytest.mark.parametrize(("secret", "before"), [(FIRST, "DB_PASSWORD="), (SECOND, 'api_key: "'), (KNOWN, "mark = ")])
async def test_edit_tells_nothing_of_how_a_secret_begins(folder: Path, secret: str, before: str) -> None:
    """A right guess of the first letters has the same answer as a wrong one, and changes nothing."""
    guesses = [secret[:length] + wrong for length in (5, 12) for wrong in ("", "\u2581")]
    for start in (before, ""):
        answers: set[str] = set()
        for guess in guesses:
            for new in (start + guess, "else"):
                with pytest.raises(InvalidInput) as refused:
                    await call(folder, "edit_file", path=".env", old_text=start + guess, new_text=new)
                answers.add(str(refused.value).partition(".")[0])
        assert answers == {"old_text was not found"}
    assert (folder / ".env").read_text() == SETTINGS


async def test_number_of_matches_tells_nothing_of_how_a_secret_begins(folder: Path) -> None:
    (folder / "a.txt").write_text("decoy\n" * MAX_MATCHES)
    told = [
        await call(folder, "search_files", pattern=f"^decoy$|PASSWORD={guess}") for guess in (FIRST[:5], "x" * 5, FIRST)
    ]
    assert len(set(told)) == 1 and "more match" not in told[0]
    assert "[1 more matches" in await call(folder, "search_files", pattern="^decoy$|PORT")
