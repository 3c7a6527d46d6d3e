"""Complete runs of a model that calls tools: real work in a folder, pages, skills, questions, and every ending."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.llm.chat import ChatRequest, ChatResponse, StopReason, ToolCall, ToolOutput
from fireswarm.contracts.skills.skill import ChildResult, Question
from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.event import EventType
from fireswarm.contracts.swarm.task import Constraints
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.mind import ConclusionStatus
from fireswarm.mind.permissions import Verdict, policy_of
from fireswarm.settings.agent import PermissionSettings
from tests.support.minds import Bench, Ran

pytestmark = pytest.mark.anyio

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Expert:
    """A model that gives its answers in order, and remembers what it was asked and what its calls returned."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.requests: list[ChatRequest] = []

    def __call__(self, request: ChatRequest) -> Any:
        self.requests.append(request)
        done = sum(message.role == "assistant" for message in request.messages)
        return self.answers[min(done, len(self.answers) - 1)]

    @property
    def outputs(self) -> list[ToolOutput]:
        """The outputs of all calls, in order."""
        return [output for message in self.requests[-1].messages for output in message.outputs]

    @property
    def told(self) -> list[str]:
        return [output.text for output in self.outputs]


def calls(*named: tuple[str, Mapping[str, Any]], text: str = "") -> dict[str, Any]:
    return {"calls": [{"name": name, "input": dict(given)} for name, given in named], "text": text}


def bash(line: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "run_command", {"command": line, **more}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path).set(skills__prefilter_min_score=1)


async def run(bench: Bench, expert: Expert, **assigned: Any) -> Ran:
    tools = workspace_tools(bench.cwd) | assigned.pop("tools", {})
    return await bench.run(ScriptedModel(expert, tools=True), tools=tools, **assigned)


async def test_answer_without_calls_ends_the_run(bench: Bench) -> None:
    ran = await run(bench, Expert("Hello **Ada**."))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Hello **Ada**.")
    assert ran.kinds[-1] == "run_finished"


async def test_tests_that_fail_the_same_way_after_an_edit_do_not_end_the_run(bench: Bench) -> None:
    (bench.cwd / "a.py").write_text("x = 1\n")
    test = calls(bash("grep -q 'x = 3' a.py || { echo FAILED; exit 1; }"))
    edit = [calls(("edit_file", {"path": "a.py", "old_text": f"x = {n}", "new_text": f"x = {n + 1}"})) for n in (1, 2)]
    expert = Expert(test, edit[0], test, edit[1], test, "It passes now.")
    ran = await run(bench, expert)
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    assert expert.told[0] == expert.told[2] == "FAILED\n[exit code 1]"
    assert expert.told[4] == "[exit code 0]"
    assert not any(output.failed for output in expert.outputs), "an exit code is information"


async def test_search_without_hits_goes_on(bench: Bench) -> None:
    expert = Expert(calls(bash("grep -r nothing .")), calls(("search_files", {"pattern": "nothing"})), "Nothing.")
    assert (await run(bench, expert)).conclusion.answer == "Nothing."
    assert expert.told == ["[exit code 1]", "[no matches]"]


async def test_calls_that_only_read_run_side_by_side_and_each_gets_its_own_output(bench: Bench) -> None:
    started, all_started = list[str](), anyio.Event()

    async def look(given: Mapping[str, Any]) -> str:
        started.append(str(given["what"]))
        if len(started) == 3:
            all_started.set()
        with anyio.fail_after(20):
            await all_started.wait()
        return f"saw {given['what']}"

    tools = {"look": Tool("look", "Looks.", {"type": "object", "properties": {"what": {"type": "string"}}}, look)}
    expert = Expert(calls(*(("look", {"what": name}) for name in "abc")), "Done.")
    await run(bench, expert, tools=tools)
    assert expert.told == ["saw a", "saw b", "saw c"]
    assert [output.call_id for output in expert.outputs] == ["call-0", "call-1", "call-2"]


