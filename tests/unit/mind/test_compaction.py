"""A conversation longer than the model's context: a summary replaces its older messages, and the run goes on."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.event import EventType
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.mind import ConclusionStatus
from tests.support.crashes import choose_moments
from tests.support.experts import Expert, bash, calls
from tests.support.minds import Bench, Lab, Ran, asks_for_summary
from tests.support.providers import Received, Reply
from tests.support.wire_bodies import plain
from tests.unit.mind.test_resumed_run import Agent, Killed

pytestmark = pytest.mark.anyio

WIRES = ("anthropic", "gemini", "openai")
WINDOW = 12_000
TURNS = 60


@pytest.fixture
async def lab(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Lab]:
    async with Lab.open(monkeypatch) as opened:
        yield opened


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return small(Bench(tmp_path, decision_mode="tools"))


def small(bench: Bench, **more: Any) -> Bench:
    """Give the model a small context."""
    given = {"model__max_context_tokens": WINDOW, "model__max_tokens": 1_000, "runtime__max_turns": TURNS + 5} | more
    return bench.set(skills__prefilter_min_score=1, **given)


def conversation(request: Received) -> list[Any]:
    """Return the messages of *request* as its provider takes them; instructions are not one of them."""
    messages = request.body.get("messages") or request.body["contents"]
    return [message for message in messages if message["role"] != "system"]


class Worker:
    """A model that works through *answers*, and sums up when it is asked to; it does not look at the conversation."""

    def __init__(self, *answers: Any, summary: Any = "Some files were read.") -> None:
        self.answers, self.summary = answers, summary
        self.requests: list[ChatRequest] = []

    def __call__(self, request: ChatRequest) -> Any:
        self.requests.append(request)
        if request.for_summary:
            return self.summary(request) if callable(self.summary) else self.summary
        return self.answers[request.answers]

    @property
    def summaries(self) -> list[ChatRequest]:
        return [request for request in self.requests if request.for_summary]

    @property
    def first_text(self) -> str:
        """The first message of the last request."""
        return self.requests[-1].messages[0].text


def reads(number: int) -> Any:
    return calls(bash(f"seq {number}00000 {number}01999"))


async def run(bench: Bench, worker: Worker, **assigned: Any) -> Ran:
    return await bench.run(ScriptedModel(worker, tools=True), tools=workspace_tools(bench.cwd), **assigned)


@pytest.mark.parametrize("provider", WIRES)
async def test_run_of_sixty_turns_fits_a_small_context_and_keeps_what_was_said(
    provider: str, lab: Lab, bench: Bench
) -> None:
    asked: list[Question] = []

    async def answer(question: Question) -> str:
        asked.append(question)
        return "Use the 7 % of ACME-3141."

    turns: Iterator[int] = iter(range(TURNS))
    known = ""

    def script(request: Received) -> Reply:
        nonlocal known
        size = len(request.raw) // 4
        assert size <= WINDOW, f"{size} tokens were sent"
        if asks_for_summary(request):
            known = f"So far {len(re.findall('Results 1', request.raw.decode())) or 'some'} files; last {len(known)}."
            return Reply(known, input_tokens=size)
        match next(turns, None):
            case None:
                return Reply("All sixty were read.", input_tokens=size)
            case 0:
                call = ("ask_user", {"question": "Which rate applies?", "options": []})
            case 1:
                call = ("todo", {"items": [{"text": "read all sixty", "state": "in_progress"}]})
            case number:
                call = ("run_command", {"command": f"seq {number}000 {number}600"})
        return Reply(thinking="Go on.", calls=(call,), input_tokens=size, output_tokens=60)

    ran = await lab.run(bench, provider, script, tools=workspace_tools(bench.cwd), ask=answer)
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "All sixty were read.")
    assert len(asked) == 1
    assert ran.of(EventType.LLM_REQUEST_FAILED) == [], "the provider's checks passed"
    budgets = ran.of(EventType.PROMPT_BUDGET_COMPUTED)
    assert sum(bool(budget["trimmed"]) for budget in budgets) >= 3, "a summary replaced an earlier summary"
    first = json.dumps(conversation(lab.served.calls[-1])[0])
    assert "greet Ada by name" in first
    assert known in first, "the summary"
    assert "Which rate applies?" in first and "Use the 7 % of ACME-3141." in first
    assert "[>] read all sixty" in first


@pytest.mark.parametrize("provider", WIRES)
async def test_request_for_a_summary_begins_with_the_request_before(provider: str, lab: Lab, bench: Bench) -> None:
    small(bench, model__max_context_tokens=6_000)
    turns = iter(range(1, 12))

    def script(request: Received) -> Reply:
        size = len(request.raw) // 4
        if asks_for_summary(request) or (number := next(turns, None)) is None:
            return Reply("All was read.", input_tokens=size)
        return Reply(calls=(("run_command", {"command": f"seq {number}000 {number}400"}),), input_tokens=size)

    await lab.run(bench, provider, script, tools=workspace_tools(bench.cwd))
    sent = lab.served.calls
    found = [number for number, call in enumerate(sent) if asks_for_summary(call)]
    assert found
    for number in found:
        before, asks = (plain(conversation(call)) for call in sent[number - 1 : number + 1])
        assert json.dumps(asks[: len(before) - 1]) == json.dumps(before[:-1])
        parts = "parts" if provider == "gemini" else "content"
        if provider == "openai":  # results of tools are messages, so the request to sum up is one more
            assert asks[-2][parts] == before[-1][parts]
        else:
            assert json.dumps(asks[-1][parts]).startswith(json.dumps(before[-1][parts])[:-1])
        for same in ("system", "tools", "tool_choice", "toolConfig", "systemInstruction"):
            assert sent[number].body.get(same) == sent[number - 1].body.get(same)


async def test_instructions_in_use_are_kept_and_others_can_be_taken_up_again(bench: Bench) -> None:
    use = [calls(("use_skill", {"name": name})) for name in ("farewell", "greeter")]
    worker = Worker(*use, *map(reads, range(1, 10)), use[1], use[0], "Done.")
    ran = await run(bench, worker)
    assert ran.conclusion.answer == "Done."
    assert len(worker.summaries) >= 1
    after = next(request for request in worker.requests[::-1] if request.answers == 11)
    assert "Say hello, and nothing else." in after.messages[0].text
    assert "Say goodbye." not in after.messages[0].text
    told = [output.text for message in worker.requests[-1].messages for output in message.outputs]
    assert any("Say goodbye." in text for text in told)
    assert any("greeter is already in use." in text for text in told)


async def test_messages_of_a_conversation_are_kept_word_for_word(bench: Bench) -> None:
    said = iter(["Only odd ones, please!", "x" * 20_000, "And the last?"])

    async def next_message(_answer: str) -> str | None:
        return next(said, None)

    answers = ["Which?", *map(reads, range(1, 7)), "I read six.", "Oh.", *map(reads, range(7, 10)), "The last is 9."]
    worker = Worker(*answers)
    ran = await run(bench, worker, next_message=next_message)
    assert ran.conclusion.answer == "The last is 9."
    assert "Message: And the last?" in worker.first_text
    assert "[earlier messages are only in the summary]" in worker.first_text
    before = next(request for request in worker.requests if request.answers == 8)
    assert "Message: Only odd ones, please!" in before.messages[0].text


@pytest.mark.parametrize(
    "summary", [{"calls": [{"name": "todo", "input": {"items": []}}]}, {"text": "no", "stop": "refusal"}, "  "]
)
async def test_model_that_gives_no_summary_goes_on_with_what_was_kept(summary: Any, bench: Bench) -> None:
    worker = Worker(*map(reads, range(1, 9)), "Done.", summary=summary)
    ran = await run(bench, worker)
    assert ran.conclusion.answer == "Done."
    assert [request.may_call for request in worker.summaries[:2]] == [True, False]
    assert "The model gave no summary." in worker.first_text
    assert "greet Ada by name" in worker.first_text
    assert '- run_command {"command": "seq 600000 601999"}: 600000 600001' in worker.first_text
    removed = [name for budget in ran.of(EventType.PROMPT_BUDGET_COMPUTED) for name in budget["trimmed"]]
    assert "a list of calls instead of a summary" in removed


async def test_claude_with_a_budget_for_thoughts_is_summarised(lab: Lab, bench: Bench) -> None:
    """The API refuses a request whose limit of the answer is not above the budget for thoughts."""
    small(bench, model__max_context_tokens=20_000, model__max_tokens=4_000)
    turns = iter(range(1, 30))

    def script(request: Received) -> Reply:
        size = len(request.raw) // 4
        if asks_for_summary(request):
            return Reply("All was read.", thinking="What matters?", input_tokens=size)
        if (number := next(turns, None)) is None:
            return Reply("Done.", input_tokens=size)
        call = ("run_command", {"command": f"seq {number}000 {number}900"})
        return Reply(thinking="Go on.", calls=(call,), input_tokens=size, output_tokens=900)

    thinking = {"type": "enabled", "budget_tokens": 3_000}
    async with lab.with_model("anthropic", bench.settings, thinking=thinking) as thoughtful:
        ran = await thoughtful.run(bench, "anthropic", script, tools=workspace_tools(bench.cwd))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Done.")
    assert lab.served.refused == []
    assert any(asks_for_summary(call) for call in lab.served.calls)


async def test_large_document_does_not_make_what_is_kept_look_large(lab: Lab, bench: Bench) -> None:
    """The provider's count of a document of many pages says nothing about the texts that stay."""
    small(bench, model__max_context_tokens=200_000, model__max_tokens=4_000)
    (bench.cwd / "scan.pdf").write_bytes(b"%PDF-1.4\n" + b"<< /Type /Page >>\n" * 60 + b"x" * 100_000)
    turns = iter([("read_file", {"path": "scan.pdf"}), *(("list_files", {"path": "."}) for _ in range(1))])

    def script(request: Received) -> Reply:
        if asks_for_summary(request):
            return Reply("The scan says 42.", input_tokens=196_000)
        call = next(turns, None)
        if call is None:
            return Reply("Done.", input_tokens=5_000)
        return Reply(calls=(call,), input_tokens=196_000 if call[0] == "list_files" else 3_000, output_tokens=50)

    ran = await lab.run(bench, "anthropic", script, tools=workspace_tools(bench.cwd))
    assert ran.conclusion.answer == "Done.", ran.conclusion
    assert "The scan says 42." in json.dumps(conversation(lab.served.calls[-1])[0])
    assert "[trimmed" not in lab.served.calls[-1].raw.decode()


