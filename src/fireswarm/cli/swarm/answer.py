"""Commands that give a task what a person decides: answer, approve, deny, say, fork."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import anyio.to_thread
import typer

from fireswarm.cli.shared.operate import TaskId, operate
from fireswarm.cli.shared.options import (
    AsJson,
    Project,
    Root,
    StoreUri,
    board_settings,
    console,
    pairs,
    print_json,
    run_async,
)
from fireswarm.cli.watch.approval_view import draw_approval
from fireswarm.client import Swarm
from fireswarm.contracts.skills.skill import Question, choice_of
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput

QuestionId = Annotated[
    str,
    typer.Option("--question", help="Id of the request from `swarm show`; rejected if the request is no longer open."),
]


def answer(
    task_id: TaskId,
    values: Annotated[list[str], typer.Argument(help="NAME=VALUE or ID=VALUE for each question; values may be JSON.")],
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Answer the open questions of a blocked task, by name or id. The task is queued again immediately.

    `swarm show` prints the ids. An answer by id is valid only for that question: it is rejected if the task has
    continued.
    """
    answers = pairs(values, "VALUES")

    async def act(swarm: Swarm, task: Task) -> Task:
        return await swarm.answer(task.task_id, fit_choices(task.questions, answers))

    operate(board_settings(root, store, project), task_id, act, as_json, "answered")


def say(
    task_id: TaskId,
    text: Annotated[str, typer.Argument(help="What the model is to hear.")],
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Say something to a task: a running one hears it before its next call, a finished one goes on.

    The follow-up of a finished objective is a new task, whose id is printed. It has the conversation, the files and the
    memory of the old one.
    """

    async def act(swarm: Swarm, task: Task) -> Task:
        return await swarm.say(task.task_id, text)

    operate(board_settings(root, store, project), task_id, act, as_json, "told")


def fork(
    task_id: TaskId,
    before: Annotated[
        int, typer.Option("--before", min=1, help="Number of the model's answer that is asked for anew, from 1.")
    ],
    text: Annotated[str, typer.Option("--say", help="What the model is to hear before it.")] = "",
    model: Annotated[str | None, typer.Option("--model", help="Another model: NAME or PROVIDER:NAME.")] = None,
    objective: Annotated[str | None, typer.Option("--objective", help="Another objective.")] = None,
    context: Annotated[
        list[str] | None, typer.Option("--context", help="Changed input as KEY=VALUE; values may be JSON. Repeatable.")
    ] = None,
    again: Annotated[str, typer.Option("--again", help="A word that makes another fork of the same kind.")] = "",
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Fork an objective: a new task has its steps before an answer of its model, and goes on from there.

    No step before it is executed or paid again. Files are as they are now. `swarm show` prints the events of the task;
    the console offers a fork at each answer, and compares the runs.
    """
    changed = pairs(context or [], "--context")
    settings = board_settings(root, store, project)

    async def main() -> None:
        async with Swarm.open(settings=settings, create=False) as swarm:
            task = await swarm.find(task_id)
            whole = {**task.context, **changed} if changed else None
            made = await swarm.fork(
                task, before, text=text, model=model, objective=objective, context=whole, again=again
            )
            if as_json:
                print_json(made.task)
            else:
                state = "forks" if made.created else "is the same fork of"
                console.print(f"{made.task_id} {state} {task.task_id} before answer {before}", soft_wrap=True)

    run_async(main)


def fit_choices(questions: Iterable[Question], answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return *answers* with choices in the spelling of the question, ignoring case.

    Other answers and decisions are not changed.
    """
    asked = {key: question for question in questions for key in (question.name, question.key)}
    fitted = dict(answers)
    for key, value in answers.items():
        question = asked.get(key)
        if question is None or question.approval is not None or value in question.choices:
            continue
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        named = choice_of(question, said)
        fitted[key] = next((choice for choice in question.choices if str(choice) == named), value)
    return fitted


def approve(
    task_id: TaskId,
    question: QuestionId = "",
    always: Annotated[
        bool, typer.Option("--always", help="Also allow the same action later in this task and the tasks it plans.")
    ] = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Allow the action that a task asks for. Its run then continues.

    Without --question, the action is shown first, and you must confirm.
    """

    async def act(swarm: Swarm, task: Task) -> Task:
        if not question:
            await _confirm(swarm, task.approval())
        return await swarm.approve(task, question, always=always)

    operate(board_settings(root, store, project), task_id, act, as_json, "approved")


def deny(
    task_id: TaskId,
    question: QuestionId = "",
    reason: Annotated[str, typer.Option("--reason", help="Reason, passed to the model.")] = "",
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    as_json: AsJson = False,
) -> None:
    """Refuse the action that a task asks for. A model gets the refusal and continues; a task without a model ends."""

    async def act(swarm: Swarm, task: Task) -> Task:
        return await swarm.deny(task, question, reason=reason)

    operate(board_settings(root, store, project), task_id, act, as_json, "denied")


async def _confirm(swarm: Swarm, asked: Question) -> None:
    """Show the whole action and ask at the terminal.

    Raises InvalidInput without a terminal, NotFound without the rest of a long change, and Exit after a no.
    """
    if not sys.stdin.isatty():
        raise InvalidInput(f"inspect the request with `swarm show`, then give its id: --question {asked.key}")
    approval = asked.approval
    if approval is not None and approval.whole_diff:
        diff = (await swarm.parts.blobs.get(approval.whole_diff)).decode()
        asked = asked.model_copy(update={"approval": approval.model_copy(update={"diff": diff, "whole_diff": ""})})
    draw_approval(asked)
    if not await anyio.to_thread.run_sync(typer.confirm, "Allow it?", False):
        raise typer.Exit(1)
