"""A stand-alone run that is killed at any write goes on where it was, and repeats nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.grant import Grant, Verdict
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.errors import InvalidInput
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.mind import Assignment, Conclusion, ConclusionStatus, Steering, think
from fireswarm.redaction import Redactor
from fireswarm.runs.make_mind import make_mind
from fireswarm.runs.sinks.files import RunLog, read_events
from fireswarm.runs.sinks.step_file import INTERRUPTED, StepFile
from tests.support.crashes import choose_moments
from tests.support.experts import Expert, bash, calls, on_the_wire
from tests.support.minds import SYSTEM, TASK, Bench, Lab

pytestmark = pytest.mark.anyio

WORK = (
    calls(bash("echo a >> log"), ("write_file", {"path": "x", "content": "1"}), text="I begin."),
    calls(("read_file", {"path": "x"}), ("list_files", {})),
    calls(("edit_file", {"path": "x", "old_text": "1", "new_text": "2"})),
    calls(bash("echo b >> log")),
    "Done: **2**.",
)


class Killed(BaseException):
    """The process is gone."""


@dataclass(slots=True)
class Agent:
    """Starts of one run in one folder, each of which may be killed at its nth write."""

    bench: Bench
    folder: Path
    expert: Expert
    kill_at: int = 0
    asks: Callable[[Question], Awaitable[str | None]] | None = None
    says: Callable[[str], Awaitable[str | None]] | None = None
    default: Verdict = Verdict.ALLOW
    steering: Steering = field(default_factory=Steering)
    writes: int = 0
    model_of: Callable[[Expert], Any] = lambda expert: ScriptedModel(expert, tools=True)

    def wrote(self, *_: Any) -> None:
        self.writes += 1
        if self.writes == self.kill_at:
            raise Killed

    async def start(self) -> Conclusion:
        mind = make_mind(
            self.bench.settings,
            self.bench.catalog(),
            self.bench.clock,
            self.bench.root,
            environment=self.bench.environment,
            model=self.model_of(self.expert),
        )
        log = RunLog(self.folder, self.folder.name, self.bench.clock, Redactor(), on_event=self.wrote)
        write = log.step_file._write  # pyright: ignore[reportPrivateUsage]

        def counted(step: dict[str, Any]) -> None:
            write(step)
            self.wrote()

        log.step_file._write = counted  # type: ignore[method-assign]
        tools = workspace_tools(self.bench.cwd)
        hears: dict[str, Any] = {"ask": self.asks, "next_message": self.says, "steering": self.steering}
        given = Assignment(TASK, SYSTEM, Grant(self.bench.cwd, default=self.default), tools=tools, **hears)
        try:
            return await think(mind, given, log)
        finally:
            log.close()

    @property
    def events(self) -> list[EventRecord]:
        return list(read_events(self.folder))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path).set(skills__prefilter_min_score=1)


@pytest.fixture
async def anthropic(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[dict[str, Any]]:
    """The model of an agent: Anthropic's SDK at its strict server."""
    async with Lab.open(monkeypatch) as lab:
        yield {"model_of": partial(on_the_wire, lab, "anthropic")}
        assert lab.served.refused == []


def agent(bench: Bench, *answers: Any, **given: Any) -> Agent:
    return Agent(bench, bench.root / "runs" / "20260101-000000-00000001", Expert(*answers), **given)


async def test_run_killed_at_any_write_goes_on_and_repeats_nothing(tmp_path: Path, anthropic: dict[str, Any]) -> None:
    whole = agent(Bench(tmp_path / "whole"), *WORK, **anthropic)
    await whole.start()
    assert whole.writes > 30
    for number in choose_moments(whole.writes):
        bench = Bench(tmp_path / str(number))
        run = agent(bench, *WORK, kill_at=number, **anthropic)
        with pytest.raises((Killed, BaseExceptionGroup)):  # a group, if calls ran side by side
            await run.start()
        conclusion = await run.start()
        assert (conclusion.status, conclusion.answer) == (ConclusionStatus.FINISHED, "Done: **2**."), number
        log = (bench.cwd / "log").read_text().split()
        # An action that was interrupted is not repeated: the model is told, and looks.
        assert log in (["a", "b"], ["b"], ["a"], []), number
        assert Counter(log).most_common(1)[0][1] == 1 if log else True, number
        kinds = Counter(event.event_type for event in run.events)
        expected = Counter(event.event_type for event in whole.events)
        for kind in (EventType.RUN_STARTED, EventType.SKILL_STEP_EXECUTED, EventType.LLM_DECISION_DECODED):
            assert kinds[kind] == expected[kind], (number, kind)
        assert len(run.expert.requests) <= len(WORK) + 1, "one answer at most is asked for again"