async def test_calls_of_a_summary_are_not_executed(bench: Bench) -> None:
    def summary(request: ChatRequest) -> Any:
        return calls(bash("touch stolen"), text="All is done.")

    worker = Worker(*map(reads, range(1, 9)), "Done.", summary=summary)
    await run(bench, worker)
    assert worker.summaries
    assert not (bench.cwd / "stolen").exists()


async def test_outputs_of_many_calls_share_what_the_context_has_room_for(bench: Bench) -> None:
    small(bench, model__max_context_tokens=8_000)
    many = calls(*(bash(f"seq {number} 9000") for number in range(20)))
    worker = Worker(many, many | {"text": "again"}, calls(("read_output", {"output": "1.3", "page": 2})), "Done.")
    ran = await run(bench, worker)
    assert ran.conclusion.answer == "Done.", ran.conclusion
    last = [output.text for output in worker.requests[-1].messages[-1].outputs]
    assert "of output 1.3" in last[0]
    assert "pages 1 to" in worker.requests[1].messages[-1].outputs[0].text


async def test_answer_with_more_calls_than_the_context_has_room_for_gets_the_first_of_them(bench: Bench) -> None:
    small(bench, model__max_context_tokens=8_000)
    worker = Worker(calls(*(bash(f"seq {number} 9000") for number in range(40))), "Done.")
    ran = await run(bench, worker)
    assert ran.conclusion.answer == "Done.", ran.conclusion
    outputs = worker.requests[-1].messages[-1].outputs
    assert not outputs[0].failed and outputs[-1].failed
    assert len(outputs) == 40
    assert "calls in one answer" in outputs[-1].text