async def test_failed_call_does_not_drop_the_rest_of_the_answer(bench: Bench) -> None:
    both = calls(("read_file", {"path": "none"}), ("write_file", {"path": "b/c.txt", "content": "new\n"}))
    expert = Expert(both, "Done.")
    await run(bench, expert)
    assert [output.failed for output in expert.outputs] == [True, False]
    assert "does not exist" in expert.told[0]
    assert (bench.cwd / "b" / "c.txt").read_text() == "new\n"


async def test_long_file_is_read_by_page(bench: Bench) -> None:
    (bench.cwd / "long.txt").write_text("".join(f"line {n} {'x' * 90}\n" for n in range(1, 401)))
    expert = Expert(
        calls(("read_file", {"path": "long.txt"})),
        *(calls(("read_file", {"path": "long.txt", "offset": offset})) for offset in (131, 261, 391)),
        "Read.",
    )
    await run(bench, expert)
    seen = {number for text in expert.told for number in range(1, 401) if f"\tline {number} " in text}
    assert seen == set(range(1, 401))
    assert "read on with offset=" in expert.told[0]


async def test_edit_that_does_not_match_shows_the_nearest_passage(bench: Bench) -> None:
    (bench.cwd / "a.py").write_text("def add(a, b):\n    return a - b\n")
    expert = Expert(
        calls(("edit_file", {"path": "a.py", "old_text": "    return a -b", "new_text": "    return a + b"})),
        calls(("edit_file", {"path": "a.py", "old_text": "return a - b", "new_text": "return a + b"})),
        "Fixed.",
    )
    await run(bench, expert)
    assert "     2\t    return a - b" in expert.told[0]
    assert (bench.cwd / "a.py").read_text() == "def add(a, b):\n    return a + b\n"


async def test_edit_of_a_passage_that_occurs_twice_is_refused(bench: Bench) -> None:
    (bench.cwd / "a").write_text("x\nx\n")
    given = {"path": "a", "old_text": "x", "new_text": "y"}
    expert = Expert(calls(("edit_file", given)), calls(("edit_file", given | {"replace_all": True})), "Done.")
    await run(bench, expert)
    assert "occurs 2 times" in expert.told[0]
    assert (bench.cwd / "a").read_text() == "y\ny\n"


async def test_image_is_shown_to_the_model(bench: Bench) -> None:
    (bench.cwd / "dot.png").write_bytes(PIXEL)
    expert = Expert(calls(("read_file", {"path": "dot.png"})), "A dot.")
    await run(bench, expert)
    [media] = expert.outputs[0].media
    assert (media.media_type, base64.b64decode(media.data)) == ("image/png", PIXEL)


async def test_skill_with_scripts_is_read_and_run_from_its_folder(bench: Bench) -> None:
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
    ran = await run(bench, expert)
    assert ran.conclusion.skill == "counter"
    assert "counter: Counts words" in expert.told[0]
    assert "Run scripts/count.py." in expert.told[1] and "Files: scripts/count.py" in expert.told[1]
    assert expert.told[2] == "     1\tprint('4 words')"
    assert expert.told[3].startswith("4 words")
    [decision] = [each for each in ran.of(EventType.LLM_DECISION_DECODED) if each.get("required_disclosure_paths")]
    assert decision["required_disclosure_paths"] == ["scripts/count.py"]


async def test_folder_of_a_command_stays_for_the_next_one_within_the_workspace(bench: Bench) -> None:
    (bench.cwd / "sub dir").mkdir()
    expert = Expert(calls(bash("cd 'sub dir'")), calls(bash("pwd; cd /usr")), calls(bash("pwd")), "Done.")
    await run(bench, expert)
    assert expert.told[1].strip() == str(bench.cwd / "sub dir")
    assert expert.told[2].strip() == str(bench.cwd)


async def test_long_output_is_kept_and_read_by_page(bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, runtime__max_output_bytes=1_000)
    expert = Expert(
        calls(bash("seq 1 1000")),
        *(calls(("read_output", {"output": "1.1", "page": page})) for page in (2, 3, 4)),
        calls(("read_output", {"output": "1.1", "page": 9})),
        "Done.",
    )
    await run(bench, expert)
    pages = [text.rpartition("\n[page")[0] for text in expert.told[:4]]
    assert "\n".join(pages).split() == [str(number) for number in range(1, 1001)]
    assert "read on with read_output, output 1.1, page 2" in expert.told[0]
    assert expert.told[4] == "output 1.1 has the pages 1 to 4"


