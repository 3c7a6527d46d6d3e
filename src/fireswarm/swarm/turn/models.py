"""The model of a turn: which one its task chooses, which ones its planner may choose, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from fireswarm.contracts.model_choice import NO_CHOICE, ModelChoice
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.errors import ConfigError, InvalidInput, MissingApiKey
from fireswarm.llm.spend import StoreLedger
from fireswarm.mind import Mind
from fireswarm.settings.agent import ModelSettings
from fireswarm.settings.model_limits import price_of
from fireswarm.swarm.notices.notice import report_limit
from fireswarm.swarm.records.budgets import TaskLedger
from fireswarm.swarm.turn.state import Turn

PLANNED_EFFORTS = ("low", "medium", "high")
"""Efforts that a planner may choose: every provider with efforts takes them."""


def mind_of(turn: Turn, mind: Mind) -> Mind:
    """Return *mind* with the model that the task or its role chooses, and with the task's budgets.

    Without the model's key it has a reason instead of a client. Raises InvalidInput for a choice of the task that
    cannot be used.
    """
    task = turn.task
    try:
        model = turn.swarm.settings.model_of(task.assigned_to, turn.card, task)
        return _with_model(turn, mind, model)
    except MissingApiKey as error:
        return replace(mind, client=None, no_model=str(error))
    except ConfigError as error:
        raise InvalidInput(
            f"the model of this task cannot be used: {error}. Correct its fields model, effort and fallback, or delete "
            f"them, then retry the task"
        ) from error


def as_begun(turn: Turn, mind: Mind) -> Mind:
    """Return *mind* with the model with which the turn began, if an earlier start of it was interrupted.

    A model that cannot be opened any more is replaced by that of the settings.
    """
    begun, model, client = turn.journal.begun, mind.settings.model, mind.client
    fallback = tuple(map(str, begun.get("fallback") or ()))
    names = (begun.get("provider"), begun.get("model"), begun.get("effort"), fallback)
    if not begun or client is None or names == (client.model.provider, client.model.name, model.effort, model.fallback):
        return mind
    try:
        choice = ModelChoice(model=f"{names[0]}:{names[1]}", effort=begun.get("effort"), fallback=fallback)
        general = turn.swarm.settings.model.model_copy(update={"effort": None})
        return _with_model(turn, mind, general.choose(choice))
    except (ConfigError, MissingApiKey, ValueError):
        return mind


def _with_model(turn: Turn, mind: Mind, model: ModelSettings) -> Mind:
    """Return *mind* with the client of a model. Raises MissingApiKey and ConfigError."""
    if model is turn.swarm.settings.model:
        client = mind.client
    else:
        client = mind.clients.open(model) if mind.clients is not None else None
    swarm, task, journal = turn.swarm, turn.task, turn.journal
    if client is not None and client.ledger is not None:
        ledger = client.ledger
        if isinstance(ledger, StoreLedger):
            ledger = ledger.of_session(task.session_hash)
        told = swarm.settings.notify
        report = partial(report_limit, swarm.store, swarm.clock, task, told) if told else None
        own = TaskLedger(ledger, swarm.store, swarm.clock, task, journal.run_id, journal.usage, report)
        client = replace(client, ledger=own)
    return replace(mind, settings=mind.settings.model_copy(update={"model": model}), client=client)


def choose_models(turn: Turn, tasks: Sequence[PlannedTask]) -> tuple[PlannedTask, ...]:
    """Return planned tasks with their models: their own, else those of their roles, else those of the planning task.

    Raises InvalidInput for a model that the planner may not choose.
    """
    chosen: list[PlannedTask] = []
    for task in tasks:
        if fault := _choice_fault(turn, task):
            raise InvalidInput(f"task {task.key}: {fault}")
        choice = inherit_choice(turn, task.assigned_to) if task.model is None else NO_CHOICE
        chosen.append(task.model_copy(update=dict(task.or_else(choice))))
    return tuple(chosen)


def inherit_choice(turn: Turn, role: str) -> ModelChoice:
    """Return what a task for *role* takes from the choice of the task that plans it: what its role leaves open.

    It takes nothing if its role has a model, or if the choice is about the model of the planner's role.
    """
    settings, task, card = turn.swarm.settings, turn.task, turn.swarm.roles.get(role, NO_CHOICE)
    of_role, of_planner = settings.chosen_for(role, card), settings.chosen_for(task.assigned_to, turn.card)
    if of_role.model is not None or (task.model is None and of_planner.model is not None):
        return NO_CHOICE
    choice = ModelChoice(
        model=task.model,
        effort=task.effort if of_role.effort is None else None,
        fallback=task.fallback if of_role.fallback is None else None,
    )
    try:
        settings.model_of(role, card, choice)
    except ConfigError:  # such as an effort of the role that the provider does not have
        return NO_CHOICE
    return choice


def _choice_fault(turn: Turn, task: PlannedTask) -> str:
    """Return why the planner may not choose the model or effort of *task*, or ""."""
    if task.model is None and task.effort is None and not task.fallback:
        return ""
    offered, model = models_to_choose(turn), _model_of(turn, task.assigned_to)
    try:
        wanted = [name for name in (task.model, *(task.fallback or ())) if name]
        named = [model.choose(ModelChoice(model=name)).full_name for name in wanted]
    except ConfigError as error:
        return f"{error}; you may choose {', '.join(offered)}, or leave model out"
    if refused := [name for name in named if name not in offered]:
        return f"you may not choose the model {refused[0]}; you may choose {', '.join(offered)}, or leave model out"
    if task.effort is None:
        return ""
    if task.effort not in PLANNED_EFFORTS:
        return f"you may choose the effort {', '.join(PLANNED_EFFORTS)}, or leave it out"
    used = model.choose(ModelChoice(model=task.model)).full_name
    return "" if offered.get(used) else f"the model {used} has no effort to choose: leave effort out"


def _model_of(turn: Turn, role: str, planned: ModelChoice = NO_CHOICE) -> ModelSettings:
    """Return the model of a new task for *role*, with what its plan chooses."""
    settings, card = turn.swarm.settings, turn.swarm.roles.get(role, NO_CHOICE)
    choice = inherit_choice(turn, role) if planned.model is None else NO_CHOICE
    return settings.model_of(role, card, planned.or_else(choice))


def models_to_choose(turn: Turn) -> dict[str, bool]:
    """Return the models that the turn's planner may choose for a task; True for those that are used with an effort.

    They are the models that the operator named: in the settings, in the cards of the roles, and for this task.
    """
    settings = turn.swarm.settings
    chosen = [settings.model, *(settings.model_of(name, card) for name, card in turn.swarm.roles.items())]
    chosen.append(settings.model_of(turn.task.assigned_to, turn.card, turn.task))
    found: dict[str, bool] = {}
    for model in chosen:
        found[model.full_name] = found.get(model.full_name, False) or "effort" in model.chosen.options
        for number in range(len(model.fallback)):
            found.setdefault(model.behind(number).full_name, False)
    return found


def describe_cost(turn: Turn, role: str, planned: ModelChoice = NO_CHOICE) -> str:
    """Return the model of a role and its price, or "" for the usual model without one. *planned* is a task's choice."""
    model = _model_of(turn, role, planned)
    price = price_of(model.model_name, turn.swarm.settings.budget.prices)
    if not price or not any(price.values()):
        return "" if model is turn.swarm.settings.model else f" Model: {model.full_name}."
    read, written = price.get("input", 0.0), price.get("output", 0.0)
    return f" Model: {model.full_name}, {read:g} USD per million tokens read, {written:g} written."
