"""Approvals by a person: the question for a call, the answer to it, and the record of both.

An approval is valid for one step and for exactly the call that was shown, in its folder, while the files that it
names stay as they are; with ``always``, for its rule in this folder and for this role. It is checked again right before
the call is executed. A recorded decision is asked for again only if the call was allowed, has not begun, and would now
make another change or read other files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import anyio.to_thread

from fireswarm.capabilities.text_diff import cut_diff
from fireswarm.contracts.grant import Grant
from fireswarm.contracts.limits import MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.ports import Recorder
from fireswarm.contracts.skills.permissions import (
    ALWAYS,
    APPROVAL,
    APPROVE,
    MAX_DIFF_CHARS,
    MAX_RULE_CHARS,
    NO,
    PLAN,
    REASON,
    YES,
    Approval,
)
from fireswarm.contracts.skills.skill import Question
from fireswarm.mind import gate
from fireswarm.mind.assignment import Assignment
from fireswarm.mind.calls.named_files import files_of
from fireswarm.mind.calls.results import CallResult, Record, Step
from fireswarm.redaction import Redactor, shows, spell

DIGEST_CHARS = 40
"""Of a request's id: 160 bits, so that nobody finds two actions with one id. A person types it after a run stopped."""
ASKED = "asked"
"""Name of the steps that note which action a person was asked about first."""

MAX_QUESTIONS = 3
"""Questions about one call whose files change while a person decides."""

Preview = Callable[[], Awaitable[str]]
"""Returns the change that a call would make, as a diff."""


class NeedsAnswer(Exception):
    """Stops the run until a question is answered."""

    def __init__(self, summary: str, questions: tuple[Question, ...]) -> None:
        super().__init__(summary)
        self.questions = questions


class PreviewFailed(Exception):
    """Stops an approval: the preview shows that the call would fail with *result*, so no person is asked."""

    def __init__(self, result: CallResult) -> None:
        super().__init__(result.errors)
        self.result = result

    async def fail(self) -> Record:
        """Return the record of the failure, in place of the call."""
        return self.result.record()