async def test_same_call_with_the_same_result_is_warned_of_and_ends_the_run_the_third_time(bench: Bench) -> None:
    again = calls(("list_files", {}))
    expert = Expert(again)
    ran = await run(bench, expert)
    assert (ran.conclusion.status, ran.conclusion.reason) == (ConclusionStatus.FAILED, "no_progress")
    assert "You have seen this result" in expert.told[1]
    assert ran.conclusion.turns == 3


async def test_two_commands_in_turn_are_no_progress_either(bench: Bench) -> None:
    expert = Expert(*[calls(bash("echo a")), calls(bash("echo b"))] * 5)
    assert (await run(bench, expert)).conclusion.reason == "no_progress"


async def test_last_turn_is_for_an_answer(bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, runtime__max_turns=3)
    expert = Expert(calls(bash("echo 1")), calls(bash("echo 2")), "I have seen 1 and 2.")
    ran = await run(bench, expert)
    assert ran.conclusion.answer == "I have seen 1 and 2."
    assert [request.may_call for request in expert.requests] == [True, True, False]
    assert "This is the last turn" in expert.requests[-1].messages[-1].text


async def test_bad_calls_are_explained_and_the_run_goes_on(bench: Bench) -> None:
    given = calls(
        ("fly", {}), ("run_command", {}), ("use_skill", {"name": "none", "reason": "x"}), ("read_output", {}),
        ("read_file", {"path": "../x"}), ("search_files", {"pattern": "(?=x)"}), ("ask_user", {"question": " "}),
    )  # fmt: skip
    expert = Expert(given, "Sorry.")
    assert (await run(bench, expert)).conclusion.status is ConclusionStatus.FINISHED
    expected = (
        "unknown tool 'fly'",
        "needs command",
        "unknown skill 'none'",
        "unknown output ''",
        "outside",
        "look",
        "question",
    )
    for told, part in zip(expert.told, expected, strict=True):
        assert part in told
    assert all(output.failed for output in expert.outputs if output.name != "run_command")


async def test_calls_that_need_no_action_are_events_too(bench: Bench) -> None:
    items = [{"text": "read", "state": "completed"}, {"text": "write", "state": "in_progress"}]
    given = calls(("todo", {"items": items}), ("search_skills", {"query": "greet"}), ("todo", {"items": ["x"]}))
    ran = await run(bench, Expert(given, "Done."))
    steps = [(step["params"]["tool"], step["status"]) for step in ran.of(EventType.SKILL_STEP_EXECUTED)]
    assert sorted(steps) == [("search_skills", "ok"), ("todo", "failed"), ("todo", "ok")]
    told = [step["stdout_summary"] for step in ran.of(EventType.SKILL_STEP_EXECUTED)]
    assert "[x] read\n[>] write" in told, "the operator sees the list"


async def test_wrong_types_are_told_and_not_guessed(bench: Bench) -> None:
    given = calls(
        ("run_command", {"command": ["ls"]}), ("run_command", {"command": 7}), bash("ls", timeout_seconds=-1),
        ("ask_user", {"question": 1}), ("fly", {}),
    )  # fmt: skip
    expert = Expert(given, "Sorry.")
    await run(bench, expert)
    parts = ("needs command", "needs command", "greater than 0", "needs question", "run_command, search_files")
    assert all(part in told for part, told in zip(parts, expert.told, strict=True)), expert.told


async def test_answer_that_was_cut_off_is_not_taken_for_the_answer(bench: Bench) -> None:
    half = ChatResponse(text="The answer is", stop=StopReason.MAX_TOKENS)
    expert = Expert(half, "42.")
    assert (await run(bench, expert)).conclusion.answer == "42."
    assert "cut off" in expert.requests[-1].messages[-1].text