async def test_run_killed_at_any_write_makes_each_summary_once(tmp_path: Path) -> None:
    def started(folder: str, kill_at: int = 0) -> tuple[Agent, Worker]:
        bench = small(Bench(tmp_path / folder), model__max_context_tokens=8_000)
        worker = Worker(*(calls(bash(f"echo {n} >> log; seq {n}000 {n}999")) for n in range(1, 6)), "Done.")
        agent = Agent(bench, bench.root / "runs" / "20260101-000000-00000001", Expert(), kill_at=kill_at)
        agent.expert = worker  # type: ignore[assignment]
        return agent, worker

    whole, worker = started("whole")
    assert (await whole.start()).answer == "Done."
    made = len(worker.summaries)
    assert made >= 1
    for number in choose_moments(whole.writes):
        agent, worker = started(str(number), number)
        with pytest.raises((Killed, BaseExceptionGroup)):
            await agent.start()
        conclusion = await agent.start()
        assert conclusion.answer == "Done.", number
        assert len(worker.summaries) <= made + 1, "one summary at most is asked for again"
        assert len(worker.requests) <= len(worker.answers) + made + 1, number
        log = (agent.bench.cwd / "log").read_text().split()
        assert len(log) == len(set(log)), number


TOO_LONG = (
    (400, "prompt is too long: 201000 tokens > 200000 maximum"),
    (400, "input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000"),
    (413, "Request exceeds the maximum size"),
    (400, "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."),
    (400, "Unable to submit request because the input token count is 1100000 but the model supports up to 1048576."),
    (400, "This model's maximum context length is 128000 tokens."),
    (400, "Input is too long for requested model."),
)


