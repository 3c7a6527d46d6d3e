"""Foreign code that cancels itself or calls sys.exit: its call fails with words, and nothing else ends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import anyio
import pytest

import fireswarm as fs
from fireswarm.capabilities.registry import Registry
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.ports import Write
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import ConfigError, ModelError, NotDone, SkillFailed, ToolFailed
from fireswarm.llm.budget import Meter
from fireswarm.llm.client import ModelClient
from fireswarm.llm.limiter import Limiter
from fireswarm.settings.agent import BudgetSettings, ModelSettings
from fireswarm.swarm.roles.hooks import HOOKS, RoleHooks
from fireswarm.swarm.turn.inputs import recall_facts

pytestmark = pytest.mark.anyio

ENDED = r"was canceled by its own code|called sys\.exit\(3\)"


async def raises_it() -> None:
    raise asyncio.CancelledError


async def awaits_canceled_work() -> None:
    inner = asyncio.ensure_future(asyncio.Event().wait())
    inner.cancel()
    await inner


async def cancels_its_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()


async def exits() -> None:
    sys.exit(3)


WAYS = (raises_it, awaits_canceled_work, cancels_its_task, exits)
Way = Callable[[], Awaitable[None]]
Call = Callable[[Way], Coroutine[Any, Any, None]]


def raise_it(*given: Any) -> NoReturn:
    raise asyncio.CancelledError


def exit_now(*given: Any) -> NoReturn:
    sys.exit(3)


async def call_async_tool(way: Way) -> None:
    @fs.tool
    async def give_up() -> None:
        await way()

    await give_up.call({})


async def call_tool_made_by_hand(way: Way) -> None:
    async def run(given: Any) -> None:
        await way()

    await Tool("give_up", "Gives up.", {}, run).call({})


async def call_preview(way: Way) -> None:
    async def show() -> None:
        await way()

    @fs.tool(preview=show, writes=True)
    def give_up() -> None: ...

    await give_up.show_change({})


async def call_function_skill(way: Way) -> None:
    @fs.skill("give-up", "Gives up.")
    async def give_up(request: fs.SkillRequest) -> Any:
        await way()

    await give_up.run(request_for("give-up"))


async def ask_script(way: Way) -> None:
    async def script(request: ChatRequest) -> str:
        await way()
        return "never"

    clock = fs.VirtualClock()
    client = ModelClient(
        fs.ScriptedModel(script), ModelSettings(), clock, Limiter(clock), Meter(BudgetSettings(), "script")
    )
    await client.complete(ChatRequest(system="", messages=(), max_tokens=10), None, lambda usage: None)


async def recall_for_role(way: Way) -> None:
    async def recall(memory: Any, task: Any) -> tuple[fs.Fact, ...]:
        await way()
        return ()

    task: Any = type("Named", (), {"assigned_to": "ops"})()
    memory: Any = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(HOOKS, "ops", RoleHooks(facts=(recall,)))  # pyright: ignore[reportArgumentType]
        await recall_facts(memory, task)


CALLS = (
    call_async_tool,
    call_tool_made_by_hand,
    call_preview,
    call_function_skill,
    ask_script,
    recall_for_role,
)


def request_for(skill: str) -> fs.SkillRequest:
    return fs.SkillRequest(
        task_id="t", session_hash="s", objective=skill, role="ops", workdir=Path("unused"), now=fs.VirtualClock().now()
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", CALLS)
async def test_foreign_code_that_ends_itself_fails_its_call_only(
    call: Call, way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ToolFailed, SkillFailed, ModelError), match=ENDED):
        await call(way)
    this = asyncio.current_task()
    assert this is not None
    assert not this.cancelling()


@pytest.mark.parametrize("call", CALLS)
async def test_cancellation_from_outside_ends_foreign_code(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begun = anyio.Event()

    async def wait() -> None:
        begun.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(call, wait)
        await begun.wait()
        group.cancel_scope.cancel()
    assert group.cancel_scope.cancelled_caught


@pytest.mark.parametrize("end", [raise_it, exit_now])
async def test_plain_function_in_a_thread_that_ends_itself_fails_its_call(
    end: Callable[..., NoReturn], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    @fs.tool
    def give_up() -> None:
        end()

    with pytest.raises(ToolFailed, match=ENDED):
        await give_up.call({})
    with pytest.raises(SkillFailed, match=ENDED):
        await fs.skill("give-up", "Gives up.")(end).run(request_for("give-up"))


@pytest.mark.parametrize("at_start", [True, False])
async def test_capability_that_ends_itself_while_it_opens_or_closes_fails(at_start: bool) -> None:
    @asynccontextmanager
    async def opens(config: Any, context: Any) -> AsyncGenerator[list[Tool]]:
        if at_start:
            await raises_it()
        yield []
        await awaits_canceled_work()

    capability = fs.Capability("odd", "Odd", "Ends itself.", opens=opens)
    context = fs.CapabilityContext("s", Path(), fs.VirtualClock())
    with pytest.raises(ToolFailed, match="the capability odd was canceled by its own code"):
        async with Registry.of([capability]).open([fs.CapabilityUse(id="odd")], context):
            pass


@pytest.mark.parametrize("end", [raise_it, exit_now])
def test_capability_whose_function_ends_itself_has_no_tools(end: Callable[..., NoReturn]) -> None:
    capability = fs.Capability("odd", "Odd", "Ends itself.", tools=end)
    with pytest.raises(ConfigError, match="the capability odd .* has no tools"):
        Registry.of([capability]).check([fs.CapabilityUse(id="odd")])


@fs.skill("deploy", "Deploys.")
def deploy(request: fs.SkillRequest) -> fs.SkillResult:
    return fs.SkillResult(summary="deployed")


async def recalls_nothing(memory: Any, task: Any) -> tuple[fs.Fact, ...]:
    await cancels_its_task()
    return ()


def writes_nothing(memory: Any, task: Any, result: Any) -> list[Write]:
    raise asyncio.CancelledError


@pytest.mark.parametrize("hooks", [RoleHooks(facts=(recalls_nothing,)), RoleHooks(writes=(writes_nothing,))])
async def test_hook_that_cancels_itself_fails_its_task_and_no_other(
    hooks: RoleHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fs.Swarm.local(roles={"ops": [deploy]}) as swarm:
        with monkeypatch.context() as patch:
            patch.setitem(HOOKS, "ops", hooks)  # pyright: ignore[reportArgumentType] - the table is a plain dict
            with pytest.raises(NotDone, match="canceled by its own code"):
                await swarm.run("try", role="ops", max_attempts=1, timeout_seconds=60)
        assert (await swarm.run("go", role="ops", timeout_seconds=60)).summary == "deployed"
