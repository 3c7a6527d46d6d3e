"""Every argument of every public method: a wrong type or value is one InvalidInput that says what to give."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from typing_extensions import get_type_hints

import fireswarm as fs
from fireswarm.contracts.swarm.task_fields import TaskFields
from fireswarm.errors import InvalidInput
from fireswarm.swarm.schedules.manage import Schedules
from fireswarm.swarm.submission.arguments import check_arguments

pytestmark = pytest.mark.anyio


class Odd:
    """An object of a program, which fits no parameter and has no repr."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Text(str):
    __slots__ = ()


TEXTS = (3, 2.5, True, b"x", [1], ["x"], {"a": 1}, Odd(), "\ud800", object)
NUMBERS = ("5", b"5", True, math.nan, -1, [1], {"a": 1}, Odd(), 10**400, object)
LISTS = ("step", b"step", 3, True, {"a": 1}, [1], [None], ["\ud800"], Odd(), {"a"})
MAPS = (3, True, "a", [1], [("a", 1)], {1: 2}, {"a": Odd()}, {"a": {1}}, {"a": 2**70}, Odd(), object)

WRONG: dict[str, tuple[Any, ...]] = {
    "AnyTask": (None, "", "a/b", ".", "..", "__x__", "x" * 2_000, "\ud800", 3, 2.5, True, b"x", [1], {"a": 1}, Odd()),
    "TaskId": (None, "", "a/b", ".", "\ud800", 3, True, b"x", [1], Odd()),
    "ScheduleName": (None, "", " ", "a/b", ".x", "a b", "x\n", "x" * 300, "\ud800", 3, True, b"x", [1], Odd()),
    "FactId": (None, "", "a/b", ".", "\ud800", 3, True, b"x", [1], Odd()),
    "str": TEXTS,
    "str | TaskSpec": (None, "", " ", *TEXTS),
    "Path | str": (3, 2.5, True, b"x", [1], {"a": 1}, Odd(), "a\0b"),
    "bool": (0, 1, "yes", "false", None, [], Odd()),
    "Whole": (*NUMBERS, 2.5),
    "Natural": (*NUMBERS, 2.5, 0),
    "Seconds": NUMBERS,
    "Amount": (*NUMBERS, 0, math.inf),
    "TaskStatus | str": ("foo", "", "QUEUED", 3, b"queued", ["queued"], Odd()),
    "StatusReason | str": ("foo", "", "done", 3, b"paused", ["paused"], Odd()),
    "JsonValue": (None, {1: 2}, {"a": Odd()}, {1}, 2**70, Odd(), object, "\ud800", "x" * 20_000),
    "Mapping[str, Any]": MAPS,
    "Mapping[str, Task]": (3, "a", [1], {1: 2}, {"a": "b"}, Odd()),
    "Mapping[str, Sequence[FunctionSkill | str]]": (3, "a", ["a"], {1: []}, {"a": "noop"}, {"a": 3}, Odd()),
    "Sequence[str]": LISTS,
    "Sequence[PlannedTask]": (*LISTS, ["a"]),
    "Settings": (3, "swarm.yaml", {"session": "x"}, fs.Settings, Odd()),
    "Clock": (3, "now", Odd(), fs.VirtualClock),
    "Sequence[Path]": ("skills", 3, ["skills"], [None], Odd()),
    "AgentSettings": (3, "agent.yaml", {}, fs.Settings, Odd()),
    "ChatModel": (3, "anthropic", Odd(), fs.ScriptedModel),
    "Callable[[EventRecord], None]": (3, "print", Odd()),
}
"""Wrong values for each annotation, as it is written. A new annotation needs a row."""

FIELDS: dict[str, tuple[Any, ...]] = {
    "session_hash": (3, "", "a/b", "x" * 200),
    "created_by": (3, [1]),
    "skill": (3, "no-such-skill", ""),
    "model": (3, "", "a b"),
    "effort": (3, "enormous"),
    "fallback": (3, ["a b"], {"a": 1}),
    "constraints": (3, "none", {"read_only": "maybe"}),
    "capabilities": (3, "web", [3], [{"id": "No Id"}]),
    "attachments": (3, "file", [3]),
    "priority": ("high", 0, 11, [1]),
    "deadline": ("soon", [1], Odd()),
    "max_attempts": ("many", 0, 1_000),
    "on_child_failure": (3, "panic"),
    "depends_on": (3, "x", [3], [None], [""], ["a/b"], [Odd()]),
    "handoff_reason": (3, [1]),
    "expected_outcome": (3, [1]),
    "checks": (3, "check", [3]),
    "max_revisions": ("many", -1, 1_000),
    "review_plan": ("maybe", [1]),
    "fresh_key": (3, "x" * 1_000),
    "instructions": (3, [1]),
    "for_agent": (3, "", "a/b"),
    "message_id": (3, "a/b"),
    "no_such_field": (1,),
}
"""Wrong values for each further field of a task."""

METHODS: dict[str, Any] = {
    prefix + name: getattr(kind, name)
    for kind, prefix in ((fs.Swarm, ""), (Schedules, "schedules."))
    for name, value in vars(kind).items()
    if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, staticmethod))
} | {"run_agent": fs.run_agent}


def parameters(name: str) -> dict[str, inspect.Parameter]:
    return {key: each for key, each in inspect.signature(METHODS[name]).parameters.items() if key != "self"}


def cases() -> list[Any]:
    made: list[Any] = []
    for method in METHODS:
        for name, parameter in parameters(method).items():
            if parameter.kind is not parameter.VAR_KEYWORD:
                made.append(pytest.param(method, name, id=f"{method}-{name}"))
    return made


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@fs.skill("say-hello", "Greets.")
def say_hello(request: fs.SkillRequest) -> fs.SkillResult:
    return fs.SkillResult(summary="hello")


