"""What a program sees that makes a mistake: one error, as itself, that says what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import get_type_hints

import fireswarm as fs
from fireswarm.contracts.swarm.task_fields import TaskFields

pytestmark = pytest.mark.anyio


@fs.skill("read-it", "Reads the file that `path` names.")
def read_it(request: fs.SkillRequest) -> fs.SkillResult:
    return fs.SkillResult(summary=Path(request.context["path"]).read_text())


@fs.skill("text-only", "Returns a text.")
def text_only(request: fs.SkillRequest) -> Any:
    return "hello"


@fs.skill("forever", "Waits for ever.")
async def forever(request: fs.SkillRequest) -> fs.SkillResult:
    await asyncio.Event().wait()
    return fs.SkillResult(summary="never")


async def run(*arguments: Any, roles: dict[str, Any] | None = None, **fields: Any) -> Any:
    async with fs.Swarm.local(roles=roles or {"reader": [read_it, text_only, forever]}) as swarm:
        return await swarm.run(*arguments, **{"role": "reader", "max_attempts": 1, **fields})


async def raises_in_the_block() -> None:
    async with fs.Swarm.local(roles={"reader": [read_it]}):
        raise KeyError("of the program itself")


async def raises_while_following() -> None:
    async with fs.Swarm.local(roles={"reader": [forever]}) as swarm:
        task = await swarm.submit("wait", role="reader")
        async with swarm.events(task):
            raise KeyError("of the program itself")


def plain(request: fs.SkillRequest) -> fs.SkillResult:
    return fs.SkillResult(summary=request.objective)


MISTAKES: dict[str, tuple[Callable[[], Awaitable[Any]], type[Exception], str]] = {
    "a failing skill": (lambda: run("read", context={"path": "/no/such"}), fs.errors.NotDone, "No such file"),
    "a text for a result": (lambda: run("say", skill="text-only"), fs.errors.NotDone, r"instead of SkillResult\. Fix"),
    "an unknown role": (lambda: run("x", role="raeder"), fs.errors.InvalidInput, "this swarm has reader"),
    "a misspelt field": (lambda: run("x", contxt={}), fs.errors.InvalidInput, "did you mean context"),
    "an empty objective": (lambda: run(""), fs.errors.InvalidInput, "objective"),
    "an unknown skill": (lambda: run("x", skill="raed"), fs.errors.InvalidInput, "there is no skill 'raed'"),
    "a plain function": (lambda: run("x", roles={"reader": [plain]}), fs.errors.ConfigError, "plain is not a skill"),
    "a time limit": (
        lambda: run("x", skill="forever", timeout_seconds=0.2),
        TimeoutError,
        r"task .* has not ended after 0\.2 s: .* works on it",
    ),
    "an error of the program": (raises_in_the_block, KeyError, "of the program itself"),
    "an error while following": (raises_while_following, KeyError, "of the program itself"),
    "an unknown task": (lambda: waits_for("none"), fs.errors.NotFound, "there is no task none"),
}


async def waits_for(task: str) -> None:
    async with fs.Swarm.local(roles={"reader": [read_it]}) as swarm:
        await swarm.wait(task)


@pytest.mark.parametrize("name", MISTAKES)
async def test_a_mistake_raises_one_error_as_itself(name: str) -> None:
    call, kind, text = MISTAKES[name]
    with pytest.raises(kind, match=text):
        await call()


async def test_a_failure_is_not_remembered_once_its_cause_is_gone(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    async with fs.Swarm.local(roles={"reader": [read_it]}) as swarm:
        with pytest.raises(fs.errors.NotDone):
            await swarm.run("read", role="reader", context={"path": str(note)}, max_attempts=1)
        note.write_text("now there")
        result = await swarm.run("read", role="reader", context={"path": str(note)}, max_attempts=1)
        assert result.summary == "now there"


def test_a_decorator_without_its_arguments_says_how_to_write_it() -> None:
    decorate: Any = fs.skill
    with pytest.raises(fs.errors.ConfigError, match=r"write @skill\(NAME, DESCRIPTION\) before the function 'plain'"):
        decorate(plain)


def test_the_typed_fields_of_a_task_are_those_that_it_takes() -> None:
    """A type checker refuses a misspelt name, since every field is named."""
    given = {"objective", "assigned_to", "context"}
    assert set(get_type_hints(TaskFields)) == set(fs.TaskSpec.model_fields) - given


async def test_a_role_may_have_no_skill_of_its_own(tmp_path: Path) -> None:
    """Its model works without; without a model, the task says what is missing."""
    folder = tmp_path / "roles" / "thinker"
    folder.mkdir(parents=True)
    (folder / "ROLE.md").write_text("---\nname: thinker\ndescription: thinks\nskills: []\n---\nThink.\n")
    async with fs.Swarm.local(root=tmp_path) as swarm:
        with pytest.raises(fs.errors.NotDone, match="no skill and no model|ANTHROPIC_API_KEY"):
            await swarm.run("think", role="thinker", max_attempts=1)
