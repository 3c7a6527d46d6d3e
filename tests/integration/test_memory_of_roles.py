"""Every role with a model is told the facts that fit its task, and searches and adds facts with its own tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.ports import Create, Write
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.swarm.turn.facts import HEADING, MAX_TOLD_CHARS, describe_facts
from fireswarm.swarm.turn.turn import run_turn
from tests.integration.test_thinking import Killed, act, decide, one_turn, reclaimed, submit, thinking, was_killed
from tests.support.crashes import choose_moments
from tests.support.swarm import ROLES, SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio

EVIDENCE = ["README.md:3"]


class Talker:
    """Makes the given calls, one in each answer, then concludes. Keeps the requests."""

    def __init__(self, *calls: dict[str, Any]) -> None:
        self.calls = calls
        self.requests: list[ChatRequest] = []

    def __call__(self, request: ChatRequest) -> dict[str, Any]:
        self.requests.append(request)
        number = sum(message.role == "assistant" for message in request.messages)
        return decide(self.calls[number]) if number < len(self.calls) else {"text": "done", "calls": []}

    @property
    def opening(self) -> str:
        return self.requests[0].messages[0].text

    @property
    def outputs(self) -> list[str]:
        return [output.text for message in self.requests[-1].messages for output in message.outputs]


async def learn(swarm: SwarmRig, *facts: Fact, session: str = "s1") -> None:
    await swarm.store.commit(await swarm.core.memory.learn(session, "a" * 32, facts))


async def facts_of(swarm: SwarmRig, query: str) -> list[Fact]:
    return await swarm.core.memory.recall("s1", query)


async def work(swarm: SwarmRig, model: Talker, folder: Path, role: str = "scout") -> Task:
    await submit(swarm, folder, role=role)
    return await one_turn(swarm, thinking(swarm, model, folder), role=role)


@pytest.mark.parametrize("role", ROLES)
async def test_every_role_is_told_the_facts_that_fit_with_source_date_and_evidence(
    swarm: SwarmRig, tmp_path: Path, role: str
) -> None:
    told = Fact(bucket="b", key="things", value="There are 12 things to count.", evidence=("list.md:4",))
    await learn(swarm, told, Fact(bucket="b", key="weather", value="It rains."))
    await learn(swarm, Fact(bucket="b", key="things", value="Things of another session."), session="s2")
    model = Talker()
    assert (await work(swarm, model, tmp_path, role)).status is TaskStatus.DONE
    day = swarm.clock.now().date().isoformat()
    assert HEADING in model.opening
    assert f"b/things: There are 12 things to count. (task aaaaaaaa, {day}; evidence: list.md:4)" in model.opening
    assert "It rains." not in model.opening and "another session" not in model.opening


async def test_summary_of_an_earlier_task_is_told(swarm: SwarmRig, tmp_path: Path) -> None:
    earlier = await swarm.submit("an earlier objective", role="memory")
    artifact = Artifact(type="session_summary", name="s", value="The things were counted twice.")
    await swarm.store.commit(swarm.core.memory.summarise(earlier, artifact))
    await swarm.claim_one(role="memory")
    model = Talker()
    await work(swarm, model, tmp_path)
    assert f"The things were counted twice. (task {earlier.task_id[:8]}" in model.opening


async def test_facts_in_the_prompt_stay_in_their_budget_and_long_ones_are_readable_by_recall(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    long = f"things to count: {'数据' * 2_000} END"
    await learn(swarm, Fact(bucket="b", key="things count", value=long))
    await learn(swarm, *(Fact(bucket="b", key=f"k{n}", value=f"count things {n} " * 20) for n in range(60)))
    model = Talker(act("recall", query="count things END"))
    await work(swarm, model, tmp_path)
    told = model.opening.partition(HEADING)[2].partition("\n\n# ")[0]
    assert 500 < len(told.encode()) < 4 * 1_500 + 200
    assert "more facts: use recall" in told
    assert "END" not in told and long in " ".join(model.outputs)
    assert len(describe_facts([Fact(bucket="b", key="k", value=long)], 0, MAX_TOLD_CHARS)) < 2 * MAX_TOLD_CHARS


async def test_no_facts_are_told_if_the_budget_is_zero(swarm: SwarmRig, tmp_path: Path) -> None:
    await learn(swarm, Fact(bucket="b", key="things", value="count things"))
    model = Talker()
    await submit(swarm, tmp_path)
    await one_turn(swarm, thinking(swarm, model, tmp_path, memory={"prompt_tokens": 0}))
    assert HEADING not in model.opening


async def test_remembered_fact_is_recalled_with_its_evidence_and_replaced_by_name(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    first = act("remember", fact="The Öl lieferung is on Monday.", evidence=EVIDENCE, name="oil delivery")
    second = act("remember", fact="The Öl lieferung is on Friday.", evidence=["mail of Ada"], name="oil delivery")
    model = Talker(first, second, act("recall", query="öl"))
    task = await work(swarm, model, tmp_path)
    assert model.outputs[0].startswith("stored as ") and "Friday" in model.outputs[2]
    [fact] = await facts_of(swarm, "oil delivery Monday")
    assert (fact.value, fact.evidence) == ("The Öl lieferung is on Friday.", ("mail of Ada",))
    assert fact.source == f"scout, task {task.task_id}"
    assert [item.value for item in await swarm.client.fact_history(fact.fact_id)][1:] == [
        "The Öl lieferung is on Monday."
    ]


async def test_remembered_fact_replaces_the_one_it_names(swarm: SwarmRig, tmp_path: Path) -> None:
    by_hand = {"type": "fact", "session_hash": "s1", "value": "The queue is rq."}
    await swarm.store.commit([Create("mcp_memory/by-hand", by_hand)])
    model = Talker(act("remember", fact="The queue is saq.", evidence=EVIDENCE, replaces="by-hand"))
    await work(swarm, model, tmp_path)
    assert [fact.value for fact in await facts_of(swarm, "queue")] == ["The queue is saq."]
    assert (await swarm.store.get("mcp_memory/by-hand")).data is not None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"fact": "x"}, "remember needs fact and evidence"),
        ({"fact": " ", "evidence": EVIDENCE}, "remember needs fact and evidence"),
        ({"fact": "x", "evidence": [" "]}, "remember needs fact and evidence"),
        ({"fact": "x" * 5_000, "evidence": EVIDENCE}, "a fact has at most 4,000 characters"),
        ({"fact": "x", "evidence": EVIDENCE, "replaces": "none"}, "there is no fact none"),
        ({"fact": "the moon is MADE of cheese!", "evidence": EVIDENCE}, "a person marked this as wrong"),
    ],
)
async def test_fact_without_evidence_or_known_to_be_wrong_is_refused(
    swarm: SwarmRig, tmp_path: Path, given: dict[str, Any], told: str
) -> None:
    await learn(swarm, Fact(bucket="b", key="moon", value="The moon is made of cheese."))
    [fact] = await facts_of(swarm, "moon")
    await swarm.client.mark_fact(fact.fact_id)
    model = Talker(act("remember", **given))
    assert (await work(swarm, model, tmp_path)).status is TaskStatus.DONE
    assert told in model.outputs[0]
    assert await facts_of(swarm, "x moon cheese") == []


async def test_recall_without_a_match_or_a_query_says_so(swarm: SwarmRig, tmp_path: Path) -> None:
    model = Talker(act("recall", query="nothing"), act("recall"))
    await work(swarm, model, tmp_path)
    assert "no fact shares a word" in model.outputs[0] and "recall needs query" in model.outputs[1]


async def test_secret_in_a_fact_is_removed(swarm: SwarmRig, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    model = Talker(act("remember", fact=f"The token is {secret}.", evidence=[f"env: {secret}"]))
    await work(swarm, model, tmp_path)
    [fact] = await facts_of(swarm, "token")
    assert secret not in fact.model_dump_json() and "[redacted" in str(fact.value)


async def test_turn_killed_at_any_commit_stores_each_fact_once_and_sends_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings = set[str]()
    commits = await remembers(tmp_path / "whole", monkeypatch, 0, openings)
    assert commits > 4
    for number in choose_moments(commits):
        await remembers(tmp_path / str(number), monkeypatch, number, openings)
        monkeypatch.undo()
    assert len(openings) == 1


async def remembers(folder: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int, openings: set[str]) -> int:
    """Work on a task whose first process dies after commit *kill_at*. Returns the number of its commits."""
    calls = [act("remember", fact=f"fact {n} of the things", evidence=EVIDENCE) for n in range(2)]
    model = Talker(*calls, act("recall", query="things"))
    async with open_test_swarm() as swarm:
        await learn(swarm, Fact(bucket="b", key="count", value="count the things"))
        await submit(swarm, folder)
        seen, real = 0, swarm.store.commit

        async def commit(writes: list[Write], **more: Any) -> Any:
            nonlocal seen
            done = await real(writes, **more)
            seen += 1
            if seen == kill_at:
                raise Killed
            return done

        held = await swarm.claim_one("first")
        monkeypatch.setattr(swarm.store, "commit", commit)
        died = False
        try:
            ending = await run_turn(held, thinking(swarm, model, folder))
            await swarm.board.settle(held, ending.outcome, ending.writes)
        except BaseException as error:
            if not was_killed(error):
                raise
            died = True
        monkeypatch.undo()
        if died and not (await swarm.task(held.task.task_id)).status.terminal:
            await learn(swarm, Fact(bucket="b", key="later", value="count the things later"))
            await reclaimed(swarm)
            task = await one_turn(swarm, thinking(swarm, model, folder), "second")
            assert task.status is TaskStatus.DONE, task.error
        remembered = [fact for fact in await facts_of(swarm, "fact things") if fact.evidence]
        assert sorted(fact.value for fact in remembered) == ["fact 0 of the things", "fact 1 of the things"]
        for fact in remembered:
            assert len(await swarm.client.fact_history(fact.fact_id)) == 1
        openings |= {request.messages[0].text.partition(HEADING)[2] for request in model.requests}
        return seen
