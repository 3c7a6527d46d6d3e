"""The state shared by the calls of one run, and the way from a call to a recorded step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fireswarm.contracts.grant import Grant
from fireswarm.contracts.limits import MAX_KEPT_OUTPUT_BYTES, MAX_STORED_SUMMARY_CHARS, truncate
from fireswarm.contracts.llm.chat import ToolSpec
from fireswarm.contracts.ports import Recorder
from fireswarm.contracts.skills.artifact import OUTPUT_VARIABLE
from fireswarm.contracts.skills.given_files import INPUT_VARIABLE
from fireswarm.contracts.skills.skill import CALL_KEY, PlannedTask, SkillResult
from fireswarm.contracts.swarm.event import EventType
from fireswarm.mind import events, gate
from fireswarm.mind.approvals import Approvals, Preview, PreviewFailed
from fireswarm.mind.assignment import Assignment
from fireswarm.mind.briefing import Briefing
from fireswarm.mind.calls.kept import KeptWords
from fireswarm.mind.calls.outputs import Outputs
from fireswarm.mind.calls.results import RETRIED, SKIPPED, CallResult, Record, Step, refusal
from fireswarm.mind.calls.steering import SteeredSteps
from fireswarm.mind.commands.background import BackgroundCommands
from fireswarm.mind.commands.pinned import PinnedScripts
from fireswarm.mind.commands.place import CommandPlace
from fireswarm.mind.mind import Mind, RunFailed
from fireswarm.mind.progress import Progress
from fireswarm.processes.output import OutputTail
from fireswarm.processes.shell import Shell


@dataclass(slots=True)
class ToolRun:
    """The state of a run that its calls share.

    ``decision`` counts the answers of the model. ``skill`` is the skill in use, ``led`` all skills used so far.
    ``results`` are results of skills and stored artifacts. ``planned`` holds the tasks that the current answer
    delegates, by key, ``awaited`` the keys of those that an earlier turn created and that are still at work.
    ``finished`` is the answer and the result from the tool finish, ``asked`` counts questions to other agents.
    ``has_failed`` is True if a call of the current answer has failed.
    """

    mind: Mind
    assignment: Assignment
    recorder: Recorder
    grant: Grant
    shell: Shell
    briefing: Briefing
    place: CommandPlace
    background: BackgroundCommands
    approvals: Approvals
    steered: SteeredSteps
    outputs: Outputs
    pinned: PinnedScripts = field(default_factory=PinnedScripts)
    kept: KeptWords = field(default_factory=KeptWords)
    progress: Progress = field(default_factory=Progress)
    tools: Mapping[str, RunTool] = field(default_factory=dict[str, "RunTool"])
    decision: int = 0
    skill: str = ""
    led: set[str] = field(default_factory=set[str])
    results: list[SkillResult] = field(default_factory=list[SkillResult])
    planned: dict[str, PlannedTask] = field(default_factory=dict[str, PlannedTask])
    awaited: list[str] = field(default_factory=list[str])
    finished: tuple[str, dict[str, Any]] | None = None
    result_faults: int = 0
    asked: int = 0
    has_failed: bool = False

    @classmethod
    def begin(cls, mind: Mind, assignment: Assignment, recorder: Recorder) -> ToolRun:
        """Return the state at the beginning of a run."""
        shell = mind.shell
        folders = {} if assignment.outputs is None else {OUTPUT_VARIABLE: str(assignment.outputs)}
        folders |= {} if assignment.inputs is None else {INPUT_VARIABLE: str(assignment.inputs.folder)}
        if folders:
            shell = replace(shell, environment={**(shell.environment or {}), **folders})
        place = CommandPlace(assignment, mind.settings.runtime)
        named = mind.catalog.skills.get(assignment.named or "")
        return cls(
            mind,
            assignment,
            recorder,
            replace(assignment.grant, named=named),
            shell,
            Briefing(mind.settings.skills, mind.catalog, mind.router, assignment, recorder, mind.reranker),
            place,
            BackgroundCommands(shell, recorder, place.timeout_seconds),
            Approvals(assignment, recorder, mind.redact),
            SteeredSteps(assignment.steering, recorder),
            Outputs(mind.settings.runtime.max_output_bytes),
        )

    def take_up(self, name: str, reason: str) -> None:
        """Use another skill that the model knows, and record the reason."""
        if not name or name == self.skill or name not in self.briefing.known_skills:
            return
        events.record_handover(self.recorder, self.decision, self.skill, name, reason)
        self.skill = name
        self.led.add(name)
        self.grant = self.grant.using(self.mind.catalog.skills[name])

    def key_of(self, step_name: str) -> str:
        """Return the key of the task that a call creates."""
        return f"{CALL_KEY}{self.assignment.phase}.{step_name}"

    def result_of(self, key: str) -> str:
        """Return the result of a task that an earlier turn created; one at work suspends the run after this answer."""
        result = self.assignment.children[key]
        if result is not None:
            return result
        self.awaited.append(key)
        return "waiting for the result"

    def fault_of(self, result: Mapping[str, Any]) -> str:
        """Return the error of a structured result, or ""."""
        return self.assignment.check_result(result) if self.assignment.check_result is not None else ""

    def cut(self, text: str) -> str:
        """Remove secrets from a text, and shorten it to the maximum size of a result."""
        data = (clean := self.mind.redact.clean(text)).encode("utf-8", "replace")
        if len(data) <= MAX_KEPT_OUTPUT_BYTES:
            return clean
        tail = OutputTail(MAX_KEPT_OUTPUT_BYTES, "request less at a time")
        tail.add(data)
        return tail.text()

    async def act(
        self,
        step: Step,
        call: gate.Call,
        work: Callable[[], Awaitable[Record]],
        *,
        idempotent: bool,
        preview: Preview | None = None,
    ) -> CallResult:
        """Execute *work* once as a recorded step, if the gate or a person allows the call; returns its record.

        Raises NeedsAnswer for an open question, and every error that *work* raises.
        """
        if (step.begun or self.steered.leaves_out) and (left := await self.steered.leave_out(step)) is not None:
            return left
        if "denied" in step.begun:
            return refusal(await self.approvals.recall_denial(step))
        if "act" not in step.begun:  # otherwise its result is recorded, and nothing is executed
            match gate.decide(call, self.grant):
                case gate.Allow():
                    pass
                case gate.Deny(reason):
                    return refusal(reason)
                case gate.Ask(because):
                    try:
                        if reason := await self.approvals.ask(step, call, because, preview):
                            return refusal(reason)
                    except PreviewFailed as error:
                        work = error.fail
        stored = await self.recorder.step(f"act:{step.name}", work, idempotent=idempotent, skipped=SKIPPED)
        return CallResult.model_validate(stored | {"acted": True})

    async def act_by_policy(self, step: Step, act: Callable[[Step], Awaitable[CallResult]]) -> CallResult:
        """Execute a command or a skill's code; after a failure, do what ``runtime.on_step_failure`` says.

        Raises RunFailed if the policy ends the run.
        """
        policy = self.mind.settings.runtime.on_step_failure
        result = await act(step)
        if result.is_failure and policy.startswith("retry_once"):
            events.record_step(self.recorder, self.decision, self.skill, step, result)
            self.recorder.event(EventType.STEP_RETRY_SCHEDULED, {"step_id": step.name, "retry": 1})
            step = step.again(self.recorder.earlier_kinds(f"{step.name}{RETRIED}"))
            result = await act(step)
        if not result.is_failure or policy.endswith("report"):
            return result
        other = self.briefing.fallback(self.led) if "fallback" in policy else ""
        if not other:
            output = truncate(result.errors or result.text or f"exit code {result.exit_code}", MAX_STORED_SUMMARY_CHARS)
            raise RunFailed("step_failed", f"step {step.name} ({step.call.name}) {result.status.value}: {output}")
        events.record_step(self.recorder, self.decision, self.skill, step, result)
        self.take_up(other, f"step {step.name} failed ({result.status.value}); trying {other} instead")
        note = f"[trying {other} instead]\n{self.briefing.activation(other)}"
        return result.model_copy(update={"note": note, "recorded": True})


Handler = Callable[[ToolRun, Step], Awaitable[CallResult]]
"""Executes one call. Raises InvalidInput for an unusable input."""


@dataclass(frozen=True, slots=True)
class RunTool:
    """A tool of a run: its description for the model, and the function that executes a call.

    ``reads`` is True if its calls may run in parallel with other read-only calls.
    """

    spec: ToolSpec
    run: Handler
    reads: bool = False