@dataclass(slots=True)
class Approvals:
    """The decisions of people in one run.

    ``decided`` holds the answers given at the terminal, by the place of their call.
    """

    assignment: Assignment
    recorder: Recorder
    redact: Redactor
    decided: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    one_question: anyio.Lock = field(default_factory=anyio.Lock)  # calls that run side by side ask one by one

    async def ask(self, step: Step, call: gate.Call, because: str, preview: Preview | None = None) -> str:
        """Let a person decide on a call; returns why it may not run, or "".

        *preview* returns the change to show. Raises NeedsAnswer until the answer is known, and PreviewFailed if the
        preview shows that the call would fail.
        """
        async with self.one_question:
            call = await self._as_it_is(call, preview)
            for _ in range(MAX_QUESTIONS):
                if reason := reason_too_long(call, self.redact.clean):
                    return reason
                if refused := await self._refusal(step, await self._decision(step.question, call, because)):
                    return refused
                approved, call = call, await self._as_it_is(call, preview)
                if call == approved:
                    return ""
        return "its files change while a person decides on it: it was not executed"

    async def _as_it_is(self, call: gate.Call, preview: Preview | None) -> gate.Call:
        """Return the call with its folder and role, the change that it would make now, and the hashes of its files."""
        diff = await preview() if preview is not None else call.diff
        return await anyio.to_thread.run_sync(bind_call, replace(call, diff=diff), self.assignment.grant)

    async def review(self, step: Step, call: gate.Call, because: str, plan: Sequence[Any]) -> tuple[str, Any]:
        """Let a person decide on a plan, its tasks as JSON. Raises NeedsAnswer until the answer is known.

        Returns why it may not run, or "", and the tasks as the person changed them, or None.
        """
        call = bind_call(call, self.assignment.grant)
        if reason := reason_too_long(call, self.redact.clean):
            return reason, None
        async with self.one_question:
            answers = await self._decision(step.question, call, because, plan)
        return await self._refusal(step, answers), answers.get(PLAN)

    async def _refusal(self, step: Step, answers: Mapping[str, Any]) -> str:
        """Return why a person refused, which is recorded, or ""."""
        refused = refusal_reason(answers)
        advice = "" if str(answers.get(REASON) or "").strip() else ". Do not try it again in another form."
        return refused and await self._record_denial(step, f"{refused}{advice}")

    async def recall_denial(self, step: Step) -> str:
        """Return why a person denied a call at an earlier start of the run."""
        return await self._record_denial(step, "")

    async def _record_denial(self, step: Step, reason: str) -> str:
        """Record and return why a person denied a call.

        If an earlier start recorded a reason, return that instead of *reason*.
        """

        async def tell() -> dict[str, Any]:
            return {"reason": reason}

        return str((await self.recorder.step(f"denied:{step.name}", tell, idempotent=True))["reason"])

    async def _first_asked(self, step: str, digest: str) -> str:
        """Return the hash of the action that a person was asked about first at this step; it is recorded."""

        async def note() -> dict[str, Any]:
            return {"digest": digest}

        return str((await self.recorder.step(f"{ASKED}:{step}", note, idempotent=True))["digest"])

    async def _decision(self, step: str, call: gate.Call, because: str, plan: Sequence[Any] = ()) -> dict[str, Any]:
        """Return a person's answers about a call. Raises NeedsAnswer without them."""
        place = place_of(call, f"{self.assignment.phase}/{step}")
        digest = place.rpartition("/")[2]
        changed = self.recorder.has_begun(f"{ASKED}:{step}") and await self._first_asked(step, digest) != digest

        async def decide() -> dict[str, Any]:
            known = {**self.assignment.answered, **self.decided}
            answers = decision_on(call, place, known)
            shown = self.redact.clean(spell(call.diff))
            is_cut = answers is None and len(shown) > MAX_DIFF_CHARS
            whole = await self.recorder.keep(f"{digest}.diff", shown) if is_cut else ""
            asked = questions_for(call, place, because, self.redact.clean, whole, changed=changed)
            asked += (_question_for_plan(place, self.redact.value(plan)),) if plan else ()
            if answers is None and self.assignment.ask is not None:
                answers = parse_word(await self.assignment.ask(asked[0]))
            if answers is None:
                raise NeedsAnswer(asked[0].description, asked)
            self.decided[place] = answers
            return dict(answers)

        async def remember() -> dict[str, Any]:
            return {APPROVAL: ALWAYS}

        always = f"{ALWAYS}:{_scope(call)}"
        if self.recorder.has_begun(always):  # at an earlier start of the run
            return await self.recorder.step(always, remember, idempotent=True)
        try:
            given = await self.recorder.step(f"{APPROVE}:{step}/{digest}", decide, idempotent=True)
        except NeedsAnswer:
            await self._first_asked(step, digest)
            raise
        if given.get(APPROVAL) == ALWAYS:
            await self.recorder.step(always, remember, idempotent=True)
        return given


def shown_text(call: gate.Call) -> str:
    """Return exactly what would run: the command line, or the name and the input of a tool or skill as JSON."""
    if call.tool == gate.BASH:
        return f"{call.argument}\n{call.note}" if call.note else call.argument
    return f"{call.name or call.tool} {input_text(call.inputs)}"


def input_text(inputs: Mapping[str, Any]) -> str:
    """Return the input of a tool or skill as it is shown for approval: JSON without characters that hide others."""
    return spell(json.dumps(inputs, ensure_ascii=False, sort_keys=True, default=str))


def place_of(call: gate.Call, step: str) -> str:
    """Return the name under which the answer is stored: the scope of ``always``, the step, and a hash of all shown.

    What was shown are the action, its change, and its files.
    """
    return f"{APPROVE}/{_scope(call)}/{step}/{_digest(call.tool, shown_text(call), call.diff, *call.files)}"


