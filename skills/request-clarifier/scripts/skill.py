"""Ask for missing parts of a request, round by round, and record the answers."""

from __future__ import annotations

from fireswarm import (
    MAX_DETAIL_CHARS,
    AgentResponse,
    Artifact,
    ConversationView,
    InputField,
    InputRequest,
    PocketFact,
    SkillRequest,
    TaskState,
    truncate,
)

FORMS = ("report", "list", "table", "code")
AUDIENCE = InputField(name="audience", description="Who will read or use the result?")
FORM = InputField(name="form", description=f"What should it be? One of {', '.join(FORMS)}.", allowed={"enum": FORMS})
LIMITS = InputField(name="limits", description="What limits apply: length, sources, a date? Optional.", required=False)


def run(request: SkillRequest) -> AgentResponse:
    """One turn: ask for what is missing, or write the brief."""
    talk = request.conversation or ConversationView(
        context_id=request.task_id, turn=1, max_turns=1, inputs={**request.context, **request.answers}
    )
    missing = [field for field in (AUDIENCE, FORM) if not talk.inputs.get(field.name)]
    if missing:
        return _ask(missing, "Needed before work can begin:")
    if talk.inputs["form"] in ("report", "code") and "limits" not in talk.inputs and not talk.fact("asked_for_limits"):
        return _ask([LIMITS], "One more question:", PocketFact(key="asked_for_limits", value=True))
    return _brief(request, talk)


def _ask(fields: list[InputField], message: str, *facts: PocketFact) -> AgentResponse:
    return AgentResponse(
        state=TaskState.INPUT_REQUIRED,
        message=f"{message} {' '.join(field.description for field in fields)}",
        input_request=InputRequest(missing_fields=tuple(fields), message=message),
        facts=facts,
    )


def _brief(request: SkillRequest, talk: ConversationView) -> AgentResponse:
    limits = str(talk.inputs.get("limits") or "none named")
    brief = {
        "objective": request.objective,
        "audience": talk.inputs["audience"],
        "form": talk.inputs["form"],
        "limits": limits,
        "rounds": talk.turn - 1,
    }
    summary = truncate(f"A {brief['form']} for {brief['audience']}; limits: {limits}.")
    artifact = Artifact(type="brief", name="brief", summary=truncate(summary, MAX_DETAIL_CHARS), value=brief)
    return AgentResponse(state=TaskState.COMPLETED, message=summary, artifacts=(artifact,))