async def test_action_that_was_interrupted_is_told_and_not_repeated(bench: Bench, monkeypatch: Any) -> None:
    run = agent(bench, calls(bash("echo a >> log")), "I looked: it had happened.")
    write = StepFile._write  # pyright: ignore[reportPrivateUsage]

    def die(self: StepFile, step: dict[str, Any]) -> None:
        if step["step"].startswith("act:") and step["state"] == "finished":
            raise Killed
        write(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(StepFile, "_write", die)
        with pytest.raises(Killed):
            await run.start()
    await run.start()
    assert run.expert.told == [INTERRUPTED]
    assert (bench.cwd / "log").read_text() == "a\n"


async def test_interrupted_action_is_not_repeated_by_a_start_with_a_stricter_profile(
    bench: Bench, monkeypatch: Any
) -> None:
    run = agent(bench, calls(bash("echo a >> log")), "I looked.")
    write = StepFile._write  # pyright: ignore[reportPrivateUsage]

    def die(self: StepFile, step: dict[str, Any]) -> None:
        if step["step"].startswith("act:") and step["state"] == "finished":
            raise Killed
        write(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(StepFile, "_write", die)
        with pytest.raises(Killed):
            await run.start()
    bench.set(skills__prefilter_min_score=1, runtime__profile="read_only", permissions__deny=["Bash(echo:*)"])
    assert (await run.start()).answer == "I looked."
    assert run.expert.told == [INTERRUPTED]


async def test_question_is_answered_in_a_later_start(bench: Bench, anthropic: dict[str, Any]) -> None:
    run = agent(bench, calls(("ask_user", {"question": "Who?"})), "Hello Ada.", **anthropic)
    waiting = await run.start()
    assert waiting.status is ConclusionStatus.WAITING
    assert waiting.questions[0].description == "Who?"

    async def answer(question: Question) -> str:
        return "Ada"

    run.asks = answer
    assert (await run.start()).answer == "Hello Ada."
    assert run.expert.told == ["Ada"]
    run.asks = None
    assert (await run.start()).answer == "Hello Ada.", "the answer is a part of the run"


async def test_person_is_asked_once_about_an_edit_whose_diff_changes_with_the_file(bench: Bench) -> None:
    edits = [calls(("edit_file", {"path": "a", "old_text": f"{n}\n", "new_text": f"{n + 1}\n"})) for n in (1, 1, 2)]
    run = agent(bench, *edits, "Three.")
    run.default = Verdict.ASK
    (bench.cwd / "a").write_text("1\n")
    asked: list[str] = []
    said = iter(["no: wait", "yes", "yes"])

    async def decide(question: Question) -> str:
        assert question.approval is not None
        asked.append(question.approval.diff)
        return next(said)

    run.asks = decide
    assert (await run.start()).answer == "Three."
    assert len(asked) == 3 and len(set(asked)) == 2
    events = len(run.events)
    again = await run.start()
    assert (again.status, again.answer, len(asked)) == (ConclusionStatus.FINISHED, "Three.", 3)
    assert {event.event_type for event in run.events[events:]} <= {EventType.RUN_FINISHED}, "it is replayed as it was"
    assert (bench.cwd / "a").read_text() == "3\n"


async def test_edit_that_was_approved_is_asked_for_again_if_the_file_changed_before_it_began(
    bench: Bench, monkeypatch: Any
) -> None:
    run = agent(bench, calls(("edit_file", {"path": "a", "old_text": "1", "new_text": "2"})), "Two.")
    run.default = Verdict.ASK
    (bench.cwd / "a").write_text("1 apple\n")
    diffs: list[str] = []

    async def allow(question: Question) -> str:
        assert question.approval is not None
        diffs.append(question.approval.diff)
        return "yes"

    run.asks = allow
    write = StepFile._write  # pyright: ignore[reportPrivateUsage]

    def die(self: StepFile, step: dict[str, Any]) -> None:
        if step["step"].startswith("act:"):
            raise Killed
        write(self, step)

    with monkeypatch.context() as patch:
        patch.setattr(StepFile, "_write", die)
        with pytest.raises(Killed):
            await run.start()
    (bench.cwd / "a").write_text("1 pear\n")
    assert (await run.start()).answer == "Two."
    assert ["apple" in diffs[0], "pear" in diffs[1], len(diffs)] == [True, True, 2]


async def test_conversation_goes_on_with_a_message_and_knows_all_that_was_before(bench: Bench) -> None:
    run = agent(bench, calls(bash("echo a >> log")), "First.", calls(bash("echo b >> log")), "Second.")
    assert (await run.start()).answer == "First."
    messages = ["And now b."]

    async def say(answer: str) -> str | None:
        return messages.pop() if messages else None

    run.says = say
    assert (await run.start()).answer == "Second."
    assert (bench.cwd / "log").read_text() == "a\nb\n"
    assert run.expert.requests[-1].messages[4].text == "And now b."
    run.says = None
    run_again = await run.start()
    assert run_again.answer == "First.", "without a listener, the run ends at its first answer"


async def test_provider_that_failed_is_asked_again_and_nothing_is_lost(bench: Bench) -> None:
    run = agent(bench, calls(bash("echo a >> log")), {"error": 401})
    assert (await run.start()).status is ConclusionStatus.FAILED
    run.expert.answers = (run.expert.answers[0], "Done.")
    assert (await run.start()).answer == "Done."
    assert (bench.cwd / "log").read_text() == "a\n"


async def test_files_that_a_crash_cut_off_are_read_up_to_the_cut(bench: Bench) -> None:
    run = agent(bench, *WORK)
    await run.start()
    for name in ("events.jsonl", "steps.jsonl"):
        path = run.folder / name
        path.write_bytes(path.read_bytes()[:-25])
    assert (await run.start()).answer == "Done: **2**."
    assert [event.event_type for event in run.events][-1] is EventType.RUN_FINISHED


async def test_run_in_progress_is_not_taken_up_by_another_process(bench: Bench) -> None:
    folder = bench.root / "runs" / "20260101-000000-00000001"
    first = RunLog(folder, folder.name, bench.clock, Redactor())
    with pytest.raises(InvalidInput, match="is in progress in another process"):
        RunLog(folder, folder.name, bench.clock, Redactor())
    first.close()
    RunLog(folder, folder.name, bench.clock, Redactor()).close()


async def test_run_that_its_provider_paused_goes_on_where_it_was(bench: Bench) -> None:
    run = agent(bench, WORK[0], {"error": 429, "retry_after": 600}, *WORK[2:])
    paused = await run.start()
    assert (paused.status, paused.reason) == (ConclusionStatus.BLOCKED, "model_paused")
    run.expert.answers = WORK
    assert (await run.start()).answer == "Done: **2**."
    assert (bench.cwd / "log").read_text().split() == ["a", "b"]