def reason_too_long(call: gate.Call, clean: Callable[[str], str]) -> str:
    """Return why a person cannot approve the call, or "": a call can be approved only if it was shown in full.

    *clean* removes secrets.
    """
    shown = shown_text(call)
    length = max(len(clean(_visible(shown))), len(shown))
    if length <= MAX_RULE_CHARS:
        return ""
    return (
        f"it needs an approval, but it has {length:,} characters and at most {MAX_RULE_CHARS:,} can be shown: take "
        f"smaller steps, or put a script into a file"
    )


def questions_for(
    call: gate.Call,
    place: str,
    because: str,
    clean: Callable[[str], str],
    whole_diff: str = "",
    *,
    changed: bool = False,
) -> tuple[Question, ...]:
    """Return the questions that ask a person for approval: the decision, and an optional reason for the model.

    *clean* removes secrets. *whole_diff* is where the whole change is stored if it is too long to be shown. *changed*
    is True if another action was shown when this question was asked first.
    """
    shown = clean(_visible(shown_text(call)))
    approval = Approval(
        tool=call.tool,
        shown=shown,
        diff=cut_diff(clean(spell(call.diff)), MAX_DIFF_CHARS, f"the whole change is in {whole_diff}"),
        whole_diff=whole_diff,
        rule=truncate(clean(spell(call.rule)), MAX_RULE_CHARS),
        because=truncate(clean(spell(because)), MAX_RULE_CHARS),
        folder=clean(spell(str(call.cwd or ""))),
        role=call.role,
        files=tuple(clean(spell(file)) for file in call.files),
        changed=changed,
    )
    decision = Question(
        name=APPROVAL,
        description=truncate(f"Allow {call.tool}: {shown}", MAX_RESULT_SUMMARY_CHARS),
        allowed={"enum": [YES, ALWAYS, NO]},
        step=place,
        approval=approval,
    )
    reason = Question(name=REASON, description="a reason for the model", required=False, step=place)
    return decision, reason


def _question_for_plan(place: str, plan: Any) -> Question:
    """Return the question for another plan than the proposed one, which is its default."""
    text = "the tasks to run in place of the proposed ones"
    return Question(name=PLAN, description=text, type="array", required=False, step=place, allowed={"default": plan})


def parse_word(answer: str | None) -> dict[str, Any] | None:
    """Parse a person's word at a terminal into answers: yes, always, or no with a reason after a colon."""
    if answer is None:
        return None
    word, _, reason = answer.partition(":")
    decision = word.strip().lower()
    return {APPROVAL: decision if decision in (YES, ALWAYS) else NO, REASON: reason.strip()}


def decision_on(call: gate.Call, place: str, answered: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the answers at *place*, or an earlier ``always`` for the call's rule; None if there are none."""
    given = answered.get(place)
    if given and given.get(APPROVAL) in (YES, ALWAYS, NO):
        return given
    always = f"{APPROVE}/{_scope(call)}/"
    for place, answers in answered.items():
        if place.startswith(always) and answers.get(APPROVAL) == ALWAYS:
            return {APPROVAL: ALWAYS}
    return None


def refusal_reason(answers: Mapping[str, Any]) -> str:
    """Return why the person refused, or "" for an approval."""
    if answers.get(APPROVAL) != NO:
        return ""
    reason = str(answers.get(REASON) or "").strip()
    return f"a person denied this action{f': {reason}' if reason else ''}"


def _visible(text: str) -> str:
    """Return the text as it is, or as JSON if it has characters that a screen does not show."""
    return text if shows(text) else json.dumps(text)


def bind_call(call: gate.Call, grant: Grant) -> gate.Call:
    """Return the call as an approval names it: with its folder, its role, and its files with their hashes now."""
    bound = replace(call, cwd=call.cwd or grant.cwd, role=grant.role)
    return replace(bound, files=files_of(bound, grant.cwd))


def _scope(call: gate.Call) -> str:
    """Return a hash of what an ``always`` is valid for: the rule, the folder and the role."""
    return _digest(call.rule, str(call.cwd or ""), call.role)


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:DIGEST_CHARS]
