"""The tools that every run offers besides those of its assignment, as the model sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fireswarm.contracts.llm.chat import ToolSpec
from fireswarm.llm.calls import ASK_USER, FINISH, READ_SKILL_FILE, RUN_COMMAND, USE_SKILL

COMMAND_OUTPUT = "command_output"
STOP_COMMAND = "stop_command"
SEARCH_SKILLS = "search_skills"
READ_OUTPUT = "read_output"
TODO = "todo"
DELEGATE = "delegate"
ASK = "ask"
TELL = "tell"
RECALL, REMEMBER = "recall", "remember"

TODO_STATES = ("pending", "in_progress", "completed")


def _spec(tool: str, description: str, required: tuple[str, ...], **properties: Mapping[str, Any]) -> ToolSpec:
    schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return ToolSpec(tool, description, schema | ({"required": list(required)} if required else {}))


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "description": description}


RUN_COMMAND_SPEC = _spec(
    RUN_COMMAND,
    "Runs a shell command and returns its output and exit code. The next command starts in the folder where this "
    "one ends. Files in /tmp may be gone then: keep them in the workspace or in $OUTPUT_DIR. The command gets no "
    "keyboard input. With background, it returns at once: use that for servers and long jobs.",
    ("command",),
    command=_text("the command line"),
    timeout_seconds={"type": "number", "exclusiveMinimum": 0, "description": "time limit, if the default is too short"},
    background={
        "type": "boolean",
        "description": "return at once; the command is stopped at the latest when this run ends",
    },
)
COMMAND_OUTPUT_SPEC = _spec(
    COMMAND_OUTPUT,
    "Returns the new output of a background command, and whether it is still running.",
    ("id",),
    id=_text("the command's id, such as c1"),
    wait_seconds={"type": "number", "minimum": 0, "description": "how long to wait for output or the end; default 0"},
)
STOP_COMMAND_SPEC = _spec(
    STOP_COMMAND,
    "Stops a background command and all its child processes, and returns the rest of its output.",
    ("id",),
    id=_text("the command's id, such as c1"),
)
USE_SKILL_SPEC = _spec(
    USE_SKILL,
    "Uses a skill. A skill with instructions returns them: follow them. A skill with code is run with `input` and "
    "its result is returned.",
    ("name", "reason"),
    name=_text("name of the skill"),
    reason=_text("why this skill, in one sentence for the operator"),
    input={"type": "object", "description": 'for a skill with code: its input, such as {"path": "data.csv"}'},
)
READ_SKILL_FILE_SPEC = _spec(
    READ_SKILL_FILE,
    "Returns a file of a skill, or one section (SKILL.md#Heading), with line numbers, in pages.",
    ("skill", "path"),
    skill=_text("name of the skill"),
    path=_text("path within the skill's folder"),
    offset=_number("number of the first line"),
    limit=_number("number of lines"),
)
SEARCH_SKILLS_SPEC = _spec(
    SEARCH_SKILLS,
    "Searches all skills. Use it when no skill in the list fits.",
    ("query",),
    query=_text("what the skill should do"),
)
READ_OUTPUT_SPEC = _spec(
    READ_OUTPUT,
    "Returns another page of the long output of an earlier call.",
    ("output", "page"),
    output=_text("the number of the output, given on its first page"),
    page=_number("number of the page"),
)
TODO_SPEC = _spec(
    TODO,
    "Replaces your to-do list, which the operator sees. Use it for work of three or more steps.",
    ("items",),
    items={
        "type": "array",
        "maxItems": 50,
        "items": {
            "type": "object",
            "required": ["text", "state"],
            "properties": {"text": _text("the item"), "state": {"type": "string", "enum": list(TODO_STATES)}},
        },
    },
)
ASK_USER_SPEC = _spec(
    ASK_USER,
    "Asks a person and waits for the answer. Use it only if nobody but the person can know or decide the answer.",
    ("question",),
    question=_text("the question"),
    options={
        "type": "array",
        "items": {"type": "string"},
        "description": "the possible answers; leave it out if any answer is possible",
    },
    other_answers={"type": "boolean", "description": "the options are suggestions: other words are an answer too"},
)
RECALL_SPEC = _spec(
    RECALL,
    "Searches what earlier tasks of this session learned. Returns the facts that fit best, with source, date and "
    "evidence. Use it before you look something up again.",
    ("query",),
    query=_text("names and words that the fact may contain, in its language"),
)
REMEMBER_SPEC = _spec(
    REMEMBER,
    "Stores one fact for later tasks of this session. Use it for what took work to find out and will still be true "
    "later, not for your answer or your plans. Store one fact per call.",
    ("fact", "evidence"),
    fact=_text("the fact, as one or two sentences that can be understood alone"),
    evidence={
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "description": "where it can be checked: file and line, URL, artifact, or a quote",
    },
    name=_text("short name of the subject, such as database-version; a later fact with this name replaces this one"),
    replaces=_text("id of a recalled fact that is no longer true"),
)
_DELEGATE_TEXT = (
    "Gives a part of the work to another role and waits for the result. Several calls in one answer run in parallel."
)


def delegate_spec(roles: Mapping[str, str], models: Mapping[str, bool]) -> ToolSpec:
    """Return the tool that hands work to one of *roles*, which says what each of them does.

    A model can be chosen if there are several *models*, an effort if one of them is used with it.
    """
    choice: dict[str, Any] = {}
    if len(models) > 1:
        choice["model"] = {"type": "string", "enum": list(models), "description": "default: the role's model"}
    if any(models.values()):
        with_effort = ", ".join(name for name, has_effort in models.items() if has_effort)
        text = f"how much the model thinks; only for {with_effort}"
        choice["effort"] = {"type": "string", "enum": ["low", "medium", "high"], "description": text}
    known = "\n".join(f"- {name}: {text}" for name, text in roles.items())
    spec = _spec(
        DELEGATE,
        _DELEGATE_TEXT,
        ("role", "objective"),
        role={"type": "string", "enum": list(roles), "description": f"the role that does it:\n{known}"},
        objective=_text("the task, self-contained: the role cannot read this conversation"),
        context={"type": "object", "description": 'inputs, such as {"path": "src"}'},
        expected_outcome=_text("how to tell that the task is done"),
        **choice,
    )
    return replace(spec, varies=True)


_TO = "a key of the plan (yours, or the one that you are part of), `parent` for the task that planned yours, or a role"
ASK_SPEC = _spec(
    ASK,
    "Asks another agent a question and waits for the answer. A task of the plan answers from its own conversation, "
    "also after its end. Several calls in one answer run in parallel.",
    ("to", "question"),
    to=_text(_TO),
    question=_text("the question, self-contained"),
)
TELL_SPEC = _spec(
    TELL,
    "Tells another agent something and goes on. It hears it before its next step. To get an answer, use ask.",
    ("to", "message"),
    to=_text("a key of the plan (yours, or the one that you are part of), or `parent` for the task that planned yours"),
    message=_text("what it should know"),
)


def finish_spec(schema: Mapping[str, Any]) -> ToolSpec:
    """Return the tool that ends a run with a structured result. An answer without calls ends it as well."""
    return _spec(
        FINISH,
        "Ends the task with your answer and a structured result. Without a structured result, just answer. If the task "
        "cannot be done, say so with status and reason: then no other task goes on as if it were done.",
        ("answer",),
        answer=_text("the answer to the task, in Markdown"),
        result=schema,
        status={"type": "string", "enum": ["done", "failed", "blocked"], "description": "default: done"},
        reason=_text("why the task failed, or what it is blocked by"),
    )
