"""The run of an agent, state by state, in reading order; ``states`` lists all transitions.

Every error of a provider, a skill or a command becomes a Conclusion, except LeaseLost and cancellation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fireswarm.contracts.limits import MAX_STORED_SUMMARY_CHARS, truncate
from fireswarm.contracts.llm.chat import ChatResponse
from fireswarm.contracts.llm.decision import ActionStep, ActionType, ModelDecision, StepExecutionResult, StepStatus
from fireswarm.contracts.ports import Recorder
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import BudgetExceeded, ModelError, ModelPaused, NoProgress, NotFound
from fireswarm.llm.client import Asking, announce
from fireswarm.llm.decode import Undecodable, json_params
from fireswarm.llm.prompt import Component, Part, Transcript
from fireswarm.mind import events
from fireswarm.mind.actions import Actor, Delegates, NeedsAnswer
from fireswarm.mind.assignment import UNFINISHED, Assignment, Conclusion, ConclusionStatus
from fireswarm.mind.briefing import Briefing, results_part
from fireswarm.mind.mind import Mind, NoModel, RunFailed
from fireswarm.mind.progress import Progress
from fireswarm.mind.states import TERMINAL, Machine, State

FAILED, UNANSWERED = "failed", "unanswered"
"""Two ways for a run to stop that a person's message reopens: after the answer of its turn, or without one."""

MAX_RESULT_FAULTS = 3
"""Maximum number of rejected structured results before the run ends."""


