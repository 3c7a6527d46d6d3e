"""Complete runs of a model that calls tools: real work in a folder, pages, skills, questions, and every ending."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from fireswarm.contracts.grant import Grant, Verdict
from fireswarm.contracts.llm.chat import ChatResponse, StopReason, ToolCall
from fireswarm.contracts.skills.tool import Tool
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.contracts.swarm.event import EventType
from fireswarm.mind import ConclusionStatus
from tests.support.experts import Expert, bash, calls, run
from tests.support.minds import Bench

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path).set(skills__prefilter_min_score=1)


async def test_answer_without_calls_ends_the_run(bench: Bench) -> None:
    ran = await run(bench, Expert("Hello **Ada**."))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Hello **Ada**.")
    assert ran.kinds[-1] == "run_finished"


async def test_edit_of_a_passage_that_occurs_twice_is_refused(bench: Bench) -> None:
    (bench.cwd / "a").write_text("x\nx\n")
    given = {"path": "a", "old_text": "x", "new_text": "y"}
    expert = Expert(calls(("edit_file", given)), calls(("edit_file", given | {"replace_all": True})), "Done.")
    await run(bench, expert)
    assert "occurs 2 times" in expert.told[0]
    assert (bench.cwd / "a").read_text() == "y\ny\n"


async def test_folder_of_a_command_stays_for_the_next_one_within_the_workspace(bench: Bench) -> None:
    (bench.cwd / "sub dir").mkdir()
    expert = Expert(calls(bash("cd 'sub dir'")), calls(bash("pwd; cd /usr")), calls(bash("pwd")), "Done.")
    await run(bench, expert)
    assert expert.told[1].strip().startswith(f"{bench.cwd / 'sub dir'}\n")
    assert "the next command starts in the workspace again: /usr is outside of it" in expert.told[1]
    assert expert.told[2].strip() == str(bench.cwd)


async def test_command_with_control_characters_runs_as_it_is_and_is_recorded_without_hiding_any(bench: Bench) -> None:
    line = "printf '\x1b[1m\x0c\r\n' > odd; : '\x1b]0;hidden\x07'"
    expert = Expert(
        calls(bash(line)), calls(bash("echo\0 zero")), calls(("ask_user", {"question": "a\x1b[2J?"})), "Done."
    )

    async def answer(question: Any) -> str:
        return f"{question.description}\x1b[0m"

    ran = await run(bench, expert, ask=answer)
    assert (bench.cwd / "odd").read_bytes() == b"\x1b[1m\x0c\r\n"
    assert "zero bytes" in expert.told[1]
    assert expert.told[2] == "a?"
    commands = [
        event["params"]["command"] for event in ran.of(EventType.SKILL_STEP_EXECUTED) if "command" in event["params"]
    ]
    assert "\\u001b]0;hidden\\u0007" in commands[0]


async def test_long_output_is_kept_and_read_by_page(bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, runtime__max_output_bytes=1_000)
    expert = Expert(
        calls(bash("seq 1 1000")),
        *(calls(("read_output", {"output": "1.1", "page": page})) for page in (1, 2, 3, 4, 5)),
        calls(("read_output", {"output": "1.1", "page": 9})),
        "Done.",
    )
    await run(bench, expert)
    pages = [text.rpartition("\n[page")[0] for text in expert.told[1:6]]
    assert "\n".join(pages).split() == [str(number) for number in range(1, 1001)]
    assert "characters left out: read_output, output 1.1, pages " in expert.told[0]
    assert expert.told[6] == "output 1.1 has the pages 1 to 5"


@pytest.mark.parametrize(("last", "whole"), [(120_000, True), (300_000, False)])
async def test_pages_and_one_note_make_up_a_very_long_output(bench: Bench, last: int, whole: bool) -> None:
    limits = {"runtime__max_output_bytes": 100_000, "model__max_context_tokens": 1_000_000}
    bench.set(skills__prefilter_min_score=1, **limits)
    pages = len(str(last)) * last // 90_000
    expert = Expert(
        calls(bash(f"seq 1 {last}")),
        *(calls(("read_output", {"output": "1.1", "page": page})) for page in range(1, min(pages, 12) + 1)),
        "Done.",
    )
    await run(bench, expert)
    told = [text for text in expert.told[1:] if not text.startswith("output 1.1 has")]
    assert f"[page {len(told)} of {len(told)} of output 1.1]" in told[-1]
    text = "\n".join(part.rpartition("\n[page")[0].removesuffix("\n") for part in told)
    note = re.search(r"\[([\d,]+) bytes omitted, lines ([\d,]+) to ([\d,]+): [^\]]+\]", text)
    assert text.count("omitted") == (0 if whole else 1) and (note is None) == whole
    missing: list[str] = []
    if note is not None:
        first, final = (int(each.replace(",", "")) for each in (note[2], note[3]))
        missing = [str(each) for each in range(first, final + 1)]
        text = text.replace(note[0], "\n".join(missing))
    assert text.split() == [str(each) for each in range(1, last + 1)]


async def test_same_call_with_the_same_result_is_warned_of_and_ends_the_run_the_third_time(bench: Bench) -> None:
    again = calls(("list_files", {}))
    expert = Expert(again)
    ran = await run(bench, expert)
    assert (ran.conclusion.status, ran.conclusion.reason) == (ConclusionStatus.FAILED, "no_progress")
    assert "Same call, same result as before" in expert.told[1]
    assert ran.conclusion.turns == 3


async def test_last_turn_is_for_an_answer(bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, runtime__max_turns=3)
    expert = Expert(calls(bash("echo 1")), calls(bash("echo 2")), "I have seen 1 and 2.")
    ran = await run(bench, expert)
    assert ran.conclusion.answer == "I have seen 1 and 2."
    assert [request.may_call for request in expert.requests] == [True, True, False]
    assert "This is your last answer" in expert.requests[-1].messages[-1].text


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
    first = await run(bench, expert, roles={"scout": "It looks."})
    assert first.conclusion.status is ConclusionStatus.DELEGATING
    keys = [task.key for task in first.conclusion.tasks]
    assert [task.objective for task in first.conclusion.tasks] == ["look at a", "look at b"]
    children = {key: f"## {key} (scout, done)" for key in keys}
    second = await run(bench, expert, roles={"scout": "It looks."}, children=children)
    assert second.conclusion.answer == "Both are fine."
    assert expert.told == list(children.values())


async def test_task_without_a_fitting_skill_is_done_with_tools(tmp_path: Path) -> None:
    bench = Bench(tmp_path).set(skills__prefilter_min_score=99)
    assert (await run(bench, Expert("42"), task="what is six times seven")).conclusion.answer == "42"


async def test_call_that_would_fail_is_answered_without_asking_for_approval(bench: Bench) -> None:
    (bench.cwd / "a").write_text("one\ntwo words\n")
    (bench.cwd / "secret").write_text("a word: two, words\n")
    edits: list[dict[str, Any]] = [
        {"path": "a", "new_text": "y"},
        {"path": "a", "old_text": "", "new_text": "y"},
        {"path": "a", "old_text": "two word!", "new_text": "y"},
        {"path": "secret", "old_text": "a word: two", "new_text": "y", "replace_all": "perhaps"},
        {"path": "secret", "old_text": "a word: twos", "new_text": "y"},
        {"path": "none", "old_text": "one", "new_text": "y"},
    ]
    expert = Expert(*(calls(("edit_file", given)) for given in edits), calls(("write_file", {"path": "."})), "Done.")
    asked: list[str] = []

    async def answer(question: Any) -> str:
        asked.append(question.description)
        return "yes"

    grant = Grant(bench.cwd, deny=("Read(secret)",), default=Verdict.ASK)
    ran = await run(bench, expert, ask=answer, grant=grant)
    assert (ran.conclusion.answer, asked) == ("Done.", [])
    assert "old_text: Field required" in expert.told[0]
    assert "old_text: String should have at least 1 character" in expert.told[1]
    assert "The nearest passage is:\n     2\ttwo words" in expert.told[2]
    assert "replace_all: Input should be a valid boolean" in expert.told[3]
    assert expert.told[4].strip() == "old_text was not found."
    assert "none does not exist" in expert.told[5]
    assert "content: Field required" in expert.told[6]


async def test_long_failed_command_shows_its_exit_code_its_beginning_and_its_end(bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, runtime__max_output_bytes=1_000)
    expert = Expert(calls(bash("echo start; seq 1 1000; echo FAILED; seq 1 1000 >&2; echo oops >&2; exit 3")), "Done.")
    await run(bench, expert)
    told, output = expert.told[0], expert.outputs[0]
    assert told.startswith("[exit code 3]\nstart\n1\n") and told.endswith("\noops")
    assert "\nFAILED\n[stderr]\n1\n" in told and output.failed


async def test_tool_at_its_limit_is_stopped_and_the_model_is_told_that_it_may_have_taken_effect(bench: Bench) -> None:
    async def hang(_: Mapping[str, Any]) -> str:
        await anyio.Event().wait()
        return "never"

    tools = {
        name: Tool(name=name, description=name, parameters={"type": "object"}, run=hang, writes=name == "send")
        for name in ("look", "send")
    }
    expert = Expert(calls(("look", {}), ("send", {})), "Done.")
    await run(bench, expert, tools=tools, constraints=Constraints(timeout_seconds=0.05))
    assert expert.told[0].strip() == "stopped after 0.05 s, its time limit"
    assert expert.told[1].strip().endswith("its time limit, and may have taken effect: check that first")