@pytest.fixture(scope="module")
async def swarm() -> AsyncGenerator[fs.Swarm]:
    async with fs.Swarm.local(roles={"greeter": [say_hello]}) as opened:
        yield opened


async def attempt(call: Callable[..., Any], given: dict[str, Any]) -> None:
    """Call a method of any kind until it ends."""
    result = call(**given)
    if isinstance(result, AbstractAsyncContextManager):
        async with result:  # pyright: ignore[reportUnknownVariableType]
            pass
    else:
        await result


def method_of(swarm: fs.Swarm, name: str) -> Callable[..., Any]:
    return fs.run_agent if name == "run_agent" else operator.attrgetter(name)(swarm)


def good_values(method: str) -> dict[str, Any]:
    """Return a value for each parameter without a default."""
    good: dict[str, Any] = {
        "AnyTask": "no-such-task",
        "TaskId": "x",
        "FactId": "x",
        "ScheduleName": "x",
        "str": "x",
        "str | TaskSpec": "x",
    }
    good |= {"Mapping[str, Any]": {}, "JsonValue": 1, "Natural": 1, "Sequence[PlannedTask]": []}
    given = parameters(method).items()
    return {
        name: good[str(each.annotation)]
        for name, each in given
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    }


@pytest.mark.parametrize(("method", "name"), cases())
async def test_wrong_argument_is_one_error_that_names_it(method: str, name: str, swarm: fs.Swarm) -> None:
    parameter = parameters(method)[name]
    written = str(parameter.annotation)
    kind = written.removesuffix(" | None")
    wrong = [value for value in WRONG[kind] if value is not None or kind == written]
    if kind == written and None not in wrong:
        wrong.append(None)
    if kind == "str" and parameter.default is parameter.empty:
        wrong += ["", " "]
    for value in wrong:
        with pytest.raises(InvalidInput) as caught:
            await attempt(method_of(swarm, method), {**good_values(method), name: value})
        told = str(caught.value)
        if "task not submitted" not in told:
            called = told.removeprefix("Swarm.").replace("Schedules.", "schedules.")
            assert called.startswith(f"{method}: {name} is "), told
            assert ": give " in told
        assert len(told) < 1_000 and "\n" not in told


@pytest.mark.parametrize("method", ["submit", "run"])
@pytest.mark.parametrize("field", FIELDS)
async def test_wrong_field_of_a_task_is_one_error_that_names_it(method: str, field: str, swarm: fs.Swarm) -> None:
    for value in FIELDS[field]:
        with pytest.raises(InvalidInput, match=field if value != "no-such-skill" else "no skill 'no-such-skill'"):
            await getattr(swarm, method)("x", role="greeter", **{field: value})


def test_every_field_of_a_task_has_wrong_values() -> None:
    assert set(get_type_hints(TaskFields)) <= set(FIELDS)


@pytest.mark.parametrize(
    "more", [{"role": "other"}, {"context": {"a": 1}}, {"priority": 3}, {"context": {}}, {"depends_on": ()}]
)
async def test_fields_beside_a_spec_are_refused(more: dict[str, Any], swarm: fs.Swarm) -> None:
    spec = fs.TaskSpec(objective="x", assigned_to="greeter", session_hash="default")
    with pytest.raises(InvalidInput, match="a TaskSpec has all fields of its task"):
        await swarm.submit(spec, **more)


async def test_errors_say_what_was_given_and_what_to_give(swarm: fs.Swarm) -> None:
    values: Any = {"get": None, "wait": 3}
    with pytest.raises(InvalidInput, match=r"^Swarm\.get: task is None: give the id of a task, or the task as"):
        await swarm.get(values["get"])
    with pytest.raises(InvalidInput, match=r"^Swarm\.tasks: status is 'foo': give one of queued, in_progress, .*, or"):
        await swarm.tasks(status="foo")
    with pytest.raises(InvalidInput, match=r"priority: .* less than or equal to 10 \(given: 11\)"):
        await swarm.submit("x", role="greeter", priority=11)


async def test_task_stands_for_its_id_everywhere(swarm: fs.Swarm) -> None:
    first = await swarm.submit("first", role="greeter")
    each: tuple[Any, ...] = (first, first.task, first.task_id)
    for given in each:
        done = await swarm.wait(given, timeout_seconds=60)
        assert done.task_id == first.task_id == (await swarm.get(given)).task_id
        assert [task.task_id for task in await swarm.objective(given)] == [first.task_id]
        assert await swarm.relatives(given) == {}
        assert await swarm.explain(given)
        later = await swarm.submit("later", role="greeter", depends_on=[given], fresh_key=str(type(given)))
        assert later.task.depends_on == (first.task_id,)
        spec = fs.TaskSpec(objective="x", assigned_to="greeter", session_hash="default", depends_on=(given,))
        assert spec.depends_on == (first.task_id,)
        assert await swarm.cancel(given) == []
        for call in (swarm.retry, swarm.retry_tree):
            with pytest.raises(fs.errors.FireswarmError, match=first.task_id):
                await call(given)


async def test_close_values_are_accepted(swarm: fs.Swarm) -> None:
    assert await swarm.tasks(status=fs.TaskStatus.CANCELED, limit=2**40) == await swarm.tasks(status=Text("canceled"))
    assert (await swarm.run("close", role="greeter", timeout_seconds=math.inf, context={"a": (1, 2)})).summary


def test_parameter_without_a_check_is_found_when_the_class_is_defined() -> None:
    with pytest.raises(TypeError, match=r"Newer\.go: no check for speed: complex"):

        @check_arguments
        class Newer:  # pyright: ignore[reportUnusedClass]
            def go(self, speed: complex) -> None: ...
