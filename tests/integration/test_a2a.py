"""The roles of a swarm as agents of the Agent2Agent protocol, used by the client of the official package."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from a2a import types
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

from fireswarm.api import session
from fireswarm.contracts.skills.artifact import ANSWER, Artifact
from fireswarm.contracts.skills.permissions import Approval
from fireswarm.contracts.skills.skill import PlannedTask, Question
from fireswarm.contracts.swarm.lease import HeldLease
from fireswarm.contracts.swarm.outcome import Failed, Handoff, Waiting
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from tests.support.a2a import Agents, State, data_part, get, message, questions_of, send, serving_agents, text_of
from tests.support.api import HEADERS, TOKEN
from tests.support.console import blocked
from tests.support.fleet import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig, done, open_test_swarm

pytestmark = pytest.mark.anyio

BINDINGS = ("JSONRPC", "HTTP+JSON")
PICTURE = b"\xff\x00\xfe picture"


@pytest.fixture
async def swarm() -> AsyncGenerator[SwarmRig]:
    async with open_test_swarm(session="s1") as opened:
        yield opened


@pytest.fixture
async def agents(swarm: SwarmRig) -> AsyncGenerator[Agents]:
    async with serving_agents(swarm) as served:
        yield served


async def ask(swarm: SwarmRig, *questions: Question, reason: StatusReason = StatusReason.INPUT_REQUIRED) -> None:
    """Let a worker claim the only queued task and ask questions."""
    await swarm.settle(await swarm.claim_one(), Waiting(reason, "asks", questions))


def has_task(swarm: SwarmRig) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return bool(await swarm.client.tasks())

    return look


def has_streams(agents: Agents, number: int) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return agents.service.streams.total() == number

    return look


async def test_each_role_has_a_card_at_its_address(agents: Agents) -> None:
    card = await agents.card("predictor")
    assert card.name == "predictor" and card.capabilities.streaming and not card.capabilities.push_notifications
    assert [skill.id for skill in card.skills] == ["noop"]
    assert {(item.protocol_binding, item.protocol_version) for item in card.supported_interfaces} == {
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
    }
    assert card.security_schemes["bearer"].http_auth_security_scheme.scheme == "bearer"
    listed = (await agents.http.get(f"{agents.base}/a2a")).json()["agents"]
    assert [each["name"] for each in listed] == ["architect", "executor", "memory", "predictor", "scout"]
    first = (await agents.http.get(f"{agents.base}/.well-known/agent-card.json")).json()
    assert first["name"] == "architect"
    assert {each["url"] for each in first["supportedInterfaces"]} == {f"{agents.base}/a2a/architect"}


@pytest.mark.parametrize("binding", BINDINGS)
async def test_client_submits_answers_and_fetches_files(swarm: SwarmRig, agents: Agents, binding: str) -> None:
    client = await agents.client(binding=binding)
    made = await send(client, message("paint the gate"))
    assert made.status.state == State.TASK_STATE_SUBMITTED and made.history[0].parts[0].text == "paint the gate"
    await ask(swarm, Question(name="color", description="Which color?"))
    asking = await get(client, made.id)
    assert asking.status.state == State.TASK_STATE_INPUT_REQUIRED and "Which color?" in text_of(asking)
    assert questions_of(asking)[0]["name"] == "color"
    answered = await send(client, message("red", task_id=made.id, context_id=made.context_id))
    assert answered.id == made.id and answered.status.state == State.TASK_STATE_SUBMITTED
    held = await swarm.claim_one()
    assert held.task.answers == {"color": "red"}
    assert (await get(client, made.id)).status.state == State.TASK_STATE_WORKING
    uri = await swarm.client.parts.blobs.put(f"s1/{made.id}/picture.bin", PICTURE)
    answer = Artifact(type=ANSWER, name="answer", value="It is red.")
    await swarm.settle(held, done("painted", artifacts=(answer, Artifact(type="file", name="picture.bin", uri=uri))))
    ended = await get(client, made.id)
    assert ended.status.state == State.TASK_STATE_COMPLETED
    text, picture = ended.artifacts
    assert text.parts[0].text == "It is red."
    assert picture.parts[0].raw == PICTURE and picture.parts[0].filename == "picture.bin"


async def test_stream_tells_each_change_then_the_answer_and_ends(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client(streaming=True, polling=False)
    events: list[types.StreamResponse] = []
    held: list[HeldLease] = []
    async for event in client.send_message(types.SendMessageRequest(message=message("paint the gate"))):
        events.append(event)
        if len(events) == 1:
            held.append(await swarm.claim_one())
        elif event.status_update.status.state == State.TASK_STATE_WORKING:
            await swarm.settle(held[0], done("painted"))
    kinds = [event.WhichOneof("payload") for event in events]
    assert kinds == ["task", "status_update", "artifact_update", "status_update"]
    assert events[0].task.status.state == State.TASK_STATE_SUBMITTED
    assert events[2].artifact_update.artifact.parts[0].text == "painted"
    assert events[-1].status_update.status.state == State.TASK_STATE_COMPLETED


async def test_stream_ends_at_a_question_and_a_subscription_goes_on(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client(streaming=True, polling=False)
    made = await send(await agents.client(), message("paint the gate"))
    states: list[int] = []
    async for event in client.subscribe(types.SubscribeToTaskRequest(id=made.id)):
        if event.HasField("task"):
            await ask(swarm, Question(name="color", description="Which color?"))
        else:
            states.append(event.status_update.status.state)
    assert states[-1] == State.TASK_STATE_INPUT_REQUIRED
    assert agents.service.streams.total() == 0
    await swarm.client.cancel(made.id)
    with pytest.raises(UnsupportedOperationError):
        async for _ in client.subscribe(types.SubscribeToTaskRequest(id=made.id)):
            pass


async def test_blocking_request_returns_when_the_taskhas_ended(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client(polling=False)
    ended: list[types.Task] = []

    async def wait() -> None:
        ended.append(await send(client, message("paint the gate")))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await until(has_task(swarm), seconds=PATIENCE_SECONDS)
        await swarm.settle(await swarm.claim_one(), done("painted"))
    assert ended[0].status.state == State.TASK_STATE_COMPLETED
    assert ended[0].artifacts[0].parts[0].text == "painted"


async def test_example_of_the_guide_prints_the_events_of_its_task(
    swarm: SwarmRig, agents: Agents, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "a2a.md").read_text(encoding="utf-8")
    code = guide.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {"__name__": "guide"}
    exec(code.replace("http://127.0.0.1:8093", agents.base), names)
    async with anyio.create_task_group() as group:
        group.start_soon(names["main"], TOKEN)
        await until(has_task(swarm), seconds=PATIENCE_SECONDS)
        await swarm.settle(await swarm.claim_one(), done("three notes"))
    printed = capsys.readouterr().out
    assert "list the notes" in printed and "three notes" in printed and "TASK_STATE_COMPLETED" in printed


async def test_client_that_leaves_frees_its_listener(swarm: SwarmRig, agents: Agents) -> None:
    for streams in (True, False):
        client = await agents.client(streaming=streams, polling=False)
        async with anyio.create_task_group() as group:
            group.start_soon(send, client, message("paint the gate"))
            await until(has_streams(agents, 1), seconds=PATIENCE_SECONDS)
            group.cancel_scope.cancel()
        await until(has_streams(agents, 0), seconds=PATIENCE_SECONDS)


async def test_open_stream_ends_when_the_server_stops(swarm: SwarmRig) -> None:
    spoken = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "paint the gate"}]}}
    async with httpx.AsyncClient(headers={**HEADERS, "A2A-Version": "1.0"}, timeout=PATIENCE_SECONDS) as http:
        read: list[str] = []

        async def follow(base: str) -> None:
            read.append((await http.post(f"{base}/a2a/scout/message:stream", json=spoken)).text)

        async with anyio.create_task_group() as group, serving_agents(swarm) as agents:
            group.start_soon(follow, agents.base)
            await until(has_streams(agents, 1), seconds=PATIENCE_SECONDS)
    assert "TASK_STATE_SUBMITTED" in read[0] and agents.service.streams.total() == 0


async def test_too_many_streams_are_refused(swarm: SwarmRig, agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MAX_STREAMS_OF_CALLER", 0)
    made = await send(await agents.client(), message("paint the gate"))
    given = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "look"}]}
    for method, params in (("SubscribeToTask", {"id": made.id}), ("SendMessage", {"message": given})):
        told = (await agents.rpc(method, params))["error"]
        assert told["code"] == -32600 and "too many" in told["message"]


async def test_same_message_is_one_task_and_said_once(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client()
    first = message("paint the gate")
    made, again = await send(client, first), await send(client, first)
    other = await send(client, message("paint the gate"))
    assert made.id == again.id and other.id != made.id
    with pytest.raises(A2AError, match="another message"):
        await send(client, message("paint the house", message_id=first.message_id))
    at_once = message("paint the fence")
    tasks: list[types.Task] = []

    async def deliver() -> None:
        tasks.append(await send(client, at_once))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(deliver)
    assert len({task.id for task in tasks}) == 1
    said = message("use red", task_id=made.id)
    for _ in range(2):
        assert (await send(client, said)).id == made.id
    assert len((await swarm.task(made.id)).said) == 1


async def test_context_goes_on_after_its_taskhas_ended(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client()
    made = await send(client, message("paint the gate"))
    await swarm.settle(await swarm.claim_one(), done("painted"))
    with pytest.raises(UnsupportedOperationError, match="without taskId"):
        await send(client, message("now the door", task_id=made.id))
    following = message("now the door", context_id=made.context_id)
    next_task = await send(client, following)
    assert next_task.id != made.id and next_task.context_id == made.context_id
    assert (await send(client, following)).id == next_task.id
    assert "now the door" in next_task.history[0].parts[0].text
    listed = await client.list_tasks(types.ListTasksRequest(context_id=made.context_id))
    assert [task.id for task in listed.tasks] == [next_task.id, made.id]
    for wrong in (message("x", context_id="unknown"), message("x", task_id=next_task.id, context_id="other")):
        with pytest.raises(A2AError, match="context"):
            await send(client, wrong)


async def test_answers_fit_their_questions(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client()
    made = await send(client, message("paint the gate"))
    await ask(
        swarm,
        Question(name="color", description="Which color?"),
        Question(name="coats", description="How many coats?", type="integer"),
    )
    with pytest.raises(A2AError, match="color, coats"):
        await send(client, message("red", task_id=made.id))
    with pytest.raises(A2AError, match="none of the open questions"):
        await send(client, message(data_part({"size": 1}), task_id=made.id))
    await send(client, message(data_part({"color": "red", "coats": 2}), task_id=made.id))
    assert (await swarm.task(made.id)).answers == {"color": "red", "coats": 2}


async def test_question_of_a_planned_task_is_asked_and_answered_through_its_objective(
    swarm: SwarmRig, agents: Agents
) -> None:
    client = await agents.client("architect")
    made = await send(client, message("paint the gate"))
    plan = (PlannedTask(key="paint", assigned_to="scout", objective="paint it"),)
    await swarm.settle(await swarm.claim_one(role="architect"), Handoff(plan))
    assert (await get(client, made.id)).status.state == State.TASK_STATE_WORKING
    await ask(swarm, Question(name="color", description="Which color?"))
    asking = await get(client, made.id)
    assert asking.status.state == State.TASK_STATE_INPUT_REQUIRED and "Which color?" in text_of(asking)
    assert (await send(client, message("red", task_id=made.id))).status.state == State.TASK_STATE_WORKING
    assert (await swarm.claim_one()).task.answers == {"color": "red"}


async def test_approval_of_a_planned_task_is_not_given_beside_an_answer(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client("architect")
    made = await send(client, message("paint the gate"))
    plan = [PlannedTask(key=key, assigned_to="scout", objective=key) for key in ("clean", "paint")]
    await swarm.settle(await swarm.claim_one(role="architect"), Handoff(tuple(plan)))
    approval = Approval(tool="run_command", shown="rm -r build", because="it deletes")
    first, second = await swarm.claim(wanted=2)
    asks = (Question(name="approve", description="may it?", approval=approval),)
    await swarm.settle(first, Waiting(StatusReason.APPROVAL_REQUIRED, "asks", asks))
    await swarm.settle(second, Waiting(StatusReason.INPUT_REQUIRED, "asks", (Question(name="color", description="?"),)))
    with pytest.raises(A2AError, match="open questions: color"):
        await send(client, message(data_part({"approve": "yes"}), task_id=made.id))
    await send(client, message("red", task_id=made.id))
    assert (await swarm.task(second.task.task_id)).answers == {"color": "red"}
    assert (await swarm.task(first.task.task_id)).questions


async def test_approval_is_for_a_person_unless_the_server_allows_it(swarm: SwarmRig, agents: Agents) -> None:
    approval = Approval(tool="run_command", shown="rm -r build", because="it deletes")
    question = Question(name="approve", description="may it?", approval=approval)
    task = await blocked(swarm, question, reason=StatusReason.APPROVAL_REQUIRED, created_by="a2a")
    client = await agents.client()
    seen = await get(client, task.task_id)
    assert seen.status.state == State.TASK_STATE_INPUT_REQUIRED
    assert "A person decides" in text_of(seen) and "rm -r build" in text_of(seen)
    for words in ("yes", data_part({"approve": "yes"})):
        with pytest.raises(UnsupportedOperationError, match="decision of a person"):
            await send(client, message(words, task_id=task.task_id))
    assert (await swarm.task(task.task_id)).questions
    async with serving_agents(swarm, approves=True) as allowed:
        answered = await send(await allowed.client(), message("no", task_id=task.task_id))
        assert answered.status.state == State.TASK_STATE_SUBMITTED


async def test_task_that_gave_up_has_failed_and_is_not_canceled_again(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client()
    made = await send(client, message("paint the gate"))
    await swarm.settle(await swarm.claim_one(), Failed("no paint"))
    seen = await get(client, made.id)
    assert seen.status.state == State.TASK_STATE_FAILED and "no paint" in text_of(seen)
    other = await send(client, message("paint the house"))
    canceled = await client.cancel_task(types.CancelTaskRequest(id=other.id))
    assert canceled.status.state == State.TASK_STATE_CANCELED
    assert (await swarm.task(other.id)).status is TaskStatus.CANCELED
    for task_id in (made.id, other.id):
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(types.CancelTaskRequest(id=task_id))


async def test_list_is_paged_filtered_and_of_the_role_only(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client()
    made = [(await send(client, message(f"task {number}"))).id for number in range(3)]
    await swarm.submit("of another role", role="executor")
    await swarm.submit("of another session", session="s2")
    await swarm.client.cancel(made[0])
    pages: list[str] = []
    token = ""
    while len(pages) < 3:
        page = await client.list_tasks(types.ListTasksRequest(page_size=2, page_token=token))
        assert page.total_size == 3
        pages += [task.id for task in page.tasks]
        token = page.next_page_token
    assert sorted(pages) == sorted(made) and token == ""
    queued = await client.list_tasks(types.ListTasksRequest(status=State.TASK_STATE_SUBMITTED, history_length=0))
    assert sorted(task.id for task in queued.tasks) == sorted(made[1:]) and not queued.tasks[0].history
    with pytest.raises(A2AError, match="cursor"):
        await client.list_tasks(types.ListTasksRequest(page_token="nonsense"))


async def test_tasks_of_others_do_not_exist_for_a_client(swarm: SwarmRig, agents: Agents) -> None:
    client = await agents.client()
    others = [await swarm.submit("other", session="s2"), await swarm.submit("other", role="executor")]
    for task_id in (*(task.task_id for task in others), "nothing", "a/b"):
        with pytest.raises(TaskNotFoundError):
            await get(client, task_id)
        with pytest.raises(TaskNotFoundError):
            await send(client, message("stop", task_id=task_id))
        with pytest.raises(TaskNotFoundError):
            await client.cancel_task(types.CancelTaskRequest(id=task_id))
    for other in others:
        assert (await swarm.task(other.task_id)).status is TaskStatus.QUEUED
