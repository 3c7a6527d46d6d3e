"""What an expert would do, through the providers' SDKs against strict servers: each run goes on to its answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from fireswarm.contracts.grant import Grant, Verdict
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.event import EventType
from fireswarm.mind import ConclusionStatus
from tests.support.experts import PIXEL, Expert, bash, calls, run_on_the_wire
from tests.support.minds import Bench, Lab
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai"])]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, decision_mode="tools").set(skills__prefilter_min_score=1)


async def test_tests_that_fail_the_same_way_after_an_edit_do_not_end_the_run(
    provider: str, lab: Lab, bench: Bench
) -> None:
    (bench.cwd / "a.py").write_text("x = 1\n")
    test = calls(bash("grep -q 'x = 3' a.py || { echo FAILED; exit 1; }"))
    edit = [calls(("edit_file", {"path": "a.py", "old_text": f"x = {n}", "new_text": f"x = {n + 1}"})) for n in (1, 2)]
    expert = Expert(test, edit[0], test, edit[1], test, "It passes now.")
    ran = await run_on_the_wire(lab, provider, bench, expert)
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    assert expert.told[0] == expert.told[2] == "[exit code 1]\nFAILED"
    assert expert.told[4] == "[exit code 0]"
    assert [output.failed for output in expert.outputs] == [True, False, True, False, False]


async def test_search_without_hits_goes_on(provider: str, lab: Lab, bench: Bench) -> None:
    expert = Expert(calls(bash("grep -r nothing .")), calls(("search_files", {"pattern": "nothing"})), "Nothing.")
    assert (await run_on_the_wire(lab, provider, bench, expert)).conclusion.answer == "Nothing."
    assert expert.told == ["[exit code 1]", "[no matches]"]


async def test_calls_that_only_read_run_side_by_side_and_each_gets_its_own_output(
    provider: str, lab: Lab, bench: Bench
) -> None:
    started, all_started = list[str](), anyio.Event()

    async def look(given: Mapping[str, Any]) -> str:
        started.append(str(given["what"]))
        if len(started) == 3:
            all_started.set()
        with anyio.fail_after(PATIENCE_SECONDS):
            await all_started.wait()
        return f"saw {given['what']}"

    tools = {"look": Tool("look", "Looks.", {"type": "object", "properties": {"what": {"type": "string"}}}, look)}
    expert = Expert(calls(*(("look", {"what": name}) for name in "abc")), "Done.")
    await run_on_the_wire(lab, provider, bench, expert, tools=tools)
    assert expert.told == ["saw a", "saw b", "saw c"]
    assert len({output.call_id for output in expert.outputs}) == 3


async def test_failed_call_does_not_drop_the_rest_of_the_answer(provider: str, lab: Lab, bench: Bench) -> None:
    both = calls(("read_file", {"path": "none"}), ("write_file", {"path": "b/c.txt", "content": "new\n"}))
    expert = Expert(both, "Done.")
    await run_on_the_wire(lab, provider, bench, expert)
    assert [output.failed for output in expert.outputs] == [True, False]
    assert "does not exist" in expert.told[0]
    assert (bench.cwd / "b" / "c.txt").read_text() == "new\n"


async def test_long_file_is_read_by_page(provider: str, lab: Lab, bench: Bench) -> None:
    (bench.cwd / "long.txt").write_text("".join(f"line {n} {'x' * 90}\n" for n in range(1, 401)))
    expert = Expert(
        calls(("read_file", {"path": "long.txt"})),
        *(calls(("read_file", {"path": "long.txt", "offset": offset})) for offset in (131, 261, 391)),
        "Read.",
    )
    await run_on_the_wire(lab, provider, bench, expert)
    seen = {number for text in expert.told for number in range(1, 401) if f"\tline {number} " in text}
    assert seen == set(range(1, 401))
    assert "read on with offset=" in expert.told[0]


async def test_edit_that_does_not_match_shows_the_nearest_passage(provider: str, lab: Lab, bench: Bench) -> None:
    (bench.cwd / "a.py").write_text("def add(a, b):\n    return a - b\n")
    expert = Expert(
        calls(("edit_file", {"path": "a.py", "old_text": "    return a -b", "new_text": "    return a + b"})),
        calls(("edit_file", {"path": "a.py", "old_text": "return a - b", "new_text": "return a + b"})),
        "Fixed.",
    )
    await run_on_the_wire(lab, provider, bench, expert)
    assert "     2\t    return a - b" in expert.told[0]
    assert (bench.cwd / "a.py").read_text() == "def add(a, b):\n    return a + b\n"


async def test_image_is_shown_to_the_model(provider: str, lab: Lab, bench: Bench) -> None:
    (bench.cwd / "dot.png").write_bytes(PIXEL)
    expert = Expert(calls(("read_file", {"path": "dot.png"})), "A dot.")
    await run_on_the_wire(lab, provider, bench, expert)
    [media] = expert.outputs[0].media
    assert (media.media_type, base64.b64decode(media.data)) == ("image/png", PIXEL)


async def test_image_and_pdf_of_a_skill_are_shown_to_the_model(provider: str, lab: Lab, bench: Bench) -> None:
    folder = bench.skill("forms", "---\nname: forms\ndescription: Fills forms.\n---\n")
    for name, content in (("Form.PDF", b"%PDF-1.4 a page"), ("dot.png", PIXEL), ("a.zip", b"PK\0\0")):
        (folder / name).write_bytes(content)
    reads = [("read_skill_file", {"skill": "forms", "path": path}) for path in ("./form.pdf", "dot.png", "a.zip", "#x")]
    expert = Expert(calls(*reads), "A form and a dot.")
    ran = await run_on_the_wire(lab, provider, bench, expert)
    shown = [(media.media_type, base64.b64decode(media.data)) for output in expert.outputs for media in output.media]
    assert shown == [("application/pdf", b"%PDF-1.4 a page"), ("image/png", PIXEL)]
    assert expert.told[:2] == ["Form.PDF: application/pdf, 15 bytes", "dot.png: image/png, 70 bytes"]
    assert (
        "a.zip is not a text file: it has 4 bytes; inspect it with run_command, as $SKILL_DIR/a.zip" in expert.told[2]
    )
    assert "has no section 'x'" in expert.told[3]
    loaded = [event["files"] for event in ran.of(EventType.SKILL_DISCLOSURE_LOADED) if event["stage"] == 2]
    assert [file["path"] for [file] in loaded] == ["forms/Form.PDF", "forms/dot.png"]


async def test_skill_with_scripts_is_read_and_run_from_its_folder(provider: str, lab: Lab, bench: Bench) -> None:
    text = "---\nname: Counter\ndescription: Counts words of texts.\n---\n# Counter\n\nRun scripts/count.py.\n"
    bench.skill("counter", text.replace("Counter", "counter", 1), {"scripts/count.py": "print('4 words')\n"})
    expert = Expert(
        calls(("search_skills", {"query": "count the words of a text"})),
        calls(("use_skill", {"name": "COUNTER", "reason": "it counts"})),
        calls(
            ("read_skill_file", {"skill": "counter", "path": "scripts/count.py"}),
            bash("python3 $SKILL_DIR/scripts/count.py"),
        ),
        "There are 4 words.",
    )
    ran = await run_on_the_wire(lab, provider, bench, expert)
    assert ran.conclusion.skill == "counter"
    assert "counter: Counts words" in expert.told[0]
    assert "Run scripts/count.py." in expert.told[1] and "Files: scripts/count.py" in expert.told[1]
    assert expert.told[2] == "     1\tprint('4 words')"
    assert expert.told[3].startswith("4 words")
    [decision] = [each for each in ran.of(EventType.LLM_DECISION_DECODED) if each.get("required_disclosure_paths")]
    assert decision["required_disclosure_paths"] == ["scripts/count.py"]


async def test_person_is_asked_with_the_options_and_the_answer_is_the_output(
    provider: str, lab: Lab, bench: Bench
) -> None:
    asked: list[Question] = []

    async def answer(question: Question) -> str:
        asked.append(question)
        return "blue"

    expert = Expert(calls(("ask_user", {"question": "Which colour?", "options": ["red", "blue"]})), "Blue it is.")
    await run_on_the_wire(lab, provider, bench, expert, ask=answer)
    assert expert.told == ["blue"]
    assert asked[0].choices == ("red", "blue")


async def test_write_is_asked_for_with_its_diff_and_a_denial_is_told(provider: str, lab: Lab, bench: Bench) -> None:
    (bench.cwd / "a.txt").write_text("one\n")
    said = iter(["no: not that file", "yes"])
    asked: list[Question] = []

    async def answer(question: Question) -> str:
        asked.append(question)
        return next(said)

    edit = {"path": "a.txt", "old_text": "one", "new_text": "two"}
    expert = Expert(calls(("edit_file", edit)), calls(("edit_file", edit)), "Done.")
    await run_on_the_wire(lab, provider, bench, expert, ask=answer, grant=Grant(bench.cwd, default=Verdict.ASK))
    assert "not that file" in expert.told[0]
    assert asked[0].approval is not None and "-one\n+two" in asked[0].approval.diff
    assert (bench.cwd / "a.txt").read_text() == "two\n"


def texts_in(value: Any) -> list[str]:
    """All texts of a request's body; some providers have the input of a call as JSON in a text."""
    if isinstance(value, str):
        return [value, *texts_in(json.loads(value))] if value.startswith("{") else [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in texts_in(item)]


