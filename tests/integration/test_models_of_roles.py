"""Models of roles and tasks: who chooses, what it costs, and what a planner may choose."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.model_choice import ModelChoice
from fireswarm.contracts.ports import Create, Merge
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import ConfigError, InvalidInput
from fireswarm.settings import Settings, load_settings
from fireswarm.settings.untrusted import guarded_keys
from fireswarm.swarm.board.sweep import admit_hand_written
from fireswarm.swarm.opening.open_parts import load_swarm
from fireswarm.swarm.roles.card import check_models
from fireswarm.swarm.turn.turn import run_turn
from tests.integration.test_cli import swarm as command
from tests.integration.test_inputs import Expert, part, plan
from tests.integration.test_thinking import act, decide, one_turn, submit, thinking
from tests.support.providers import FakeProviders, Reply
from tests.support.reached import asked, model_of_task, reached, run_of, serving
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

PRICES = {"claude-sonnet-5-5": {"input": 1.0, "output": 0.0}, "claude-opus-5": {"input": 7.0, "output": 0.0}}


@pytest.fixture
async def served() -> AsyncGenerator[FakeProviders]:
    async with serving() as server:
        yield server


# ── who chooses ─────────────────────────────────────────────────────────────────────────────────────────


async def test_task_is_asked_before_the_settings_these_before_the_card_and_the_card_before_the_general_model(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders
) -> None:
    core = reached(swarm, tmp_path, served, roles={"scout": {"model": "claude-opus-5", "effort": "high"}})
    carded = {
        **core.roles,
        "scout": core.roles["scout"].model_copy(update={"model": "claude-haiku-4-5", "effort": "low"}),
        "executor": core.roles["executor"].model_copy(update={"model": "claude-haiku-4-5"}),
    }
    core = replace(core, roles=carded)
    for number, (role, choice) in enumerate(
        [("scout", {}), ("scout", {"model": "gemini"}), ("scout", {"effort": "max"}), ("executor", {}), ("memory", {})]
    ):
        await submit(swarm, tmp_path, role=role, context={"number": number}, **choice)
        assert (await one_turn(swarm, core, role=role)).status is TaskStatus.DONE
    assert [model_of_task(request) for request in served.calls] == [
        ("claude-opus-5", {"effort": "high"}),
        ("gemini-3.8-flash", None),
        ("claude-opus-5", {"effort": "max"}),
        ("claude-haiku-4-5", None),
        ("claude-sonnet-5-5", None),
    ]
    assert served.calls[1].body["generationConfig"]["thinkingConfig"] == {"thinking_level": "HIGH"}
    assert served.refused == []


async def test_money_windows_and_the_run_follow_the_model(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders
) -> None:
    core = reached(swarm, tmp_path, served, budget={"prices": PRICES})
    spent: list[float] = []
    for model in (None, "claude-opus-5"):
        await submit(swarm, tmp_path, context={"model": model}, model=model)
        usage = (await run_of(swarm, await one_turn(swarm, core)))["usage"]
        assert (usage["provider"], usage["model"]) == ("anthropic", model or "claude-sonnet-5-5")
        spent.append(usage["usd"])
    assert spent[1] == pytest.approx(7 * spent[0]) and spent[0] > 0
    small = core.settings.model.model_copy(update={"max_context_tokens": 20_000, "name": "my-own"})
    assert small.choose(ModelChoice(model="gemini")).context_tokens == 1_000_000
    assert small.choose(ModelChoice(model="gemini:my-other")).context_tokens == 20_000, "the table does not have it"


async def test_unknown_price_of_a_task_blocks_it_under_a_budget_in_usd_as_in_general(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders
) -> None:
    core = reached(swarm, tmp_path, served, budget={"task_usd": 5.0})
    await submit(swarm, tmp_path, model="claude-next")
    stopped = await one_turn(swarm, core)
    assert stopped.status_reason is StatusReason.BUDGET_EXCEEDED and "budget.prices.claude-next" in stopped.summary
    assert served.calls == []


async def test_task_whose_model_has_no_key_waits_for_it_and_no_code_takes_its_place(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders
) -> None:
    core = reached(swarm, tmp_path, served, {"ANTHROPIC_API_KEY": "test-key"})
    task = await submit(swarm, tmp_path, model="gemini")
    stopped = await one_turn(swarm, core)
    assert stopped.status_reason is StatusReason.NEEDS_MODEL and "GEMINI_API_KEY" in stopped.summary
    await swarm.client.retry(task)
    ended = await one_turn(swarm, reached(swarm, tmp_path, served))
    assert ended.status is TaskStatus.DONE, ended.summary
    assert asked(served) == ["gemini-3.8-flash"]


async def test_role_may_have_the_only_model_of_the_swarm(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders
) -> None:
    core = reached(swarm, tmp_path, served, {"GEMINI_API_KEY": "test-key"}, roles={"scout": {"model": "gemini"}})
    await submit(swarm, tmp_path)
    assert (await one_turn(swarm, core)).status is TaskStatus.DONE
    assert asked(served) == ["gemini-3.8-flash"]


async def test_names_of_a_fallback_belong_to_the_provider_of_their_place(swarm: SwarmRig, tmp_path: Path) -> None:
    settings = Settings(roles={"scout": ModelChoice(effort="max", fallback=("claude-haiku-4-5",))})
    chosen = settings.model_of("scout", ModelChoice(), ModelChoice(model="gemini", effort="high"))
    assert (chosen.full_name, chosen.behind(0).full_name) == ("gemini:gemini-3.8-flash", "anthropic:claude-haiku-4-5")
    with pytest.raises(ConfigError, match="gemini has no effort max: choose one of none, minimal"):
        settings.model_of("scout", ModelChoice(), ModelChoice(model="gemini"))


async def test_task_takes_over_nothing_that_does_not_fit_its_role(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders
) -> None:
    served.script = lambda request: Reply(calls=(("finish", {"answer": "a plan", "result": {"tasks": [part("a")]}}),))
    core = reached(swarm, tmp_path, served, roles={"scout": {"effort": "max"}})
    await submit(swarm, tmp_path, role="architect", model="gemini")
    planned = await one_turn(swarm, core, role="architect")
    assert planned.status_reason is StatusReason.DELEGATING, planned.summary
    [child] = [task for task in await swarm.board.list() if task.plan_key]
    assert (child.model, child.effort) == (None, None)


# ── planners ────────────────────────────────────────────────────────────────────────────────────────────


async def test_model_of_an_objective_holds_for_its_tasks_unless_their_role_or_plan_names_one(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders
) -> None:
    tasks = [part("a"), part("b", "executor"), part("c", model="claude-haiku-4-5", effort="high")]
    served.script = lambda request: Reply(calls=(("finish", {"answer": "a plan", "result": {"tasks": tasks}}),))
    core = reached(swarm, tmp_path, served, roles={"executor": {"model": "claude-haiku-4-5", "effort": "low"}})
    await submit(swarm, tmp_path, role="architect", model="claude-opus-5", fallback=["gemini"])
    planned = await one_turn(swarm, core, role="architect")
    assert planned.status_reason is StatusReason.DELEGATING, planned.summary
    children = [task for task in await swarm.board.list() if task.plan_key]
    assert {task.plan_key: (task.model, task.effort, task.fallback) for task in children} == {
        "a": ("claude-opus-5", None, ("gemini",)),
        "b": (None, None, None),
        "c": ("claude-haiku-4-5", "high", None),
    }


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ({"model": "claude-opus-5"}, "you may not choose the model anthropic:claude-opus-5; you may choose anthropic:"),
        ({"fallback": ["gemini"]}, "you may not choose the model gemini:gemini-3.8-flash"),
        ({"model": "opnai:x"}, "did you mean openai:x"),
        ({"effort": "high"}, "the model anthropic:claude-sonnet-5-5 has no effort to choose"),
        ({"model": "claude-haiku-4-5", "effort": "max"}, "you may choose the effort low, medium, high"),
        ({"effort": "huge"}, "effort"),
    ],
)
async def test_planner_may_only_choose_what_the_operator_named(
    swarm: SwarmRig, tmp_path: Path, choice: dict[str, Any], told: str
) -> None:
    expert = Expert(plan(part("a", **choice)), "refused")
    core = thinking(swarm, expert, tmp_path, roles={"executor": {"model": "claude-haiku-4-5", "effort": "low"}})
    await submit(swarm, tmp_path, role="architect")
    await one_turn(swarm, core, role="architect")
    assert told in expert.told[-1]
    assert len(await swarm.board.list()) == 1


async def test_delegate_names_models_efforts_and_prices_and_its_choice_reaches_the_task(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    specs: list[dict[str, Any]] = []

    def model(request: Any) -> Any:
        specs.extend(tool.parameters["properties"] for tool in request.tools if tool.name == "delegate")
        given = {"role": "scout", "objective": "look", "model": "anthropic:claude-haiku-4-5", "effort": "medium"}
        return decide(act("delegate", **given))

    core = thinking(swarm, model, tmp_path, roles={"executor": {"model": "claude-haiku-4-5", "effort": "low"}})
    await submit(swarm, tmp_path, role="architect")
    await one_turn(swarm, core, role="architect")
    assert specs[0]["model"]["enum"] == ["anthropic:claude-sonnet-5-5", "anthropic:claude-haiku-4-5"]
    assert specs[0]["effort"]["description"].endswith("only for anthropic:claude-haiku-4-5")
    described = specs[0]["role"]["description"]
    assert "Model: anthropic:claude-haiku-4-5, 1 USD per million tokens read, 5 written." in described
    [child] = [task for task in await swarm.board.list() if task.plan_key]
    assert (child.model, child.effort) == ("anthropic:claude-haiku-4-5", "medium")


async def test_delegate_offers_no_choice_where_there_is_one_model(swarm: SwarmRig, tmp_path: Path) -> None:
    specs: list[dict[str, Any]] = []

    def model(request: Any) -> Any:
        specs.extend(tool.parameters["properties"] for tool in request.tools if tool.name == "delegate")
        return "done"

    await submit(swarm, tmp_path, role="architect")
    await one_turn(swarm, thinking(swarm, model, tmp_path), role="architect")
    assert specs and not {"model", "effort"} & specs[0].keys()


# ── bad names, and documents by hand ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("roles", "told"),
    [
        ("{scuot: {model: gemini}}", "roles.scuot in swarm.yaml: there is no such role; roles are architect"),
        ("{scout: {model: 'opnai:gpt-5'}}", "model of role scout (roles.scout in swarm.yaml"),
        ("{scout: {model: gemini-3.8-flash}}", "write gemini:gemini-3.8-flash"),
        ("{scout: {model: openai}}", "write openai:NAME"),
        ("{scout: {effort: huge}}", "roles.scout.effort"),
        ("{scout: {effort: minimal}}", "provider anthropic has no effort minimal: choose one of none, low"),
        ("{scout: {modle: gemini}}", "roles.scout.modle"),
        ("{scout: {fallback: [gemini, 'x:y']}}", "x:y names the unknown provider x"),
    ],
)
def test_bad_choice_of_a_role_is_an_error_of_the_settings_at_doctor_and_at_start(
    tmp_path: Path, roles: str, told: str
) -> None:
    (tmp_path / "swarm.yaml").write_text(f"roles: {roles}\n")
    checked = command(tmp_path, "doctor")
    assert checked.returncode == 1 and told in checked.stdout, checked.stdout
    with pytest.raises(ConfigError) as fault:
        load_swarm(load_settings(tmp_path, environment={}))
    assert told in str(fault.value)


def test_doctor_shows_the_models_of_roles_and_fallbacks_and_only_the_settings_may_choose_an_account(
    tmp_path: Path,
) -> None:
    (tmp_path / "swarm.yaml").write_text("roles: {scout: {model: gemini, fallback: 'anthropic:claude-haiku-4-5'}}\n")
    shown = command(tmp_path, "doctor").stdout
    assert "role scout: gemini gemini-3.8-flash" in shown
    assert "role scout: fallback anthropic claude-haiku-4-5" in shown
    named = {"fallback": ["anthropic-vertex:claude-opus-5"]}
    values = {"roles": {"scout": named}, "model": {"fallback": "gemini-vertex"}}
    assert guarded_keys(values) == ["model.fallback", "roles.scout.fallback"]
    settings = Settings(root=tmp_path)
    roles, *_ = load_swarm(settings)
    paid = {**roles, "scout": roles["scout"].model_copy(update={"model": "anthropic-vertex:claude-opus-5"})}
    with pytest.raises(ConfigError, match="paid by your account"):
        check_models(settings, paid)
    agreed = Settings(roles={"memory": ModelChoice(model="anthropic-vertex")})
    check_models(agreed, paid)


@pytest.mark.parametrize(
    "choice", [{"model": "opnai:gpt"}, {"effort": "minimal"}, {"fallback": "x:y"}, {"model": "a b"}]
)
async def test_submit_refuses_a_choice_that_cannot_be_used(swarm: SwarmRig, choice: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="model"):
        await swarm.client.submit("look around", role="scout", **choice)
    assert await swarm.board.list() == []


ODD = [
    {"model": 5},
    {"model": ""},
    {"model": "opnai:gpt-5"},
    {"model": "not\na name"},
    {"model": {"name": "claude-opus-5"}},
    {"effort": "huge"},
    {"effort": "minimal"},
    {"fallback": {"a": 1}},
    {"fallback": ["x:y"]},
    {"fallback": ["claude-opus-5"] * 9},
]


@pytest.mark.parametrize("odd", ODD, ids=json.dumps)
async def test_odd_choice_by_hand_blocks_that_task_with_the_reason_and_no_other(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders, odd: dict[str, Any]
) -> None:
    core = reached(swarm, tmp_path, served)
    base = {"assigned_to": "scout", "status": "queued", "session_hash": "s1"}
    await swarm.store.commit([Create("agent_tasks/odd", {**base, "objective": "count by hand", **odd})])
    await swarm.submit("count the things", context={"path": str(tmp_path / "space")})
    ended: list[Task] = []
    for _ in range(3):
        await admit_hand_written(swarm.board, "scout")
        for held in await swarm.claim(wanted=4):
            ending = await run_turn(held, core)
            await swarm.board.settle(held, ending.outcome, ending.writes)
            ended.append(await swarm.task(held.task.task_id))
    assert TaskStatus.DONE in {task.status for task in ended}
    stored = (await swarm.store.get("agent_tasks/odd")).data or {}
    assert stored["status"] == "blocked", stored
    named = next(iter(odd))
    assert named in stored["summary"], stored["summary"]
    await swarm.store.commit([Merge("agent_tasks/odd", {**dict.fromkeys(odd), "status": "queued"})])
    await admit_hand_written(swarm.board, "scout")
    assert (await one_turn(swarm, core)).status is TaskStatus.DONE


async def test_a_plan_to_approve_names_the_model_of_each_task_and_its_price(swarm: SwarmRig, tmp_path: Path) -> None:
    planner = Expert(plan(part("look"), part("write", "executor", model="anthropic:claude-haiku-4-5")))
    core = thinking(swarm, planner, tmp_path, roles={"scout": {"model": "claude-haiku-4-5"}})
    await submit(swarm, tmp_path, role="architect", review_plan=True)
    waiting = await one_turn(swarm, core, role="architect")
    approval = waiting.questions[0].approval
    assert approval is not None
    price = "+   Model: anthropic:claude-haiku-4-5, 1 USD per million tokens read, 5 written."
    assert [line for line in approval.diff.splitlines() if "Model" in line] == [price, price]
