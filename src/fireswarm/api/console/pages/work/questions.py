"""Questions of tasks as forms, and the answers of a form."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from anyio import to_thread

from fireswarm.api.console.plan import draw_graph
from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.client import Swarm
from fireswarm.contracts.skills.permissions import APPROVE
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import FireswarmError, GraphInvalid, InvalidInput
from fireswarm.runs.sinks.conversation_reader import find_conversation
from fireswarm.swarm.submission.plan_review import find_plan, parse_plan, request_for_plan, write_plan

MAX_DIFF_BYTES = 200_000
MAX_PLAN_CHARS = 100_000
"""Maximum length of a plan's text: YAML of this length takes half a second, in a thread."""


FIELD = "answer-"
"""Beginning of the name of a form's field; the id of its question follows."""


_CALL = re.compile(r"^(\d{1,9})/\w{1,20}:(\d{1,9})\.(\d{1,9})(?!\d)")
"""The step of a call: plans before it, answer of the model, call of the answer."""

logger = logging.getLogger(__name__)


async def shown_questions(swarm: Swarm, task: Task) -> list[Question]:
    """Return the questions of a task, without those that belong to a request, such as the reason of a refusal.

    A change that was cut is read whole, since a person decides on all of it. One that cannot be, or is too large for a
    page, keeps its ``whole_diff``: it cannot be allowed here.
    """
    asked = [item for item in task.questions if item.approval is not None or not item.step.startswith(f"{APPROVE}/")]
    return [await _whole(swarm, question) for question in asked]


async def _whole(swarm: Swarm, question: Question) -> Question:
    approval = question.approval
    if approval is None or not approval.whole_diff:
        return question
    try:
        if await swarm.parts.blobs.size(approval.whole_diff) > MAX_DIFF_BYTES:
            return question
        diff = (await swarm.parts.blobs.get(approval.whole_diff)).decode("utf-8", "replace")
    except FireswarmError as error:
        logger.warning("the change of a request cannot be read: %s", error)
        return question
    whole = approval.model_copy(update={"diff": diff, "whole_diff": ""})
    return question.model_copy(update={"approval": whole})


async def show_plan(visit: Visit) -> Shown:
    """Make the page of the plan that waits: its graph, and its text to change."""
    task = await visit.swarm.get(visit.path["task_id"])
    return await _make_plan_page(visit.swarm, task, write_plan(find_plan(task)))


async def change_plan(visit: Visit) -> Goto | Shown:
    """Approve the plan in the form, or show it drawn; with a fault, the text stays as it was sent."""
    task = await visit.swarm.get(visit.path["task_id"])
    asked, text = find_plan(task), visit.form.get("plan", "").replace("\r\n", "\n")
    page = await _make_plan_page(visit.swarm, task, text)
    if visit.form.get("do") != "approve" or page.values["fault"]:
        return page
    changed = visit.changed_text("plan", write_plan(asked))
    plan = None if changed is None else parse_plan(changed)
    await visit.swarm.approve(task.task_id, request_for_plan(task, asked), plan=plan)
    return Goto(f"/tasks/{task.task_id}", "planned")


async def _make_plan_page(swarm: Swarm, task: Task, text: str) -> Shown:
    """Return the page of a plan's text, with its graph, or with the reason why it is no plan."""
    fault, graph = "", None
    try:
        if len(text) > MAX_PLAN_CHARS:
            raise InvalidInput(
                f"it has {len(text):,} characters; a page takes {MAX_PLAN_CHARS:,}: use `swarm plan --file`"
            )
        planned = await to_thread.run_sync(parse_plan, text)
        graph = await to_thread.run_sync(draw_graph, await swarm.draft(task, planned))
    except (InvalidInput, GraphInvalid) as error:
        fault = str(error)
    return Shown("plan.html", {"task": task, "text": text, "fault": fault, "graph": graph}, 422 if fault else 200)


def read_answers(task: Task, form: Mapping[str, str]) -> dict[str, Any]:
    """Return the answers in a form, by the ids of their questions. Raises InvalidInput for one that is not open."""
    given = {name.removeprefix(FIELD): text for name, text in form.items() if name.startswith(FIELD) and text.strip()}
    open_questions = {question.key: question for question in task.questions}
    if unknown := sorted(given.keys() - open_questions.keys()):
        raise InvalidInput(f"the question {unknown[0]} is not open any more: load the page again")
    return {key: _value_of(open_questions[key], text) for key, text in given.items()}


def _value_of(question: Question, text: str) -> Any:
    """Return the answer that *text* is: a choice, or JSON for a question that takes no text."""
    for choice in question.choices:
        if str(choice) == text:
            return choice
    if question.type == "string":
        return text.replace("\r\n", "\n")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text  # the check of the answer says what it expects


async def describe_uncertain(swarm: Swarm, task: Task) -> str:
    """Return the call of the model that may have taken effect, with its input; "" if there is none, or it is lost."""
    found = _CALL.search(task.uncertain_step)
    if found is None:
        return ""
    phase, number, part = map(int, found.groups())
    talk = await find_conversation(swarm.parts.store, swarm.parts.blobs, task)
    answer = await talk.read((phase, number))
    if answer is None or not 0 < part <= len(answer.calls):
        return ""
    call = answer.calls[part - 1]
    return f"{call.tool} {json.dumps(dict(call.given), ensure_ascii=False, default=str)}"