ODD = "one\r\ntwo\x1b[1m\x0c\x00\r\n\u05d0\u200f\n"


async def test_control_characters_of_calls_are_kept_and_sent_back(provider: str, lab: Lab, bench: Bench) -> None:
    (bench.cwd / "ansi.sh").write_text("echo '\x1b[1mhello\x1b[0m'\n")
    given = ({"path": "odd", "content": ODD}, {"path": "ansi.sh", "old_text": "hello'", "new_text": "bye'"})
    expert = Expert(
        calls(("write_file", given[0])),
        calls(("read_file", {"path": "ansi.sh"})),
        calls(("edit_file", given[1])),
        "Done.",
    )
    ran = await run_on_the_wire(lab, provider, bench, expert)
    assert (bench.cwd / "odd").read_bytes() == ODD.encode()
    assert (bench.cwd / "ansi.sh").read_text() == "echo '\x1b[1mbye'\n"
    assert "2 control characters that cannot be shown" in expert.told[1]
    assert expert.told[2].split("\n")[0] == "edited ansi.sh; 1 control character was in what it replaced"
    assert ODD in texts_in(lab.served.calls[-1].body), "the call is sent back as it was"
    [wrote, *_] = ran.of(EventType.SKILL_STEP_EXECUTED)
    assert wrote["params"]["input"].isprintable()
