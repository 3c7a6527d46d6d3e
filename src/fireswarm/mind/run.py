"""The run of a model: prepare, then ask, execute and deliver until it ends.

The output of each call is returned under the call's id. Calls that only read run in parallel, all others in order; a
failed call does not cancel the rest. An answer without calls ends the run. Every error of a provider, a skill or a
command becomes a Conclusion, except LeaseLost and cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fireswarm.contracts.llm.chat import ChatResponse, ToolOutput
from fireswarm.contracts.llm.step_names import answer_step
from fireswarm.contracts.ports import Recorder
from fireswarm.contracts.skills.skill import SkillResult, SkillState
from fireswarm.errors import (
    BudgetExceeded,
    DecisionInvalid,
    MissingApiKey,
    ModelError,
    ModelPaused,
    NoProgress,
    NotFound,
)
from fireswarm.llm.asking import Asking
from fireswarm.llm.budget import Spend
from fireswarm.llm.calls import FINISH
from fireswarm.llm.compaction import announce
from fireswarm.llm.prompt import Component, Part, Transcript
from fireswarm.llm.tokens import CHARS_PER_TOKEN, prompt_limit
from fireswarm.mind import events, tools
from fireswarm.mind.approvals import NeedsAnswer
from fireswarm.mind.assignment import Assignment, Conclusion, ConclusionStatus
from fireswarm.mind.calls.budget_left import BudgetNotes
from fireswarm.mind.calls.dry_run import describe_first_request
from fireswarm.mind.calls.texts import (
    CUT_SHORT,
    FAILED,
    UNANSWERED,
    NoAnswer,
    cut_answer,
    cut_call,
    describe_answers_left,
    outputs_of_all,
)
from fireswarm.mind.handlers.checks import CHECKS_FAILED, find_failed_checks, last_try_step
from fireswarm.mind.handlers.skills import Delegates
from fireswarm.mind.mind import Mind, RunFailed
from fireswarm.mind.progress import Progress
from fireswarm.mind.tool_run import ToolRun
from fireswarm.settings.agent import ModelSettings

FEW_ANSWERS = 3
"""Number of answers left at which the model is warned."""

MAX_NAMED = 20
"""Maximum number of long outputs listed after a summary, newest first."""

SHARE_OF_OUTPUTS = 3
"""The outputs of one answer take at most a third of the prompt."""

PLANS = ("tasks", "revise", "retry", "cancel", "wait")
"""Parts of a structured result with which the work goes on in other tasks."""

MEND = "The checks of this task failed. Mend the work, then finish again."

TOO_MANY = "Not executed: the context has room for the outputs of {} calls in one answer. Make this call again."

ENDINGS = (ModelError, BudgetExceeded, NotFound, NoProgress)


async def think(mind: Mind, assignment: Assignment, recorder: Recorder) -> Conclusion:
    """Execute an assignment and return its conclusion. The last event is ``run_finished`` or ``run_failed``."""
    return await Run.begin(mind, assignment, recorder).conclude()


@dataclass(slots=True)
class Run:
    """A run in progress. ``answer`` is the last answer of the model, ``outputs`` are the outputs of its calls so far.

    ``notes`` are added to the next message. ``unanswered`` is True between a request and its answer. ``reopened`` are
    the steps of messages that resumed the run after a failure, ``sent_back`` counts the answers after which a check
    failed.
    """

    mind: Mind
    assignment: Assignment
    recorder: Recorder
    state: ToolRun
    transcript: Transcript
    asking: Asking | None
    decision_limit: int
    budget: BudgetNotes | None = None
    answer: ChatResponse = field(default_factory=lambda: ChatResponse(text=""))
    outputs: list[ToolOutput] = field(default_factory=list[ToolOutput])
    notes: list[Part] = field(default_factory=list[Part])
    unanswered: bool = False
    sent_back: int = 0
    reopened: set[str] = field(default_factory=set[str])

    @classmethod
    def begin(cls, mind: Mind, assignment: Assignment, recorder: Recorder) -> Run:
        """Return a run in its initial state."""
        state = ToolRun.begin(mind, assignment, recorder)
        state.tools = tools.run_tools(assignment)
        transcript = Transcript(assignment.system, tuple(tool.spec for tool in state.tools.values()))
        asking = budget = None
        if mind.client is not None:
            asking = Asking(mind.client, recorder, transcript, recorder.words if recorder.follows else None)
            budget = BudgetNotes(assignment, recorder, asking)
        limit = mind.settings.runtime.max_turns + assignment.extra_decisions
        return cls(mind, assignment, recorder, state, transcript, asking, limit, budget)

    @property
    def settings(self) -> ModelSettings:
        """Settings of the model that is asked now."""
        return self.mind.settings.model if self.asking is None else self.asking.client.settings

    async def conclude(self) -> Conclusion:
        """Run to the end, end the background commands, and record the end."""
        try:
            conclusion = await self._run_to_end()
        finally:
            await self.state.background.end_all()
            self.state.pinned.remove()
        events.record_end(self.recorder, conclusion)
        return conclusion

    async def _run_to_end(self) -> Conclusion:
        """Ask for decisions until one ends the run. A failure ends the run unless a person's message resumes it."""
        prepared = False
        while True:
            try:
                if not prepared:
                    prepared = True
                    await self.prepare()
                if (conclusion := await self.ask() or await self.execute()) is not None:
                    return conclusion
                self.deliver()
            except NeedsAnswer as needed:
                return self._end(ConclusionStatus.WAITING, str(needed), questions=needed.questions)
            except Delegates as waits:
                self.state.results.append(waits.result)
                return self._end(ConclusionStatus.DELEGATING, str(waits), tasks=waits.tasks)
            except RunFailed as failure:
                if not await self._reopen(failure.reason, str(failure), failure.error):
                    return self._fail(failure.reason, str(failure), failure.error)
            except ENDINGS as error:
                if not await self._reopen(error.code, str(error), error):
                    return self._fail(error.code, str(error), error)

    # ── prepare ─────────────────────────────────────────────────────────────────────────────────────────

    async def prepare(self) -> None:
        """Choose the skills to show, and open the conversation with the task. Raises RunFailed and NotFound."""
        state, assignment = self.state, self.assignment
        events.record_start(self.recorder, self.mind, assignment)
        state.briefing.load()
        candidates = await state.briefing.prefilter()
        if not candidates and self.mind.settings.skills.prefilter_zero_candidate_strategy == "fail_fast":
            raise RunFailed(
                "no_skill_candidates",
                "no skill matches the task: add one, lower skills.prefilter_min_score, or set "
                "skills.prefilter_zero_candidate_strategy to fallback_all_skills",
            )
        if assignment.named is not None:
            state.take_up(assignment.named, "the task names it")
        self.transcript.say(*state.briefing.opening(await assignment.facts()), *self._answers_left())

    # ── ask ─────────────────────────────────────────────────────────────────────────────────────────────

    async def ask(self) -> Conclusion | None:
        """Ask the model for its next answer; a dry run ends here. Raises RunFailed after ``max_turns``."""
        state, asking = self.state, self.asking
        if self.assignment.dry_run:
            announce(self.transcript, self.settings, self.recorder, 1)
            text = describe_first_request(self.mind.settings, state.briefing.candidates, self.transcript)
            return self._end(ConclusionStatus.DRY_RUN, text, reason="dry_run")
        self.unanswered = True
        self._check_stopped(FAILED)
        await self._hear_person()
        await self._hear_budget()
        if state.decision >= self.decision_limit and not self.recorder.has_begun(answer_step(state.decision + 1)):
            last = f". The last answer: {text}" if (text := self.answer.text.strip()) else ""
            advice = f"raise runtime.max_turns, or give a smaller task{last}"
            raise RunFailed("max_turns_exceeded", f"not finished after {state.decision} answers: {advice}")
        if asking is None:
            raise MissingApiKey(self.mind.no_model)
        await asking.compose(state.decision + 1, self._keep)
        state.decision += 1
        self._check_stopped(UNANSWERED)
        self.answer = await asking.ask(state.decision)
        self.unanswered = False
        return None

    async def _hear_person(self) -> None:
        """Add what a person wrote while the work was in progress."""
        if said := await self.state.steered.said_before(self.state.decision + 1):
            is_late = self.decision_limit - self.state.decision <= FEW_ANSWERS
            self.transcript.add_to_last(self._take_message(said))
            if is_late:
                left = self.decision_limit - self.state.decision
                self.transcript.add_to_last(Part(Component.STATE, describe_answers_left(left)))
            self.transcript.may_call = True

    async def _hear_budget(self) -> None:
        """Add the note about the budget that is due before the next answer."""
        if self.budget is not None and (note := await self.budget.before(self.state.decision + 1)):
            self.transcript.add_to_last(Part(Component.STATE, note, "the budget"))

    def _keep(self) -> tuple[Part, ...]:
        """Return text that compaction keeps verbatim: instructions in use, the person's messages, the to-do list."""
        state, limit = self.state, prompt_limit(self.settings)
        kept = [state.kept.part(limit, state.outputs.names[-MAX_NAMED:])]
        if state.skill and state.skill != self.assignment.named and self.mind.catalog.skills[state.skill].entry is None:
            shown = state.outputs.show(f"skill {state.skill}", state.briefing.activation(state.skill))
            kept.append(Part(Component.DISCLOSED, shown, f"skill {state.skill}"))
        return tuple(part for part in kept if part.text)

    # ── execute ─────────────────────────────────────────────────────────────────────────────────────────

    async def execute(self) -> Conclusion | None:
        """Execute the calls of the answer; an answer without calls, or the tool finish, ends the run."""
        answer, state = self.answer, self.state
        can_only_answer = self.asking is not None and not self.asking.could_call and bool(answer.text.strip())
        if not answer.calls or can_only_answer:
            return await self._take_answer()
        self.outputs, state.has_failed = [], False
        calls = list(enumerate(answer.calls, 1))
        room = prompt_limit(self.settings) * CHARS_PER_TOKEN // SHARE_OF_OUTPUTS
        most = state.outputs.share(len(calls), room)
        calls[most:] = [(n, call.model_copy(update={"fault": TOO_MANY.format(most)})) for n, call in calls[most:]]
        if answer.stop in CUT_SHORT:
            calls[-1] = (calls[-1][0], calls[-1][1].model_copy(update={"fault": cut_call(answer.stop)}))
        while calls:
            reads = [(tool := state.tools.get(call.name)) is not None and tool.reads for _, call in calls]
            size = (reads.index(False) if False in reads else len(calls)) or 1
            batch, calls = calls[:size], calls[size:]
            work = [tools.call(call, f"{state.decision}.{number}", state) for number, call in batch]
            self.outputs += [await work[0]] if len(work) == 1 else await tools.call_side_by_side(work)
        if state.planned or state.awaited:
            self._wait_for_planned()
        if state.background.known and (news := await state.background.news(state.decision)):
            self._note(news)
        if state.finished is not None:
            (text, result), state.finished = state.finished, None
            if await self._goes_on(text, plans=any(result.get(name) for name in PLANS)):
                return None
            return self._end(ConclusionStatus.FINISHED, text, reason="finished", result=result)
        return None

    def _wait_for_planned(self) -> None:
        """Suspend the run until the tasks of this answer's calls have ended. Raises Delegates."""
        tasks, self.state.planned, self.state.awaited = tuple(self.state.planned.values()), {}, []
        summary = f"waits for {', '.join(task.assigned_to for task in tasks) or 'the result of a call'}"
        raise Delegates(summary, tasks, SkillResult(state=SkillState.DELEGATING, summary=summary, tasks=tasks))

    async def _take_answer(self) -> Conclusion | None:
        """End the run with the answer, or ask the model to complete it; a person may reply."""
        text = self.answer.text.strip()
        if self.answer.stop in CUT_SHORT:
            self.state.progress.cut_short()
            self._note(cut_answer(self.answer.stop))
        elif not text:
            self.state.progress.nothing_done()
            self._note("You called no tool and gave no answer. Call a tool, or answer the task.")
        elif fault := self.state.fault_of({}):
            self._note(f"The task asks for a structured result: {fault}. Call the tool finish with it.")
        elif await self._goes_on(text):
            self.outputs = outputs_of_all(self.answer.calls, ())
        else:
            return self._end(ConclusionStatus.FINISHED, text, reason="finished")
        return None

    # ── deliver ─────────────────────────────────────────────────────────────────────────────────────────

    def deliver(self) -> None:
        """Send the outputs of the calls to the model, with the notes."""
        notes, outputs = [*self.notes, *self._answers_left()], self.outputs
        self.notes, self.outputs = [], []
        if not notes and not outputs:
            notes = [Part(Component.STATE, "Continue.")]
        self.transcript.say(*notes, outputs=outputs)

    def _answers_left(self) -> list[Part]:
        """Return the warning about the number of answers left, or "". In the last answer, the model can only reply."""
        left = self.decision_limit - self.state.decision
        finishes = FINISH in self.state.tools
        self.transcript.may_call = left != 1 or finishes
        announced = left == 1 or (left == FEW_ANSWERS and self.state.decision)
        return [Part(Component.STATE, describe_answers_left(left, finishes=finishes))] if announced else []

    def _note(self, text: str) -> None:
        self.notes.append(Part(Component.STATE, text))

    # ── a person's messages, and the end ────────────────────────────────────────────────────────────────

    async def _goes_on(self, answer: str, *, plans: bool = False) -> bool:
        """Return True if the run goes on after *answer*: a check of the task failed, or somebody replies.

        The checks wait while the run only *plans*.

        Raises RunFailed if the checks failed too often.
        """
        if not plans and (failed := await self._run_checks(answer)):
            if self.recorder.has_begun(last_try_step(self.state.decision)):
                self.sent_back = 0
            self.sent_back += 1
            report = "\n\n".join(failed)
            if self.sent_back > self.assignment.max_revisions:
                raise RunFailed(CHECKS_FAILED, f"the checks still fail after {self.sent_back} tries: {report}")
            self.notes.append(self._take_message(f"{MEND}\n\n{report}"))
            return True
        if message := await self._message(f"message:{self.state.decision}", answer):
            self.sent_back = 0
            self.notes.append(self._take_message(message))
            return True
        return False

    async def _run_checks(self, answer: str) -> list[str]:
        """Return the faults that the task's checks find. Raises Delegates while a review is at work."""
        failed = await find_failed_checks(self.state, answer)
        if self.state.planned or self.state.awaited:
            self._wait_for_planned()
        return failed

    async def _message(self, step: str, answer: str) -> str:
        """Return a person's reply to *answer*, or "" at the end of the conversation.

        The reply is a recorded step: a resumed run has it.
        """
        following = self.assignment.next_message
        if following is None:
            return ""
        message: str | None = ""
        if not self.recorder.has_begun(step):
            message = await following(self.mind.redact.clean(answer))
            if not message or not message.strip():
                return ""

        async def hear() -> dict[str, Any]:
            return {"text": message}

        return str((await self.recorder.step(step, hear, idempotent=True))["text"])

    def _take_message(self, message: str) -> Part:
        """Return a person's message for the model; the message also resets the limit of answers."""
        self.decision_limit = self.state.decision + self.mind.settings.runtime.max_turns
        self.state.kept.hear(message)
        if self.asking is not None:
            self.asking.said = message
        # The first message holds the task and its inputs.
        heading = "" if self.state.decision else "# Message from the user\n"
        return Part(Component.TASK, f"{heading}{message}", "a message")

    def _check_stopped(self, what: str) -> None:
        """Raise RunFailed where an earlier start of the run stopped, if a person replied to that failure."""
        step = f"message:{self.state.decision}.{what}"
        if step not in self.reopened and self.recorder.has_begun(step):
            cause = NoAnswer() if what == UNANSWERED else None
            raise RunFailed("stopped_before", "an earlier start stopped here", cause)

    async def _reopen(self, reason: str, message: str, error: Exception | None) -> bool:
        """Resume after a failure with a person's reply; returns False without a reply."""
        unanswered = self.unanswered and error is not None and not isinstance(error, DecisionInvalid)
        self.unanswered = False
        step = f"message:{self.state.decision}.{UNANSWERED if unanswered else FAILED}"
        if isinstance(error, (ModelPaused, NotFound)) or not self.transcript.entries:
            return False
        if not (said := await self._message(step, f"The run stopped ({reason}): {message}")):
            return False
        self.reopened.add(step)
        self.sent_back = 0
        state = self.state
        state.progress, state.result_faults, self.transcript.may_call = Progress(), 0, True
        self.notes.append(self._take_message(said))
        if self.transcript.entries[-1].message.role == "assistant":
            self.transcript.say(*self.notes, outputs=outputs_of_all(self.answer.calls, self.outputs))
        else:
            self.transcript.add_to_last(*self.notes)
        self.notes, self.outputs, state.planned, state.awaited = [], [], {}, []
        return True

    def _fail(self, reason: str, message: str, error: Exception | None) -> Conclusion:
        status = ConclusionStatus.BLOCKED if isinstance(error, ModelPaused) else ConclusionStatus.FAILED
        return self._end(status, message, reason=reason, error=error)

    def _end(self, status: ConclusionStatus, answer: str, *, reason: str = "", **more: Any) -> Conclusion:
        """Return the conclusion of the run."""
        return Conclusion(
            status,
            reason or status.value,
            self.mind.redact.clean(answer),  # decoding may have unescaped a secret
            skill=self.state.skill,
            turns=self.state.decision,
            outputs=tuple(self.state.results),
            spend=self.asking.spent if self.asking is not None else Spend(),
            **more,
        )
