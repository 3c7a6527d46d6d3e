"""The run of a model that decides by calling tools, in the states of `mind.loop`.

Each call gets its output under its id. Calls of one answer that only read run side by side, all others in order; a
failed one does not drop the rest. An answer without calls ends the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fireswarm.contracts.limits import MAX_KEPT_OUTPUT_BYTES
from fireswarm.contracts.llm.chat import ToolCall, ToolOutput
from fireswarm.contracts.llm.decision import ActionStep, ActionType, StepExecutionResult, StepStatus
from fireswarm.contracts.skills.skill import PlannedTask, SkillResult, SkillState
from fireswarm.errors import InvalidInput, ModelPaused, NotFound
from fireswarm.llm.calls import FINISH, READ_SKILL_FILE, RUN_COMMAND, USE_SKILL, action_of
from fireswarm.llm.client import Asking
from fireswarm.llm.prompt import Component, Part, Transcript
from fireswarm.llm.tokens import CHARS_PER_TOKEN, prompt_limit
from fireswarm.mind import events
from fireswarm.mind.actions import Delegates
from fireswarm.mind.assignment import Conclusion, ConclusionStatus
from fireswarm.mind.calling.effects import may_have_changed
from fireswarm.mind.calling.kept import KeptWords
from fireswarm.mind.calling.outputs import REPLACED, Outputs, text_of
from fireswarm.mind.calling.side_by_side import run_side_by_side
from fireswarm.mind.calling.skill_files import SkillFiles
from fireswarm.mind.calling.specs import DELEGATE, READ_OUTPUT, SEARCH_SKILLS, TODO, offered_tools
from fireswarm.mind.calling.steering import SteeredSteps
from fireswarm.mind.calling.values import (
    CUT_SHORT,
    NoAnswer,
    NoMessage,
    check_input,
    cut_answer,
    cut_call,
    describe_child,
    describe_turns,
    number_in,
    outputs_of_all,
    todo_list,
)
from fireswarm.mind.commands.background import COMMAND_OUTPUT, STOP_COMMAND, BackgroundCommands
from fireswarm.mind.loop import FAILED, MAX_RESULT_FAULTS, UNANSWERED, MindRun
from fireswarm.mind.mind import RunFailed
from fireswarm.mind.progress import Progress
from fireswarm.mind.states import State

FEW_TURNS = 3
"""The model is told when so many turns are left."""

MAX_NAMED = 20
"""Outputs of several pages that are named after a summary, the newest."""

TOO_MANY = "The context has room for the outputs of {} calls of one answer, and this was one more: make it again."
_LOCAL = frozenset({READ_SKILL_FILE, SEARCH_SKILLS, READ_OUTPUT, COMMAND_OUTPUT, TODO})


@dataclass
class CallingRun(MindRun):
    """A run in progress. ``shown`` are the outputs of the last answer's calls, for the next message."""

    outputs: Outputs = field(init=False)
    background: BackgroundCommands = field(init=False)
    steered: SteeredSteps = field(init=False)
    skill_files: SkillFiles = field(init=False)
    shown: list[ToolOutput] = field(default_factory=list)
    kept: KeptWords = field(default_factory=KeptWords)
    _finished: tuple[str, dict[str, Any]] | None = None
    _reopened: set[str] = field(default_factory=set)
    _delegated: dict[str, PlannedTask] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Create the parts of the run."""
        MindRun.__post_init__(self)
        self.outputs = Outputs(self.mind.settings.runtime.max_output_bytes)
        self.actor.kept_bytes = MAX_KEPT_OUTPUT_BYTES
        self.actor.place.keeps_folder = True
        self.background = BackgroundCommands(self.actor.shell, self.recorder, self.actor.place.timeout_seconds)
        self.actor.background = self.background
        self.steered = SteeredSteps(self.assignment.steering, self.recorder)
        self.skill_files = SkillFiles(self.briefing)
        self.transcript = Transcript(self.assignment.system, offered_tools(self.assignment))
        if isinstance(self.asking, Asking):
            self.asking.conversation = self.transcript

    async def conclude(self) -> Conclusion:
        """Move from state to state until the run ends, and end its background commands."""
        try:
            return await MindRun.conclude(self)
        finally:
            await self.background.end_all()

    # ── the states that differ ──────────────────────────────────────────────────────────────────────────

    async def _prefilter(self) -> State:
        """Choose the skills to show. There may be none, unless the settings say otherwise: the tools remain."""
        strict = self.mind.settings.skills.prefilter_zero_candidate_strategy == "fail_fast"
        if strict:
            return await MindRun._prefilter(self)
        await self.briefing.prefilter()
        return State.DISCLOSE_CONTEXT_STAGE

    async def _disclose(self) -> State:
        """Open the conversation, or answer the calls that asked for material of a skill."""
        if self.turn:
            return self._answer_calls()
        if self.assignment.named is not None:
            self._take_up(self.assignment.named, "the task names it")
        self.transcript.say(*self.briefing.opening_for_tools(), *self._turns_left())
        return State.CALL_LLM

    async def _decode(self) -> State:
        self.decision = self.asking.take_calls(self.turn, self.answer)
        self.progress.failed_now = False
        answers = not self.answer.calls or (not self.asking.could_call and bool(self.answer.text.strip()))
        return State.HANDOFF_OR_FINISH if answers else State.EXECUTE_STEP

    async def _execute(self) -> State:
        """Execute all calls of the answer. The first exception that ends the run is raised after the others."""
        self.shown = []
        calls = list(enumerate(self.answer.calls, 1))
        most = self.outputs.share(len(calls), prompt_limit(self.mind.settings.model) * CHARS_PER_TOKEN // 3)
        calls[most:] = [
            (number, call.model_copy(update={"fault": TOO_MANY.format(most)})) for number, call in calls[most:]
        ]
        if self.answer.stop in CUT_SHORT and calls:
            calls[-1] = (calls[-1][0], calls[-1][1].model_copy(update={"fault": cut_call(self.answer.stop)}))
        while calls:
            size = next((n for n, (_, call) in enumerate(calls) if not self._only_reads(call)), len(calls)) or 1
            batch, calls = calls[:size], calls[size:]
            self.shown += await run_side_by_side([self._output_of(number, call) for number, call in batch])
        self._delegate()
        if news := await self.background.news(self.turn):
            self._note(news)
        return State.VERIFY_PROGRESS

    def _keep(self) -> tuple[Part, ...]:
        """Return what is kept word for word with a summary: instructions in use, the person's words, the list."""
        kept = [self.kept.part(prompt_limit(self.mind.settings.model), self.outputs.names[-MAX_NAMED:])]
        if self.skill and self.skill != self.assignment.named and self.mind.catalog.skills[self.skill].entry is None:
            shown = self.outputs.show(f"skill {self.skill}", self.briefing.activation(self.skill))
            kept.append(Part(Component.DISCLOSED, shown, f"skill {self.skill}"))
        return tuple(part for part in kept if part.text)

    async def _verify(self) -> State:
        if any(call.name == FINISH for call in self.answer.calls) and self._finished is not None:
            return State.HANDOFF_OR_FINISH
        if any(call.name in (USE_SKILL, READ_SKILL_FILE) for call in self.answer.calls):
            return State.DISCLOSE_CONTEXT_STAGE
        return self._answer_calls()

    async def _handoff_or_finish(self) -> State:
        """End the run with the answer, or say what is missing in it."""
        if self._finished is not None:
            answer, result = self._finished
            return self._end(ConclusionStatus.FINISHED, "finished", answer, result=result)
        text = self.answer.text.strip()
        if self.answer.stop in CUT_SHORT:
            self.progress.cut_short()
            self._note(cut_answer(self.answer.stop))
        elif not text:
            self.progress.nothing_done()
            self._note("You called no tool and gave no answer. Call a tool, or answer the task.")
        elif fault := self._fault_of({}):
            self._note(f"The task asks for a structured result: {fault}. Give it with the tool finish.")
        elif message := await self._message(f"message:{self.turn}", text):
            self.pending.append(self._take_message(message))
            self.shown = outputs_of_all(self.answer.calls, ())
        else:
            return self._end(ConclusionStatus.FINISHED, "finished", text)
        return State.DISCLOSE_CONTEXT_STAGE

    async def _message(self, step: str, said: str) -> str:
        """Return what a person says to *said*, or "" at the end. It is a step: a run that goes on knows it."""
        following = self.assignment.next_message
        if following is None:
            return ""

        async def hear() -> dict[str, Any]:
            message = await following(self.mind.redact.clean(said))
            if not message or not message.strip():
                raise NoMessage
            return {"text": message}

        try:
            return str((await self.recorder.step(step, hear, idempotent=True))["text"])
        except NoMessage:
            return ""

    def _take_message(self, message: str) -> Part:
        """Return a person's message for the model; with it, the run may take all its turns again."""
        self.turn_limit = self.turn + self.mind.settings.runtime.max_turns
        self.kept.hear(message)
        self.asking.said = message
        heading = "" if self.turn else "# A message of the user\n"  # the first message has the task and its material
        return Part(Component.TASK, f"{heading}{message}", "a message")

    async def _hear_person(self) -> None:
        if said := await self.steered.said_before(self.turn + 1):
            is_late = self.turn_limit - self.turn <= FEW_TURNS
            self.transcript.add_to_last(self._take_message(said))
            if is_late:
                self.transcript.add_to_last(Part(Component.STATE, describe_turns(self.turn_limit - self.turn)))
            self.transcript.may_call = True

    # ── going on after a failure ────────────────────────────────────────────────────────────────────────

    async def _stop(self, reason: str, message: str, error: Exception | None) -> None:
        """End the run, or go on with what a person says to the failure."""
        said, unanswered = "", self.machine.state is State.CALL_LLM and error is not None
        step = f"message:{self.turn}.{UNANSWERED if unanswered else FAILED}"
        if not isinstance(error, (ModelPaused, NotFound)):
            said = await self._message(step, f"The run stopped ({reason}): {message}")
        if not said:
            await MindRun._stop(self, reason, message, error)
            return
        self._reopened.add(step)
        self.progress, self.result_faults, self.transcript.may_call = Progress(), 0, True
        self.pending.append(self._take_message(said))
        if self.transcript.turns[-1].message.role == "assistant":
            self.transcript.say(*self.pending, outputs=outputs_of_all(self.answer.calls, self.shown))
        else:
            self.transcript.add_to_last(*self.pending)
        self.pending, self.shown, self._delegated = [], [], {}
        self.machine.reopen()

    def _check_stopped(self, what: str) -> None:
        """Raise RunFailed where an earlier start of the run stopped, and a person said something to that."""
        step = f"message:{self.turn}.{what}"
        if step not in self._reopened and self.recorder.has_begun(step):
            raise RunFailed(
                "stopped_before", "an earlier start stopped here", NoAnswer() if what == UNANSWERED else None
            )

    def _last_words(self) -> str:
        return f". The last answer: {text}" if (text := self.answer.text.strip()) else ""

    # ── calls ───────────────────────────────────────────────────────────────────────────────────────────

    def _only_reads(self, call: ToolCall) -> bool:
        tool = self.assignment.tools.get(call.name)
        return call.name in _LOCAL or (tool is not None and not tool.writes)

    async def _output_of(self, number: int, call: ToolCall) -> ToolOutput:
        """Execute one call and return its output."""
        step = f"{self.turn}.{number}"
        try:
            text, result = await self._perform(step, call)
        except InvalidInput as error:
            text, result = str(error), None
            failed = True
        else:
            failed = result is not None and result.status is not StepStatus.OK
        text = self.mind.redact.clean(text) + (f"\n{REPLACED}" if call.redacted else "")
        if result is None and call.name != FINISH:
            status = StepStatus.FAILED if failed else StepStatus.OK
            known = StepExecutionResult(step_id=step, exit_code=int(failed), stdout_summary=text, status=status)
            events.record_call(self.recorder, self.turn, self.skill, call, known)
        seen = f"{self.actor.place.cwd}\n{text}"  # `cd ..` says nothing, and does something else each time
        changes = not self._only_reads(call) and may_have_changed(call, result, self.actor, self.skill)
        warning = self.progress.saw_call(self.turn, call, seen, changes=changes)
        shown = self.outputs.show(step, text)
        media = result.media if result is not None else self.skill_files.take_media(step)
        shown = f"{shown}\n{warning}" if warning else shown
        # A non-zero exit code is information; only a call that could not be made has failed.
        failed = failed and (result is None or call.name != RUN_COMMAND)
        return ToolOutput(call_id=call.id, name=call.name, text=shown, failed=failed, media=media)

    async def _step(self, name: str, action: ActionStep) -> StepExecutionResult:
        if (left := await self.steered.leave_out(name)) is None:
            return await MindRun._step(self, name, action)
        events.record_step(self.recorder, self.turn, self.skill, action, left)
        return left

    async def _perform(self, step: str, call: ToolCall) -> tuple[str, StepExecutionResult | None]:
        """Return the output of a call, and the result of its step if it is one. Raises InvalidInput for a bad call."""
        if call.fault:
            raise InvalidInput(call.fault)
        if call.name not in (known := [tool.name for tool in self.transcript.tools]):
            raise InvalidInput(f"unknown tool {call.name!r}; known: {', '.join(sorted(known))}")
        local: dict[str, Callable[[str, Mapping[str, Any]], Awaitable[str]]] = {
            READ_SKILL_FILE: self.skill_files.read,
            SEARCH_SKILLS: self._search_skills,
            READ_OUTPUT: self._read_output,
            COMMAND_OUTPUT: self.background.read,
            STOP_COMMAND: self.background.stop,
            TODO: self._todo,
            DELEGATE: self._delegate_call,
            FINISH: self._finish_call,
        }
        if call.name in local:
            return await local[call.name](step, call.input), None
        if call.name == USE_SKILL and (taken := self._take_instructions(call)) is not None:
            return taken, None
        action = action_of(call)
        check_input(action)
        result = await self._step(step, action)
        text = text_of(action, result)
        if action.type is ActionType.ASK_USER and result.status is StepStatus.OK:
            self.kept.hear_answer(str(action.params["question"]), text)
        policy = self.mind.settings.runtime.on_step_failure
        tried = action.type in (ActionType.RUN_COMMAND, ActionType.CALL_SKILL)
        if tried and result.status in (StepStatus.FAILED, StepStatus.TIMEOUT) and not policy.endswith("report"):
            self._after_failure(action, result)
            text += f"\n[{self.skill} is tried instead]\n{self.briefing.activation(self.skill)}"
        return text, result

    def _take_instructions(self, call: ToolCall) -> str | None:
        """Take up a skill and return its instructions; None for a skill with code, which has to run."""
        name = self.briefing.resolve(str(call.input.get("name") or ""))
        call.input["name"] = name
        skill = self.mind.catalog.skills[name]
        self.briefing.note_known(name)
        again = name == self.skill
        self._take_up(name, str(call.input.get("reason") or "chosen"))
        if skill.entry is not None:
            return None
        return f"You are using {name} already." if again else self.briefing.activation(name)

    async def _search_skills(self, step: str, given: Mapping[str, Any]) -> str:
        return await self.briefing.search(str(given.get("query") or ""))

    async def _read_output(self, step: str, given: Mapping[str, Any]) -> str:
        return self.outputs.page(str(given.get("output") or ""), number_in(given, "page", 1))

    async def _todo(self, step: str, given: Mapping[str, Any]) -> str:
        """Return the list as text. Its event shows it to the operator."""
        self.kept.todo = todo_list(given)
        return self.kept.todo or "[nothing to do]"

    # ── handing over and ending ─────────────────────────────────────────────────────────────────────────

    async def _delegate_call(self, step: str, given: Mapping[str, Any]) -> str:
        """Plan the task of a call, or return the result of the task that an earlier turn created for it."""
        key = f"call.{self.assignment.phase}.{step}"
        child = self.assignment.children.get(key)
        if child is not None:
            return describe_child(child)
        try:
            planned = PlannedTask(
                key=key,
                assigned_to=str(given.get("role") or ""),
                objective=str(given.get("objective") or ""),
                context=dict(given.get("context") or {}),
                expected_outcome=str(given.get("expected_outcome") or ""),
            )
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"delegate: {error}") from error
        if fault := self._fault_of({"tasks": [planned.model_dump(mode="json")]}):
            raise InvalidInput(f"delegate: {fault}")
        self._delegated[key] = planned
        return "waiting for the result"

    def _delegate(self) -> None:
        """Suspend the run until the tasks planned in this answer have ended. Raises Delegates."""
        if self._delegated:
            tasks, self._delegated = tuple(self._delegated.values()), {}
            summary = f"waits for {', '.join(task.assigned_to for task in tasks)}"
            raise Delegates(summary, tasks, SkillResult(state=SkillState.DELEGATING, summary=summary, tasks=tasks))

    async def _finish_call(self, step: str, given: Mapping[str, Any]) -> str:
        if any(output.failed for output in self.shown):
            raise InvalidInput("a call before this one failed: look at its output first, then finish")
        result = given.get("result") or {}
        fault = "result must be an object" if not isinstance(result, dict) else self._fault_of(dict(result))
        if fault:
            self.result_faults += 1
            if self.result_faults > MAX_RESULT_FAULTS:
                raise RunFailed("result_invalid", f"the structured result is invalid: {fault}")
            raise InvalidInput(f"the result was rejected: {fault}")
        self._finished = (self.mind.redact.clean(str(given.get("answer") or "")), dict(self.mind.redact.value(result)))
        return "finished"

    def _fault_of(self, result: Mapping[str, Any]) -> str:
        return self.assignment.check_result(result) if self.assignment.check_result is not None else ""

    # ── the next message ────────────────────────────────────────────────────────────────────────────────

    def _answer_calls(self) -> State:
        """Say the outputs of the calls, and what was noted."""
        notes, outputs = [*self.pending, *self._turns_left()], self.shown
        self.pending, self.shown = [], []
        if not notes and not outputs:
            notes = [Part(Component.STATE, "Continue.")]
        self.transcript.say(*notes, outputs=outputs)
        return State.CALL_LLM

    def _turns_left(self) -> list[Part]:
        """Return what to say of the turns that are left. In the last one, the model can only answer."""
        left = self.turn_limit - self.turn
        finishes = any(tool.name == FINISH for tool in self.transcript.tools)
        self.transcript.may_call = left != 1 or finishes
        told = left == 1 or (left == FEW_TURNS and self.turn)
        return [Part(Component.STATE, describe_turns(left, finishes=finishes))] if told else []
