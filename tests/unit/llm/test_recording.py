"""A recording of several roles' answers as a model: it chooses the conversation, and refuses one that does not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, ToolOutput, ToolSpec
from fireswarm.errors import ConfigError, ModelRejected
from fireswarm.llm.providers.scripted import ScriptedModel, load_script

pytestmark = pytest.mark.anyio

LOOK: dict[str, Any] = {"text": "I look.", "calls": [{"name": "list_files", "input": {"path": "$WORKSPACE"}}]}
SCOUT = {"role": "Scout", "answers": [LOOK]}
OTHER = {"role": "Scouting", "answers": [{"text": "wrong"}]}


def load(folder: Path, content: Any) -> ScriptedModel:
    (folder / "r.json").write_text(json.dumps(content))
    return ScriptedModel(load_script("r.json", folder))


def request(system: str = "# Scout\n\nYou look.", *told: str, workspace: str = "/w") -> ChatRequest:
    first = ChatMessage("user", f"# Task\nlook\n\n# Surroundings\nWorkspace: {workspace}")
    messages = [first]
    for text in told:
        outputs = (ToolOutput(call_id="1", name="x", text=text),)
        messages += [ChatMessage("assistant", "…"), ChatMessage("user", "", outputs=outputs)]
    tools = (ToolSpec("list_files", "Lists.", {}),)
    return ChatRequest(system, tuple(messages), 100, tools=tools, answers=len(told))


async def test_role_in_the_system_text_chooses_the_conversation(tmp_path: Path) -> None:
    model = load(tmp_path, {"conversations": [OTHER, SCOUT]})
    assert model.knows_tools
    answer = await model.complete(request(workspace='/a "b" \\c'))
    assert (answer.text, answer.calls[0].input) == ("I look.", {"path": '/a "b" \\c'})


async def test_answer_after_something_unexpected_is_refused_with_what_was_said(tmp_path: Path) -> None:
    answers = [LOOK, {"expects": "2 failed", "text": "Two fail."}]
    model = load(tmp_path, {"conversations": [{"role": "Scout", "answers": answers}]})
    assert (await model.complete(request("# Scout", "2 failed, 1 passed"))).text == "Two fail."
    with pytest.raises(ModelRejected, match=r"'2 failed' is not in the last message:\n\n?3 passed"):
        await model.complete(request("# Scout", "3 passed"))


async def test_text_of_the_task_chooses_between_conversations_of_one_role(tmp_path: Path) -> None:
    other = {"role": "Scout", "told": "# Task\nlisten", "answers": [{"text": "I listen."}]}
    here = {"role": "Scout", "told": "# Task\nlook", "answers": [{"text": "I look here."}]}
    model = load(tmp_path, {"conversations": [other, here, SCOUT]})
    assert (await model.complete(request())).text == "I look here."
    with pytest.raises(ModelRejected, match="has no conversation of this role and task; it has Scout"):
        await load(tmp_path, {"conversations": [other]}).complete(request())


@pytest.mark.parametrize("system", ["# Architect", "Scout", "## Scout", "# Scouts"])
async def test_role_without_a_conversation_is_refused(system: str, tmp_path: Path) -> None:
    with pytest.raises(ModelRejected, match="has no conversation of this role and task; it has Scout"):
        await load(tmp_path, {"conversations": [SCOUT]}).complete(request(system))


async def test_call_after_the_last_answer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelRejected, match="has 1 answers of Scout, and this is call 2"):
        await load(tmp_path, {"conversations": [SCOUT]}).complete(request("# Scout", "a"))


@pytest.mark.parametrize(
    "content",
    [{}, {"conversations": []}, {"conversations": "x"}, {"conversations": [3]}, {"conversations": [{"role": "a"}]},
     {"conversations": [{"role": "a", "answers": ["text"]}]}, "text", 3, None],
)  # fmt: skip
async def test_other_content_is_refused_on_loading(content: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.script: .*r\.json"):
        load(tmp_path, content)