class Refusing(Worker):
    """A model whose provider refuses a prompt of more than *most* messages, whatever the settings say."""

    def __init__(self, *answers: Any, most: int, refusal: tuple[int, str], also_summary: bool = False) -> None:
        super().__init__(*answers)
        self.most, self.refusal, self.also_summary = most, refusal, also_summary
        self.refused = 0

    def __call__(self, request: ChatRequest) -> Any:
        if self.also_summary if request.for_summary else len(request.messages) > self.most:
            self.refused += 1
            return {"error": self.refusal[0], "message": self.refusal[1]}
        return super().__call__(request)


@pytest.mark.parametrize("also_summary", [False, True])
@pytest.mark.parametrize("refusal", TOO_LONG)
async def test_a_prompt_that_the_provider_finds_too_long_is_summarized_once_and_the_run_goes_on(
    bench: Bench, refusal: tuple[int, str], also_summary: bool
) -> None:
    steps = [calls(bash(f"echo {number}")) for number in range(6)]
    model = Refusing(*steps, "Done.", most=8, refusal=refusal, also_summary=also_summary)
    ran = await run(bench, model)
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Done."), ran.conclusion
    assert model.refused == 1 + also_summary
    last = model.requests[-1].messages
    assert len(last) <= 8 and ("Some files were read." in str(last)) is not also_summary


async def test_a_prompt_that_stays_too_long_ends_the_run(bench: Bench) -> None:
    model = Refusing(*[calls(bash(f"echo {number}")) for number in range(6)], "Done.", most=2, refusal=TOO_LONG[0])
    ran = await run(bench, model)
    assert (ran.conclusion.status, ran.conclusion.reason) == (ConclusionStatus.FAILED, "prompt_too_long")
    assert "lower model.max_context_tokens" in ran.conclusion.answer
