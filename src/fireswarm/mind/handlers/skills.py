"""Use skills: activate instructions, run code, read files, search."""

from __future__ import annotations

import base64
from functools import partial
from pathlib import PurePath

from fireswarm.capabilities.workspace.images import check_media, kind_of_media
from fireswarm.contracts.limits import SNIFF_BYTES
from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.contracts.skills.artifact import MediaBlock
from fireswarm.contracts.skills.skill import PlannedTask, SkillResult, SkillState
from fireswarm.contracts.text_page import MAX_LINES
from fireswarm.errors import InvalidInput, SkillFailed, SkillRefused
from fireswarm.llm.codecs.json_text import Undecodable, json_params
from fireswarm.mind import gate
from fireswarm.mind.approvals import NeedsAnswer
from fireswarm.mind.calls.results import CallResult, Record, Step, describe_skill_result, refusal
from fireswarm.mind.calls.texts import number_in
from fireswarm.mind.tool_run import ToolRun
from fireswarm.skills.packs.catalog import Skill


class Delegates(Exception):
    """Suspends the run until the tasks that it delegated are done."""

    def __init__(self, summary: str, tasks: tuple[PlannedTask, ...], result: SkillResult) -> None:
        super().__init__(summary)
        self.tasks = tasks
        self.result = result


async def use_skill(run: ToolRun, step: Step) -> CallResult:
    """Activate a skill: return its instructions, or run its code. Raises InvalidInput, NeedsAnswer and Delegates."""
    name = run.briefing.resolve(str(step.input.get("name") or ""))
    step.input["name"] = name  # the event names the skill as the catalog does
    skill = run.mind.catalog.skills[name]
    run.briefing.note_known(name)
    is_in_use = name == run.skill
    run.take_up(name, str(step.input.get("reason") or "chosen"))
    if skill.entry is not None:
        return await run.act_by_policy(step, partial(run_code, run, skill))
    return CallResult(text=f"{name} is already in use." if is_in_use else run.briefing.activation(name))


async def run_code(run: ToolRun, skill: Skill, step: Step) -> CallResult:
    """Run a skill's code as one step, and store its result for the creator of the task."""
    try:
        inputs = json_params(step.input.get("input"))
    except Undecodable as error:
        return refusal(f"input of {skill.name}: {error}")
    place = f"{run.assignment.phase}/{step.name}/{skill.name}"
    retry = int(step.name != step.question)

    async def work() -> Record:
        try:
            result = await run.assignment.run_skill(skill, inputs, run.assignment.answered.get(place, {}))
        except SkillRefused as error:
            return refusal(str(error)).record()
        except SkillFailed as error:
            return CallResult(errors=run.cut(str(error)), exit_code=1, status=StepStatus.FAILED, retry=retry).record()
        if result.state is SkillState.INPUT_REQUIRED:
            questions = tuple(item.model_copy(update={"step": place}) for item in result.questions)
            raise NeedsAnswer(result.summary, questions)
        if result.state is SkillState.DELEGATING:
            raise Delegates(result.summary, result.tasks, result)
        failed = result.state is SkillState.FAILED
        return CallResult(
            text=run.cut(describe_skill_result(result)),
            exit_code=int(failed),
            status=StepStatus.FAILED if failed else StepStatus.OK,
            retry=retry,
            skill_result=result,
        ).record()

    result = await run.act(step, gate.skill_call(skill, inputs), work, idempotent=skill.idempotent)
    if result.skill_result is not None:
        run.results.append(result.skill_result)
    return result.model_copy(update={"changes": result.status is not StepStatus.REFUSED})


async def search_skills(run: ToolRun, step: Step) -> CallResult:
    """Search all skills with the model's query. Raises InvalidInput without words."""
    return CallResult(text=await run.briefing.search(str(step.input.get("query") or "")))


async def read_skill_file(run: ToolRun, step: Step) -> CallResult:
    """Read a file of a skill: text in pages, an image or a PDF unchanged. Raises InvalidInput if it cannot be read."""
    given, briefing = step.input, run.briefing
    name = briefing.resolve(str(given.get("skill") or ""))
    path = str(given.get("path") or "").strip()
    offset, limit = number_in(given, "offset", 1), number_in(given, "limit", MAX_LINES)
    if path and "#" not in path:
        real, content = briefing.file_content(name, path)
        place = f"$SKILL_DIR/{real}"
        if kind := kind_of_media(PurePath(real), content):
            check_media(place, kind, content)
            text = f"{real}: {kind}, {len(content):,} bytes"
            briefing.note_file(name, real, text)
            media = MediaBlock(media_type=kind, data=base64.b64encode(content).decode())
            return CallResult(text=text, media=(media,))
        if b"\0" in content[:SNIFF_BYTES]:
            raise InvalidInput(
                f"{path} is not a text file: it has {len(content):,} bytes; inspect it with run_command, as "
                f"{place}, while you use the skill {name}"
            )
    return CallResult(text=briefing.file_page(name, path, offset, limit))