@dataclass(slots=True)
class MindRun:
    """A run in progress. ``skill`` is the selected skill; ``turn`` counts requested decisions."""

    mind: Mind
    assignment: Assignment
    recorder: Recorder
    machine: Machine = field(default_factory=Machine)
    briefing: Briefing = field(init=False)
    transcript: Transcript = field(init=False)
    asking: Asking | NoModel = field(init=False)
    actor: Actor = field(init=False)
    progress: Progress = field(default_factory=Progress)
    turn: int = 0
    turn_limit: int = field(init=False)
    attempt: int = 0
    skill: str = ""
    led: set[str] = field(default_factory=set)
    result_faults: int = 0
    answer: ChatResponse = field(default_factory=lambda: ChatResponse(text=""))
    decision: ModelDecision = field(default_factory=ModelDecision)
    pending: list[Part] = field(default_factory=list)
    conclusion: Conclusion = UNFINISHED

    def __post_init__(self) -> None:
        """Create the parts of the run."""
        mind, assignment = self.mind, self.assignment
        self.turn_limit = mind.settings.runtime.max_turns + assignment.extra_turns
        self.briefing = Briefing(
            mind.settings.skills, mind.catalog, mind.router, assignment, self.recorder, mind.reranker
        )
        self.actor = Actor(
            *(assignment, mind.catalog, mind.settings.runtime, mind.shell, mind.redact, self.recorder),
            outside_scripts=mind.settings.skills.outside_scripts,
        )
        self.transcript = Transcript(assignment.system)
        self.asking = NoModel(mind.no_model)
        if mind.client is not None:
            words = self.recorder.words if self.recorder.follows else None
            self.asking = Asking(mind.client, self.recorder, self.transcript, words)

    async def conclude(self) -> Conclusion:
        """Move from state to state until the run ends."""
        steps: Mapping[State, Callable[[], Awaitable[State]]] = {
            State.INIT: self._start,
            State.LOAD_SKILL_CATALOG: self._load_catalog,
            State.PREFILTER_SKILLS: self._prefilter,
            State.DISCLOSE_CONTEXT_STAGE: self._disclose,
            State.CALL_LLM: self._call_llm,
            State.DECODE_DECISION: self._decode,
            State.EXECUTE_STEP: self._execute,
            State.VERIFY_PROGRESS: self._verify,
            State.HANDOFF_OR_FINISH: self._handoff_or_finish,
        }
        while self.machine.state not in TERMINAL:
            try:
                self.machine.move(await steps[self.machine.state]())
            except NeedsAnswer as needed:
                self._wait(ConclusionStatus.WAITING, needed, questions=needed.questions)
            except Delegates as handed:
                self.actor.outputs.append(handed.result)
                self._wait(ConclusionStatus.DELEGATING, handed, tasks=handed.tasks)
            except RunFailed as failure:
                await self._stop(failure.reason, str(failure), failure.error)
            except (ModelError, BudgetExceeded, NotFound, NoProgress) as error:
                await self._stop(error.code, str(error), error)
        events.record_end(self.recorder, self.conclusion)
        return self.conclusion

    # ── before the first call ───────────────────────────────────────────────────────────────────────

    async def _start(self) -> State:
        events.began(self.recorder, self.mind, self.assignment, self.actor.profile)
        return State.LOAD_SKILL_CATALOG

    async def _load_catalog(self) -> State:
        self.briefing.load()
        return State.PREFILTER_SKILLS

    async def _prefilter(self) -> State:
        candidates = await self.briefing.prefilter()
        if not candidates:
            raise RunFailed(
                "no_skill_candidates",
                "no skill matches the task: add one, lower skills.prefilter_min_score, or set "
                "skills.prefilter_zero_candidate_strategy to fallback_all_skills",
            )
        return State.DISCLOSE_CONTEXT_STAGE

    async def _disclose(self) -> State:
        """Add the next message to the transcript: the opening, then step results and requested material."""
        if not self.turn:
            self.transcript.say(*self.briefing.opening())
            return State.CALL_LLM
        wanted = self.decision.required_disclosure_paths
        shown = self.briefing.disclose(self.skill, wanted)
        if shown:
            self.progress.idle = 0
        elif wanted and not self.pending:
            self.progress.nothing_done()
            self._note("You have already been shown what you requested. Act, or finish.")
        parts = [*self.pending, *shown]
        self._say(*(parts or [Part(Component.STATE, "Nothing more was disclosed. Continue.")]))
        return State.CALL_LLM

    # ── one decision ────────────────────────────────────────────────────────────────────────────────

    async def _call_llm(self) -> State:
        """Ask the model for a decision; a dry run ends here. Raises RunFailed after ``max_turns``."""
        mind = self.mind
        if self.assignment.dry_run:
            announce(self.transcript, mind.settings.model, self.recorder, 1)
            return self._end(ConclusionStatus.DRY_RUN, "dry_run", "the prompt was composed; nothing was called or run")
        if not self.attempt:
            self._check_stopped(FAILED)
            await self._hear_person()
            if self.turn >= self.turn_limit and not self.recorder.has_begun(f"llm:{self.turn + 1}.0"):
                advice = f"raise runtime.max_turns, or give a smaller task{self._last_words()}"
                raise RunFailed("max_turns_exceeded", f"not finished after {self.turn} turns: {advice}")
            self.briefing.forget(await self.asking.compose(self.turn + 1, self._keep))
            self.turn += 1
            self._check_stopped(UNANSWERED)
        self.answer = await self.asking.ask(self.turn, self.attempt)
        return State.DECODE_DECISION

    async def _hear_person(self) -> None:
        """Tell the model what a person says to the work in progress; a run by decisions is told nothing."""

    def _check_stopped(self, what: str) -> None:
        """Raise RunFailed where the run was stopped before; a run by decisions is never reopened."""

    def _last_words(self) -> str:
        """Return what is added to the failure of a run whose turns are over."""
        return ""

    async def _decode(self) -> State:
        """Decode the model's answer; an invalid one is repaired once."""
        decision = self.asking.decode(self.turn, self.attempt, self.answer)
        if decision is None:
            self.attempt = 1
            return State.CALL_LLM
        self.attempt = 0
        self.decision = decision
        self.progress.failed_now = False
        self._take_up(decision.selected_skill, decision.reasoning_summary)
        if self._steps():
            return State.EXECUTE_STEP
        return State.HANDOFF_OR_FINISH

    def _keep(self) -> tuple[Part, ...]:
        """Return what is kept word for word with a summary: the instructions of the selected skill."""
        self.briefing.forget((f"overview of {self.skill}", f"references of {self.skill}"))
        return tuple(self.briefing.disclose(self.skill, ())) if self.skill else ()

    def _steps(self) -> list[ActionStep]:
        """Return the actions to execute, without a finish and without handoffs to instructions."""
        return [
            action
            for action in self.decision.planned_actions
            if action.type is not ActionType.FINISH and self.actor.executable(action)
        ]

    # ── acting ──────────────────────────────────────────────────────────────────────────────────────

    async def _execute(self) -> State:
        """Execute the decision's actions up to the first failure."""
        results: list[StepExecutionResult] = []
        for number, action in enumerate(self._steps(), 1):
            if number == 1:
                self.pending += self.briefing.scripts(self.skill, action)
            result = await self._step(f"{self.turn}.{number}", action)
            results.append(result)
            self.progress.saw(action, result)
            if result.status in (StepStatus.FAILED, StepStatus.TIMEOUT):
                fallback = self._after_failure(action, result)
                self.pending.insert(0, results_part(self.turn, results))
                return State.HANDOFF_OR_FINISH if fallback else State.VERIFY_PROGRESS
        self.pending.insert(0, results_part(self.turn, results))
        return State.VERIFY_PROGRESS

    async def _step(self, name: str, action: ActionStep) -> StepExecutionResult:
        """Execute one action; a failed one is retried once if the policy allows it."""
        skill = self.mind.catalog.skills.get(self.skill)
        result = await self.actor.act(name, action, skill, 0)
        events.record_step(self.recorder, self.turn, self.skill, action, result)
        again = self.mind.settings.runtime.on_step_failure.startswith("retry_once")
        if (
            result.status in (StepStatus.FAILED, StepStatus.TIMEOUT)
            and again
            and action.type is not ActionType.CALL_TOOL
        ):
            self.recorder.event(EventType.STEP_RETRY_SCHEDULED, {"step_id": name, "retry": 1})
            self.machine.move(State.EXECUTE_STEP)
            result = await self.actor.act(f"{name}.r1", action, skill, 1)
            events.record_step(self.recorder, self.turn, self.skill, action, result)
        return result

    def _after_failure(self, action: ActionStep, result: StepExecutionResult) -> bool:
        """Return True if another skill takes over, False if the model continues with the error; or raise RunFailed."""
        policy = self.mind.settings.runtime.on_step_failure
        if action.type is ActionType.CALL_TOOL or policy.endswith("report"):
            return False
        if "fallback" in policy and (other := self.briefing.fallback(self.led)):
            self._take_up(other, f"step {result.step_id} failed ({result.status.value}), {other} is tried instead")
            self.decision = ModelDecision(selected_skill=other)  # drop the rest of the failed plan
            return True
        output = result.stderr_summary or result.stdout_summary or f"exit code {result.exit_code}"
        output = truncate(output, MAX_STORED_SUMMARY_CHARS)
        raise RunFailed("step_failed", f"step {result.step_id} ({action.type.value}) {result.status.value}: {output}")

    async def _verify(self) -> State:
        self.progress.check()
        if self._handed_to() or any(action.type is ActionType.FINISH for action in self.decision.planned_actions):
            return State.HANDOFF_OR_FINISH
        if self.decision.required_disclosure_paths:
            return State.DISCLOSE_CONTEXT_STAGE
        self._say(*self.pending)
        return State.CALL_LLM

    # ── handing over and ending ─────────────────────────────────────────────────────────────────────

    async def _handoff_or_finish(self) -> State:
        """Finish, hand over to another skill, or disclose the requested material."""
        finish = next((act for act in self.decision.planned_actions if act.type is ActionType.FINISH), None)
        if finish is not None and not self.progress.failed_now:
            return self._finish(finish)
        other = self._handed_to()
        if other and not self.progress.failed_now:
            self._hand_over(other)
        elif not (self.decision.required_disclosure_paths or self.pending):
            self.progress.nothing_done()
            self._note("You planned no action and requested nothing. Act, or finish.")
        return State.DISCLOSE_CONTEXT_STAGE

    def _handed_to(self) -> str:
        """Return the skill of a call_skill with instructions only, which takes over."""
        for action in self.decision.planned_actions:
            if action.type is ActionType.CALL_SKILL and not self.actor.executable(action):
                return str(action.params["skill"])
        return ""

    def _hand_over(self, other: str) -> None:
        if other == self.skill:
            self.progress.self_handoff(other)
            self._note(f"You are already using {other}. Follow its instructions, or finish.")
        elif other not in self.briefing.known_skills:
            self.progress.nothing_done()
            self._note(f"Skill {other!r} is not among the skills you were shown.")
        else:
            self.progress.note_handover(self.skill, other)
            self._take_up(other, self.decision.reasoning_summary or "handed over")

    def _take_up(self, name: str, reason: str) -> None:
        """Select another skill and record the reason."""
        if not name or name == self.skill or name not in self.briefing.known_skills:
            return
        events.record_handover(self.recorder, self.turn, self.skill, name, reason)
        self.skill = name
        self.led.add(name)

    def _finish(self, finish: ActionStep) -> State:
        """End the run with the structured result, or reject an invalid result."""
        fault, result = "", dict[str, Any]()
        try:
            result = json_params(finish.params.get("result"))
        except Undecodable as error:
            fault = f"params.result: {error}"
        if not fault and self.assignment.check_result is not None:
            fault = self.assignment.check_result(result)
        if not fault:
            return self._end(
                ConclusionStatus.FINISHED, "finished", str(finish.params.get("answer") or ""), result=result
            )
        self.result_faults += 1
        if self.result_faults > MAX_RESULT_FAULTS:
            raise RunFailed("result_invalid", f"the structured result is invalid: {fault}")
        self._say(
            *self.pending, Part(Component.STATE, f"The result was rejected: {fault}\nCorrect it and finish again.")
        )
        return State.CALL_LLM

    def _say(self, *parts: Part) -> None:
        self.transcript.say(*parts)
        self.pending = []

    def _note(self, text: str) -> None:
        self.pending.append(Part(Component.STATE, text))

    def _end(self, status: ConclusionStatus, reason: str, answer: str, **more: Any) -> State:
        """Set the conclusion and return DONE."""
        # Decoding may have unescaped a secret in the answer's text, so clean it again.
        clean = self.mind.redact
        more = {key: clean.value(value) if key == "result" else value for key, value in more.items()}
        self.conclusion = Conclusion(
            status,
            reason,
            clean.clean(answer),
            skill=self.skill,
            turns=self.turn,
            outputs=tuple(self.actor.outputs),
            spend=self.asking.spent,
            **more,
        )
        return State.DONE

    def _wait(self, status: ConclusionStatus, why: Exception, **more: Any) -> None:
        """End the run for now; journaled steps are not repeated when it continues."""
        self.machine.move(State.HANDOFF_OR_FINISH)
        self.machine.move(self._end(status, status.value, str(why), **more))

    async def _stop(self, reason: str, message: str, error: Exception | None) -> None:
        """End the run with a failure."""
        status = ConclusionStatus.BLOCKED if isinstance(error, ModelPaused) else ConclusionStatus.FAILED
        self._end(status, reason, message, error=error)
        self.machine.move(State.ERROR)