async def test_call_that_was_cut_off_is_not_executed(bench: Bench) -> None:
    cut = ToolCall(id="c1", name="write_file", input={"path": "a", "content": "hal"})
    content = ({"type": "tool_use", "id": "c1", "name": "write_file", "input": {"path": "a", "content": "hal"}},)
    half = ChatResponse(text="", calls=(cut,), content=content, stop=StopReason.MAX_TOKENS)
    expert = Expert(half, "Shorter then.")
    await run(bench, expert)
    assert "cut off" in expert.told[0]
    assert not (bench.cwd / "a").exists()


async def test_read_only_task_writes_nothing(bench: Bench) -> None:
    given = calls(("write_file", {"path": "a", "content": "x"}), bash("touch b; echo $?"))
    expert = Expert(given, "Done.")
    await run(bench, expert, constraints=Constraints(read_only=True))
    assert "read_only" in expert.told[0]
    assert list(bench.cwd.iterdir()) == []


async def test_person_is_asked_with_the_options_and_the_answer_is_the_output(bench: Bench) -> None:
    asked: list[Question] = []

    async def answer(question: Question) -> str:
        asked.append(question)
        return "blue"

    expert = Expert(calls(("ask_user", {"question": "Which colour?", "options": ["red", "blue"]})), "Blue it is.")
    await run(bench, expert, ask=answer)
    assert expert.told == ["blue"]
    assert asked[0].choices == ("red", "blue")


async def test_write_is_asked_for_with_its_diff_and_a_denial_is_told(bench: Bench) -> None:
    (bench.cwd / "a.txt").write_text("one\n")
    said = iter(["no: not that file", "yes"])
    asked: list[Question] = []

    async def answer(question: Question) -> str:
        asked.append(question)
        return next(said)

    edit = {"path": "a.txt", "old_text": "one", "new_text": "two"}
    expert = Expert(calls(("edit_file", edit)), calls(("edit_file", edit)), "Done.")
    await run(bench, expert, ask=answer, policy=policy_of(PermissionSettings(), Verdict.ASK))
    assert "not that file" in expert.told[0]
    assert asked[0].approval is not None and "-one\n+two" in asked[0].approval.diff
    assert (bench.cwd / "a.txt").read_text() == "two\n"


async def test_structured_result_is_given_with_finish_and_a_wrong_one_is_explained(bench: Bench) -> None:
    def fault(result: Mapping[str, Any]) -> str:
        return "" if result.get("greeted") else "greeted is missing"

    expert = Expert(
        "Hello.",
        calls(("finish", {"answer": "hi", "result": {}})),
        calls(("finish", {"answer": "hi", "result": {"greeted": "Ada"}})),
    )
    ran = await run(bench, expert, check_result=fault, result_schema={"type": "object"})
    assert (ran.conclusion.answer, ran.conclusion.result) == ("hi", {"greeted": "Ada"})
    assert "greeted is missing" in expert.requests[1].messages[-1].text
    assert "greeted is missing" in expert.told[0]


async def test_delegated_work_suspends_the_run_and_its_results_come_back_under_the_calls(bench: Bench) -> None:
    both = calls(*(("delegate", {"role": "scout", "objective": f"look at {what}"}) for what in ("a", "b")))
    expert = Expert(both, "Both are fine.")
    first = await run(bench, expert, roles=("scout",))
    assert first.conclusion.status is ConclusionStatus.DELEGATING
    keys = [task.key for task in first.conclusion.tasks]
    assert [task.objective for task in first.conclusion.tasks] == ["look at a", "look at b"]
    children = {
        key: ChildResult(task_id=key, key=key, assigned_to="scout", objective="o", status="done", summary=f"ok {key}")
        for key in keys
    }
    second = await run(bench, expert, roles=("scout",), children=children)
    assert second.conclusion.answer == "Both are fine."
    assert expert.told == [f"scout: done\nok {key}" for key in keys]


async def test_task_without_a_fitting_skill_is_done_with_tools(tmp_path: Path) -> None:
    bench = Bench(tmp_path).set(skills__prefilter_min_score=99)
    assert (await run(bench, Expert("42"), task="what is six times seven")).conclusion.answer == "42"
