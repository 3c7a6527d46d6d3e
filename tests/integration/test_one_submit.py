"""Programs, the command line, the HTTP API and mail submit by one way: they refuse the same, in the same words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from fireswarm.cli.swarm.tasks import submit_task
from fireswarm.contracts.swarm.task_fields import make_spec
from fireswarm.errors import FireswarmError
from fireswarm.swarm.worker import mail, work_by_mail
from tests.support.api import Api, open_api
from tests.support.swarm import SwarmRig
from tests.support.working import work_message

pytestmark = pytest.mark.anyio

ROLE = "there is no role 'pilot'; this swarm has architect, executor, memory, predictor, scout"
SKILL = "there is no skill 'dance'; omit it to let the role choose one"
CAPABILITY = "unknown capability 'fly'; known: "
TWICE = "capabilities are listed twice: noop"
NO_PARENT = "depends_on names ghost, but session default has no such task: nothing was submitted"
CHECK_ROLE = "a check of the task cannot run: there is no role 'pilot'; this swarm has architect"
CHECK_SKILL = "a check of the task cannot run: plan-objective is no skill with code"
BLANK = "task not submitted: objective: "

Way = Callable[[Api, dict[str, Any]], Awaitable[str]]
"""Submits a task and returns the words of its refusal, or "" if it was submitted."""


async def by_program(api: Api, fields: dict[str, Any]) -> str:
    try:
        await api.swarm.client.submit(**fields)
    except FireswarmError as error:
        return str(error)
    return ""


async def by_command(api: Api, fields: dict[str, Any]) -> str:
    try:
        spec = make_spec(assigned_to=fields["role"], session_hash="default", **_without_role(fields))
        await submit_task(api.swarm.client, spec, wait=False, as_json=False)
    except FireswarmError as error:
        return str(error)
    return ""


async def by_http(api: Api, fields: dict[str, Any]) -> str:
    answer = await api.call("POST", "/v1/tasks", fields)
    return "" if answer.is_success else answer.json()["detail"]


async def by_mail(api: Api, fields: dict[str, Any]) -> str:
    """A message has no skill, capabilities or dependencies."""
    role, parts = fields["role"], api.swarm.core
    message = work_message(role=role, notes=fields["objective"], session="default")
    message_id = await parts.mailbox.send(message, "operator", role, sender_role="operator")
    path = f"agent_mailbox/{message_id}"
    await mail.act_on(parts, role, await parts.store.get(path), work_by_mail.create_work)
    outcome = ((await parts.store.get(path)).data or {})["outcome"]
    return outcome.removeprefix("refused: ") if outcome.startswith("refused") else ""


def _without_role(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "role"}


@pytest.fixture
async def api(swarm: SwarmRig) -> AsyncIterator[Api]:
    async with open_api(swarm) as opened:
        yield opened


EVERY = (by_program, by_command, by_http, by_mail)
WITH_FIELDS = (by_program, by_command, by_http)
TABLE: tuple[tuple[dict[str, Any], str, tuple[Way, ...]], ...] = (
    ({"objective": "look", "role": "scout"}, "", EVERY),
    ({"objective": "look", "role": "pilot"}, ROLE, EVERY),
    ({"objective": "look", "role": "scout", "skill": "dance"}, SKILL, WITH_FIELDS),
    ({"objective": "look", "role": "scout", "capabilities": ["fly"]}, CAPABILITY, WITH_FIELDS),
    ({"objective": "look", "role": "scout", "capabilities": ["noop", "noop"]}, TWICE, WITH_FIELDS),
    ({"objective": "look", "role": "scout", "depends_on": ["ghost"]}, NO_PARENT, WITH_FIELDS),
    (
        {"objective": "look", "role": "scout", "checks": [{"role": "pilot", "question": "good?"}]},
        CHECK_ROLE,
        WITH_FIELDS,
    ),
    ({"objective": "look", "role": "scout", "checks": [{"skill": "plan-objective"}]}, CHECK_SKILL, WITH_FIELDS),
    ({"objective": " ", "role": "scout"}, BLANK, WITH_FIELDS),
)


@pytest.mark.parametrize(
    ("fields", "words", "way"),
    [(fields, words, way) for fields, words, ways in TABLE for way in ways],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_every_way_to_submit_refuses_in_the_same_words(
    fields: dict[str, Any], words: str, way: Way, api: Api
) -> None:
    refusal = await way(api, fields)
    assert refusal.startswith(words) and bool(refusal) is bool(words), refusal
    assert len(await api.swarm.client.tasks()) == (0 if words else 1)
