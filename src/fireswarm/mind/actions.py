"""Execute one action and return its result as a value: refused, failed, timed out or done.

A failure is a typed result that the model sees and the journal stores. Output shown to the model is bounded
and free of control characters and secrets.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import anyio

from fireswarm.contracts.limits import MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.llm.decision import ActionStep, ActionType, StepExecutionResult, StepStatus
from fireswarm.contracts.ports import Recorder
from fireswarm.contracts.skills.artifact import OUTPUT_VARIABLE, Artifact
from fireswarm.contracts.skills.permissions import APPROVE
from fireswarm.contracts.skills.skill import PlannedTask, Question, SkillResult, SkillState
from fireswarm.contracts.skills.tool import Tool, ToolAnswer
from fireswarm.errors import LeaseLost, SandboxRefused, SkillFailed, SkillRefused
from fireswarm.llm.decode import Undecodable, json_params
from fireswarm.mind import permissions
from fireswarm.mind.assignment import Assignment
from fireswarm.mind.briefing import shown_to_model
from fireswarm.mind.commands.background import BackgroundCommands
from fireswarm.mind.commands.place import MAX_TIMES, CommandPlace
from fireswarm.mind.guard import (
    may_write,
    profile_of,
    refuse_command,
    refuse_outside_scripts,
    refuse_skill,
    refuse_tool,
    tool_argument,
)
from fireswarm.mind.permissions import Action, Verdict, error_text
from fireswarm.processes.background.command import CannotStart
from fireswarm.processes.confinement.view import View
from fireswarm.processes.output import CANNOT_START, OutputTail
from fireswarm.processes.shell import Shell
from fireswarm.redaction import Redactor
from fireswarm.settings.agent import RuntimeSettings
from fireswarm.skills.packs.catalog import Catalog, Skill

REFUSED_CODE = 126
"""Exit code of an action that was not allowed, as shells use it for "cannot execute"."""

RETRIED = ".r1"
"""End of the name of a step that is executed again after a failure."""


class NeedsAnswer(Exception):
    """Stops the run until a question is answered."""

    def __init__(self, summary: str, questions: tuple[Question, ...]) -> None:
        super().__init__(summary)
        self.questions = questions


class Delegates(Exception):
    """Stops the run until the tasks delegated by a skill are done."""

    def __init__(self, summary: str, tasks: tuple[PlannedTask, ...], result: SkillResult) -> None:
        super().__init__(summary)
        self.tasks = tasks
        self.result = result


@dataclass(slots=True)
class Actor:
    """Executes the actions of one run. ``outputs`` are the results of skills, for the creator of the task.

    ``decided`` are decisions of a person at the terminal, by their places. ``kept_bytes`` is the size of a kept
    result; 0 for `RuntimeSettings.max_output_bytes`. ``place`` is where commands are executed, ``background`` has those
    in the background, if there can be any.
    """

    assignment: Assignment
    catalog: Catalog
    runtime: RuntimeSettings
    shell: Shell
    redact: Redactor
    recorder: Recorder
    outputs: list[SkillResult] = field(default_factory=list)
    outside_scripts: str = "block"
    kept_bytes: int = 0
    decided: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    background: BackgroundCommands | None = None
    place: CommandPlace = field(init=False)
    one_question: anyio.Lock = field(default_factory=anyio.Lock)  # actions that run side by side ask one by one

    def __post_init__(self) -> None:
        """Create the place of commands."""
        self.place = CommandPlace(self.assignment, self.runtime)
        if self.assignment.outputs is not None:
            variables = {**(self.shell.environment or {}), OUTPUT_VARIABLE: str(self.assignment.outputs)}
            self.shell = replace(self.shell, environment=variables)

    @property
    def profile(self) -> str:
        """permissive, demo_safe or read_only."""
        return profile_of(self.assignment.constraints, self.runtime.profile)

    async def act(self, step: str, action: ActionStep, skill: Skill | None, retry: int) -> StepExecutionResult:
        """Execute one action. NeedsAnswer and Delegates end the run; other failures are returned, not raised."""
        match action.type:
            case ActionType.RUN_COMMAND:
                return await self._command(step, action, skill, retry)
            case ActionType.CALL_TOOL:
                return await self._tool(step, action, skill, retry)
            case ActionType.CALL_SKILL:
                return await self._skill(step, action, retry)
            case ActionType.ASK_USER:
                return await self._ask(step, action)
            case ActionType.FINISH:
                raise AssertionError("finish is not an executable action")

    def executable(self, action: ActionStep) -> bool:
        """Return False for a call_skill of a skill with instructions only: that is a handoff, not a step."""
        if action.type is not ActionType.CALL_SKILL:
            return True
        skill = self.catalog.skills.get(str(action.params["skill"]))
        return skill is None or skill.entry is not None

    async def _command(self, step: str, planned: ActionStep, skill: Skill | None, retry: int) -> StepExecutionResult:
        """Run a shell command, if it is allowed, in the folder that the last one left."""
        command, wanted = str(planned.params["command"]), planned.params.get("timeout_seconds")
        behind = self.background if planned.params.get("background") is True else None
        cwd = self.place.cwd
        writes = may_write(command, self.profile, skill, cwd)
        view, line = self.place.view(skill, writes=writes), self.place.line_of(command, skill)
        reason = refuse_outside_scripts(skill, self.outside_scripts) or refuse_command(command, skill, self._named)
        if not reason and not writes and self.runtime.confinement == "none":
            reason = f"the task is {self.profile}: commands run confined or not at all, and runtime.confinement is none"
        shown = command if behind is None else f"{command}\n(in the background, until this run ends)"
        action = Action("Bash", command, shown, cwd, changes=writes)
        if reason := await self._refuse(step, action, reason):
            return _refusal(step, reason, retry)

        async def run() -> dict[str, Any]:
            try:
                if behind is None:
                    return await self._run_command(step, line, self.place.seconds(wanted), view, retry)
                seconds = self.place.seconds(wanted, usual=MAX_TIMES)
                name, told = await behind.start(line, self.assignment.cwd, seconds, view)
                return self._result(step, 0, told, "", retry, StepStatus.OK) | {"started": name}
            except SandboxRefused as error:
                return _refusal(step, str(error), retry).model_dump(mode="json", exclude_defaults=True)
            except CannotStart as error:
                return self._result(step, CANNOT_START, "", str(error), retry, StepStatus.FAILED)

        return await self._step(step, run, retry, idempotent=not writes)

    async def _run_command(self, step: str, line: str, seconds: float, view: View | None, retry: int) -> dict[str, Any]:
        """Run a command line to its end, and return the result of the step. Raises SandboxRefused."""
        ran = await self.shell.run(line, self.assignment.cwd, seconds, view, keeps_folder=self.place.keeps_folder)
        status = StepStatus.TIMEOUT if ran.timed_out else StepStatus.FAILED if ran.exit_code else StepStatus.OK
        stderr = f"killed after {seconds:g} s\n{ran.stderr}" if ran.timed_out else ran.stderr
        stderr = f"killed: {ran.ended}\n{ran.stderr}" if ran.ended else stderr
        left = {"folder": ran.folder} if ran.folder else {}
        return self._result(step, ran.exit_code, ran.stdout, stderr, retry, status) | left

    async def _tool(self, step: str, action: ActionStep, skill: Skill | None, retry: int) -> StepExecutionResult:
        """Call a tool, if it is known and allowed."""
        name = str(action.params["tool"])
        tool = self.assignment.tools.get(name)
        if tool is None:
            known = ", ".join(sorted(self.assignment.tools)) or "none"
            return _refusal(step, f"unknown tool {name!r}; known: {known}", retry)
        try:
            inputs = json_params(action.params.get("input"))
        except Undecodable as error:
            return _refusal(step, f"params.input of {name}: {error}", retry)
        reason = refuse_tool(tool, inputs, self.profile, skill, self._named)
        preview = partial(permissions.preview_of, tool, inputs, self.assignment.policy, self.assignment.cwd)
        try:
            if reason := await self._refuse(step, self._tool_action(tool, inputs), reason, preview):
                return _refusal(step, reason, retry)
        except permissions.PreviewFailed as error:
            tool = error.failing

        async def run() -> dict[str, Any]:
            try:
                value = await tool.run(inputs)
            except LeaseLost:
                raise
            except Exception as error:  # foreign code may raise anything; every error becomes a typed failure
                return self._result(step, 1, "", self._cut(error_text(error)), retry, StepStatus.FAILED)
            text, more = _parts_of(value)
            return self._result(step, 0, self._cut(text), "", retry, StepStatus.OK) | more

        return await self._step(step, run, retry, idempotent=tool.idempotent)

    async def _skill(self, step: str, action: ActionStep, retry: int) -> StepExecutionResult:
        """Run a skill's code as one recorded step and keep its result in ``outputs``."""
        name = str(action.params["skill"])
        allowed = self.assignment.skills
        if name not in self.catalog.skills or (allowed is not None and name not in allowed):
            return _refusal(step, f"skill {name!r} is not among the skills you were shown", retry)
        skill = self.catalog.skills[name]
        try:
            inputs = json_params(action.params.get("input"))
        except Undecodable as error:
            return _refusal(step, f"params.input of {name}: {error}", retry)
        shown = f"{name} {permissions.input_text(inputs)}"
        wanted = Action("Skill", name, shown, self.assignment.cwd, changes=skill.writes)
        if reason := await self._refuse(step, wanted, refuse_skill(skill, self.profile, self.outside_scripts)):
            return _refusal(step, reason, retry)
        place = self._place(step, name)

        async def run() -> dict[str, Any]:
            """Run the skill; returns the step's result together with the skill's result."""
            try:
                result = await self.assignment.run_skill(skill, inputs, self.assignment.answered.get(place, {}))
            except SkillRefused as error:
                return _refusal(step, str(error), retry).model_dump(mode="json", exclude_defaults=True)
            except SkillFailed as error:
                return self._result(step, 1, "", self._cut(str(error)), retry, StepStatus.FAILED)
            if result.state is SkillState.INPUT_REQUIRED:
                questions = tuple(item.model_copy(update={"step": place}) for item in result.questions)
                raise NeedsAnswer(result.summary, questions)
            if result.state is SkillState.DELEGATING:
                raise Delegates(result.summary, result.tasks, result)
            failed = result.state is SkillState.FAILED
            status = StepStatus.FAILED if failed else StepStatus.OK
            shown = self._result(step, int(failed), self._cut(shown_to_model(result)), "", retry, status)
            return shown | {"skill_result": result.model_dump(mode="json", exclude_defaults=True)}

        skipped = self._result_of_skipped(step, retry)
        stored = await self.recorder.step(f"act:{step}", run, idempotent=skill.idempotent, skipped=skipped)
        output = stored.pop("skill_result", None)
        if output is not None:
            self.outputs.append(SkillResult.model_validate(output))
        return StepExecutionResult.model_validate(stored)

    @property
    def _named(self) -> Skill | None:
        """The skill that the run was started with: its allowed tools bind the whole run."""
        return self.catalog.skills.get(self.assignment.named or "")

    def _tool_action(self, tool: Tool, inputs: Mapping[str, Any]) -> Action:
        """Return the call of a tool as an action to decide on."""
        return Action(
            tool.spec_name or tool.name,
            tool_argument(inputs),
            f"{tool.name} {permissions.input_text(inputs)}",
            self.assignment.cwd,
            changes=tool.writes and not tool.outputs_only,
            others=permissions.text_values(inputs),
            aliases=tool.rule_names,
        )

    async def _refuse(
        self, step: str, action: Action, reason: str, preview: Callable[[], Awaitable[str]] | None = None
    ) -> str:
        """Return the reason why an action may not run, or "": *reason*, or what a person decides if rules ask for it.

        The decision is a step of the run: it is not asked for again, unless the action was allowed, has not begun, and
        would do something else by now. Raises NeedsAnswer until it is known. *preview* returns the change to show.
        """
        denied = f"denied:{step}"
        if self.recorder.has_begun(f"act:{step}"):
            return ""  # its result is known, and nothing is executed
        if self.recorder.has_begun(denied):
            return await self._denial(denied, "")
        judged = self.assignment.policy.judge(action)
        if reason or judged.verdict is not Verdict.ASK:
            return reason or judged.because
        if preview is not None:
            action = replace(action, diff=await preview())
        if reason := permissions.too_long(action, self.redact.clean):
            return reason
        reason = permissions.refusal_reason(await self._decision(step.removesuffix(RETRIED), action, judged.because))
        return reason and await self._denial(denied, f"{reason}. Do not try it again in another form.")

    async def _denial(self, name: str, reason: str) -> str:
        """Record why a person denied an action, and return it; if it is known, *reason* is not used."""

        async def tell() -> dict[str, Any]:
            return {"reason": reason}

        return str((await self.recorder.step(name, tell, idempotent=True))["reason"])

    async def _decision(self, step: str, action: Action, because: str) -> dict[str, Any]:
        """Return a person's answers about an action. Raises NeedsAnswer without them."""
        place = action.place(f"{self.assignment.phase}/{step}")

        async def decide() -> dict[str, Any]:
            known = {**self.assignment.answered, **self.decided}
            answers = permissions.decision_on(action, place, known)
            asked = permissions.questions_for(action, place, because, self.redact.clean)
            if answers is None and self.assignment.ask is not None:
                answers = permissions.spoken(await self.assignment.ask(asked[0]))
            if answers is None:
                raise NeedsAnswer(asked[0].description, asked)
            self.decided[place] = answers
            return dict(answers)

        async with self.one_question:
            return await self.recorder.step(f"{APPROVE}:{step}/{place.rpartition('/')[2]}", decide, idempotent=True)

    async def _ask(self, step: str, action: ActionStep) -> StepExecutionResult:
        asked = str(action.params["question"])
        name = _identifier(str(action.params.get("name") or "answer"))
        place = self._place(step, hashlib.sha256(f"{name}\n{asked}".encode()).hexdigest()[:12])
        answer = self.assignment.answered.get(place, {}).get(name)
        description = truncate(self.redact.clean(asked), MAX_RESULT_SUMMARY_CHARS)
        options = action.params.get("options")
        given = cast("list[Any]", options) if isinstance(options, list) else []
        choices = [self.redact.clean(str(each)) for each in given]
        allowed = {"enum": choices} if choices else {}
        question = Question(name=name, description=description, step=place, allowed=allowed)

        async def hear() -> dict[str, Any]:
            said = answer
            if said is None and self.assignment.ask is not None:
                said = await self.assignment.ask(question)
            if said is None:
                raise NeedsAnswer(question.description, (question,))
            return {"answer": self.redact.clean(str(said))}

        async with self.one_question:
            heard = await self.recorder.step(f"ask:{step}", hear, idempotent=True)
        return StepExecutionResult(step_id=step, stdout_summary=heard["answer"])

    def _place(self, step: str, asker: str) -> str:
        """Return the name under which answers to a step's questions are kept: another step never gets them."""
        return f"{self.assignment.phase}/{step}/{asker}"

    async def _step(self, step: str, run: Any, retry: int, *, idempotent: bool) -> StepExecutionResult:
        skipped = self._result_of_skipped(step, retry)
        stored = await self.recorder.step(f"act:{step}", run, idempotent=idempotent, skipped=skipped)
        if folder := stored.pop("folder", ""):
            self.place.go_to(folder)
        if artifacts := stored.pop("artifacts", None):
            made = tuple(Artifact.model_validate(item) for item in artifacts)
            self.outputs.append(SkillResult(summary="stored an artifact", artifacts=made))
        if (started := stored.pop("started", "")) and self.background is not None:
            self.background.note_started(started)
        return StepExecutionResult.model_validate(stored)

    def _result_of_skipped(self, step: str, retry: int) -> dict[str, Any]:
        """Return the result of a step that the operator takes as done."""
        text = "The operator takes this step as done: an earlier run had started it. Its output is not known."
        return self._result(step, 0, text, "", retry, StepStatus.OK)

    def _result(self, step: str, code: int, out: str, err: str, retry: int, status: StepStatus) -> dict[str, Any]:
        result = StepExecutionResult(
            step_id=step,
            exit_code=code,
            stdout_summary=self.redact.clean(out),
            stderr_summary=self.redact.clean(err),
            retry_count=retry,
            status=status,
        )
        return result.model_dump(mode="json", exclude_defaults=True)

    def _cut(self, text: str) -> str:
        """Clean a text and cut it to the size of a result. The output of a command has been cut by the shell."""
        kept = OutputTail(self.kept_bytes or self.runtime.max_output_bytes, "ask for less at a time")
        kept.add(self.redact.clean(text).encode("utf-8", "replace"))
        return kept.text()


def _parts_of(value: Any) -> tuple[str, dict[str, Any]]:
    """Return what a tool returned as a text, and its media and artifacts."""
    more = dict[str, Any]()
    if isinstance(value, ToolAnswer):
        if value.media:
            more["media"] = [item.model_dump() for item in value.media]
        if value.artifacts:
            more["artifacts"] = [item.model_dump(mode="json", exclude_none=True) for item in value.artifacts]
        value = value.text
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), more


def _refusal(step: str, reason: str, retry: int) -> StepExecutionResult:
    return StepExecutionResult(
        step_id=step, exit_code=REFUSED_CODE, stderr_summary=reason, retry_count=retry, status=StepStatus.REFUSED
    )


def _identifier(text: str) -> str:
    name = "".join(char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in text)[:64]
    return name if name[:1].isalpha() or name[:1] == "_" else f"q_{name}"[:64]
