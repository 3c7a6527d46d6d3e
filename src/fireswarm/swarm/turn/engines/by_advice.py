"""Run a pipeline step: its code, its gate, and advice from a model or a person.

The swarm's model is asked once per question, as a journaled step. Without a model the task waits until a person
sends the advice with `swarm answer`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from fireswarm.contracts.limits import MAX_DETAIL_CHARS, MAX_OBJECTIVE_CHARS, MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.llm.step_names import answer_step, answer_steps
from fireswarm.contracts.skills.advice import Advice, AdviceKind, AdviceRequest, ExecutionMode, advice_schema
from fireswarm.contracts.skills.permissions import ADVISE
from fireswarm.contracts.skills.skill import Question, SkillRequest, SkillResult, SkillState
from fireswarm.contracts.swarm.task import canonical_json
from fireswarm.errors import GateFailed
from fireswarm.llm.asking import Asking
from fireswarm.llm.client import ModelClient
from fireswarm.llm.codecs.json_text import Undecodable, object_in, repair_request
from fireswarm.llm.prompt import Component, Part, Transcript
from fireswarm.mind import Mind
from fireswarm.pipelines import check_advice, check_step
from fireswarm.pipelines.definition import PipelineStep
from fireswarm.skills.packs.catalog import Skill
from fireswarm.swarm.turn.engines.by_code import run_in_process, run_journaled
from fireswarm.swarm.turn.engines.pipeline import inputs_of_step
from fireswarm.swarm.turn.recorder import JournalRecorder
from fireswarm.swarm.turn.state import Turn

MAX_QUESTIONS = 100
"""Maximum number of questions one step may ask its advisor, such as one for each operation."""

MAX_SAME_QUESTIONS = 3
"""How often a step may ask the same question."""

ANSWER = "advice"
"""Name of the question that a person answers in place of the advisor."""


@dataclass(frozen=True, slots=True)
class AdviceEngine:
    """Runs a pipeline step: its code and its gate, with advice on request."""

    skill: Skill
    mode: ExecutionMode
    because: str
    mind: Mind | None = None

    async def run(self, turn: Turn) -> SkillResult:
        """Run the step.

        Raises GateFailed for a result that its gate rejects, and InvalidInput for a step that no pipeline planned.
        """
        turn.request, step = await inputs_of_step(turn, self.skill)

        async def execute(request: SkillRequest) -> SkillResult:
            return await self._run_step(turn, step, request)

        return await run_journaled(turn, self.skill, execute, because=self.because)

    async def _run_step(self, turn: Turn, defined: PipelineStep, request: SkillRequest) -> SkillResult:
        """Run the step's code, and again after each piece of advice, until it requests no more."""
        step = self.skill.name
        asked: list[str] = []
        while True:
            result = await run_in_process(turn, self.skill, request)
            check_step(defined, self.mode, request, result)
            if result.asks is None or result.state is not SkillState.ADVICE_REQUIRED:
                return result
            asks = result.asks
            if asks.kind is AdviceKind.DATA:
                if not defined.answer_schema:
                    told = "name the JSON Schema of its answers in the pipeline: `advice: FILE.json`"
                    raise GateFailed(f"{step} asks for advice of the kind data: {told}")
                asks = asks.model_copy(update={"answer_schema": defined.answer_schema})
            asked.append(_digest(asks))
            if len(asked) > MAX_QUESTIONS or asked.count(asked[-1]) > MAX_SAME_QUESTIONS:
                raise GateFailed(f"{step} asks for advice again after {len(asked) - 1} answers")
            advice = await _advise(step, asks, request, turn, self.mind)
            if isinstance(advice, SkillResult):
                return advice
            request = request.model_copy(update={"advice": (*request.advice, advice)})


async def _advise(
    step: str, asks: AdviceRequest, request: SkillRequest, turn: Turn, mind: Mind | None
) -> Advice | SkillResult:
    """Return the advice, or a result with the question for a person if there is no model."""
    turn.journal.note(
        "advice_required",
        step=step,
        advice=asks.kind.value,
        scope=list(asks.scope),
        question=truncate(asks.question, MAX_DETAIL_CHARS),
    )
    place = f"{ADVISE}/{step}/{_digest(asks)}"
    answer = turn.task.answered.get(place, {}).get(ANSWER)
    if answer is not None:
        content, fault = _parse_operator_advice(asks, answer)
        if not fault:
            return Advice(kind=asks.kind, content=content, by="operator")
        return _ask_a_person(step, place, asks, f"the given advice cannot be used: {fault}")
    if mind is None or mind.client is None:
        return _ask_a_person(step, place, asks, mind.no_model if mind is not None else "this swarm has no model")
    return await _ask_model(step, asks, mind, mind.client, turn)


