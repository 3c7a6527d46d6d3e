"""The scripted provider: fixed answers or a function, with the same answer to the same conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, ChatResponse, StopReason
from fireswarm.errors import ConfigError, ModelRejected, ModelUnavailable
from fireswarm.llm.providers.scripted import ScriptedModel, load_script
from fireswarm.runs.model_adapters import make_model
from fireswarm.settings import load_agent_settings

pytestmark = pytest.mark.anyio


def after(answers: int) -> ChatRequest:
    talk = [message for _ in range(answers) for message in (ChatMessage("user", "q"), ChatMessage("assistant", "a"))]
    return ChatRequest("system", (*talk, ChatMessage("user", "q")), 100)


async def test_answer_depends_only_on_the_conversation() -> None:
    model = ScriptedModel(["one", {"selected_skill": "two"}, ChatResponse(text="three")])
    for _ in range(2):
        assert [(await model.complete(after(turn))).text for turn in range(3)] == [
            "one",
            '{"selected_skill": "two"}',
            "three",
        ]
    assert model.calls == 6
    with pytest.raises(ModelRejected, match="the script has 3 answers, and this is call 4"):
        await model.complete(after(3))


async def test_sync_or_async_function_can_be_the_model() -> None:
    async def think(request: ChatRequest) -> str:
        return f"{len(request.messages)} messages"

    heard: list[str] = []
    assert (await ScriptedModel(think).complete(after(1), heard.append)).text == "3 messages"
    assert heard == ["3 messages"]


async def test_faults_and_stops_can_be_scripted() -> None:
    model = ScriptedModel(
        [{"error": 429, "retry_after": 7}, {"error": 401, "message": "no"}, {"text": "x", "stop": "refusal"}]
    )
    with pytest.raises(ModelUnavailable) as busy:
        await model.complete(after(0))
    assert busy.value.retry_after == 7
    with pytest.raises(ModelRejected, match="scripted answered 401: no"):
        await model.complete(after(1))
    assert (await model.complete(after(2))).stop is StopReason.REFUSAL
    assert await model.count_tokens(after(0)) is None
    assert model.preview(after(0))["messages"] == [{"role": "user", "text": "q"}]


async def test_script_can_be_loaded_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('["one"]')
    (tmp_path / "m.py").write_text("def answer(request):\n    return 'from python'\nnumber = 5\n")
    for spec, text in (("a.json", "one"), ("m.py:answer", "from python")):
        settings = load_agent_settings(None, {"model.provider": "scripted", "model.script": spec})
        assert (await make_model(settings, tmp_path, {}).complete(after(0))).text == text


@pytest.mark.parametrize(
    ("content", "spec", "told"),
    [
        (None, "none.json", "does not exist"), ("{", "a.json", "is not JSON"), ("{}", "a.json", "must hold a list"),
        ("x = 1", "a.py:answer", "has no function 'answer'"), ("answer = 5", "a.py:answer", "has no function 'answer'"),
        ("def f(:", "a.py:answer", "cannot be loaded: SyntaxError"), ("1/0", "a.py:answer",
        "cannot be loaded: ZeroDivision"),
        ("raise SystemExit", "a.py:answer", "cannot be loaded"),
    ],
)  # fmt: skip
def test_invalid_script_is_reported_with_the_reason(content: str | None, spec: str, told: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / spec.partition(":")[0]).write_text(content)
    with pytest.raises(ConfigError, match=told):
        load_script(spec, tmp_path)


def test_missing_script_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model.script must name"):
        make_model(load_agent_settings(None, {"model.provider": "scripted"}), tmp_path, {})