def _parse_operator_advice(asks: AdviceRequest, given: Any) -> tuple[dict[str, Any], str]:
    """Return the parsed advice and its error, "" if it is valid."""
    try:
        content = object_in(given) if isinstance(given, str) else dict(given)
    except (Undecodable, TypeError, ValueError) as error:
        return {}, str(error)
    return content, check_advice(asks, content)


def _digest(asks: AdviceRequest) -> str:
    content = asks.model_dump(mode="json", exclude=set() if asks.answer_schema else {"answer_schema"})
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def _ask_a_person(step: str, place: str, asks: AdviceRequest, why: str) -> SkillResult:
    """Return a result that asks a person for the advice, with the reason *why* and the JSON format."""
    wanted = {
        AdviceKind.CODE: '{"files": [{"path": ..., "content": ...}], "notes": ...}',
        AdviceKind.PATCH: '{"patch": "a unified diff", "explanation": ...}',
        AdviceKind.SCHEMA: '{"inferred": {...}, "trace": {"fields": {...}}}',
        AdviceKind.DATA: f"as this JSON Schema says: {canonical_json(asks.answer_schema)}",
    }[asks.kind]
    scope = f", within {', '.join(asks.scope)}" if asks.scope else ""
    text = (
        f"{step} needs advice of kind {asks.kind.value}{scope}, and no model can be asked: {why}. Set the model's "
        f"key and `swarm retry` the task, or answer in the model's place with JSON: {wanted}"
    )
    question = Question(
        name=ANSWER,
        description=truncate(f"{text}\n\n{asks.question}", MAX_OBJECTIVE_CHARS),
        type="object",
        step=place,
    )
    return SkillResult(
        state=SkillState.INPUT_REQUIRED, summary=truncate(text, MAX_RESULT_SUMMARY_CHARS), questions=(question,)
    )


async def _ask_model(step: str, asks: AdviceRequest, mind: Mind, client: ModelClient, turn: Turn) -> Advice:
    """Ask the model; after an unusable answer, ask once more with the error.

    Raises the model's errors, and GateFailed for unusable advice.
    """
    turn.journal.pending = turn.swarm.pending
    recorder = JournalRecorder(turn.journal, mind.redact, f"advice-{_digest(asks)}", mind.settings.model.stream)
    schema = advice_schema(asks)
    talk = Transcript(turn.swarm.advisor)
    material = "\n\n".join(f"# {piece.name}\n```\n{piece.text}\n```" for piece in asks.material)
    scope = f"\n\nScope: {', '.join(asks.scope)}" if asks.scope else ""
    talk.say(Part(Component.TASK, f"# The question\n{asks.question}{scope}\n\n{material}"))
    asking = Asking(client, recorder, talk, schema=schema, on_words=recorder.words if recorder.follows else None)
    if asks.kind in (AdviceKind.SCHEMA, AdviceKind.DATA):
        asking.native = False  # their maps may have free keys, which providers cannot enforce
    fault = ""
    for attempt in (0, 1):
        await asking.compose(attempt)
        answer = await asking.ask_once(0, answer_step(0, attempt))
        content, fault = _parse_model_advice(asks, answer.text)
        turn.journal.note(
            "advice_received",
            step=step,
            advice=asks.kind.value,
            attempt=attempt,
            ok=not fault,
            fault=truncate(fault, MAX_DETAIL_CHARS),
        )
        if not fault:
            return Advice(kind=asks.kind, content=content, by=client.model.name)
        if not attempt:
            talk.say(Part(Component.STATE, repair_request(fault, schema), "a repair"))
    failed = GateFailed(f"{step}: the advisor's answer cannot be used, even after a repair: {fault}")
    failed.redo_steps = tuple(f"{recorder.phase}/{step}" for step in answer_steps(0))
    raise failed


def _parse_model_advice(asks: AdviceRequest, text: str) -> tuple[dict[str, Any], str]:
    try:
        content = object_in(text)
    except Undecodable as error:
        return {}, str(error)
    return json.loads(json.dumps(content)), check_advice(asks, content)
